/* A removal inside a call never deadlocks, and returns PENDING only if waiting would cause a
 * deadlock.
 *
 * A removal waits for the calls of its delegate on other threads. Before it sleeps, it searches the
 * wait graph under the lock of calls. It finds the threads that are in a call of the delegate, the
 * delegates that those threads wait for, the threads that are in calls of those delegates, and so
 * on. If the search reaches the removing thread itself, waiting would close a cycle, so the removal
 * returns PENDING and its release is deferred. Otherwise the thread publishes the delegate for
 * which it waits, and sleeps. A sleeping thread cannot change the calls that it is in, and a thread
 * that goes to sleep later performs its own search.
 *
 * The search does not follow a thread that has been woken but has not yet run again, because the
 * calls for which this thread was waiting may have ended. If a search has passed over such a
 * thread, the thread searches again before it goes back to sleep. Otherwise every later search has
 * followed its wait, and the thread need not search again.
 *
 *   call_some, end_call    a call of a delegate that the thread chooses
 *   remove_some            a removal; if the delegate is removed already, waits for its calls
 *   closes_cycle, reach    the search in the published waits
 *   is_cycle               the specification: whether there is a cycle, judged by the delegates for
 *                          which threads really sleep
 *
 * The model proves that there is no deadlock, that a removal returns PENDING only if the wait could
 * not end and MULTICAST_OK only when no thread calls the delegate, and that each delegate is
 * released once.
 *
 * Each thread calls a delegate (with NESTED, it calls another delegate inside that call), and then
 * removes a delegate. Spin tries every choice of delegates. With OUTSIDE, the last thread is in no
 * call.
 *
 * In this model, hazards and removals are visible immediately, and a critical section is one step,
 * because invoke_remove.pml proves that the two sides cannot miss each other. The search is also
 * one step, because all it reads about a thread that is awake is which delegates the thread is
 * calling.
 *
 * Variants: THREADS=3, DELEGATES=3, NESTED=0, OUTSIDE=0, TWO_REMOVALS=0 (each thread removes
 * twice), HAS_TIMEOUT (any removal may time out).
 */

#define BUFFERED 0
#define WORDS 1
#include "memory.pml"

#define BIT(d) (1 << ((d) - 1))

byte calls[THREADS];     /* a bit for each delegate that the thread is calling */
byte waits_for[THREADS];   /* the published wait: a delegate, or 0 */
bit is_woken[THREADS];       /* has been woken, and has not yet run again */
bit is_passed_over[THREADS]; /* a search has not followed it, being woken */
byte innermost[THREADS];
byte removed, deferred, released; /* a bit for each delegate */

/* ---- The search, under the lock of calls ---------------------------------------------------- */

hidden byte stage[THREADS]; /* 0 unknown, 1 reached, 2 followed */
hidden byte i, next, closed, blockers;

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
        IF(ONE_CALLER_REACHED, break)
     :: else
     fi;
     i++
  :: else -> break
  od
}

/* Used only inside a d_step. */
inline closes_cycle(me, d) {
  for (i : 0 .. THREADS - 1) { stage[i] = 0 };
  reach(d);
  do
  :: stage[me] == 0 ->
     next = 0;
     do
     :: next < THREADS && (stage[next] != 1 || waits_for[next] == 0 || is_woken[next]) ->
        when(stage[next] == 1 && is_woken[next], is_passed_over[next] = 1);
        next++
     :: else -> break
     od;
     when(next == THREADS, closed = 0; break);
     stage[next] = 2;
     UNLESS(WAITS_NOT_FOLLOWED, reach(waits_for[next]))
  :: else -> closed = 1; break
  od;
  IF(CYCLES_NOT_SEARCHED, closed = (calls[me] & BIT(d)) != 0;)
  IF(OWN_CALL_NOT_SEEN, closed = closed && !(calls[me] & BIT(d));)
  IF(NEVER_WAITS_IN_CALL, closed = (calls[me] != 0);)
  i = 0;
  next = 0
}

/* The specification, used only inside a d_step. Collects, round by round, all threads that have to
 * make progress before no thread calls `d`. It follows the delegates for which threads really
 * sleep. Sets `closed` if this thread is among the collected threads. */
inline is_cycle(me, d) {
  blockers = 0;
  next = 0;
  do
  :: next <= THREADS ->
     for (i : 0 .. THREADS - 1) {
       when(calls[i] & BIT(d), blockers = blockers | (1 << i));
       when((blockers & (1 << i)) && sleeps_for[i], add_callers_of(sleeps_for[i]))
     };
     next++
  :: else -> break
  od;
  closed = (blockers & (1 << me)) != 0;
  blockers = 0;
  next = 0;
  i = 0
}

byte sleeps_for[THREADS]; /* the delegate for which a thread really sleeps */
hidden byte j;

inline add_callers_of(d) {
  for (j : 0 .. THREADS - 1) { when(calls[j] & BIT(d), blockers = blockers | (1 << j)) };
  j = 0
}

hidden byte callers;

/* Sets `callers`. Used only inside a d_step. */
inline count_callers(d) {
  callers = 0;
  for (i : 0 .. THREADS - 1) { when(calls[i] & BIT(d), callers++) };
  i = 0
}

inline release(me, d) {
  d_step {
    printf("thread %d releases delegate %d\n", me, d);
    assert(!(released & BIT(d)));
    count_callers(d);
    assert(callers == 0); /* no call runs */
    callers = 0;
    released = released | BIT(d)
  }
}

/* ---- Calls ---------------------------------------------------------------------------------- */

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

/* Wakes the threads that are sleeping until calls of this delegate end. Used only inside a
 * d_step. */
inline wake_sleepers(it) {
  for (k : 0 .. THREADS - 1) {
    when(sleeps_for[k] == it, asleep[k] = 0; sleeps_for[k] = 0; is_woken[k] = 1)
  };
  k = 0
}

inline end_call(me) {
  if
  :: d ->
     d_step { calls[me] = calls[me] & ~BIT(d); innermost[me] = 0 };
     if
     :: removed & BIT(d) ->
        d_step { /* call_did_return */
          wake_sleepers(d);
          count_callers(d);
          x = (callers == 0 && (deferred & BIT(d)));
          callers = 0;
          when(x, deferred = deferred & ~BIT(d))
        };
        when(x, x = 0; release(me, d))
     :: else
     fi;
     d = 0
  :: else
  fi
}

/* ---- Removal -------------------------------------------------------------------------------- */

inline choose(x) {
  if
  :: x = 1
  :: x = 2
#if DELEGATES > 2
  :: x = 3
#endif
  fi
}

/* Sets `outcome`: 1 OK, 2 PENDING, 3 TIMEOUT, 0 go to sleep. */
inline decide(me) {
  count_callers(r);
  if
  :: callers == 0 -> outcome = 1
  :: else ->
     if
     :: is_again && !is_passed_over[me] -> closed = 0
     IF(WOKEN_DOES_NOT_SEARCH, :: is_again && is_passed_over[me] -> closed = 0)
     :: else -> closes_cycle(me, r)
     fi;
     if
     :: closed ->
        is_cycle(me, r);
        assert(closed); /* PENDING only if the wait could not end */
        printf("thread %d removes delegate %d: PENDING\n", me, r);
        outcome = 2;
        when(is_remover, deferred = deferred | BIT(r))
     :: !closed && is_timed_out ->
        printf("thread %d removes delegate %d: TIMEOUT\n", me, r);
        outcome = 3;
        when(is_remover, deferred = deferred | BIT(r))
     :: else ->
        printf("thread %d waits for delegate %d\n", me, r);
        outcome = 0
     fi;
     closed = 0
  fi;
  callers = 0
}

inline fall_asleep(me) {
  waits_for[me] = r;
  sleeps_for[me] = r;
  asleep[me] = 1;
  is_again = 1;
  is_woken[me] = 0;
  is_passed_over[me] = 0;
  IF(WAIT_NOT_PUBLISHED, waits_for[me] = 0;)
  skip
}

inline remove_some(me) {
  choose(r);
  d_step { is_remover = !(removed & BIT(r)); removed = removed | BIT(r) };
  do
  :: d_step {
       decide(me);
       UNLESS(SLEEP_AFTER_UNLOCK, when(outcome == 0, fall_asleep(me)))
     };
     if
     :: outcome -> break
     :: else ->
        IF(SLEEP_AFTER_UNLOCK, d_step { fall_asleep(me) };)
        EITHER(HAS_TIMEOUT, if
                            :: !asleep[me]
                            :: is_timed_out = 1
                            fi;
                            d_step {
                              asleep[me] = 0;,
                            d_step {
                              !asleep[me] ->)
          sleeps_for[me] = 0;
          UNLESS(WAIT_PUBLISHED_WHEN_AWAKE, waits_for[me] = 0;)
          skip
        }
     fi
  od;
  if
  :: outcome == 1 ->
     d_step { count_callers(r); assert(callers == 0); callers = 0 }; /* OK: no call runs */
     when(is_remover, release(me, r))
  :: else
  fi;
  outcome = 0;
  is_again = 0;
  is_remover = 0;
  is_timed_out = 0;
  r = 0
}

proctype Thread(byte me) {
  byte outer, d, r, x, outcome;
  bit is_again, is_remover, is_timed_out;
  if
  :: OUTSIDE && me == THREADS - 1
  :: else ->
     choose(d);
     call_some(me)
  fi;
  IF(NESTED, outer = d;
             if
             :: outer -> choose(d); call_some(me)
             :: d = 0
             fi;)
  remove_some(me);
  IF(TWO_REMOVALS, remove_some(me);)
  end_call(me);
  IF(NESTED, d = outer;
             outer = 0;
             end_call(me);)
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
    assert(deferred == 0);
    assert(released == removed) /* no deferred release is left over */
  }
}
