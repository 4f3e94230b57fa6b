/* Single invoker: while only one thread has ever invoked a multicast, that thread changes it
 * without a heavy fence.
 *
 * Before its first invocation reads the list, a thread registers as an invoker: as the single one,
 * or as one of several. A writer reads INVOKER under the lock of the multicast. If no thread is
 * registered, or only the writer itself, then no other thread reads a list: an invoker that
 * registers later sees what the writer has changed. So the writer frees the old list at once and
 * releases the delegate at once, unless frames of its own still use them. A second invoker ends
 * this mode for the rest of the multicast's life.
 *
 * The first invoker registers by a compare and swap, and then looks at the lock. If that is free, a
 * writer that takes it later finds the invoker; and of the writers before, the invoker sees all,
 * also that one of them has stored INVOKER anew. If the lock is taken, the invoker registers once
 * more, under the lock. So does every other invoker.
 *
 *   become_first           the first invoker, without the lock
 *   register_invoker       registers the thread, or finds it registered
 *   check_single           under the lock: has no other thread registered?
 *   add, remove            the writer, with a fence or without
 *   invoke                 as in lists.pml, after register_invoker
 *   replace_list, reclaim  as in lists.pml
 *
 * Proved: no list is read after it was freed, the delegate is not called after its release, and
 * nothing that was retired or deferred is left over.
 *
 * The writer replaces list 1 by list 2, then removes delegate 1. It is A after its invocation, A
 * inside the call of delegate 1, or W, which does not invoke. To wait for a call is a loop, as in
 * lists.pml.
 *
 * Threads: A, B and C invoke. W writes.
 *
 * Variants: FIRST=0 (who registers without the lock, if it is the first: 1 is A, 2 is B, 3 is
 * both), HAS_B=0, HAS_C=0, WRITER=0 (0: W; 1: A after its invocation; 2: A inside the call),
 * A_IS_REGISTERED=0 (A is the single invoker at the start), WRITERS_BUFFERED.
 */

#define FRAMES 3
#define LIST (4 * FRAMES)
#define RETIRED_EPOCH (LIST + 1)
#define INVOKER (LIST + 2) /* 0, the number of a thread (from 1), or MULTIPLE */
#define GLOBAL_EPOCH (LIST + 3)
#define STRIPE_LOCK (LIST + 4)
#define DEAD(l) (STRIPE_LOCK + (l))
#define WORDS (STRIPE_LOCK + 3)
#define THREADS 4
#define BUFFERED EITHER(WRITERS_BUFFERED, 4, 3)
#define BUFFER 5
#define MULTIPLE 7

#include "reclaim.pml"

bit deferred, released; /* of delegate 1 */

inline release(me) {
  d_step {
    printf("thread %d releases delegate 1\n", me);
    assert(!released);
    released = 1
  }
}

/* ---- The writer ----------------------------------------------------------------------------- */

/* Under the lock. `number` is the thread's own number, or 0 if it does not invoke. */
inline check_single(me, number) {
  load(me, INVOKER, x);
  is_single = (x == 0 || x == number);
  x = 0
}

inline replace_list(me, is_inside) {
  store(me, LIST, 2);
  printf("thread %d replaces list 1, single invoker: %d\n", me, is_single);
#ifdef OWN_FRAMES_NOT_SCANNED
  if
  :: is_single -> is_free[1] = 1
#else
  if
  :: is_single && !is_inside -> is_free[1] = 1 /* no invocation reads it */
#endif
  :: else ->
     d_step {
       BUFFER_IS_EMPTY(me) ->
       mem[GLOBAL_EPOCH] = mem[GLOBAL_EPOCH] + 1;
       retired_at[1] = mem[GLOBAL_EPOCH];
       is_retired[1] = 1;
       needs_fence[1] = !is_single
     };
     store(me, RETIRED_EPOCH, retired_at[1]);
     when(is_single, reclaim(me))
  fi
}

inline add(me, number, is_inside) {
  EITHER(SINGLE_CHECKED_BEFORE_LOCK, check_single(me, number);
                                     lock(me, STRIPE_LOCK),
                                     lock(me, STRIPE_LOCK);
                                     check_single(me, number));
  replace_list(me, is_inside);
  unlock(me, STRIPE_LOCK);
  when(!is_single && is_retired[1], fence(me); lock_and_reclaim(me));
  is_single = 0
}

inline remove(me, number, is_inside) {
  EITHER(SINGLE_CHECKED_BEFORE_LOCK, check_single(me, number);
                                     lock(me, STRIPE_LOCK),
                                     lock(me, STRIPE_LOCK);
                                     check_single(me, number));
  printf("thread %d removes delegate 1, single invoker: %d\n", me, is_single);
  store(me, DEAD(2), 1);
  when(is_retired[1], store(me, DEAD(1), 1));
  unlock(me, STRIPE_LOCK);
  if
  :: is_single && !is_inside -> release(me)
  :: else ->
     when(!is_single, fence(me));
     if
     :: is_inside -> deferred = 1
     :: else ->
        do
        :: is_calling(me, 1, found);
           when(!found, release(me); break)
        od
     fi
  fi;
  found = 0;
  is_single = 0
}

/* ---- Invocations ---------------------------------------------------------------------------- */

inline add_invoker(me, number) {
  UNLESS(REGISTERED_WITHOUT_LOCK, lock(me, STRIPE_LOCK);)
  load(me, INVOKER, x);
  if
  :: x == 0 || x == number -> store(me, INVOKER, number)
  EITHER(SECOND_REPLACES_FIRST, :: else -> store(me, INVOKER, number),
                                :: else -> store(me, INVOKER, MULTIPLE))
  fi;
  UNLESS(REGISTERED_WITHOUT_LOCK, unlock(me, STRIPE_LOCK);)
  x = 0
}

/* A locked instruction, which is a full fence. */
inline become_first(me, number) {
  d_step {
    BUFFER_IS_EMPTY(me) ->
    found = (mem[INVOKER] == 0);
    if
    :: found -> mem[INVOKER] = number
    :: else
    fi
  };
#ifndef LOCK_NOT_LOOKED_AT
  if
  :: found ->
     load(me, STRIPE_LOCK, x);
     if
     :: x -> add_invoker(me, number)
     :: else
     fi;
     x = 0
  :: else
  fi
#endif
}

inline register_invoker(me, number) {
  if
  :: FIRST & (1 << me) -> become_first(me, number)
  :: else
  fi;
  EITHER(NOT_READ_AGAIN, if
                         :: found -> x = number
                         :: else -> load(me, INVOKER, x)
                         fi,
                         load(me, INVOKER, x));
  found = 0;
  if
  EITHER(NOT_REGISTERED, :: true -> x = 0, :: x == number || x == MULTIPLE -> x = 0)
  :: else -> add_invoker(me, number)
  fi
}

inline use(l) { assert(!is_free[l]) }

inline invoke(me, frame, number) {
  load(me, GLOBAL_EPOCH, epoch);
  store(me, EPOCH(frame), epoch);
  store(me, FRAME_LIST(frame), 0);
  IF(REGISTERED_BEFORE_FRAME, register_invoker(me, number);)
  store(me, TARGET(frame), 1);
  light_fence(me);
  EITHER(REGISTERED_AFTER_LIST, load(me, LIST, list);
                                register_invoker(me, number),
                                UNLESS(REGISTERED_BEFORE_FRAME, register_invoker(me, number);)
                                load(me, LIST, list));
  store(me, FRAME_LIST(frame), list);
  use(list);
  load(me, DEAD(list), x);
  if
  :: !x ->
     store(me, HAZARD(frame), 1);
     light_fence(me);
     d_step { use(list); load_here(me, DEAD(list), x) };
     if
     :: !x ->
        d_step { printf("thread %d calls delegate 1\n", me); assert(!released) };
#if WRITER == 2
        when(me == 0 && !has_written, has_written = 1; add(0, 1, 1); remove(0, 1, 1));
#endif
        assert(!released)
     :: else
     fi;
     store(me, HAZARD(frame), 0);
     light_fence(me);
     d_step { use(list); load_here(me, DEAD(list), x) };
     if
     :: x -> /* call_did_return; one step, under the lock of calls */
        x = 0;
        atomic {
          BUFFER_IS_EMPTY(me) ->
          is_calling(me, 1, found);
          when(!found && deferred, deferred = 0; release(me))
        };
        found = 0
     :: else
     fi
  :: else
  fi;
  x = 0;
  list = 0;
  store(me, TARGET(frame), 0);
  light_fence(me);
  load(me, RETIRED_EPOCH, x);
  if
  :: x > epoch -> x = 0; lock_and_reclaim(me)
  :: else -> x = 0
  fi;
  epoch = 0
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x, f, l, unfenced, list, epoch; bit found, kept, is_single, has_written

proctype A() {
  LOCALS;
  invoke(0, 0, 1);
#if WRITER == 1
  add(0, 1, 0);
  remove(0, 1, 0);
#endif
  done++
}

THREAD(B, LOCALS, invoke(1, 1, 2))
THREAD(C, LOCALS, invoke(2, 2, 3))
THREAD(W, LOCALS,
       add(3, 0, 0);
       remove(3, 0, 0))

init {
  d_step {
    mem[LIST] = 1;
    mem[GLOBAL_EPOCH] = 1;
    mem[INVOKER] = A_IS_REGISTERED
  };
  atomic {
    run A();
    IF(HAS_B, run B();)
    IF(HAS_C, run C();)
#if WRITER == 0
    run W();
#endif
    skip
  };
  d_step {
    done == 1 + HAS_B + HAS_C + (WRITER == 0) && ALL_DRAINED ->
    assert(mem[RETIRED_EPOCH] == 0);
    assert(!is_retired[1]); /* no retired list is left over */
    assert(!deferred);
    assert(WRITER == 2 || (released && is_free[1]));
    assert(released == mem[DEAD(2)])
  }
}
