/* Queues: calls that are taken in, made and taken back, without a fence between queue and remover.
 *
 *   invoke, append         InvocationList+Invoke.swift: callSpecial; Queue+Append.swift: append
 *   run_queue, run_first   Queue+Run.swift: run, take, runFirst
 *   retract                Queue+Append.swift: retract
 *   remove                 Multicast+Unlink.swift: unlink, leave; Registration.swift: retire
 *   destroy                Queue+Create.swift: destroy, moveOut; Lifetime+End.swift: removeMembers
 *   look, see_off, attend, finish   as in invoke_remove.pml
 *
 * There is one delegate, 1, whose calls are queued; each waiting call holds a copy of the payload.
 *
 * Threads: A invokes, Q runs the queue, R removes the delegate; or D destroys the queue, whose slot
 * then has another inhabitant with a call of a delegate of its own, 2.
 *
 * Variants: HAS_A (how often A invokes), WAITING (calls that wait at the beginning), HAS_R, WAITS
 * (R waits), ALONE (R knows that no other thread invokes), HAS_D, RUNS (calls that Q makes at
 * most), R_IS_Q (Q is the one that removes, inside of the call), WRITERS_BUFFERED.
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
#ifndef WAITING
#define WAITING 0
#endif
#ifndef WAITS
#define WAITS 0
#endif
#ifndef RUNS
#define RUNS 2
#endif

#define FRAMES 2 /* A's and Q's */
#define MULTICAST(f) (f)
#define DELEGATE(f) (FRAMES + (f))
#define DEAD (2 * FRAMES)
#define ID (DEAD + 1) /* of the registration: 1 while live */
#define STRIPE (DEAD + 2)
#define CALLS (DEAD + 3)
#define QUEUE (DEAD + 4)
#define WORDS (DEAD + 5)
#define THREADS 4
#if WRITERS_BUFFERED
#define BUFFERED 4
#else
#define BUFFERED 2
#endif

#include "memory.pml"

/* Under the queue's lock. */
byte inhabitant = 1;      /* of the slot; 0 for none */
byte waiting = WAITING;   /* calls of delegate 1 */
byte of_another;          /* calls of delegate 2, in the next inhabitant's ring */

byte holders = WAITING;   /* of payloads */
bit departing;            /* under the lock of calls */
bit freed, gone;

/* ---- As in invoke_remove.pml ---------------------------------------------------------------- */

inline look(me, seen) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, MULTICAST(f), x);
     if
     :: x ->
        load(me, DELEGATE(f), x);
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

inline finish(me) {
  d_step {
    printf("thread %d releases delegate 1\n", me);
    assert(!freed);
    freed = 1
  }
}

inline attend(me) {
  lock(me, CALLS);
  d_step { wake_all() };
  found = 0;
  if
  :: departing ->
     look(me, found);
     d_step {
       found = !found;
       if
       :: found -> departing = 0
       :: else
       fi
     }
  :: else
  fi;
  unlock(me, CALLS);
  if
  :: found -> found = 0; finish(me)
  :: else
  fi
}

inline see_off(me, waits) {
  look(me, found);
  if
  :: !found -> finish(me)
  :: else ->
     lock(me, CALLS);
     do
     :: look(me, found);
        if
        :: !found -> unlock(me, CALLS); finish(me); break
        :: found && waits -> found = 0; sleep(me, CALLS)
        :: found && !waits -> departing = 1; unlock(me, CALLS); break
        fi
     od
  fi;
  found = 0
}

/* ---- Removing ------------------------------------------------------------------------------- */

inline retract(me) {
  lock(me, QUEUE);
  if
  :: inhabitant == 1 -> d_step {
       assert(!freed);
       holders = holders - waiting;
       waiting = 0
     }
  :: else
  fi;
  unlock(me, QUEUE)
}

inline remove(me, waits) {
  lock(me, STRIPE);
  printf("thread %d removes delegate 1\n", me);
#ifdef RETRACT_BEFORE_MARK
  retract(me);
#endif
  store(me, DEAD, 1);
  store(me, ID, 0);
#ifdef LOOK_BEFORE_RETRACT
  look(me, found);
#endif
#if !defined(RETRACT_BEFORE_MARK) && !defined(NO_RETRACT)
  retract(me);
#endif
#if ALONE
#ifndef LOOK_BEFORE_RETRACT
  look(me, found);
#endif
  unlock(me, STRIPE);
  if
  :: !found -> finish(me)
  :: else -> found = 0; see_off(me, waits)
  fi;
#else
  unlock(me, STRIPE);
  heavy(me, unfenced);
  see_off(me, waits);
#endif
  if
  :: waits -> d_step { printf("thread %d: delegate 1 is gone\n", me); gone = 1 }
  :: else
  fi
}

/* ---- Taking in ------------------------------------------------------------------------------ */

inline append(me) {
#ifdef LIVE_LOOKED_BEFORE_LOCK
  load(me, ID, x);
#endif
  lock(me, QUEUE);
#ifndef LIVE_LOOKED_BEFORE_LOCK
  load(me, ID, x);
#endif
#ifdef LIVE_NOT_LOOKED
  x = 1;
#endif
  if
#ifdef RECIPIENTS_NOT_COMPARED
  :: x ->
#else
  :: x && inhabitant == 1 ->
#endif
     d_step {
       printf("thread %d has a call of delegate 1 wait\n", me);
       assert(!freed);          /* its extras are read */
       assert(inhabitant == 1); /* no other queue's ring */
       waiting++;
       holders++
     }
  :: else
  fi;
  unlock(me, QUEUE);
  x = 0
}

inline invoke(me, frame) {
  store(me, MULTICAST(frame), 1);
  load(me, DEAD, x);
  if
  :: !x ->
     store(me, DELEGATE(frame), 1);
     light(me);
     load(me, DEAD, x);
     assert(x || !freed); /* its extras are read */
     store(me, DELEGATE(frame), 0);
     light(me);
     if
     :: !x -> found = 1
     :: else
     fi;
     load(me, DEAD, x);
     if
     :: x -> x = 0; unfenced = found; attend(me); found = unfenced; unfenced = 0
     :: else
     fi;
     if
     :: found -> found = 0; holders++; append(me); holders--
     :: else
     fi
  :: else -> x = 0
  fi;
  store(me, MULTICAST(frame), 0)
}

/* ---- Running -------------------------------------------------------------------------------- */

inline run_first(me, frame) {
#ifdef NAMED_AFTER_UNLOCK
  unlock(me, QUEUE);
  store(me, DELEGATE(frame), 1);
#else
  store(me, DELEGATE(frame), 1);
  unlock(me, QUEUE);
#endif
  d_step {
    printf("thread %d calls delegate 1\n", me);
    assert(!gone);
    assert(!freed)
  };
#if R_IS_Q
  if
  :: !has_removed -> has_removed = 1; remove(me, 0)
  :: else
  fi;
#endif
  d_step {
    assert(!gone);
    assert(!freed);
    assert(holders > 0);
    holders--
  };
#ifdef UNNAMED_WITHOUT_LOCK
  store(me, DELEGATE(frame), 0);
  load(me, ID, x);
  lock(me, QUEUE);
#else
  lock(me, QUEUE);
  store(me, DELEGATE(frame), 0);
  load(me, ID, x);
#endif
  if
#ifdef NO_ATTEND_AFTER_RUN
  :: false -> skip
#else
  :: !x -> unlock(me, QUEUE); attend(me); lock(me, QUEUE)
#endif
  :: else -> x = 0
  fi
}

inline run_queue(me, frame) {
  lock(me, QUEUE);
  handle = inhabitant;
  if
  :: handle == 1 ->
     store(me, MULTICAST(frame), 2);
     do
#ifdef HANDLE_NOT_LOOKED_AT_AGAIN
     :: made < RUNS && waiting + of_another > 0 ->
#else
     :: made < RUNS && inhabitant == handle && waiting + of_another > 0 ->
#endif
        made++;
        if
        :: of_another > 0 -> assert(inhabitant == handle); of_another--
        :: else -> waiting--; run_first(me, frame)
        fi
     :: else -> break
     od;
     store(me, MULTICAST(frame), 0)
  :: else
  fi;
  unlock(me, QUEUE)
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

/* Twice: for what comes while it does not run. */
proctype Q() {
  LOCALS;
  byte made, handle, times;
#if R_IS_Q
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
  remove(2, WAITS);
  done++
}

proctype D() {
  LOCALS;
  lock(3, QUEUE);
  printf("thread 3 destroys the queue\n");
  d_step { inhabitant = 0; holders = holders - waiting; waiting = 0 };
  unlock(3, QUEUE);
  remove(3, 1);
  lock(3, QUEUE);
  d_step { inhabitant = 2; of_another = 1 };
  unlock(3, QUEUE);
  done++
}

init {
  d_step { mem[ID] = 1 };
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
    done == (HAS_A > 0) + 1 + HAS_R + HAS_D && DRAINED ->
    assert(!departing);
    assert(freed || mem[ID]); /* nothing is left that nobody would come back to */
    assert(mem[ID] || waiting == 0);
    assert(holders == waiting)
  }
}
