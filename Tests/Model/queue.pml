/* Queues: calls are queued, run and retracted, while their delegate is removed or the queue is
 * destroyed.
 *
 * An invocation appends a call under the lock of the queue, if the registration is live and the
 * queue is still the one of the registration. The thread that runs the queue takes the first call
 * under that lock and sets its hazard before it unlocks; after the call it takes the lock again,
 * clears the hazard and checks that the registration is live. A removal marks the registration dead
 * and then retracts its queued calls under the same lock. So the lock orders runs and removals, and
 * no fence is needed between them: after `retract`, every call that was taken is a hazard.
 *
 *   invoke, append         finds the delegate in the list, appends a call to its queue
 *   run_queue, run_first   runs queued calls; run_first runs one
 *   retract                takes the queued calls of the delegate back out of the queue
 *   remove                 marks, retracts, fences, completes the removal
 *   scan_hazards, complete_removal, call_did_return, release   as in invoke_remove.pml
 *
 * Proved: no queued call runs after a removal that waits has returned MULTICAST_OK, and none is
 * appended after the release. The queue of the next occupant of the slot gets no call and loses
 * none. Each payload is released, and so is each deferred release. No wake-up is lost.
 *
 * There is one delegate, 1, with a queue. Each queued call holds a reference to its payload.
 *
 * Threads: A invokes. Q runs the queue. R removes the delegate. D, in other variants, destroys the
 * queue; the slot of the queue then has another occupant with a call of a delegate of its own.
 *
 * Variants: HAS_A (how often A invokes), QUEUED (calls in the queue at the start), HAS_R,
 * REMOVER_WAITS, SINGLE_INVOKER (R knows that no other thread invokes: no fence), HAS_D, RUNS (the
 * limit of calls in one run), REMOVED_IN_CALL (Q removes the delegate, inside its call),
 * WRITERS_BUFFERED.
 */

#ifndef HAS_A
#define HAS_A 0
#endif
#ifndef HAS_R
#define HAS_R 0
#endif
#ifndef HAS_D
#define HAS_D 0
#endif
#ifndef QUEUED
#define QUEUED 0
#endif
#ifndef REMOVER_WAITS
#define REMOVER_WAITS 0
#endif
#ifndef RUNS
#define RUNS 2
#endif

#define FRAMES 2 /* A's and Q's */
#define TARGET(f) (f)
#define HAZARD(f) (FRAMES + (f))
#define DEAD (2 * FRAMES)
#define LIVE (DEAD + 1) /* of the registration: 1 while live */
#define STRIPE_LOCK (DEAD + 2)
#define CALLS_LOCK (DEAD + 3)
#define QUEUE_LOCK (DEAD + 4)
#define WORDS (DEAD + 5)
#define THREADS 4
#if WRITERS_BUFFERED
#define BUFFERED 4
#else
#define BUFFERED 2
#endif

#include "memory.pml"

/* Under the queue's lock. */
byte occupant = 1;        /* of the slot; 0: vacant */
byte queued = QUEUED;     /* calls of delegate 1 */
byte queued_of_next;      /* calls in the queue of the next occupant */

byte payload_references = QUEUED;
bit deferred; /* under the lock of calls */
bit released, returned_ok;

/* ---- As in invoke_remove.pml ---------------------------------------------------------------- */

inline scan_hazards(me, seen) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, TARGET(f), x);
     if
     :: x ->
        load(me, HAZARD(f), x);
        d_step {
          seen = (x == 1);
          x = 0
        }
     :: else
     fi;
     f++
  :: else -> break
  od;
  f = 0
}

inline release(me) {
  d_step {
    printf("thread %d releases delegate 1\n", me);
    assert(!released);
    released = 1
  }
}

inline call_did_return(me) {
  lock(me, CALLS_LOCK);
  d_step { wake_all() };
  found = 0;
  if
  :: deferred ->
     scan_hazards(me, found);
     d_step {
       found = !found;
       if
       :: found -> deferred = 0
       :: else
       fi
     }
  :: else
  fi;
  unlock(me, CALLS_LOCK);
  if
  :: found -> found = 0; release(me)
  :: else
  fi
}

inline complete_removal(me, waits) {
  scan_hazards(me, found);
  if
  :: !found -> release(me)
  :: else ->
     lock(me, CALLS_LOCK);
     do
     :: scan_hazards(me, found);
        if
        :: !found -> unlock(me, CALLS_LOCK); release(me); break
        :: found && waits -> found = 0; sleep(me, CALLS_LOCK)
        :: found && !waits -> deferred = 1; unlock(me, CALLS_LOCK); break
        fi
     od
  fi;
  found = 0
}

/* ---- Removal -------------------------------------------------------------------------------- */

inline retract(me) {
  lock(me, QUEUE_LOCK);
  if
  :: occupant == 1 -> d_step {
       assert(!released);
       payload_references = payload_references - queued;
       queued = 0
     }
  :: else
  fi;
  unlock(me, QUEUE_LOCK)
}

inline remove(me, waits) {
  lock(me, STRIPE_LOCK);
  printf("thread %d removes delegate 1\n", me);
#ifdef RETRACT_BEFORE_MARK
  retract(me);
#endif
  store(me, DEAD, 1);
  store(me, LIVE, 0);
#ifdef SCAN_BEFORE_RETRACT
  scan_hazards(me, found);
#endif
#if !defined(RETRACT_BEFORE_MARK) && !defined(NO_RETRACT)
  retract(me);
#endif
#if SINGLE_INVOKER
#ifndef SCAN_BEFORE_RETRACT
  scan_hazards(me, found);
#endif
  unlock(me, STRIPE_LOCK);
  if
  :: !found -> release(me)
  :: else -> found = 0; complete_removal(me, waits)
  fi;
#else
  unlock(me, STRIPE_LOCK);
  heavy_fence(me, unfenced);
  complete_removal(me, waits);
#endif
  if
  :: waits -> d_step {
       printf("thread %d: delegate 1 is removed, and not called\n", me);
       returned_ok = 1
     }
  :: else
  fi
}

/* ---- Appending ------------------------------------------------------------------------------ */

inline append(me) {
#ifdef LIVENESS_CHECKED_BEFORE_LOCK
  load(me, LIVE, x);
#endif
  lock(me, QUEUE_LOCK);
#ifndef LIVENESS_CHECKED_BEFORE_LOCK
  load(me, LIVE, x);
#endif
#ifdef LIVENESS_NOT_CHECKED
  x = 1;
#endif
  if
#ifdef QUEUE_HANDLE_NOT_COMPARED
  :: x ->
#else
  :: x && occupant == 1 ->
#endif
     d_step {
       printf("thread %d appends a call of delegate 1\n", me);
       assert(!released);          /* its registration details are read */
       assert(occupant == 1); /* not the queue of the next occupant */
       queued++;
       payload_references++
     }
  :: else
  fi;
  unlock(me, QUEUE_LOCK);
  x = 0
}

inline invoke(me, frame) {
  store(me, TARGET(frame), 1);
  load(me, DEAD, x);
  if
  :: !x ->
     store(me, HAZARD(frame), 1);
     light_fence(me);
     load(me, DEAD, x);
     assert(x || !released); /* its registration details are read */
     store(me, HAZARD(frame), 0);
     light_fence(me);
     if
     :: !x -> found = 1
     :: else
     fi;
     load(me, DEAD, x);
     if
     :: x -> x = 0; unfenced = found; call_did_return(me); found = unfenced; unfenced = 0
     :: else
     fi;
     if
     :: found -> found = 0; payload_references++; append(me); payload_references--
     :: else
     fi
  :: else -> x = 0
  fi;
  store(me, TARGET(frame), 0)
}

/* ---- Running -------------------------------------------------------------------------------- */

inline run_first(me, frame) {
#ifdef HAZARD_SET_AFTER_UNLOCK
  unlock(me, QUEUE_LOCK);
  store(me, HAZARD(frame), 1);
#else
  store(me, HAZARD(frame), 1);
  unlock(me, QUEUE_LOCK);
#endif
  d_step {
    printf("thread %d calls delegate 1\n", me);
    assert(!returned_ok);
    assert(!released)
  };
#if REMOVED_IN_CALL
  if
  :: !has_removed -> has_removed = 1; remove(me, 0)
  :: else
  fi;
#endif
  d_step {
    assert(!returned_ok);
    assert(!released);
    assert(payload_references > 0);
    payload_references--
  };
#ifdef HAZARD_CLEARED_WITHOUT_LOCK
  store(me, HAZARD(frame), 0);
  load(me, LIVE, x);
  lock(me, QUEUE_LOCK);
#else
  lock(me, QUEUE_LOCK);
  store(me, HAZARD(frame), 0);
  load(me, LIVE, x);
#endif
  if
#ifdef NO_CALL_DID_RETURN_AFTER_RUN
  :: false -> skip
#else
  :: !x -> unlock(me, QUEUE_LOCK); call_did_return(me); lock(me, QUEUE_LOCK)
#endif
  :: else -> x = 0
  fi
}

inline run_queue(me, frame) {
  lock(me, QUEUE_LOCK);
  handle = occupant;
  if
  :: handle == 1 ->
     store(me, TARGET(frame), 2);
     do
#ifdef HANDLE_NOT_CHECKED_AGAIN
     :: made < RUNS && queued + queued_of_next > 0 ->
#else
     :: made < RUNS && occupant == handle && queued + queued_of_next > 0 ->
#endif
        made++;
        if
        :: queued_of_next > 0 -> assert(occupant == handle); queued_of_next--
        :: else -> queued--; run_first(me, frame)
        fi
     :: else -> break
     od;
     store(me, TARGET(frame), 0)
  :: else
  fi;
  unlock(me, QUEUE_LOCK)
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x, f, unfenced; bit found

proctype A() {
  LOCALS;
  byte times;
  do
  :: times < HAS_A -> invoke(0, 0); times++
  :: else -> break
  od;
  done++
}

/* Runs the queue twice, so that calls are also queued while no thread runs it. */
proctype Q() {
  LOCALS;
  byte made, handle, times;
#if REMOVED_IN_CALL
  bit has_removed;
#endif
  do
  :: times < 2 -> made = 0; run_queue(1, 1); times++
  :: else -> break
  od;
  done++
}

proctype R() {
  LOCALS;
  remove(2, REMOVER_WAITS);
  done++
}

proctype D() {
  LOCALS;
  lock(3, QUEUE_LOCK);
  printf("thread 3 destroys the queue\n");
  d_step { occupant = 0; payload_references = payload_references - queued; queued = 0 };
  unlock(3, QUEUE_LOCK);
  remove(3, 1);
  lock(3, QUEUE_LOCK);
  d_step { occupant = 2; queued_of_next = 1 };
  unlock(3, QUEUE_LOCK);
  done++
}

init {
  d_step { mem[LIVE] = 1 };
  atomic {
#if HAS_A
    run A();
#endif
#if HAS_R
    run R();
#endif
#if HAS_D
    run D();
#endif
    run Q()
  };
  d_step {
    done == (HAS_A > 0) + 1 + HAS_R + HAS_D && ALL_DRAINED ->
    assert(!deferred);
    assert(released || mem[LIVE]); /* no deferred release is left over */
    assert(mem[LIVE] || queued == 0);
    assert(payload_references == queued)
  }
}
