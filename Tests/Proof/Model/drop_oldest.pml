/* A ring of libmulticast-local whose publisher drops the oldest entries when the ring is full.
 *
 *   publish       ring_make_room, show_oldest, ring_write, ring_show in
 *                 Sources/Transports/Local/ring.c
 *   read_ring     reader_read, read_one, catch_up in reader.c
 *
 * Before it overwrites entries, the publisher stores three values: the position up to which it will
 * overwrite (OLDEST), the number of those entries that were for the reader (DROPPED), and which of
 * the two counts is complete (COUNTED). The reader copies an entry and reads OLDEST afterwards. If
 * the publisher was killed, the reader uses the position in COUNTED instead, because no entry after
 * that position has been overwritten.
 *
 * The model proves that no torn entry is delivered, and that each number is either delivered once
 * or counted once as lost, even if the publisher is killed after any step.
 *
 * Threads: the publisher P publishes NUMBERS entries to a ring with room for SIZE entries. An entry
 * is two words, which both contain its number. The reader R stores only to its own variables.
 *
 * Variants: NUMBERS=4, SIZE=2, KILLED=0 (1: at any moment).
 */

#ifndef NUMBERS
#define NUMBERS 4
#endif
#ifndef SIZE
#define SIZE 2
#endif
#ifndef KILLED
#define KILLED 0
#endif

#define HEAD 0
#define OLDEST 1
#define COUNTED 2         /* 2 * position + index of the complete count */
#define DROPPED(which) (3 + (which))
#define ENTRY(position) (5 + (position) % SIZE * 2)
#define WORDS (5 + SIZE * 2)
#define THREADS 2
#define BUFFERED 1
#define P 0
#define R 1

#include "memory.pml"

bool is_over; /* the process of the publisher has ended */

/* A point at which the publisher may be killed. Its buffered stores still reach memory. */
#define MOMENT EITHER(KILLED, if :: goto killed :: skip fi, skip)

inline step(address, value) {
  MOMENT;
  store(P, address, value)
}

inline show_oldest(position) {
  UNLESS(ONE_COUNT, which = 1 - which;)
  UNLESS(OLDEST_AFTER_BYTES, step(OLDEST, position);)
  EITHER(COUNTED_BEFORE_COUNT, step(COUNTED, position * 2 + which);
                               step(DROPPED(which), position),
                               step(DROPPED(which), position); /* all are for R */
                               step(COUNTED, position * 2 + which))
}

active proctype Publisher() {
  byte number, which;
  for (number : 1 .. NUMBERS) {
    when(number > SIZE, show_oldest((number - SIZE)));
    IF(HEAD_BEFORE_BYTES, step(HEAD, number);)
    step(ENTRY(number - 1), number);
    step(ENTRY(number - 1) + 1, number);
    IF(OLDEST_AFTER_BYTES, when(number > SIZE, step(OLDEST, number - SIZE));)
    UNLESS(HEAD_BEFORE_BYTES, step(HEAD, number);)
    printf("thread P: has published %d\n", number)
  };
killed:
  is_over = true;
  done++
}

/* Sets `oldest`. */
inline look_at_oldest() {
  EITHER(OLDEST_OF_KILLED, load(R, OLDEST, oldest),
                           if
                           :: is_killed -> load(R, COUNTED, oldest); oldest = oldest / 2
                           :: else -> load(R, OLDEST, oldest)
                           fi)
}

/* Skips the overwritten entries. If the publisher is currently overwriting entries, this changes
 * nothing (READ_OVERWRITTEN in the sources), and the reader tries again. */
inline catch_up() {
  load(R, COUNTED, counted);
  load(R, DROPPED(counted % 2), dropped);
  look_at_oldest();
  if
  :: oldest == counted / 2 && oldest >= position ->
     load(R, HEAD, head);
     position = oldest;
     printf("thread R: has lost %d\n", dropped - seen);
     assert(dropped >= seen);
     lost = lost + dropped - seen;
     seen = dropped
  :: else -> assert(!is_killed) /* otherwise it would retry forever */
  fi;
  counted = 0;
  dropped = 0
}

inline read_one() {
  IF(CHECK_BEFORE_COPY, look_at_oldest();)
  load(R, ENTRY(position), first);
  load(R, ENTRY(position) + 1, second);
  IF(NO_CHECK_AFTER_COPY, oldest = 0;)
#if !defined(CHECK_BEFORE_COPY) && !defined(NO_CHECK_AFTER_COPY)
  look_at_oldest();
#endif
  if
  :: oldest > position -> catch_up()
  :: else ->
     printf("thread R: reads %d %d\n", first, second);
     assert(first == position + 1 && second == position + 1); /* not torn */
     position++;
     seen++;
     count++
  fi;
  first = 0;
  second = 0;
  oldest = 0
}

active proctype Reader() {
  byte position, head, oldest, counted, dropped, first, second, seen, count, lost;
  bool is_killed;
  do
  :: true ->
     is_killed = is_over && BUFFER_IS_EMPTY(P);
     load(R, HEAD, head);
     do
     :: position != head -> read_one(); is_killed = is_over && BUFFER_IS_EMPTY(P)
     :: else -> break
     od;
     when(is_killed, load(R, HEAD, head); if :: position == head -> break :: else fi)
  od;
  assert(count + lost == head); /* delivered or counted as lost */
  done++
}

init { done == THREADS }
