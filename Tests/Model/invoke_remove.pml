/* Naming and departures: calls against removals that wait, that do not, and that find nothing.
 *
 *   invoke, call           InvocationList+Invoke.swift: invoke, callPlain, callSpecial
 *   claim                  Registration+Call.swift: callNamed; Multicast+Remove.swift: claim
 *   remove                 Multicast+Remove.swift: removeOne; Cleanup.swift: finishSlowly
 *   settle                 Multicast+Settle.swift, Departures.swift: settle, wait
 *   look                   ThreadRecord.swift: isCalling; Calls.swift; Departures.isCalled
 *   see_off, attend        Departures.swift, by the same names
 *   finish                 Registration.swift: RegistrationChain.finish; Extras.swift: release
 *
 * Threads: A and B invoke; W removes delegate 1 and waits; N removes the last delegate without
 * waiting; S removes delegate 1 too, so that it settles where it comes second.
 *
 * Variants: NESTED (A calls the last delegate again inside delegate 1), TWICE (B invokes twice),
 * SELF (A removes delegate 1 inside its call), ONCE (delegate 1 is to be called once), DELEGATES,
 * HAS_B, HAS_W, HAS_N, HAS_S, WRITERS_BUFFERED.
 */

#ifndef DELEGATES
#define DELEGATES 1
#endif
#ifndef NESTED
#define NESTED 0
#endif
#ifndef TWICE
#define TWICE 0
#endif
#ifndef HAS_B
#define HAS_B 0
#endif
#ifndef HAS_W
#define HAS_W 0
#endif
#ifndef HAS_N
#define HAS_N 0
#endif
#ifndef HAS_S
#define HAS_S 0
#endif

#define FRAMES_OF_A (1 + NESTED)
#define FRAMES (FRAMES_OF_A + HAS_B)
#define MULTICAST(f) (f)
#define DELEGATE(f) (FRAMES + (f))
#define DEAD(d) (2 * FRAMES + (d) - 1)
#define STRIPE (2 * FRAMES + DELEGATES)
#define CALLS (STRIPE + 1)
#define WORDS (CALLS + 1)
#define THREADS 5
#if WRITERS_BUFFERED
#define BUFFERED 5
#else
#define BUFFERED 2
#endif

#include "memory.pml"

byte departing;         /* a bit for each delegate; under the lock of calls */
byte inside;            /* calls that run */
bit freed[DELEGATES + 1]; /* its release has run: context, extras and slot are not its own */
bit gone[DELEGATES + 1];  /* a removal that waits has returned OK */
bit removed[DELEGATES + 1];
byte once_called;

/* ---- Who calls it? -------------------------------------------------------------------------- */

/* Frames of a record are read from the bottom to the first that is not in use. */
inline look(me, d, seen, f) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, MULTICAST(f), x);
     if
     :: x ->
        load(me, DELEGATE(f), x);
        d_step {
          if
          :: x == d -> seen = 1
          :: else
          fi;
#ifdef LOOK_AT_OUTERMOST_FRAME_ONLY
          f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES);
#else
          f++;
#endif
          x = 0
        }
     :: else -> f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
     fi
  :: else -> break
  od;
  f = 0
}

/* ---- Finishing ------------------------------------------------------------------------------ */

inline finish(me, d) {
  atomic { lock(me, STRIPE); unlock(me, STRIPE) }; /* the slot goes back to the pool */
  d_step {
    printf("thread %d releases delegate %d\n", me, d);
    assert(!freed[d]); /* every release runs once */
    freed[d] = 1
  }
}

inline attend(me, d) {
  lock(me, CALLS);
#ifndef NO_WAKE_IN_ATTEND
  d_step { wake_all() };
#endif
  found = 0;
  if
  :: departing & (1 << d) ->
#ifdef ATTEND_WITHOUT_LOOK
     found = 1;
#else
     look(me, d, found, f);
     found = !found;
#endif
     if
     :: found -> departing = departing & ~(1 << d)
     :: else
     fi
  :: else
  fi;
  unlock(me, CALLS);
  if
  :: found -> finish(me, d); found = 0
  :: else
  fi
}

/* ---- The removing side ---------------------------------------------------------------------- */

inline see_off(me, d, waits) {
  look(me, d, found, f);
  if
  :: !found -> finish(me, d)
  :: else ->
     lock(me, CALLS);
     do
     :: look(me, d, found, f);
        if
        :: !found -> unlock(me, CALLS); finish(me, d); break
        :: found && waits ->
#ifdef LOOK_BEFORE_LOCK
           unlock(me, CALLS);
           lock(me, CALLS);
#endif
           found = 0;
           sleep(me, CALLS)
#ifdef NO_LOOK_AFTER_WAKE
           ;
           unlock(me, CALLS);
           finish(me, d);
           break
#endif
        :: found && !waits ->
#ifdef DEPART_AFTER_UNLOCK
           unlock(me, CALLS);
           lock(me, CALLS);
#endif
           departing = departing | (1 << d);
           unlock(me, CALLS);
           break
        fi
     od
  fi;
  found = 0
}

inline wait_for(me, d) {
  lock(me, CALLS);
  do
  :: look(me, d, found, f);
     if
     :: found -> found = 0; sleep(me, CALLS)
     :: else -> break
     fi
  od;
  unlock(me, CALLS)
}

/* S is no invoker, so that no frame of its own is to be passed over. */
inline settle(me, d) {
#ifndef SETTLE_WITHOUT_FENCE
  heavy(me, unfenced);
#endif
  look(me, d, found, f);
  if
  :: found -> wait_for(me, d)
  :: else
  fi
}

inline remove(me, d, waits) {
#ifdef MARK_AFTER_FENCE
  atomic { lock(me, STRIPE); x = removed[d]; removed[d] = 1; unlock(me, STRIPE) };
#else
  atomic {
    lock(me, STRIPE);
    x = removed[d];
    removed[d] = 1;
    if
    :: !x -> store(me, DEAD(d), 1)
    :: else
    fi;
    unlock(me, STRIPE)
  };
#endif
  if
  :: x ->
     x = 0;
     if
     :: me == 0 -> skip /* inside the delegate's call: waiting is refused, see cycles.pml */
     :: else -> settle(me, d)
     fi
  :: else ->
     printf("thread %d removes delegate %d\n", me, d);
#ifndef NO_FENCE_IN_REMOVE
     heavy(me, unfenced);
#endif
#ifdef MARK_AFTER_FENCE
     store(me, DEAD(d), 1);
#endif
     see_off(me, d, waits)
  fi;
  if
  :: waits -> d_step {
       printf("thread %d: delegate %d is gone\n", me, d);
#if DELEGATES == 1
       assert(inside == 0);
#endif
       gone[d] = 1
     }
  :: else
  fi
}

/* ---- The calling side ----------------------------------------------------------------------- */

/* The first look of callPlain saves the naming of what is dead; nothing depends on it. */
inline name_and_test(me, frame, d) {
#ifdef NO_LIGHT_AFTER_NAME
#if SYMMETRIC
  store(me, DELEGATE(frame), d);
  load(me, DEAD(d), x);
#else
  load(me, DEAD(d), x);
  store(me, DELEGATE(frame), d);
#endif
#else
  store(me, DELEGATE(frame), d);
  light(me);
#ifdef NO_TEST_AFTER_NAME
  x = 0;
#else
  load(me, DEAD(d), x);
#endif
#endif
}

inline unname_and_test(me, frame, d) {
#ifdef NO_LIGHT_AFTER_CALL
#if SYMMETRIC
  store(me, DELEGATE(frame), 0);
  load(me, DEAD(d), x);
#else
  load(me, DEAD(d), x);
  store(me, DELEGATE(frame), 0);
#endif
#else
  store(me, DELEGATE(frame), 0);
  light(me);
  load(me, DEAD(d), x);
#endif
}

inline begin_call(me, d) {
  d_step {
    printf("thread %d calls delegate %d\n", me, d);
    assert(!gone[d]);  /* no call after a removal that waits has returned */
    assert(!freed[d]); /* nor with a context that was let go of */
    inside++
  }
}

inline end_call(me, d) {
  d_step {
    assert(!gone[d]);
    assert(!freed[d]);
    inside--
  }
}

/* The name is there: who removes it now leaves it to this call. */
inline claim(me, d) {
  atomic {
    lock(me, STRIPE);
#ifdef CLAIM_WITHOUT_CHECK
    x = 0;
#else
    x = removed[d];
#endif
    removed[d] = 1;
    if
    :: !x -> store(me, DEAD(d), 1)
    :: else
    fi;
    unlock(me, STRIPE)
  };
  if
  :: !x ->
     heavy(me, unfenced);
     see_off(me, d, 0);
     d_step { once_called++; assert(once_called == 1) } /* called once at most */
  :: else
  fi
}

inline invoke_inner(me, frame) {
  store(me, MULTICAST(frame), 1);
  name_and_test(me, frame, DELEGATES);
  if
  :: !x -> begin_call(me, DELEGATES); end_call(me, DELEGATES)
  :: else -> x = 0
  fi;
  unname_and_test(me, frame, DELEGATES);
  if
  :: x -> x = 0; attend(me, DELEGATES)
  :: else
  fi;
  store(me, MULTICAST(frame), 0)
}

/* What delegate 1 does. */
inline body(me, d) {
  if
  :: d == 1 && me == 0 ->
#if NESTED
     invoke_inner(0, 1);
#endif
#if SELF
     remove(0, 1, 0);
#endif
     skip
  :: else
  fi
}

inline invoke(me, frame) {
  store(me, MULTICAST(frame), 1);
  d = 1;
  do
  :: d <= DELEGATES ->
     load(me, DEAD(d), x);
     if
     :: !x ->
        name_and_test(me, frame, d);
#if ONCE
        if
        :: !x && d == 1 -> claim(me, 1)
        :: else
        fi;
#endif
        if
        :: !x -> begin_call(me, d); body(me, d); end_call(me, d)
        :: else
        fi;
#ifdef NO_ATTEND_IF_NOT_CALLED
        if
        :: x -> store(me, DELEGATE(frame), 0); x = 0; goto next
        :: else
        fi;
#endif
        unname_and_test(me, frame, d);
        if
#ifdef NO_ATTEND
        :: x -> x = 0
#else
        :: x -> x = 0; attend(me, d)
#endif
        :: else
        fi
     :: else -> x = 0
     fi;
next:
     d++
  :: else -> break
  od;
  d = 0;
  store(me, MULTICAST(frame), 0)
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
  :: times <= TWICE -> invoke(1, FRAMES_OF_A); times++
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
    done == 1 + HAS_B + HAS_W + HAS_N + HAS_S && DRAINED ->
    assert(departing == 0); /* nothing is left that nobody would come back to */
    assert(inside == 0);
    each = 1;
    do
    :: each <= DELEGATES -> assert(freed[each] == removed[each]); each++
    :: else -> break
    od
  }
}
