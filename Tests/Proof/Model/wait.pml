/* Threads wait for queued calls (MULTICAST_WAIT), which may close cycles of waits.
 *
 * All calls that one invocation appends to one queue share a receipt with a reference count. There
 * is one reference for each call, and one for the invocation. When a call has been made, or taken
 * out of the queue, its reference is released. The waiter reads the count under the lock of calls,
 * searches the wait graph and sleeps. The thread that releases the last reference but one wakes the
 * waiter, and the last release frees the receipt.
 *
 * A thread whose frame contains the receipt is running such a call and can end the wait. Otherwise
 * the consumer of the queue is expected to run the calls. After the queue has been destroyed,
 * another queue may take its slot, and from then on only the frames count. Each time before it
 * sleeps, the waiter therefore checks again whether the queue exists.
 *
 *   wait_for_calls         the waiter
 *   run_one                the consumer: takes a call, makes it, releases the receipt
 *   destroy                takes all calls out, wakes the waiter, waits for the running call
 *   remove                 removes the delegate that is calling the waiter
 *   closes_cycle, reach    the search, as in cycles.pml, with waits for queued calls
 *
 * The model proves that there is no deadlock and no lost wake-up, that no call is queued or running
 * if the wait ends without a cycle, and that the receipt is freed once and not used afterwards.
 *
 * The calls are in the queue at the start. Hazards and frames are visible immediately, and the
 * search is one step under the lock of calls, as in cycles.pml.
 *
 * Threads: W waits, inside a call of delegate W_IN. Q runs the queue, which has calls of delegate
 * 2. D destroys the queue. S runs the queue, too, after Q has ended.
 *
 * Variants: CALLS=2 (in the queue), CONSUMER_KNOWN=0 (Q has run the queue before), OUTSIDE=0 (W is
 * in no call), W_IN=1 (2: W is in a call of the queue's delegate), REMOVES=0 (1: Q removes delegate
 * 1 and waits, before it runs the queue; 2: inside the call that it runs), ENDS=0 (the thread Q
 * ends inside its first call), HAS_D=0.
 */

#define CALLS_LOCK 0
#define QUEUE_LOCK 1
#define WORDS 2
#define BUFFERED 0
#define THREADS 4
#include "memory.pml"

/* Under the lock of the queue. */
bit exists = 1;
byte queued = CALLS;

byte consumer = CONSUMER_KNOWN * 2; /* thread + 1, or 0 if unknown; read without a lock */

byte references = CALLS + 1; /* to the receipt */
bit freed;
bit retains[THREADS];        /* a frame of the thread has the receipt */

bit removed, deferred, released, q_has_ended;

bit has_queue; /* the queue existed when W published its wait */

/* ---- The search ----------------------------------------------------------------------------- */

#define IS_CONSUMER(t) (has_queue && consumer == (t) + 1)
#ifdef FRAMES_IGNORED
#define CAN_END(t) IS_CONSUMER(t)
#else
#define CAN_END(t) (IS_CONSUMER(t) || retains[t])
#endif
#define CONSUMER_IS_UNKNOWN(wait) \
  ((wait) == FOR_QUEUE && has_queue && !CAN_END(0) && !CAN_END(1) && !CAN_END(2) && !CAN_END(3))
#define IS_WAITED_FOR(t, wait) \
  ((wait) == FOR_QUEUE -> CAN_END(t) : (calls[t] & BIT(wait)) != 0)
#define MAY_CLOSE(me, it) (depth[me] > 0 || it == FOR_QUEUE || waits_for[0] == FOR_QUEUE)

#include "search.pml"

/* ---- The receipt ---------------------------------------------------------------------------- */

inline wake(me) {
  EITHER(WOKEN_WITHOUT_LOCK, d_step { wake_all() },
                             lock(me, CALLS_LOCK);
                             d_step { wake_all() };
                             unlock(me, CALLS_LOCK))
}

/* Releases references. Sets `x` to 1 if the waiter must be woken. */
inline count_down(count) {
  d_step {
    assert(!freed && references >= count);
    references = references - count;
    x = (references == 1);
    when(references == 0, freed = 1)
  }
  IF(KIND_READ_AFTER_COUNT, ;
                            assert(!x || !freed))
}

/* ---- Removal, and the end of the queue ------------------------------------------------------ */

/* Waits until no thread is calling the delegate. Sets `is_pending` if waiting would close a
 * cycle. */
inline wait_until_not_called(me, d) {
  lock(me, CALLS_LOCK);
  do
  :: !IS_CALLED(d) -> break
  :: else ->
     d_step {
       closes_cycle(me, d);
       IF(REMOVER_DOES_NOT_SEARCH, closed = 0;)
       x = closed;
       closed = 0
     };
     if
     :: x -> x = 0; is_pending = 1; break
     :: else -> sleep_for(me, d)
     fi
  od;
  when(is_pending && d == 1, deferred = 1);
  unlock(me, CALLS_LOCK)
}

inline remove(me) {
  removed = 1;
  wait_until_not_called(me, 1);
  if
  :: is_pending -> printf("thread %d removes delegate 1: PENDING\n", me); is_pending = 0
  :: else -> d_step { assert(!released); released = 1 }
  fi
}

inline call_did_return(me) {
  lock(me, CALLS_LOCK);
  d_step {
    wake_all();
    when(deferred && !IS_CALLED(1), deferred = 0; assert(!released); released = 1)
  };
  unlock(me, CALLS_LOCK)
}

inline destroy(me) {
  lock(me, QUEUE_LOCK);
  d_step { exists = 0; taken = queued; queued = 0 };
  when(taken > 0, count_down(taken));
  /* The next queue in the slot has not been run yet, or is run by this thread. */
  if
  :: consumer = 0
  :: consumer = me + 1
  fi;
  unlock(me, QUEUE_LOCK);
  EITHER(WAITER_WOKEN_AFTER_WAITING, woken_later = x;
                                     x = 0,
                                     when(x, x = 0; wake(me)));
  wait_until_not_called(me, 2);
  is_pending = 0
  IF(WAITER_WOKEN_AFTER_WAITING, ;
                                 when(woken_later, wake(me)))
}

/* ---- The waiter ----------------------------------------------------------------------------- */

inline wait_for_calls(me) {
  lock(me, CALLS_LOCK);
  do
  :: assert(!freed);
     when(references <= 1, break);
     UNLESS(QUEUE_NOT_LOOKED_AT_AGAIN, has_queue = exists;)
     d_step {
       closes_cycle(me, FOR_QUEUE);
       IF(WAITER_DOES_NOT_SEARCH, closed = 0;)
       x = closed;
       closed = 0
     };
     if
     :: x -> x = 0; is_unfinished = 1; break
     :: else -> printf("thread %d waits for queued calls\n", me); sleep_for(me, FOR_QUEUE)
     fi
  od;
  unlock(me, CALLS_LOCK);
  assert(is_unfinished || references == 1);
  when(is_unfinished, printf("thread %d: unfinished\n", me));
  count_down(1);
  x = 0
}

/* ---- The consumer --------------------------------------------------------------------------- */

inline finish_call(me) {
  IF(ENDED_CALL_KEEPS_RECEIPT, if
                               :: is_ending -> retains[me] = 0
                               :: else ->)
  retains[me] = 0;
  count_down(1);
  if
  EITHER(NOT_WOKEN_BY_CONSUMER, :: x -> x = 0, :: x -> x = 0; wake(me))
  :: else
  fi
  IF(ENDED_CALL_KEEPS_RECEIPT, fi)
}

inline run_one(me) {
  lock(me, QUEUE_LOCK);
  if
  :: exists && queued > 0 ->
     d_step {
       queued--;
       retains[me] = 1;
       calls[me] = calls[me] | BIT(2);
       depth[me]++;
       consumer = me + 1
     };
     unlock(me, QUEUE_LOCK);
     printf("thread %d calls delegate 2\n", me);
     assert(!freed);
#if REMOVES == 2
     when(me == 1 && !removed, remove(me));
#endif
     IF(ENDS, is_ending = (me == 1);)
     finish_call(me);
     /* A thread that ends withdraws its frames without the lock of the queue. */
     if
     :: is_ending -> skip
     :: else -> lock(me, QUEUE_LOCK)
     fi;
     d_step { calls[me] = calls[me] & ~BIT(2); depth[me]-- };
     if
     :: is_ending -> skip
     :: else -> unlock(me, QUEUE_LOCK)
     fi;
     when(!exists || is_ending, call_did_return(me))
  :: else -> unlock(me, QUEUE_LOCK)
  fi
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x, taken; bit is_pending, is_unfinished, is_ending, woken_later

active proctype W() {
  LOCALS;
  IF(QUEUE_NOT_LOOKED_AT_AGAIN, has_queue = 1;)
  UNLESS(OUTSIDE, if
                  :: d_step { !removed -> calls[0] = BIT(W_IN); depth[0] = 1 };)
     wait_for_calls(0);
#if !OUTSIDE
     d_step { calls[0] = 0; depth[0] = 0 };
     when(removed || !exists, call_did_return(0))
  :: removed -> count_down(1); x = 0
  fi;
#endif
  done++
}

#define OTHERS (1 + HAS_D + ENDS)

/* Runs calls until all other threads have ended. How Q waits for new calls is not modelled. */
active proctype Q() {
  LOCALS;
#if REMOVES == 1
  remove(1);
#endif
  do
  :: queued > 0 && !is_ending -> run_one(1)
  :: is_ending -> q_has_ended = 1; break
  :: queued == 0 && done == OTHERS -> break
  :: !exists -> break
  od;
  done++
}

#if HAS_D
active proctype D() {
  LOCALS;
  destroy(2);
  done++
}
#endif

#if ENDS
active proctype S() {
  LOCALS;
  do
  :: queued > 0 && q_has_ended -> run_one(3)
  :: queued == 0 -> break
  :: !exists -> break
  od;
  done++
}
#endif

active proctype End() {
  d_step {
    done == OTHERS + 1 ->
    assert(freed && references == 0);
    assert(queued == 0);
    assert(!removed || released);
    assert(!deferred)
  }
}
