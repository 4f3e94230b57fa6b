/* Epoch-based reclamation of the lists of a multicast, which grow and are compacted while
 * invocations read them.
 *
 * An invocation reads the global epoch, stores it in its frame, publishes the frame, executes the
 * light fence, reads the list and stores it in the frame too. A writer replaces the list under the
 * lock, advances the epoch, tags the old list with the new epoch and retires it, stores that epoch
 * in RETIRED_EPOCH, and executes the heavy fence after it has released the lock. A retired list is
 * reclaimed when its epoch is fenced and no frame with an earlier epoch reads it, or may read it:
 * the list of a frame is 0 until the invocation has read it. Both sides reclaim: the writer after
 * its fence; an invocation when it ends and finds RETIRED_EPOCH later than its own epoch. The
 * invocation needs no fence for that: it leaves lists whose epoch is not fenced yet.
 *
 *   publish, read_list, end_invocation   the parts of an invocation
 *   add                 copies the list into a larger one and replaces it
 *   mark                marks the registration dead in the current list and in the retired ones
 *   remove              marks, fences, waits for calls; with COMPACT also replaces the list
 *   replace_list        replaces, advances the epoch, retires
 *   fence               heavy fence for all epochs up to the one read before it
 *   reclaim             frees the retired lists that no frame can read
 *
 * Proved: no list is read after it was freed, and each replaced list is freed, also if no thread
 * comes back. No delegate is called after its removal has returned.
 *
 * Lists are numbered from 1. Each delegate has the same position in all of them. To wait for a call
 * is a loop here: invoke_remove.pml proves that no wake-up is lost.
 *
 * Threads: A and B invoke. G grows the list. R removes delegate 1.
 *
 * Variants: HAS_B=0, A_INVOKES_TWICE=0, OTHER_MULTICAST=0 (between the two, A invokes another
 * multicast with the same frame), NESTED=0 (A invokes again inside its last call), HAS_G=0 (how
 * often the list grows), HAS_R=0, COMPACT=0 (R replaces the list by a smaller one),
 * WRITERS_BUFFERED.
 */

#define FRAMES_OF_A (1 + NESTED)
#define FRAMES (FRAMES_OF_A + HAS_B)
#define LISTS (1 + HAS_G + COMPACT)
#define PLACES 2
#define LIST (4 * FRAMES)
#define RETIRED_EPOCH (LIST + 1)
#define GLOBAL_EPOCH (LIST + 2)
#define STRIPE_LOCK (LIST + 3)
#define COUNT(l) (STRIPE_LOCK + (l))
#define DEAD(l, p) (STRIPE_LOCK + 1 + LISTS + ((l) - 1) * PLACES + (p))
#define WORDS (STRIPE_LOCK + 1 + LISTS * (1 + PLACES))
#define THREADS 4
#if WRITERS_BUFFERED
#define BUFFERED 4
#define BUFFER 5
#else
#define BUFFERED 2
#endif

#define THIS_MULTICAST 1
#define LISTS_OF_ALL LISTS
#define NEWEST_LIST list_count
#define NEEDS_FENCE(l) true
#define IS_THIS(target) ((target) == THIS_MULTICAST)
#define NEXT_THREAD(f) (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
byte list_count = 1;

#include "reclaim.pml"

#define ANOTHER_MULTICAST 2
#define LIST_OF_ANOTHER 9

bit released; /* delegate 1: its removal has returned */

/* ---- Epochs --------------------------------------------------------------------------------- */

inline advance_epoch(me, new_epoch) {
  d_step {
    BUFFER_IS_EMPTY(me) ->
    mem[GLOBAL_EPOCH] = mem[GLOBAL_EPOCH] + 1;
    new_epoch = mem[GLOBAL_EPOCH]
  }
}

/* ---- Writers, under the lock ---------------------------------------------------------------- */

/* Replaces the list `old` by `new`. */
inline replace_list(me) {
  EITHER(EPOCH_ADVANCED_BEFORE_LIST, advance_epoch(me, new_epoch);
                                     store(me, LIST, new),
                                     store(me, LIST, new);
                                     advance_epoch(me, new_epoch));
  d_step {
    printf("thread %d replaces list %d by %d\n", me, old, new);
    retired_at[old] = new_epoch;
    is_retired[old] = 1
  };
  UNLESS(RETIRED_EPOCH_SET_AFTER_FENCE, store(me, RETIRED_EPOCH, new_epoch);)
  old = 0;
  new = 0
}

/* In an atomic: copies the list, which no other thread can read yet. Dead entries are copied too,
 * so that positions stay the same; readers skip them. */
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

/* The last steps of every writer, without the lock. */
inline fence_and_reclaim(me) {
  fence(me);
  IF(RETIRED_EPOCH_SET_AFTER_FENCE, store(me, RETIRED_EPOCH, new_epoch);)
  new_epoch = 0;
  EITHER(NOT_RECLAIMED_BY_WRITER, skip, lock_and_reclaim(me))
}

inline add(me) {
  atomic {
    lock(me, STRIPE_LOCK);
    copy(me);
    mem[COUNT(new)] = 2
  };
  replace_list(me);
  unlock(me, STRIPE_LOCK);
  fence_and_reclaim(me)
}

inline mark(me) {
  l = list_count;
  do
  :: l > 0 ->
     load(me, LIST, x);
     if
     EITHER(RETIRED_LIST_NOT_MARKED, :: x == l -> store(me, DEAD(l, 0), 1),
                                     :: x == l || is_retired[l] -> store(me, DEAD(l, 0), 1))
     :: else
     fi;
     x = 0;
     l--
  :: else -> break
  od
}

inline remove(me) {
  lock(me, STRIPE_LOCK);
  printf("thread %d removes delegate 1\n", me);
  mark(me);
  IF(COMPACT, copy(me);
              replace_list(me);)
  unlock(me, STRIPE_LOCK);
  EITHER(COMPACT, fence_and_reclaim(me), fence(me));
  /* waits until it is the hazard of no frame */
  f = 0;
  do
  :: f < FRAMES ->
     load(me, TARGET(f), x);
     if
     :: x ->
        load(me, HAZARD(f), x);
        if
        :: x == 1 -> x = 0; f = 0
        :: else -> x = 0; f++
        fi
     :: else -> f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
     fi
  :: else -> break
  od;
  f = 0;
  d_step { printf("thread %d: delegate 1 is removed, and not called\n", me); released = 1 }
}

/* ---- Invocations ---------------------------------------------------------------------------- */

inline publish(me, frame, m, list) {
#ifdef EPOCH_READ_AFTER_FRAME
  store(me, FRAME_LIST(frame), 0);
  store(me, TARGET(frame), m);
  light_fence(me);
  load(me, GLOBAL_EPOCH, epoch);
  store(me, EPOCH(frame), epoch);
  load(me, LIST, list)
#else
#ifdef EPOCH_READ_AFTER_LIST
  store(me, EPOCH(frame), 1);
  store(me, FRAME_LIST(frame), 0);
  store(me, TARGET(frame), m);
  light_fence(me);
  load(me, LIST, list);
  load(me, GLOBAL_EPOCH, epoch);
  store(me, EPOCH(frame), epoch)
#else
  load(me, GLOBAL_EPOCH, epoch);
#ifdef EPOCH_STORED_AFTER_FRAME
  store(me, TARGET(frame), m);
  store(me, EPOCH(frame), epoch);
  store(me, FRAME_LIST(frame), 0);
#else
  store(me, EPOCH(frame), epoch);
#ifdef LIST_CLEARED_AFTER_FRAME
  store(me, TARGET(frame), m);
  store(me, FRAME_LIST(frame), 0);
#else
  UNLESS(LIST_NOT_CLEARED, store(me, FRAME_LIST(frame), 0);)
#if defined(NO_LIGHT_AFTER_FRAME) && !SYMMETRIC
  load(me, LIST, list);
#endif
  store(me, TARGET(frame), m);
#endif
#endif
  UNLESS(NO_LIGHT_AFTER_FRAME, light_fence(me);)
#if !defined(NO_LIGHT_AFTER_FRAME) || SYMMETRIC
  load(me, LIST, list)
#else
  skip
#endif
#endif
#endif
}

inline use(list) { assert(!is_free[list]) } /* no read after the list was freed */

inline read_list(me, frame, list, place, count) {
  store(me, FRAME_LIST(frame), list);
  d_step { use(list); load_here(me, COUNT(list), count) };
  IF(FRAME_CLEARED_TOO_EARLY, store(me, TARGET(frame), 0);)
  place = 0;
  do
  :: place < count ->
     store(me, HAZARD(frame), place + 1);
     light_fence(me);
     d_step { use(list); load_here(me, DEAD(list, place), x) };
     if
     :: !x ->
        d_step {
          printf("thread %d calls delegate %d in list %d\n", me, place + 1, list);
          assert(place > 0 || !released) /* no call after the removal has returned */
        };
        IF(NESTED, when(place + 1 == count && frame == 0 && me == 0, invoke_inner(0, 1));)
        assert(place > 0 || !released)
     :: else
     fi;
     x = 0;
     store(me, HAZARD(frame), 0);
     light_fence(me);
     d_step { use(list); place++ }
  :: else -> break
  od;
  place = 0;
  count = 0;
  list = 0
}

inline end_invocation(me, frame) {
  EITHER(NO_LIGHT_AFTER_INVOCATION, EITHER(SYMMETRIC, store(me, TARGET(frame), 0);
                                                      load(me, RETIRED_EPOCH, x),
                                                      load(me, RETIRED_EPOCH, x);
                                                      store(me, TARGET(frame), 0)),
                                    store(me, TARGET(frame), 0);
                                    light_fence(me);
                                    load(me, RETIRED_EPOCH, x));
  if
  EITHER(NOT_RECLAIMED_BY_READER, :: true -> x = 0, :: x > epoch -> x = 0; lock_and_reclaim(me))
  :: else -> x = 0
  fi;
  epoch = 0
}

#if NESTED
inline invoke_inner(me, frame) {
  outer_epoch = epoch;
  publish(me, frame, THIS_MULTICAST, inner_list);
  store(me, FRAME_LIST(frame), inner_list);
  d_step { use(inner_list); load_here(me, COUNT(inner_list), x); x = 0 };
  d_step { use(inner_list); inner_list = 0 };
  end_invocation(me, frame);
  epoch = outer_epoch;
  outer_epoch = 0
}
#endif

inline invoke(me, frame) {
  publish(me, frame, THIS_MULTICAST, list);
  read_list(me, frame, list, place, count);
  end_invocation(me, frame)
}

/* An invocation of another multicast, with the frame that was just used. */
inline invoke_other(me, frame) {
  load(me, GLOBAL_EPOCH, epoch);
  store(me, EPOCH(frame), epoch);
  store(me, FRAME_LIST(frame), 0);
  store(me, TARGET(frame), ANOTHER_MULTICAST);
  light_fence(me);
  store(me, FRAME_LIST(frame), LIST_OF_ANOTHER);
  store(me, TARGET(frame), 0);
  epoch = 0
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x, f, l, unfenced, list, place, count, epoch; bit found, kept
#define WRITER_LOCALS byte x, f, l, unfenced, old, new, new_epoch; bit found, kept

proctype A() {
  LOCALS;
  IF(NESTED, byte outer_epoch, inner_list;)
  byte times;
  do
  :: times <= A_INVOKES_TWICE ->
     IF(OTHER_MULTICAST, when(times == 1, invoke_other(0, 0));)
     invoke(0, 0);
     times++
  :: else -> break
  od;
  done++
}

IF(HAS_B, THREAD(B, LOCALS, invoke(1, FRAMES_OF_A)))

IF(HAS_G, THREAD(G, WRITER_LOCALS,
                 byte times;
                 do
                 :: times < HAS_G -> add(2); times++
                 :: else -> break
                 od))

IF(HAS_R, THREAD(R, WRITER_LOCALS, remove(3)))

init {
  byte each;
  d_step {
    mem[GLOBAL_EPOCH] = 1;
    mem[LIST] = 1;
    mem[COUNT(1)] = 1
  };
  atomic {
    run A();
    IF(HAS_B, run B();)
    IF(HAS_G, run G();)
    IF(HAS_R, run R();)
    skip
  };
  d_step {
    done == 1 + HAS_B + (HAS_G > 0) + HAS_R && ALL_DRAINED ->
    assert(mem[RETIRED_EPOCH] == 0);
    each = 1;
    do
    :: each <= LISTS ->
       assert(!is_retired[each]); /* no retired list is left over */
       assert(is_free[each] == (each != mem[LIST]));
       each++
    :: else -> break
    od
  }
}
