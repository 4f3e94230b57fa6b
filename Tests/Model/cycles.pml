/* Removals inside calls: who waits, who gets PENDING, and that nobody waits for ever.
 *
 *   call_some, leave       InvocationList+Invoke.swift: callPlain; Departures.swift: attend
 *   remove_some            Multicast+Remove.swift: removeOne; Departures.swift: seeOff, wait
 *   closes_cycle, reach    Departures.swift, by the same names
 *
 * Names are seen at once here, and a critical section of the lock of calls is one step: that the
 * two sides cannot miss each other is shown by invoke_remove.pml. Of threads that are not asleep
 * the search looks at nothing but who calls what at that moment, so that it may be one step as
 * well.
 *
 * Each thread calls some delegate, inside it perhaps another, and then removes one (or finds it
 * removed and settles), each of its own choice. With OUTSIDE the last thread calls none.
 *
 * Variants: THREADS, DELEGATES, NESTED, TWO_REMOVALS (each thread removes twice), WITHIN (the time
 * of any removal may be up).
 */

#ifndef THREADS
#define THREADS 3
#endif
#ifndef DELEGATES
#define DELEGATES 3
#endif
#ifndef NESTED
#define NESTED 0
#endif
#ifndef TWO_REMOVALS
#define TWO_REMOVALS 0
#endif
#ifndef OUTSIDE
#define OUTSIDE 0
#endif

#define BUFFERED 0
#define WORDS 1
#include "memory.pml"

#define BIT(d) (1 << ((d) - 1))

byte calls[THREADS];     /* a bit for each delegate that the thread is in a call of */
byte awaited[THREADS];   /* what it has published that it waits for; 0: nothing */
byte innermost[THREADS];
byte removed, departing, freed; /* a bit for each delegate */

/* ---- The search, under the lock of calls ---------------------------------------------------- */

hidden byte stage[THREADS]; /* 0 unknown, 1 reached, 2 followed */
hidden byte i, next, closed, those;

#ifdef INNERMOST_CALL_ONLY
#define IS_CALLING(t, d) (innermost[t] == (d))
#else
#define IS_CALLING(t, d) (calls[t] & BIT(d))
#endif

inline reach(d) {
  i = 0;
  do
  :: i < THREADS ->
     if
     :: stage[i] == 0 && IS_CALLING(i, d) ->
        stage[i] = 1;
#ifdef ONE_CALLER_REACHED
        break
#endif
     :: else
     fi;
     i++
  :: else -> break
  od
}

/* In a d_step. */
inline closes_cycle(me, d) {
  i = 0;
  do
  :: i < THREADS -> stage[i] = 0; i++
  :: else -> break
  od;
  reach(d);
  do
  :: stage[me] == 0 ->
     next = 0;
     do
     :: next < THREADS && !(stage[next] == 1 && awaited[next]) -> next++
     :: else -> break
     od;
     if
     :: next == THREADS -> closed = 0; break
     :: else
     fi;
     stage[next] = 2;
#ifndef NOT_FOLLOWED
     reach(awaited[next])
#endif
  :: else -> closed = 1; break
  od;
#ifdef CYCLES_NOT_SEARCHED
  closed = (calls[me] & BIT(d)) != 0;
#endif
#ifdef OWN_CALL_NOT_SEEN
  closed = closed && !(calls[me] & BIT(d));
#endif
#ifdef NEVER_WAITS_INSIDE
  closed = (calls[me] != 0);
#endif
  i = 0;
  next = 0
}

/* In a d_step: the same question by what is so, not by what is published. All that have to move
 * before `d` is called by nobody, found by repeated rounds. */
inline is_cycle(me, d) {
  those = 0;
  next = 0;
  do
  :: next <= THREADS ->
     i = 0;
     do
     :: i < THREADS ->
        if
        :: calls[i] & BIT(d) -> those = those | (1 << i)
        :: else
        fi;
        if
        :: (those & (1 << i)) && wanted[i] -> called_by(wanted[i])
        :: else
        fi;
        i++
     :: else -> break
     od;
     next++
  :: else -> break
  od;
  closed = (those & (1 << me)) != 0;
  those = 0;
  next = 0;
  i = 0
}

byte wanted[THREADS]; /* what a thread in fact sleeps for, until it has looked again */
hidden byte j;

inline called_by(d) {
  j = 0;
  do
  :: j < THREADS ->
     if
     :: calls[j] & BIT(d) -> those = those | (1 << j)
     :: else
     fi;
     j++
  :: else -> break
  od;
  j = 0
}

hidden byte callers;

/* In a d_step: who calls it? */
inline look(d) {
  callers = 0;
  i = 0;
  do
  :: i < THREADS ->
     if
     :: calls[i] & BIT(d) -> callers++
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

inline release(me, d) {
  d_step {
    printf("thread %d releases delegate %d\n", me, d);
    assert(!(freed & BIT(d)));
    look(d);
    assert(callers == 0); /* not while it is being called */
    callers = 0;
    freed = freed | BIT(d)
  }
}

/* ---- Calling -------------------------------------------------------------------------------- */

inline call_some(me) {
  if
  :: d_step {
       !(removed & BIT(d)) && !(calls[me] & BIT(d)) ->
       printf("thread %d calls delegate %d\n", me, d);
       calls[me] = calls[me] | BIT(d);
       innermost[me] = d
     }
  :: d_step { removed & BIT(d) || calls[me] & BIT(d) -> d = 0 }
  fi
}

inline leave(me) {
  if
  :: d ->
     d_step { calls[me] = calls[me] & ~BIT(d); innermost[me] = 0 };
     if
     :: removed & BIT(d) ->
        d_step { /* attend */
          wake_all();
          look(d);
          x = (callers == 0 && (departing & BIT(d)));
          callers = 0;
          if
          :: x -> departing = departing & ~BIT(d)
          :: else
          fi
        };
        if
        :: x -> x = 0; release(me, d)
        :: else
        fi
     :: else
     fi;
     d = 0
  :: else
  fi
}

/* ---- Removing ------------------------------------------------------------------------------- */

inline choose(x) {
  if
  :: x = 1
  :: x = 2
#if DELEGATES > 2
  :: x = 3
#endif
  fi
}

/* outcome: 1 OK, 2 PENDING, 3 TIMEOUT, 0: it is to sleep */
inline look_and_decide(me) {
  look(r);
  if
  :: callers == 0 -> outcome = 1
  :: else ->
     closes_cycle(me, r);
     if
     :: closed ->
        is_cycle(me, r);
        assert(closed); /* PENDING only where waiting would never end */
        printf("thread %d removes delegate %d: PENDING\n", me, r);
        outcome = 2;
        if
        :: ours -> departing = departing | BIT(r)
        :: else
        fi
     :: !closed && late ->
        printf("thread %d removes delegate %d: TIMEOUT\n", me, r);
        outcome = 3;
        if
        :: ours -> departing = departing | BIT(r)
        :: else
        fi
     :: else ->
        printf("thread %d waits for delegate %d\n", me, r);
        outcome = 0
     fi;
     closed = 0
  fi;
  callers = 0
}

inline fall_asleep(me) {
  awaited[me] = r;
  wanted[me] = r;
  asleep[me] = 1;
#ifdef WAIT_NOT_PUBLISHED
  awaited[me] = 0;
#endif
  skip
}

inline remove_some(me) {
  choose(r);
  d_step { ours = !(removed & BIT(r)); removed = removed | BIT(r) };
  do
  :: d_step {
       look_and_decide(me);
#ifndef SLEEP_AFTER_UNLOCK
       if
       :: outcome == 0 -> fall_asleep(me)
       :: else
       fi
#endif
     };
     if
     :: outcome -> break
     :: else ->
#ifdef SLEEP_AFTER_UNLOCK
        d_step { fall_asleep(me) };
#endif
#if WITHIN
        if
        :: !asleep[me]
        :: late = 1
        fi;
        d_step {
          asleep[me] = 0;
#else
        d_step {
          !asleep[me] ->
#endif
          wanted[me] = 0;
#ifndef STILL_PUBLISHED_WHEN_AWAKE
          awaited[me] = 0;
#endif
          skip
        }
     fi
  od;
  if
  :: outcome == 1 ->
     d_step { look(r); assert(callers == 0); callers = 0 }; /* OK: it runs on no thread */
     if
     :: ours -> release(me, r)
     :: else
     fi
  :: else
  fi;
  outcome = 0;
  ours = 0;
  late = 0;
  r = 0
}

proctype Thread(byte me) {
  byte outer, d, r, x, outcome;
  bit ours, late;
  if
  :: OUTSIDE && me == THREADS - 1
  :: else ->
     choose(d);
     call_some(me)
  fi;
#if NESTED
  outer = d;
  if
  :: outer -> choose(d); call_some(me)
  :: d = 0
  fi;
#endif
  remove_some(me);
#if TWO_REMOVALS
  remove_some(me);
#endif
  leave(me);
#if NESTED
  d = outer;
  outer = 0;
  leave(me);
#endif
  done++
}

init {
  atomic {
    run Thread(0);
    run Thread(1);
#if THREADS > 2
    run Thread(2);
#endif
#if THREADS > 3
    run Thread(3);
#endif
    skip
  };
  d_step {
    done == THREADS ->
    assert(departing == 0);
    assert(freed == removed) /* nothing is left that nobody would come back to */
  }
}
