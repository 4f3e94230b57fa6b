/* Destroying a multicast and reusing its slot, while threads invoke by stale handles.
 *
 * Slots are reused at once: the next occupant takes the slot while invocations of the previous one
 * still run. To destroy is, under the lock, to mark the registrations dead, clear the handle, clear
 * the list and retire it. The retired lists stay with the slot; so does RETIRED_EPOCH, which the
 * next occupant does not reset. An invocation reads the list first and compares the handle of the
 * slot with its own afterwards: if they are equal, the list is that of its own occupant. The
 * target of a frame is the slot, not its occupant, so an invocation by a stale handle reclaims too.
 *
 *   register_invoker       as in single_invoker.pml, after a check of the handle under the lock
 *   invoke                 as in lists.pml, with the check of the handle
 *   destroy                as above; then as a removal: fence, wait, release
 *   create                 resets INVOKER, sets the handle, then a first add sets the list
 *
 * Proved: an invocation by a handle calls no delegate of another occupant, no list is read after
 * it was freed, each delegate is released once, and nothing that was retired is left over.
 *
 * Occupant 1 has list 1 with delegate 1. Occupant 2 has list 2 with delegate 2. To wait for a call
 * is a loop, as in lists.pml.
 *
 * Threads: A invokes by handle 1, B by handle 2 as soon as it exists. D destroys occupant 1. C
 * creates occupant 2 as soon as the slot is vacant.
 *
 * Variants: HAS_A=1, HAS_B=0, GUESSED (B invokes by handle 2 before it exists), A_INVOKES_TWICE=0,
 * MULTIPLE_INVOKERS=0 (several threads are registered for occupant 1; otherwise none),
 * DESTROYED_AGAIN=0 (C destroys occupant 2), DESTROYED_IN_CALL=0 (A, not D, destroys occupant 1,
 * inside the call of delegate 1), WRITERS_BUFFERED.
 */

#define FRAMES 2
#define HANDLE (4 * FRAMES) /* of the occupant of the slot; 0: none */
#define LIST (HANDLE + 1)
#define RETIRED_EPOCH (HANDLE + 2)
#define INVOKER (HANDLE + 3) /* handle * 8 + 0, the number of a thread (from 1), or MULTIPLE */
#define GLOBAL_EPOCH (HANDLE + 4)
#define STRIPE_LOCK (HANDLE + 5)
#define DEAD(l) (STRIPE_LOCK + (l))
#define WORDS (STRIPE_LOCK + 3)
#define THREADS 4
#define BUFFERED EITHER(WRITERS_BUFFERED, 4, 2)
#define BUFFER 5
#define MULTIPLE 7

#include "reclaim.pml"

bit is_deferred[3];
bit released[3]; /* the delegate of that list */
bit exists[3];
bit is_vacant, is_created; /* the slot; occupant 2 */

inline release(me, d) {
  d_step {
    printf("thread %d releases delegate %d\n", me, d);
    assert(!released[d]);
    released[d] = 1
  }
}

/* ---- Create and destroy --------------------------------------------------------------------- */

/* In the vacant slot. */
inline create(me) {
#if !defined(INVOKER_NOT_RESET) && !defined(INVOKER_RESET_AFTER_HANDLE)
  store(me, INVOKER, 2 * 8);
#endif
  store(me, HANDLE, 2);
  IF(INVOKER_RESET_AFTER_HANDLE, store(me, INVOKER, 2 * 8);)
  IF(RETIRED_EPOCH_RESET, store(me, RETIRED_EPOCH, 0);)
  d_step { printf("thread %d creates occupant 2\n", me); exists[2] = 1; is_created = 1 };
  lock(me, STRIPE_LOCK);
  store(me, LIST, 2);
  unlock(me, STRIPE_LOCK)
}

/* The occupant and its list have the number h. `number` is the thread's own number, or 0. */
inline destroy(me, h, number) {
  lock(me, STRIPE_LOCK);
  printf("thread %d destroys occupant %d\n", me, h);
  store(me, DEAD(h), 1);
  load(me, INVOKER, x);
  is_single = (x == h * 8 || (number && x == h * 8 + number));
  x = 0;
  EITHER(HANDLE_CLEARED_AFTER_LIST, store(me, LIST, 0);
                                    unlock(me, STRIPE_LOCK);
                                    lock(me, STRIPE_LOCK);
                                    store(me, HANDLE, 0),
                                    store(me, HANDLE, 0);
                                    store(me, LIST, 0));
  exists[h] = 0;
  is_calling(me, h, called);
  EITHER(OWN_FRAMES_NOT_SCANNED, has_no_reader = is_single,
                                 has_no_reader = (is_single && !DESTROYED_IN_CALL));
  if
  :: has_no_reader ->
     is_free[h] = 1; /* no invocation reads it */
     is_vacant = 1;
     unlock(me, STRIPE_LOCK)
  :: else ->
     d_step {
       BUFFER_IS_EMPTY(me) ->
       mem[GLOBAL_EPOCH] = mem[GLOBAL_EPOCH] + 1;
       retired_at[h] = mem[GLOBAL_EPOCH];
       is_retired[h] = 1;
       needs_fence[h] = !is_single
     };
     store(me, RETIRED_EPOCH, retired_at[h]);
     when(is_single, reclaim(me));
     is_vacant = 1;
     unlock(me, STRIPE_LOCK)
  fi;
  /* without the lock */
  if
  :: is_single && !called -> release(me, h)
  :: else ->
     when(!is_single, fence(me); lock_and_reclaim(me));
     do
     :: is_calling(me, h, found);
        if
        :: !found -> release(me, h); break
        :: found && number && DESTROYED_IN_CALL -> is_deferred[h] = 1; break /* PENDING */
        :: else
        fi
     od
  fi;
  found = 0;
  called = 0;
  has_no_reader = 0;
  is_single = 0
}

/* ---- Invocations ---------------------------------------------------------------------------- */

inline use(l) { assert(!is_free[l]) }

/* Returns whether the handle is current in `is_registered`. */
inline register_invoker(me, h, number, is_registered) {
  load(me, INVOKER, x);
  is_registered = 1;
  if
  :: x == h * 8 + number || x == h * 8 + MULTIPLE -> x = 0
  :: else ->
     x = 0;
     lock(me, STRIPE_LOCK);
     load(me, HANDLE, x);
     if
     :: x == h ->
        load(me, INVOKER, x);
        if
        :: x == h * 8 -> store(me, INVOKER, h * 8 + number)
        :: else -> store(me, INVOKER, h * 8 + MULTIPLE)
        fi
     :: else -> is_registered = 0
     fi;
     unlock(me, STRIPE_LOCK);
     x = 0
  fi
}

inline invoke(me, frame, h, number) {
  load(me, GLOBAL_EPOCH, epoch);
  store(me, EPOCH(frame), epoch);
  store(me, FRAME_LIST(frame), 0);
  store(me, TARGET(frame), 1);
  light_fence(me);
  register_invoker(me, h, number, found);
  if
  :: found ->
     found = 0;
     EITHER(HANDLE_READ_BEFORE_LIST, load(me, HANDLE, x);
                                     load(me, LIST, list),
                                     load(me, LIST, list);
                                     load(me, HANDLE, x));
     if
     EITHER(HANDLE_NOT_READ, :: list ->, :: x == h && list ->)
        x = 0;
        store(me, FRAME_LIST(frame), list);
        use(list);
        store(me, HAZARD(frame), list);
        light_fence(me);
        d_step { use(list); load_here(me, DEAD(list), x) };
        if
        :: !x ->
           d_step {
             printf("thread %d by handle %d calls delegate %d\n", me, h, list);
             assert(list == h);    /* no delegate of another occupant */
             assert(!released[list])
           };
#if DESTROYED_IN_CALL
           when(me == 0 && !has_destroyed, has_destroyed = 1; destroy(0, 1, 1));
#endif
           assert(!released[list])
        :: else -> x = 0
        fi;
        store(me, HAZARD(frame), 0);
        light_fence(me);
        d_step { use(list); load_here(me, DEAD(list), x) };
        if
        :: x -> /* call_did_return; one step, under the lock of calls */
           x = 0;
           atomic {
             BUFFER_IS_EMPTY(me) ->
             is_calling(me, list, found);
             when(!found && is_deferred[list], is_deferred[list] = 0; release(me, list))
           };
           found = 0
        :: else -> x = 0
        fi;
        list = 0
     :: else -> x = 0; list = 0
     fi
  :: else
  fi;
  store(me, TARGET(frame), 0);
  light_fence(me);
  load(me, RETIRED_EPOCH, x);
  IF(STALE_INVOCATION_DOES_NOT_RECLAIM, load(me, HANDLE, l);
                                        when(l != h, x = 0);
                                        l = 0;)
  if
  :: x > epoch -> x = 0; lock_and_reclaim(me)
  :: else -> x = 0
  fi;
  epoch = 0
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS \
  byte x, f, l, unfenced, list, epoch; \
  bit found, kept, called, is_single, has_no_reader, has_destroyed

THREAD(A, LOCALS,
       byte times;
       do
       :: times <= A_INVOKES_TWICE -> invoke(0, 0, 1, 1); times++
       :: else -> break
       od)

THREAD(B, LOCALS,
       UNLESS(GUESSED, is_created;)
       invoke(1, 1, 2, 2))

THREAD(D, LOCALS, destroy(2, 1, 0))

proctype C() {
  LOCALS;
  is_vacant;
  create(3);
  IF(DESTROYED_AGAIN, destroy(3, 2, 0);)
  done++
}

init {
  d_step {
    mem[HANDLE] = 1;
    mem[LIST] = 1;
    mem[GLOBAL_EPOCH] = 1;
    mem[INVOKER] = 8 + MULTIPLE_INVOKERS * MULTIPLE;
    exists[1] = 1
  };
  atomic {
    IF(HAS_A, run A();)
    IF(HAS_B, run B();)
    UNLESS(DESTROYED_IN_CALL, run D();)
    run C()
  };
  d_step {
    done == 1 + HAS_A + HAS_B + !DESTROYED_IN_CALL && ALL_DRAINED ->
    assert(mem[RETIRED_EPOCH] == 0);
    assert(!is_retired[1] && !is_retired[2]); /* no retired list is left over */
    assert(exists[1] || (released[1] && is_free[1]));
    assert(exists[2] || !DESTROYED_AGAIN || (released[2] && is_free[2]));
    assert(!is_deferred[1] && !is_deferred[2])
  }
}
