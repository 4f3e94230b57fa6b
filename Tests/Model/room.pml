/* Waiting for room in a full queue (MULTICAST_OVERFLOW_BLOCK), and cycles of waits through it.
 *
 * A producer that finds the queue full checks for room again under the lock of calls, and, if
 * there is none, notes under the lock of the queue that room is awaited. It searches the wait
 * graph and sleeps. It waits for the consumer: the thread that ran the queue last. If that thread
 * waits, directly or through others, for the producer, the call is refused. A producer that is
 * woken in vain goes to sleep again without a search: its wait has been published all the time. A
 * removal that retracts calls has made room under the lock of the queue; if room is awaited, it
 * takes the note away and wakes all producers. A consumer has made one place, and wakes one
 * producer, while room is awaited; with the last one it takes the note away, under both locks. A
 * call that returns wakes the threads that wait for calls of that delegate, and no producer.
 *
 * A consumer also takes out calls without the lock. The producer closes the head before it checks
 * for room, so that the next call is taken out under the lock: see queue.pml.
 *
 * If no thread has run the queue yet, its consumer is unknown. A removal that would wait, through
 * other threads, for such a queue returns PENDING: the removing thread might have to run it.
 * Threads in no call take part in the wait graph too while any thread waits for room.
 *
 *   append, wait_for_room  the producer
 *   run_one                the consumer: takes a call, wakes producers, calls
 *   remove                 retracts, wakes producers, waits for calls or returns PENDING
 *   closes_cycle, reach    the search, as in cycles.pml, with waits for room
 *
 * Proved: no deadlock, no lost wake-up and no lost call: each call that was queued is run or
 * cancelled. Each delegate is released once.
 *
 * The queue has room for one call, and is full at the start. Hazards are visible at once, and the
 * search is one step under the lock of calls: see cycles.pml. The lock of the queue is taken inside
 * the lock of calls, as in the implementation.
 *
 * Threads: B is in a call of delegate 1, queues a call of delegate 2, and blocks. S does the same
 * in no call. Q runs the queue. R removes delegate 2.
 *
 * Variants: HAS_S, HAS_R, REMOVES (Q removes delegate 1 and waits; 1: before it runs the queue, 2:
 * inside the call that it runs), CONSUMER_KNOWN (Q has run the queue before), CONSUMER_QUEUES (Q
 * queues two more calls, inside the first one that it runs).
 */

#ifndef HAS_S
#define HAS_S 0
#endif
#ifndef HAS_R
#define HAS_R 0
#endif
#ifndef REMOVES
#define REMOVES 0
#endif
#ifndef CONSUMER_KNOWN
#define CONSUMER_KNOWN 0
#endif
#ifndef CONSUMER_QUEUES
#define CONSUMER_QUEUES 0
#endif

#define CALLS_LOCK 0
#define QUEUE_LOCK 1
#define WORDS 2
#define BUFFERED 0
#define THREADS 4
#include "memory.pml"

#define BIT(d) (1 << ((d) - 1))

byte queued = 1;       /* calls in the queue; under its lock */
bit is_awaited;        /* room; under the lock of the queue */
byte consumer = CONSUMER_KNOWN * 2; /* thread + 1, or 0: unknown; read without a lock */

byte calls[THREADS];   /* a bit for each delegate whose call the thread is in */
byte depth[THREADS];   /* frames in use: invocations and runs */
byte removed, deferred, released;

/* The wait that a thread has published, under the lock of calls: 0 none, 1 and 2 for calls of a
 * delegate, 3 for room. */
#define ROOM_IN_QUEUE 3
byte waits_for[THREADS];

byte calls_made, calls_queued, calls_cancelled;

/* ---- The search ----------------------------------------------------------------------------- */

hidden byte stage[THREADS];
hidden byte i, next, closed;

#define CONSUMER_IS_UNKNOWN(wait) ((wait) == ROOM_IN_QUEUE && consumer == 0)
#define IS_WAITED_FOR(t, wait) \
  ((wait) == ROOM_IN_QUEUE -> consumer == (t) + 1 : (calls[t] & BIT(wait)) != 0)

inline reach(it) {
  i = 0;
  do
  :: i < THREADS ->
     if
     :: stage[i] == 0 &&
          (CONSUMER_IS_UNKNOWN(it) -> waits_for[i] != 0 : IS_WAITED_FOR(i, it)) ->
        stage[i] = 1
     :: else
     fi;
     i++
  :: else -> break
  od
}

#define ANY_WAIT_FOR_ROOM \
  (waits_for[0] == ROOM_IN_QUEUE || waits_for[1] == ROOM_IN_QUEUE || \
   waits_for[2] == ROOM_IN_QUEUE || waits_for[3] == ROOM_IN_QUEUE)

/* In a d_step. A thread in no call closes a cycle only if some thread waits for room. */
inline closes_cycle(me, it) {
  closed = 0;
  if
#ifdef ROOM_WAITS_IGNORED
  :: depth[me] > 0 ->
#else
  :: depth[me] > 0 || ANY_WAIT_FOR_ROOM ->
#endif
     i = 0;
     do
     :: i < THREADS -> stage[i] = 0; i++
     :: else -> break
     od;
     reach(it);
     do
     :: stage[me] == 0 ->
        next = 0;
        do
        :: next < THREADS && !(stage[next] == 1 && waits_for[next]) -> next++
        :: else -> break
        od;
        if
        :: next == THREADS -> break
        :: else
        fi;
        stage[next] = 2;
        if
#ifdef ROOM_NOT_FOLLOWED
        :: waits_for[next] == ROOM_IN_QUEUE -> skip
#endif
        :: CONSUMER_IS_UNKNOWN(waits_for[next]) ->
#ifdef UNKNOWN_CONSUMER_IGNORED
           skip
#else
           if
           :: it != ROOM_IN_QUEUE -> closed = 1; break
           :: else -> reach(waits_for[next])
           fi
#endif
        :: else -> reach(waits_for[next])
        fi
     :: else -> closed = 1; break
     od
  :: else
  fi;
  i = 0;
  next = 0
}

/* ---- Waking --------------------------------------------------------------------------------- */

#define SLEEPS_FOR(t, it) (asleep[t] && waits_for[t] == (it))
#define ANY_SLEEPS_FOR_ROOM \
  (SLEEPS_FOR(0, ROOM_IN_QUEUE) || SLEEPS_FOR(1, ROOM_IN_QUEUE) || \
   SLEEPS_FOR(2, ROOM_IN_QUEUE) || SLEEPS_FOR(3, ROOM_IN_QUEUE))

/* In a d_step. */
inline wake_sleepers(it) {
  i = 0;
  do
  :: i < THREADS ->
     if
     :: SLEEPS_FOR(i, it) -> asleep[i] = 0
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

inline wake_producers(me) {
#ifdef WOKEN_WITHOUT_LOCK
  d_step { wake_sleepers(ROOM_IN_QUEUE); is_awaited = 0 }
#else
  lock(me, CALLS_LOCK);
  lock(me, QUEUE_LOCK);
  d_step { wake_sleepers(ROOM_IN_QUEUE); is_awaited = 0 };
  unlock(me, QUEUE_LOCK);
  unlock(me, CALLS_LOCK)
#endif
}

/* Any one of them: the order does not matter here. */
inline wake_one_producer(me) {
#ifndef WOKEN_WITHOUT_LOCK
  lock(me, CALLS_LOCK);
#endif
  if
  :: SLEEPS_FOR(0, ROOM_IN_QUEUE) -> asleep[0] = 0
  :: SLEEPS_FOR(1, ROOM_IN_QUEUE) -> asleep[1] = 0
  :: SLEEPS_FOR(2, ROOM_IN_QUEUE) -> asleep[2] = 0
  :: SLEEPS_FOR(3, ROOM_IN_QUEUE) -> asleep[3] = 0
  :: !ANY_SLEEPS_FOR_ROOM
  fi;
  if
#ifdef NOTE_TAKEN_AWAY_TOO_EARLY
  :: true ->
#else
  :: !ANY_SLEEPS_FOR_ROOM ->
#endif
     lock(me, QUEUE_LOCK);
     is_awaited = 0;
     unlock(me, QUEUE_LOCK)
#ifndef NOTE_TAKEN_AWAY_TOO_EARLY
  :: ANY_SLEEPS_FOR_ROOM
#endif
  fi;
#ifndef WOKEN_WITHOUT_LOCK
  unlock(me, CALLS_LOCK)
#else
  skip
#endif
}

inline sleep_for(me, it) {
  d_step { waits_for[me] = it; asleep[me] = 1; mem[CALLS_LOCK] = 0 };
  d_step { !asleep[me] && mem[CALLS_LOCK] == 0 -> mem[CALLS_LOCK] = 1; waits_for[me] = 0 }
}

/* ---- Removal -------------------------------------------------------------------------------- */

#define IS_CALLED(d) ((calls[0] | calls[1] | calls[2] | calls[3]) & BIT(d))

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
#ifdef NOT_WOKEN_BY_REMOVER
     :: x -> x = 0
#else
     :: x -> x = 0; wake_producers(me)
#endif
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
#ifdef REMOVER_DOES_NOT_SEARCH
       closed = 0;
#endif
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
#ifndef NOT_WOKEN_BY_CALL
    wake_sleepers(d);
#endif
    x = ((deferred & BIT(d)) && !IS_CALLED(d));
    if
    :: x -> deferred = deferred & ~BIT(d)
    :: else
    fi
  };
  unlock(me, CALLS_LOCK);
  if
  :: x -> x = 0; release(me, d)
  :: else
  fi
}

/* ---- The producer --------------------------------------------------------------------------- */

inline wait_for_room(me) {
  lock(me, CALLS_LOCK);
  searched = 0;
  do
  :: lock(me, QUEUE_LOCK);
     d_step {
       x = (queued == 0 || (removed & BIT(2)));
#ifndef NOTED_AFTER_CHECK
       is_awaited = is_awaited || !x
#endif
     };
     unlock(me, QUEUE_LOCK);
     if
     :: x -> x = 0; break
     :: else
     fi;
     d_step {
       if
       :: !searched -> closes_cycle(me, ROOM_IN_QUEUE)
       :: else
       fi;
#ifdef PRODUCER_DOES_NOT_SEARCH
       closed = 0;
#endif
       searched = 1;
       x = closed;
       closed = 0
     };
     if
     :: x -> x = 0; is_refused = 1; break
     :: else ->
        printf("thread %d waits for room\n", me);
#ifdef NOTED_AFTER_CHECK
        lock(me, QUEUE_LOCK);
        is_awaited = 1;
        unlock(me, QUEUE_LOCK);
#endif
        sleep_for(me, ROOM_IN_QUEUE)
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
     if
     :: x -> x = 0; break
     :: else
     fi;
     wait_for_room(me);
     if
     :: is_refused -> printf("thread %d is refused: no room\n", me); is_refused = 0; break
     :: else
     fi
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
#ifdef NOT_WOKEN_BY_CONSUMER
     :: x -> x = 0
#else
     :: x -> x = 0; wake_one_producer(me)
#endif
     :: else
     fi;
     d_step {
       printf("thread %d calls delegate 2\n", me);
       assert(!(released & BIT(2)));
       calls_made++
     };
#if REMOVES == 2
     if
     :: calls_made == 1 -> remove(me, 1)
     :: else
     fi;
#endif
#if CONSUMER_QUEUES
     if
     :: calls_made == 1 -> append(me); append(me)
     :: else
     fi;
#endif
     lock(me, QUEUE_LOCK);
     d_step { calls[me] = calls[me] & ~BIT(2); depth[me]-- };
     unlock(me, QUEUE_LOCK);
     if
     :: removed & BIT(2) -> call_did_return(me, 2)
     :: else
     fi
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
     if
     :: removed & BIT(1) -> call_did_return(0, 1)
     :: else
     fi
  :: removed & BIT(1)
  fi;
  done++
}

#define OTHERS (1 + HAS_S + HAS_R)

/* Runs calls until no other thread is left. Its wait for calls in between is not modelled. */
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
