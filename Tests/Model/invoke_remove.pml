/* Invocation against removal: hazards, the asymmetric fence, and deferred releases.
 *
 * The invoker sets its hazard, executes the light fence, checks that the registration is not dead,
 * and calls the delegate. When the call has returned it clears the hazard, executes the light
 * fence and checks again. The remover marks the registration dead, executes the heavy fence and
 * scans the hazards of all frames. So the remover finds the hazard, or the invoker finds the
 * registration dead: before the call, and skips it; or after the call, and runs call_did_return.
 *
 *   set_hazard_and_check, clear_hazard_and_check   the loop over a list
 *   claim              a delegate with MULTICAST_ONCE is removed by its call
 *   remove             marks dead, fences, completes the removal
 *   complete_removal   while the registration is a hazard of a frame: sleeps until a call returns,
 *                      or leaves the release to the last call (deferred, MULTICAST_PENDING)
 *   wait_for_prior     another thread removed it before: fences and waits for running calls
 *   call_did_return    wakes the removers that sleep; completes a deferred removal
 *   scan_hazards       is the registration a hazard of any frame?
 *   release            makes the slot free for reuse and runs `release`
 *
 * Proved: no call begins or runs after a removal that waits has returned MULTICAST_OK. `release`
 * runs exactly once, when no call runs, also if no thread invokes again. No wake-up is lost. A
 * delegate with MULTICAST_ONCE is called at most once.
 *
 * Threads: A and B invoke. W removes delegate 1 and waits. N removes the last delegate without
 * waiting. S removes delegate 1 as W does: the second of the two waits for the prior removal.
 *
 * Variants: NESTED=0 (A invokes the last delegate again inside the call of delegate 1),
 * B_INVOKES_TWICE=0, REMOVED_IN_CALL (A removes delegate 1 inside its call), ONCE (delegate 1 has
 * MULTICAST_ONCE), DELEGATES=1 (their number), HAS_B=0, HAS_W=0, HAS_N=0, HAS_S=0,
 * WRITERS_BUFFERED.
 */

#define FRAMES_OF_A (1 + NESTED)
#define FRAMES (FRAMES_OF_A + HAS_B)
#define TARGET(f) (f)
#define HAZARD(f) (FRAMES + (f))
#define DEAD(d) (2 * FRAMES + (d) - 1)
#define STRIPE_LOCK (2 * FRAMES + DELEGATES)
#define CALLS_LOCK (STRIPE_LOCK + 1)
#define WORDS (CALLS_LOCK + 1)
#define THREADS 5
#define BUFFERED EITHER(WRITERS_BUFFERED, 5, 2)

#include "memory.pml"

byte deferred;                  /* a bit for each delegate; under the lock of calls */
byte inside;                    /* calls that run */
bit released[DELEGATES + 1];    /* its release has run */
bit returned_ok[DELEGATES + 1]; /* a removal that waits has returned MULTICAST_OK */
bit removed[DELEGATES + 1];
byte once_called;

/* ---- Hazards -------------------------------------------------------------------------------- */

/* Reads the frames of each thread record from the bottom to the first that is not in use. */
inline scan_hazards(me, d, seen, f) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, TARGET(f), x);
     if
     :: x ->
        load(me, HAZARD(f), x);
        d_step {
          when(x == d, seen = 1);
          EITHER(SCAN_OUTERMOST_FRAME_ONLY, f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES), f++);
          x = 0
        }
     :: else -> f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
     fi
  :: else -> break
  od;
  f = 0
}

/* ---- Release and callDidReturn -------------------------------------------------------------- */

inline release(me, d) {
  atomic { lock(me, STRIPE_LOCK); unlock(me, STRIPE_LOCK) }; /* the slot is free for reuse */
  d_step {
    printf("thread %d releases delegate %d\n", me, d);
    assert(!released[d]); /* exactly once */
    released[d] = 1
  }
}

inline call_did_return(me, d) {
  lock(me, CALLS_LOCK);
  UNLESS(NO_WAKE_IN_CALL_DID_RETURN, d_step { wake_all() };)
  found = 0;
  if
  :: deferred & (1 << d) ->
     EITHER(CALL_DID_RETURN_WITHOUT_SCAN, found = 1,
                                          scan_hazards(me, d, found, f);
                                          found = !found);
     when(found, deferred = deferred & ~(1 << d))
  :: else
  fi;
  unlock(me, CALLS_LOCK);
  when(found, release(me, d); found = 0)
}

/* ---- Removal -------------------------------------------------------------------------------- */

inline complete_removal(me, d, waits) {
  scan_hazards(me, d, found, f);
  if
  :: !found -> release(me, d)
  :: else ->
     lock(me, CALLS_LOCK);
     do
     :: scan_hazards(me, d, found, f);
        if
        :: !found -> unlock(me, CALLS_LOCK); release(me, d); break
        :: found && waits ->
           IF(SCAN_BEFORE_LOCK, unlock(me, CALLS_LOCK);
                                lock(me, CALLS_LOCK);)
           found = 0;
           sleep(me, CALLS_LOCK)
           IF(NO_SCAN_AFTER_WAKE, ;
                                  unlock(me, CALLS_LOCK);
                                  release(me, d);
                                  break)
        :: found && !waits ->
           IF(DEFER_AFTER_UNLOCK, unlock(me, CALLS_LOCK);
                                  lock(me, CALLS_LOCK);)
           deferred = deferred | (1 << d);
           unlock(me, CALLS_LOCK);
           break
        fi
     od
  fi;
  found = 0
}

inline wait_for_calls(me, d) {
  lock(me, CALLS_LOCK);
  do
  :: scan_hazards(me, d, found, f);
     if
     :: found -> found = 0; sleep(me, CALLS_LOCK)
     :: else -> break
     fi
  od;
  unlock(me, CALLS_LOCK)
}

/* S does not invoke: it has no frame of its own to skip. */
inline wait_for_prior(me, d) {
  UNLESS(WAIT_FOR_PRIOR_WITHOUT_FENCE, heavy_fence(me, unfenced);)
  scan_hazards(me, d, found, f);
  when(found, wait_for_calls(me, d))
}

inline remove(me, d, waits) {
#ifdef MARK_AFTER_FENCE
  atomic { lock(me, STRIPE_LOCK); x = removed[d]; removed[d] = 1; unlock(me, STRIPE_LOCK) };
#else
  atomic {
    lock(me, STRIPE_LOCK);
    x = removed[d];
    removed[d] = 1;
    when(!x, store(me, DEAD(d), 1));
    unlock(me, STRIPE_LOCK)
  };
#endif
  if
  :: x ->
     x = 0;
     if
     :: me == 0 -> skip /* in the delegate's own call: PENDING, see cycles.pml */
     :: else -> wait_for_prior(me, d)
     fi
  :: else ->
     printf("thread %d removes delegate %d\n", me, d);
     UNLESS(NO_FENCE_IN_REMOVE, heavy_fence(me, unfenced);)
     IF(MARK_AFTER_FENCE, store(me, DEAD(d), 1);)
     complete_removal(me, d, waits)
  fi;
  if
  :: waits -> d_step {
       printf("thread %d: delegate %d is removed, and not called\n", me, d);
#if DELEGATES == 1
       assert(inside == 0);
#endif
       returned_ok[d] = 1
     }
  :: else
  fi
}

/* ---- Invocation ----------------------------------------------------------------------------- */

/* The check before the hazard is set is only an optimization: it skips dead entries. */
inline set_hazard_and_check(me, frame, d) {
  EITHER(NO_LIGHT_AFTER_HAZARD, EITHER(SYMMETRIC, store(me, HAZARD(frame), d);
                                                  load(me, DEAD(d), x),
                                                  load(me, DEAD(d), x);
                                                  store(me, HAZARD(frame), d)),
                                store(me, HAZARD(frame), d);
                                light_fence(me);
                                EITHER(NO_CHECK_AFTER_HAZARD, x = 0, load(me, DEAD(d), x)));
}

inline clear_hazard_and_check(me, frame, d) {
  EITHER(NO_LIGHT_AFTER_CALL, EITHER(SYMMETRIC, store(me, HAZARD(frame), 0);
                                                load(me, DEAD(d), x),
                                                load(me, DEAD(d), x);
                                                store(me, HAZARD(frame), 0)),
                              store(me, HAZARD(frame), 0);
                              light_fence(me);
                              load(me, DEAD(d), x));
}

inline begin_call(me, d) {
  d_step {
    printf("thread %d calls delegate %d\n", me, d);
    assert(!returned_ok[d]);  /* no call after a removal that waits has returned OK */
    assert(!released[d]); /* nor with a released context */
    inside++
  }
}

inline end_call(me, d) {
  d_step {
    assert(!returned_ok[d]);
    assert(!released[d]);
    inside--
  }
}

/* The hazard is set: a remover that comes later defers the release to this call. */
inline claim(me, d) {
  atomic {
    lock(me, STRIPE_LOCK);
    EITHER(CLAIM_WITHOUT_CHECK, x = 0, x = removed[d]);
    removed[d] = 1;
    when(!x, store(me, DEAD(d), 1));
    unlock(me, STRIPE_LOCK)
  };
  if
  :: !x ->
     heavy_fence(me, unfenced);
     complete_removal(me, d, 0);
     d_step { once_called++; assert(once_called == 1) } /* called at most once */
  :: else
  fi
}

inline invoke_inner(me, frame) {
  store(me, TARGET(frame), 1);
  set_hazard_and_check(me, frame, DELEGATES);
  if
  :: !x -> begin_call(me, DELEGATES); end_call(me, DELEGATES)
  :: else -> x = 0
  fi;
  clear_hazard_and_check(me, frame, DELEGATES);
  when(x, x = 0; call_did_return(me, DELEGATES));
  store(me, TARGET(frame), 0)
}

/* The function of delegate 1. */
inline body(me, d) {
  if
  :: d == 1 && me == 0 ->
     IF(NESTED, invoke_inner(0, 1);)
     IF(REMOVED_IN_CALL, remove(0, 1, 0);)
     skip
  :: else
  fi
}

inline invoke(me, frame) {
  store(me, TARGET(frame), 1);
  d = 1;
  do
  :: d <= DELEGATES ->
     load(me, DEAD(d), x);
     if
     :: !x ->
        set_hazard_and_check(me, frame, d);
        IF(ONCE, when(!x && d == 1, claim(me, 1));)
        when(!x, begin_call(me, d); body(me, d); end_call(me, d));
#ifdef NO_CALL_DID_RETURN_IF_NOT_CALLED
        when(x, store(me, HAZARD(frame), 0); x = 0; goto next);
#endif
        clear_hazard_and_check(me, frame, d);
        if
        EITHER(NO_CALL_DID_RETURN, :: x -> x = 0, :: x -> x = 0; call_did_return(me, d))
        :: else
        fi
     :: else -> x = 0
     fi;
next:
     d++
  :: else -> break
  od;
  d = 0;
  store(me, TARGET(frame), 0)
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x, f, d, unfenced; bit found

active proctype A() {
  LOCALS;
  invoke(0, 0);
  done++
}

#if HAS_B
active proctype B() {
  LOCALS;
  byte times;
  do
  :: times <= B_INVOKES_TWICE -> invoke(1, FRAMES_OF_A); times++
  :: else -> break
  od;
  done++
}
#endif

#if HAS_W
active proctype W() {
  LOCALS;
  remove(2, 1, 1);
  done++
}
#endif

#if HAS_N
active proctype N() {
  LOCALS;
  remove(3, DELEGATES, 0);
  done++
}
#endif

#if HAS_S
active proctype S() {
  LOCALS;
  remove(4, 1, 1);
  done++
}
#endif

active proctype End() {
  byte each;
  d_step {
    done == 1 + HAS_B + HAS_W + HAS_N + HAS_S && ALL_DRAINED ->
    assert(deferred == 0); /* no deferred release is left over */
    assert(inside == 0);
    each = 1;
    do
    :: each <= DELEGATES -> assert(released[each] == removed[each]); each++
    :: else -> break
    od
  }
}
