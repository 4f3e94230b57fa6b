/* Lists: growth and compaction while others read, and when a list that was replaced is freed.
 *
 *   invoke, leave          Multicast+Invoke.swift: invoke, leave
 *   add                    Multicast+Add.swift: insert, into a larger list
 *   remove                 Multicast+Unlink.swift: unlink, tidy; Cleanup.swift: finishSlowly
 *   mark                   Multicast+Storage.swift: mark, in the retired lists too
 *   replace_list           Multicast+Storage.swift: replaceList
 *   reap, is_reading       Multicast+Storage.swift: reap; ThreadRecord.swift: isReading
 *   fence                  Ticket.swift: fence, isFenced
 *
 * Lists are numbered from 1; each delegate keeps its place in all of them. Who waits for a call
 * looks again and again here: invoke_remove.pml shows that no wake-up is lost.
 *
 * Threads: A and B invoke, G grows the list, R removes delegate 1.
 *
 * Variants: HAS_B, TWICE (A invokes twice), OTHER (in between another multicast, in the same
 * frame), NESTED (A invokes again inside its last call), HAS_G (how often the list grows), HAS_R,
 * TIDY (R puts a smaller list in its place), WRITERS_BUFFERED.
 */

#ifndef HAS_B
#define HAS_B 0
#endif
#ifndef TWICE
#define TWICE 0
#endif
#ifndef OTHER
#define OTHER 0
#endif
#ifndef NESTED
#define NESTED 0
#endif
#ifndef HAS_G
#define HAS_G 0
#endif
#ifndef HAS_R
#define HAS_R 0
#endif
#ifndef TIDY
#define TIDY 0
#endif

#define FRAMES_OF_A (1 + NESTED)
#define FRAMES (FRAMES_OF_A + HAS_B)
#define LISTS (1 + HAS_G + TIDY)
#define PLACES 2
#define MULTICAST(f) (f)
#define EPOCH(f) (FRAMES + (f))
#define READS(f) (2 * FRAMES + (f))
#define DELEGATE(f) (3 * FRAMES + (f))
#define LIST (4 * FRAMES)
#define PENDING (LIST + 1)
#define TICKET (LIST + 2)
#define STRIPE (LIST + 3)
#define COUNT(l) (STRIPE + (l))
#define DEAD(l, p) (STRIPE + 1 + LISTS + ((l) - 1) * PLACES + (p))
#define WORDS (STRIPE + 1 + LISTS * (1 + PLACES))
#define THREADS 4
#if WRITERS_BUFFERED
#define BUFFERED 4
#define BUFFER 5
#else
#define BUFFERED 2
#endif

#include "memory.pml"

#define OURS 1
#define THEIRS 2       /* another multicast */
#define OF_THEIRS 9    /* its list */

byte fenced;           /* changed by read-modify-writes, and read under the lock */
byte list_count = 1;
byte ticket_of[LISTS + 1];
bit is_retired[LISTS + 1];
bit is_free[LISTS + 1];
bit freed; /* delegate 1: removed, in no call, its context let go of */

/* ---- Tickets -------------------------------------------------------------------------------- */

inline draw(me, ticket) {
  d_step { EMPTY(me) -> mem[TICKET] = mem[TICKET] + 1; ticket = mem[TICKET] }
}

inline fence(me) {
#ifdef LAST_TICKET_READ_AFTER_FENCE
  heavy(me, unfenced);
  load(me, TICKET, x);
#else
  load(me, TICKET, x);
#ifndef NO_FENCE
  heavy(me, unfenced);
#endif
#endif
  d_step {
    if
    :: fenced < x -> fenced = x
    :: else
    fi;
    x = 0
  }
}

/* ---- Freeing -------------------------------------------------------------------------------- */

inline is_reading(me, list, seen) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, MULTICAST(f), x);
     if
     :: x == 0 -> f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
     :: x == OURS ->
        load(me, EPOCH(f), x);
        if
        :: x < ticket_of[list] ->
           load(me, READS(f), x);
           d_step {
             if
#ifdef UNKNOWN_LIST_IS_ANOTHER
             :: x == list -> seen = 1
#else
             :: x == 0 || x == list -> seen = 1
#endif
             :: else
             fi;
             f++
           }
        :: else -> f++
        fi
     :: else -> f++
     fi;
     x = 0
  :: else -> break
  od;
  f = 0
}

/* Under the lock; the newest first. */
inline reap(me) {
  kept = 0;
  l = list_count;
  do
  :: l > 0 ->
     if
     :: is_retired[l] ->
        found = 0;
        if
#ifdef FREED_UNFENCED
        :: false -> skip
#else
        :: ticket_of[l] > fenced -> found = 1
#endif
        :: else -> is_reading(me, l, found)
        fi;
        d_step {
          if
          :: found -> kept = 1
          :: else ->
             printf("thread %d frees list %d\n", me, l);
             is_retired[l] = 0;
             is_free[l] = 1
          fi;
          found = 0
        }
     :: else
     fi;
     l--
  :: else -> break
  od;
  if
#ifdef PENDING_CLEARED_TOO_EARLY
  :: true -> store(me, PENDING, 0)
#else
  :: !kept -> store(me, PENDING, 0)
  :: else
#endif
  fi;
  kept = 0
}

inline flush(me) {
  lock(me, STRIPE);
  reap(me);
  unlock(me, STRIPE)
}

/* ---- Writers, under the lock ---------------------------------------------------------------- */

/* Puts the list `new` in the place of `old`. */
inline replace_list(me) {
#ifdef TICKET_BEFORE_LIST
  draw(me, ticket);
  store(me, LIST, new);
#else
  store(me, LIST, new);
  draw(me, ticket);
#endif
  d_step {
    printf("thread %d replaces list %d by %d\n", me, old, new);
    ticket_of[old] = ticket;
    is_retired[old] = 1
  };
#ifndef PENDING_AFTER_FENCE
  store(me, PENDING, ticket);
#endif
  old = 0;
  new = 0
}

/* In an atomic: copies a list, with the dead, who keep their places here; readers skip them all the
 * same. The list is nobody's yet. */
inline copy(me) {
  d_step {
    load_here(me, LIST, old);
    list_count++;
    new = list_count
  };
  d_step {
    load_here(me, DEAD(old, 0), x);
    mem[DEAD(new, 0)] = x;
    load_here(me, DEAD(old, 1), x);
    mem[DEAD(new, 1)] = x;
    load_here(me, COUNT(old), x);
    mem[COUNT(new)] = x;
    x = 0
  }
}

/* The last part of every writer. */
inline clean_up(me) {
  fence(me);
#ifdef PENDING_AFTER_FENCE
  store(me, PENDING, ticket);
#endif
  ticket = 0;
#ifndef NOT_FREED_BY_WRITER
  flush(me)
#else
  skip
#endif
}

inline add(me) {
  atomic {
    lock(me, STRIPE);
    copy(me);
    mem[COUNT(new)] = 2
  };
  replace_list(me);
  unlock(me, STRIPE);
  clean_up(me)
}

inline mark(me) {
  l = list_count;
  do
  :: l > 0 ->
     load(me, LIST, x);
     if
#ifdef RETIRED_NOT_MARKED
     :: x == l -> store(me, DEAD(l, 0), 1)
#else
     :: x == l || is_retired[l] -> store(me, DEAD(l, 0), 1)
#endif
     :: else
     fi;
     x = 0;
     l--
  :: else -> break
  od
}

inline remove(me) {
  lock(me, STRIPE);
  printf("thread %d removes delegate 1\n", me);
  mark(me);
#if TIDY
  copy(me);
  replace_list(me);
#endif
  unlock(me, STRIPE);
#if TIDY
  clean_up(me);
#else
  fence(me);
#endif
  /* see_off: frames that name it */
  f = 0;
  do
  :: f < FRAMES ->
     load(me, MULTICAST(f), x);
     if
     :: x ->
        load(me, DELEGATE(f), x);
        if
        :: x == 1 -> x = 0; f = 0
        :: else -> x = 0; f++
        fi
     :: else -> f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
     fi
  :: else -> break
  od;
  f = 0;
  d_step { printf("thread %d: delegate 1 is gone\n", me); freed = 1 }
}

/* ---- Invocations ---------------------------------------------------------------------------- */

inline publish(me, frame, m, list) {
#ifdef EPOCH_READ_AFTER_FRAME
  store(me, READS(frame), 0);
  store(me, MULTICAST(frame), m);
  light(me);
  load(me, TICKET, epoch);
  store(me, EPOCH(frame), epoch);
  load(me, LIST, list)
#else
#ifdef EPOCH_READ_AFTER_LIST
  store(me, EPOCH(frame), 1);
  store(me, READS(frame), 0);
  store(me, MULTICAST(frame), m);
  light(me);
  load(me, LIST, list);
  load(me, TICKET, epoch);
  store(me, EPOCH(frame), epoch)
#else
  load(me, TICKET, epoch);
#ifdef EPOCH_STORED_AFTER_FRAME
  store(me, MULTICAST(frame), m);
  store(me, EPOCH(frame), epoch);
  store(me, READS(frame), 0);
#else
  store(me, EPOCH(frame), epoch);
#ifdef LIST_CLEARED_AFTER_FRAME
  store(me, MULTICAST(frame), m);
  store(me, READS(frame), 0);
#else
#ifndef LIST_NOT_CLEARED
  store(me, READS(frame), 0);
#endif
#if defined(NO_LIGHT_AFTER_FRAME) && !SYMMETRIC
  load(me, LIST, list);
#endif
  store(me, MULTICAST(frame), m);
#endif
#endif
#ifndef NO_LIGHT_AFTER_FRAME
  light(me);
#endif
#if !defined(NO_LIGHT_AFTER_FRAME) || SYMMETRIC
  load(me, LIST, list)
#else
  skip
#endif
#endif
#endif
}

inline use(list) { assert(!is_free[list]) } /* nothing is used after it was freed */

inline read_list(me, frame, list, place, count) {
  store(me, READS(frame), list);
  d_step { use(list); load_here(me, COUNT(list), count) };
#ifdef FRAME_LEFT_TOO_EARLY
  store(me, MULTICAST(frame), 0);
#endif
  place = 0;
  do
  :: place < count ->
     store(me, DELEGATE(frame), place + 1);
     light(me);
     d_step { use(list); load_here(me, DEAD(list, place), x) };
     if
     :: !x ->
        d_step {
          printf("thread %d calls delegate %d in list %d\n", me, place + 1, list);
          assert(place > 0 || !freed) /* no call after the removal has returned */
        };
#if NESTED
        if
        :: place + 1 == count && frame == 0 && me == 0 -> invoke_inner(0, 1)
        :: else
        fi;
#endif
        assert(place > 0 || !freed)
     :: else
     fi;
     x = 0;
     store(me, DELEGATE(frame), 0);
     light(me);
     d_step { use(list); place++ }
  :: else -> break
  od;
  place = 0;
  count = 0;
  list = 0
}

inline leave(me, frame) {
#ifdef NO_LIGHT_AFTER_LEAVING
#if SYMMETRIC
  store(me, MULTICAST(frame), 0);
  load(me, PENDING, x);
#else
  load(me, PENDING, x);
  store(me, MULTICAST(frame), 0);
#endif
#else
  store(me, MULTICAST(frame), 0);
  light(me);
  load(me, PENDING, x);
#endif
  if
#ifdef NOT_FREED_BY_READER
  :: true -> x = 0
#else
  :: x > epoch -> x = 0; flush(me)
#endif
  :: else -> x = 0
  fi;
  epoch = 0
}

#if NESTED
inline invoke_inner(me, frame) {
  outer_epoch = epoch;
  publish(me, frame, OURS, inner_list);
  store(me, READS(frame), inner_list);
  d_step { use(inner_list); load_here(me, COUNT(inner_list), x); x = 0 };
  d_step { use(inner_list); inner_list = 0 };
  leave(me, frame);
  epoch = outer_epoch;
  outer_epoch = 0
}
#endif

inline invoke(me, frame) {
  publish(me, frame, OURS, list);
  read_list(me, frame, list, place, count);
  leave(me, frame)
}

/* An invocation of something else, in the frame that was just used. */
inline invoke_other(me, frame) {
  load(me, TICKET, epoch);
  store(me, EPOCH(frame), epoch);
  store(me, READS(frame), 0);
  store(me, MULTICAST(frame), THEIRS);
  light(me);
  store(me, READS(frame), OF_THEIRS);
  store(me, MULTICAST(frame), 0);
  epoch = 0
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x, f, l, unfenced, list, place, count, epoch; bit found, kept
#define WRITER_LOCALS byte x, f, l, unfenced, old, new, ticket; bit found, kept

proctype A() {
  LOCALS;
#if NESTED
  byte outer_epoch, inner_list;
#endif
  byte times;
  do
  :: times <= TWICE ->
#if OTHER
     if
     :: times == 1 -> invoke_other(0, 0)
     :: else
     fi;
#endif
     invoke(0, 0);
     times++
  :: else -> break
  od;
  done++
}

#if HAS_B
proctype B() {
  LOCALS;
  invoke(1, FRAMES_OF_A);
  done++
}
#endif

#if HAS_G
proctype G() {
  WRITER_LOCALS;
  byte times;
  do
  :: times < HAS_G -> add(2); times++
  :: else -> break
  od;
  done++
}
#endif

#if HAS_R
proctype R() {
  WRITER_LOCALS;
  remove(3);
  done++
}
#endif

init {
  byte each;
  d_step {
    mem[TICKET] = 1;
    mem[LIST] = 1;
    mem[COUNT(1)] = 1
  };
  atomic {
    run A();
#if HAS_B
    run B();
#endif
#if HAS_G
    run G();
#endif
#if HAS_R
    run R();
#endif
    skip
  };
  d_step {
    done == 1 + HAS_B + (HAS_G > 0) + HAS_R && DRAINED ->
    assert(mem[PENDING] == 0);
    each = 1;
    do
    :: each <= LISTS ->
       assert(!is_retired[each]); /* nothing is left that nobody would come back to */
       assert(is_free[each] == (each != mem[LIST]));
       each++
    :: else -> break
    od
  }
}
