/* Waiting for room in a queue: who runs it, who removes, and cycles through both.
 *
 *   append                 Queue+Append.swift: append, isNotFull, refuse
 *   wait_for_room          Departures.swift: waitUntil(other:isForRoom:)
 *   closes_cycle, reach    Departures.swift: closesCycle, reach, isForAnybody
 *   retract, take          Queue+Append.swift: retract; Queue+Run.swift: take, runFirst
 *   remove                 Departures.swift: seeOff, refusal
 *
 * The queue has room for one call, and one waits at the beginning. Names are seen at once; the
 * search for cycles is one step under the lock of calls: see cycles.pml. The locks of calls and of
 * the queue are taken and given up as in the implementation, the second inside the first.
 *
 * Threads: B calls delegate 1, which has a call of delegate 2 wait in the queue, and blocks; S does
 * the same outside of all calls; Q runs the queue; R removes delegate 2.
 *
 * Variants: HAS_S, HAS_R, REMOVES (Q removes delegate 1 and waits: 1, before it runs the queue; 2,
 * inside the call that it runs), KNOWN (it is known that Q runs the queue), FILLS (Q itself has one
 * more call wait, inside the first one that it makes).
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
#ifndef KNOWN
#define KNOWN 0
#endif
#ifndef FILLS
#define FILLS 0
#endif

#define CALLS 0
#define QUEUE 1
#define WORDS 2
#define BUFFERED 0
#define THREADS 4
#include "memory.pml"

#define BIT(d) (1 << ((d) - 1))

byte waiting = 1;      /* in the queue, under its lock */
byte blocked;
byte consumer = KNOWN * 2; /* thread + 1, or 0; without the lock */

byte calls[THREADS];   /* a bit for each delegate that the thread is in a call of */
byte depth[THREADS];   /* frames: invocations and runs */
byte removed, departing, freed;

/* What a thread has published: 0 nothing, 1 and 2 a delegate, 3 room. Under the lock of calls. */
#define ROOM_IN_QUEUE 3
byte awaited[THREADS];

byte made, taken_in, taken_back;

/* ---- The search ----------------------------------------------------------------------------- */

hidden byte stage[THREADS];
hidden byte i, next, closed;

#define IS_FOR_ANYBODY(what) ((what) == ROOM_IN_QUEUE && consumer == 0)
#define CONCERNS(t, what) \
  ((what) == ROOM_IN_QUEUE -> consumer == (t) + 1 : (calls[t] & BIT(what)) != 0)

inline reach(it) {
  i = 0;
  do
  :: i < THREADS ->
     if
     :: stage[i] == 0 && (IS_FOR_ANYBODY(it) -> awaited[i] != 0 : CONCERNS(i, it)) -> stage[i] = 1
     :: else
     fi;
     i++
  :: else -> break
  od
}

#define SLEEPS_FOR_THREADS \
  (awaited[0] == ROOM_IN_QUEUE || awaited[1] == ROOM_IN_QUEUE || awaited[2] == ROOM_IN_QUEUE || \
   awaited[3] == ROOM_IN_QUEUE)

/* In a d_step. */
inline closes_cycle(me, it) {
  closed = 0;
  if
#ifdef SLEEPERS_FOR_THREADS_NOT_COUNTED
  :: depth[me] > 0 ->
#else
  :: depth[me] > 0 || SLEEPS_FOR_THREADS ->
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
        :: next < THREADS && !(stage[next] == 1 && awaited[next]) -> next++
        :: else -> break
        od;
        if
        :: next == THREADS -> break
        :: else
        fi;
        stage[next] = 2;
        if
#ifdef ROOM_NOT_FOLLOWED
        :: awaited[next] == ROOM_IN_QUEUE -> skip
#endif
        :: IS_FOR_ANYBODY(awaited[next]) ->
#ifdef ANYBODY_IS_NOBODY
           skip
#else
           if
           :: it != ROOM_IN_QUEUE -> closed = 1; break
           :: else
           fi
#endif
        :: else -> reach(awaited[next])
        fi
     :: else -> closed = 1; break
     od
  :: else
  fi;
  i = 0;
  next = 0
}

/* ---- Waking --------------------------------------------------------------------------------- */

inline wake(me) {
#ifdef WOKEN_WITHOUT_LOCK
  d_step { wake_all() }
#else
  lock(me, CALLS);
  d_step { wake_all() };
  unlock(me, CALLS)
#endif
}

inline sleep_for(me, it) {
  d_step { awaited[me] = it; asleep[me] = 1; mem[CALLS] = 0 };
  d_step { !asleep[me] && mem[CALLS] == 0 -> mem[CALLS] = 1; awaited[me] = 0 }
}

/* ---- Removing ------------------------------------------------------------------------------- */

#define IS_CALLED(d) ((calls[0] | calls[1] | calls[2] | calls[3]) & BIT(d))

inline release(me, d) {
  d_step {
    printf("thread %d releases delegate %d\n", me, d);
    assert(!(freed & BIT(d)));
    assert(!IS_CALLED(d));
    freed = freed | BIT(d)
  }
}

inline remove(me, d) {
  d_step { printf("thread %d removes delegate %d\n", me, d); removed = removed | BIT(d) };
  if
  :: d == 2 -> /* retract */
     lock(me, QUEUE);
     d_step { taken_back = taken_back + waiting; waiting = 0; x = (blocked > 0) };
     unlock(me, QUEUE);
     if
#ifdef NOT_WOKEN_BY_REMOVER
     :: x -> x = 0
#else
     :: x -> x = 0; wake(me)
#endif
     :: else
     fi
  :: else
  fi;
  lock(me, CALLS);
  do
  :: !IS_CALLED(d) -> unlock(me, CALLS); release(me, d); break
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
        departing = departing | BIT(d);
        unlock(me, CALLS);
        break
     :: else -> sleep_for(me, d)
     fi
  od
}

inline attend(me, d) {
  lock(me, CALLS);
  d_step {
    wake_all();
    x = ((departing & BIT(d)) && !IS_CALLED(d));
    if
    :: x -> departing = departing & ~BIT(d)
    :: else
    fi
  };
  unlock(me, CALLS);
  if
  :: x -> x = 0; release(me, d)
  :: else
  fi
}

/* ---- Taking in ------------------------------------------------------------------------------ */

inline wait_for_room(me) {
  lock(me, CALLS);
  do
  :: lock(me, QUEUE);
     x = (waiting == 0 || (removed & BIT(2)));
     unlock(me, QUEUE);
     if
     :: x -> x = 0; break
     :: else
     fi;
     d_step {
       closes_cycle(me, ROOM_IN_QUEUE);
#ifdef WHO_BLOCKS_DOES_NOT_SEARCH
       closed = 0;
#endif
       x = closed;
       closed = 0
     };
     if
     :: x -> x = 0; is_refused = 1; break
     :: else ->
        printf("thread %d waits for room\n", me);
#ifdef BLOCKED_COUNTED_AFTER_LOOK
        lock(me, QUEUE);
        blocked++;
        unlock(me, QUEUE);
        sleep_for(me, ROOM_IN_QUEUE);
        lock(me, QUEUE);
        blocked--;
        unlock(me, QUEUE)
#else
        sleep_for(me, ROOM_IN_QUEUE)
#endif
     fi
  od;
  skip;
  unlock(me, CALLS)
}

inline append(me) {
  do
  :: lock(me, QUEUE);
     d_step {
       if
       :: removed & BIT(2) -> x = 1
       :: !(removed & BIT(2)) && waiting == 0 -> waiting++; taken_in++; x = 1
       :: else ->
#if !defined(BLOCKED_COUNTED_AFTER_UNLOCK) && !defined(BLOCKED_COUNTED_AFTER_LOOK)
          blocked++;
#endif
          x = 0
       fi
     };
     unlock(me, QUEUE);
     if
     :: x -> x = 0; break
     :: else
     fi;
#ifdef BLOCKED_COUNTED_AFTER_UNLOCK
     lock(me, QUEUE);
     blocked++;
     unlock(me, QUEUE);
#endif
     wait_for_room(me);
#ifndef BLOCKED_COUNTED_AFTER_LOOK
     lock(me, QUEUE);
     blocked--;
     unlock(me, QUEUE);
#endif
     if
     :: is_refused -> printf("thread %d gives up: no room\n", me); is_refused = 0; break
     :: else
     fi
  od;
  skip
}

/* ---- Running -------------------------------------------------------------------------------- */

inline run_one(me) {
  lock(me, QUEUE);
  if
  :: waiting > 0 ->
     d_step {
       waiting--;
       calls[me] = calls[me] | BIT(2);
       depth[me]++;
       consumer = me + 1;
       x = (blocked > 0)
     };
     unlock(me, QUEUE);
     if
#ifdef NOT_WOKEN_BY_RUNNER
     :: x -> x = 0
#else
     :: x -> x = 0; wake(me)
#endif
     :: else
     fi;
     d_step { printf("thread %d calls delegate 2\n", me); assert(!(freed & BIT(2))); made++ };
#if REMOVES == 2
     if
     :: made == 1 -> remove(me, 1)
     :: else
     fi;
#endif
#if FILLS
     if
     :: made == 1 -> append(me); append(me)
     :: else
     fi;
#endif
     lock(me, QUEUE);
     d_step { calls[me] = calls[me] & ~BIT(2); depth[me]-- };
     unlock(me, QUEUE);
     if
     :: removed & BIT(2) -> attend(me, 2)
     :: else
     fi
  :: else -> unlock(me, QUEUE)
  fi
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x; bit is_refused

active proctype B() {
  LOCALS;
  if
  :: d_step { !(removed & BIT(1)) -> calls[0] = BIT(1); depth[0] = 1 };
     append(0);
     d_step { calls[0] = 0; depth[0] = 0 };
     if
     :: removed & BIT(1) -> attend(0, 1)
     :: else
     fi
  :: removed & BIT(1)
  fi;
  done++
}

#define OTHERS (1 + HAS_S + HAS_R)

/* As long as there is anything to run; in between it waits for that, which is not modelled. */
active proctype Q() {
  LOCALS;
#if REMOVES == 1
  remove(1, 1);
#endif
  do
  :: waiting > 0 -> run_one(1)
  :: waiting == 0 && done == OTHERS -> break
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
    assert(blocked == 0);
    assert(departing == 0);
    assert(freed == removed); /* nothing is left that nobody would come back to */
    assert(1 + taken_in == made + taken_back) /* no call is lost */
  }
}
