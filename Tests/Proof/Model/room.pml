/* Producers wait for room in a full queue (MULTICAST_OVERFLOW_BLOCK), which may close cycles of
 * waits.
 *
 * A producer that finds the queue full checks for room again under the lock of calls. If there is
 * still no room, it sets the flag `is_awaited` under the lock of the queue, searches the wait graph
 * and sleeps. It waits for the consumer, which is the thread that ran the queue last. If the
 * consumer is waiting for the producer, directly or through other threads, the call is refused. A
 * producer that is woken but finds no room goes back to sleep without a search, because its wait
 * has stayed published.
 *
 * A removal that retracts calls makes room under the lock of the queue; if `is_awaited` is set, it
 * clears the flag and wakes all producers. A consumer makes room for one call, and wakes one
 * producer if `is_awaited` is set; when no other producer sleeps, it clears the flag under both
 * locks. A call that returns wakes the threads that wait for calls of its delegate, but no
 * producer.
 *
 * The library's consumer also takes out calls without the lock (see queue.pml). A producer
 * therefore closes the head before it checks for room, so that the next call is taken out under the
 * lock.
 *
 * Until a thread has run the queue, its consumer is unknown. A removal that would wait for such a
 * queue, through other threads, returns PENDING, because the removing thread itself might have to
 * run the queue. While any thread is waiting for room, threads outside all calls also take part in
 * the wait graph.
 *
 *   append, wait_for_room  the producer
 *   run_one                the consumer: takes a call, wakes producers, makes the call
 *   remove                 retracts calls, wakes producers, waits for calls or returns PENDING
 *   closes_cycle, reach    the search, as in cycles.pml, with waits for room
 *
 * The model proves that there is no deadlock and no lost wake-up, that each queued call is run or
 * cancelled, and that each delegate is released once.
 *
 * The queue has room for one call, and is full at the start. Hazards are visible immediately, and
 * the search is one step under the lock of calls, as in cycles.pml. The lock of the queue is taken
 * inside the lock of calls, as in the implementation.
 *
 * Threads: B, inside a call of delegate 1, queues a call of delegate 2 and blocks. S does the same
 * outside any call. Q runs the queue. R removes delegate 2.
 *
 * Variants: HAS_S=0, HAS_R=0, REMOVES=0 (1: Q removes delegate 1 and waits, before it runs the
 * queue; 2: inside the call that it runs), CONSUMER_KNOWN=0 (Q has run the queue before),
 * CONSUMER_QUEUES=0 (Q queues two more calls, inside the first one that it runs).
 */

#define CALLS_LOCK 0
#define QUEUE_LOCK 1
#define WORDS 2
#define BUFFERED 0
#define THREADS 4
#include "memory.pml"

byte queued = 1;       /* calls in the queue; under its lock */
bit is_awaited;        /* a producer awaits room; under the queue's lock */
byte consumer = CONSUMER_KNOWN * 2; /* thread + 1, or 0 if unknown; read without a lock */

byte removed, deferred, released;

byte calls_made, calls_queued, calls_cancelled;

/* ---- The search ----------------------------------------------------------------------------- */

#define CONSUMER_IS_UNKNOWN(wait) ((wait) == FOR_QUEUE && consumer == 0)
#define IS_WAITED_FOR(t, wait) \
  ((wait) == FOR_QUEUE -> consumer == (t) + 1 : (calls[t] & BIT(wait)) != 0)

/* A thread outside all calls closes a cycle only if some thread is waiting for room. */
#define ANY_WAIT_FOR_ROOM \
  (waits_for[0] == FOR_QUEUE || waits_for[1] == FOR_QUEUE || \
   waits_for[2] == FOR_QUEUE || waits_for[3] == FOR_QUEUE)
#ifdef ROOM_WAITS_IGNORED
#define MAY_CLOSE(me, it) (depth[me] > 0)
#else
#define MAY_CLOSE(me, it) (depth[me] > 0 || ANY_WAIT_FOR_ROOM)
#endif

#include "search.pml"

/* ---- Waking --------------------------------------------------------------------------------- */

#define SLEEPS_FOR(t, it) (asleep[t] && waits_for[t] == (it))
#define ANY_SLEEPS_FOR_ROOM \
  (SLEEPS_FOR(0, FOR_QUEUE) || SLEEPS_FOR(1, FOR_QUEUE) || \
   SLEEPS_FOR(2, FOR_QUEUE) || SLEEPS_FOR(3, FOR_QUEUE))

/* Wakes the threads that are waiting for `it`, a delegate or the queue. Used only inside a
 * d_step. */
inline wake_sleepers(it) {
  for (i : 0 .. THREADS - 1) { when(SLEEPS_FOR(i, it), asleep[i] = 0) };
  i = 0
}

inline wake_producers(me) {
  EITHER(WOKEN_WITHOUT_LOCK, d_step { wake_sleepers(FOR_QUEUE); is_awaited = 0 },
                             lock(me, CALLS_LOCK);
                             lock(me, QUEUE_LOCK);
                             d_step { wake_sleepers(FOR_QUEUE); is_awaited = 0 };
                             unlock(me, QUEUE_LOCK);
                             unlock(me, CALLS_LOCK))
}

/* Wakes any one sleeping producer, because the order does not matter here. */
inline wake_one_producer(me) {
  UNLESS(WOKEN_WITHOUT_LOCK, lock(me, CALLS_LOCK);)
  if
  :: SLEEPS_FOR(0, FOR_QUEUE) -> asleep[0] = 0
  :: SLEEPS_FOR(1, FOR_QUEUE) -> asleep[1] = 0
  :: SLEEPS_FOR(2, FOR_QUEUE) -> asleep[2] = 0
  :: SLEEPS_FOR(3, FOR_QUEUE) -> asleep[3] = 0
  :: !ANY_SLEEPS_FOR_ROOM
  fi;
  if
  EITHER(NOTE_TAKEN_AWAY_TOO_EARLY, :: true ->, :: !ANY_SLEEPS_FOR_ROOM ->)
     lock(me, QUEUE_LOCK);
     is_awaited = 0;
     unlock(me, QUEUE_LOCK)
  UNLESS(NOTE_TAKEN_AWAY_TOO_EARLY, :: ANY_SLEEPS_FOR_ROOM)
  fi;
  EITHER(WOKEN_WITHOUT_LOCK, skip, unlock(me, CALLS_LOCK))
}

/* ---- Removal -------------------------------------------------------------------------------- */

inline release(me, d) {
  d_step {
    printf("thread %d releases delegate %d\n", me, d);
    assert(!(released & BIT(d)));
    assert(!IS_CALLED(d));
    released = released | BIT(d)
  }
}

inline remove(me, d) {
  d_step { printf("thread %d removes delegate %d\n", me, d); removed = removed | BIT(d) };
  if
  :: d == 2 -> /* cancel */
     lock(me, QUEUE_LOCK);
     d_step {
       calls_cancelled = calls_cancelled + queued;
       queued = 0;
       x = is_awaited
     };
     unlock(me, QUEUE_LOCK);
     if
     EITHER(NOT_WOKEN_BY_REMOVER, :: x -> x = 0, :: x -> x = 0; wake_producers(me))
     :: else
     fi
  :: else
  fi;
  lock(me, CALLS_LOCK);
  do
  :: !IS_CALLED(d) -> unlock(me, CALLS_LOCK); release(me, d); break
  :: else ->
     d_step {
       closes_cycle(me, d);
       IF(REMOVER_DOES_NOT_SEARCH, closed = 0;)
       x = closed;
       closed = 0
     };
     if
     :: x ->
        printf("thread %d removes delegate %d: PENDING\n", me, d);
        x = 0;
        deferred = deferred | BIT(d);
        unlock(me, CALLS_LOCK);
        break
     :: else -> sleep_for(me, d)
     fi
  od
}

inline call_did_return(me, d) {
  lock(me, CALLS_LOCK);
  d_step {
    UNLESS(NOT_WOKEN_BY_CALL, wake_sleepers(d);)
    x = ((deferred & BIT(d)) && !IS_CALLED(d));
    when(x, deferred = deferred & ~BIT(d))
  };
  unlock(me, CALLS_LOCK);
  when(x, x = 0; release(me, d))
}

/* ---- The producer --------------------------------------------------------------------------- */

inline wait_for_room(me) {
  lock(me, CALLS_LOCK);
  searched = 0;
  do
  :: lock(me, QUEUE_LOCK);
     d_step {
       x = (queued == 0 || (removed & BIT(2)));
       UNLESS(NOTED_AFTER_CHECK, is_awaited = is_awaited || !x)
     };
     unlock(me, QUEUE_LOCK);
     when(x, x = 0; break);
     d_step {
       when(!searched, closes_cycle(me, FOR_QUEUE));
       IF(PRODUCER_DOES_NOT_SEARCH, closed = 0;)
       searched = 1;
       x = closed;
       closed = 0
     };
     if
     :: x -> x = 0; is_refused = 1; break
     :: else ->
        printf("thread %d waits for room\n", me);
        IF(NOTED_AFTER_CHECK, lock(me, QUEUE_LOCK);
                              is_awaited = 1;
                              unlock(me, QUEUE_LOCK);)
        sleep_for(me, FOR_QUEUE)
     fi
  od;
  skip;
  unlock(me, CALLS_LOCK)
}

inline append(me) {
  do
  :: lock(me, QUEUE_LOCK);
     d_step {
       if
       :: removed & BIT(2) -> x = 1
       :: !(removed & BIT(2)) && queued == 0 -> queued++; calls_queued++; x = 1
       :: else ->
          x = 0
       fi
     };
     unlock(me, QUEUE_LOCK);
     when(x, x = 0; break);
     wait_for_room(me);
     when(is_refused, printf("thread %d is refused: no room\n", me); is_refused = 0; break)
  od;
  skip
}

/* ---- The consumer --------------------------------------------------------------------------- */

inline run_one(me) {
  lock(me, QUEUE_LOCK);
  if
  :: queued > 0 ->
     d_step {
       queued--;
       calls[me] = calls[me] | BIT(2);
       depth[me]++;
       consumer = me + 1;
       x = is_awaited
     };
     unlock(me, QUEUE_LOCK);
     if
     EITHER(NOT_WOKEN_BY_CONSUMER, :: x -> x = 0, :: x -> x = 0; wake_one_producer(me))
     :: else
     fi;
     d_step {
       printf("thread %d calls delegate 2\n", me);
       assert(!(released & BIT(2)));
       calls_made++
     };
#if REMOVES == 2
     when(calls_made == 1, remove(me, 1));
#endif
     IF(CONSUMER_QUEUES, when(calls_made == 1, append(me); append(me));)
     lock(me, QUEUE_LOCK);
     d_step { calls[me] = calls[me] & ~BIT(2); depth[me]-- };
     unlock(me, QUEUE_LOCK);
     when(removed & BIT(2), call_did_return(me, 2))
  :: else -> unlock(me, QUEUE_LOCK)
  fi
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x; bit is_refused, searched

active proctype B() {
  LOCALS;
  if
  :: d_step { !(removed & BIT(1)) -> calls[0] = BIT(1); depth[0] = 1 };
     append(0);
     d_step { calls[0] = 0; depth[0] = 0 };
     when(removed & BIT(1), call_did_return(0, 1))
  :: removed & BIT(1)
  fi;
  done++
}

#define OTHERS (1 + HAS_S + HAS_R)

/* Runs calls until all other threads have ended. How Q waits for new calls is not modelled. */
active proctype Q() {
  LOCALS;
#if REMOVES == 1
  remove(1, 1);
#endif
  do
  :: queued > 0 -> run_one(1)
  :: queued == 0 && done == OTHERS -> break
  od;
  done++
}

#if HAS_R
active proctype R() {
  LOCALS;
  remove(2, 2);
  done++
}
#endif

#if HAS_S
active proctype S() {
  LOCALS;
  append(3);
  done++
}
#endif

active proctype End() {
  d_step {
    done == OTHERS + 1 ->
    assert(deferred == 0);
    assert(released == removed); /* no deferred release is left over */
    assert(1 + calls_queued == calls_made + calls_cancelled) /* no queued call is lost */
  }
}
