/* A ring of libmulticast-local whose publisher drops the oldest.
 *
 *   publish       ring_make_room, show_oldest, ring_write, ring_show in
 *                 Sources/Transports/Local/ring.c
 *   read_ring     reader_read, read_one, catch_up in reader.c
 *
 * The publisher stores how far it will overwrite (OLDEST), then how much of that was for the
 * reader, then which count is whole (COUNTED); then it overwrites. The reader copies an entry, and
 * looks at OLDEST afterwards. If the publisher was killed, the reader believes COUNTED instead:
 * nothing behind it is overwritten yet.
 *
 * Proved: nothing that is torn is delivered; each number is delivered, or is counted as lost, once;
 * so also if the publisher is killed after any step.
 *
 * Threads: the publisher, P, which publishes NUMBERS entries to a ring with room for SIZE. An entry
 * is two words, both its number. The reader, R, has no stores but those of its own variables.
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
#define COUNTED 2         /* twice the position; and which count */
#define DROPPED(which) (3 + (which))
#define ENTRY(position) (5 + (position) % SIZE * 2)
#define WORDS (5 + SIZE * 2)
#define THREADS 2
#define BUFFERED 1
#define P 0
#define R 1

#include "memory.pml"

bool is_over; /* the process of the publisher has ended */

/* Where it may be killed. What is in its store buffer comes to memory all the same. */
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
                               step(DROPPED(which), position); /* all were for the reader */
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

/* READ_OVERWRITTEN, if the publisher is writing: then it is tried again. */
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
  :: else -> assert(!is_killed) /* else it is tried for ever */
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
     assert(first == position + 1 && second == position + 1); /* nothing is torn */
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
  assert(count + lost == head); /* each is delivered, or counted */
  done++
}

init { done == THREADS }
