/* A multicast that one thread alone invokes: no fence, until another thread is admitted.
 *
 *   invoke, admit          Multicast+Invoke.swift: invoke, isAdmitted, admit, leave
 *   is_alone               Multicast+Storage.swift: isAlone, isQuiet
 *   add, remove            Multicast+Add.swift: insert; Multicast+Unlink.swift: unlink, leave, drop
 *   replace_list, reap     Multicast+Storage.swift, by the same names
 *
 * The list grows once, from list 1 to list 2, then delegate 1 is removed, by the same thread: A
 * after its invocation, A inside delegate 1's call, or W, which does not invoke. Departures are as
 * in lists.pml: who waits looks again and again.
 *
 * Threads: A, B and C invoke, W writes.
 *
 * Variants: HAS_B, HAS_C, WRITER (0: W; 1: A, after its invocation; 2: A, inside the call), KNOWN
 * (A is known as the only invoker at the beginning), WRITERS_BUFFERED.
 */

#ifndef HAS_B
#define HAS_B 0
#endif
#ifndef HAS_C
#define HAS_C 0
#endif
#ifndef WRITER
#define WRITER 0
#endif
#ifndef KNOWN
#define KNOWN 0
#endif

#define FRAMES 3
#define MULTICAST(f) (f)
#define EPOCH(f) (FRAMES + (f))
#define READS(f) (2 * FRAMES + (f))
#define DELEGATE(f) (3 * FRAMES + (f))
#define LIST (4 * FRAMES)
#define PENDING (LIST + 1)
#define INVOKER (LIST + 2) /* 0, a thread's number from 1, or EVERYONE */
#define TICKET (LIST + 3)
#define STRIPE (LIST + 4)
#define DEAD(l) (STRIPE + (l))
#define WORDS (STRIPE + 3)
#define THREADS 4
#if WRITERS_BUFFERED
#define BUFFERED 4
#else
#define BUFFERED 3
#endif
#define BUFFER 5
#define EVERYONE 7

#include "reclaim.pml"

bit departing, freed; /* delegate 1 */

inline release(me) {
  d_step {
    printf("thread %d releases delegate 1\n", me);
    assert(!freed);
    freed = 1
  }
}

/* ---- Writing -------------------------------------------------------------------------------- */

/* Under the lock; `number` is the thread's own, or 0 where it does not invoke. */
inline is_alone(me, number) {
  load(me, INVOKER, x);
  alone = (x == 0 || x == number);
  x = 0
}

inline replace_list(me, is_inside) {
  store(me, LIST, 2);
  printf("thread %d replaces list 1, alone: %d\n", me, alone);
#ifdef OWN_FRAMES_NOT_LOOKED_AT
  if
  :: alone -> is_free[1] = 1
#else
  if
  :: alone && !is_inside -> is_free[1] = 1 /* isQuiet */
#endif
  :: else ->
     d_step {
       EMPTY(me) ->
       mem[TICKET] = mem[TICKET] + 1;
       ticket_of[1] = mem[TICKET];
       is_retired[1] = 1;
       needs_fence[1] = !alone
     };
     store(me, PENDING, ticket_of[1]);
     if
     :: alone -> reap(me)
     :: else
     fi
  fi
}

inline add(me, number, is_inside) {
#ifdef ALONE_LOOKED_BEFORE_LOCK
  is_alone(me, number);
  lock(me, STRIPE);
#else
  lock(me, STRIPE);
  is_alone(me, number);
#endif
  replace_list(me, is_inside);
  unlock(me, STRIPE);
  if
  :: !alone && is_retired[1] -> fence(me); flush(me)
  :: else
  fi;
  alone = 0
}

inline remove(me, number, is_inside) {
#ifdef ALONE_LOOKED_BEFORE_LOCK
  is_alone(me, number);
  lock(me, STRIPE);
#else
  lock(me, STRIPE);
  is_alone(me, number);
#endif
  printf("thread %d removes delegate 1, alone: %d\n", me, alone);
  store(me, DEAD(2), 1);
  if
  :: is_retired[1] -> store(me, DEAD(1), 1)
  :: else
  fi;
  unlock(me, STRIPE);
  if
  :: alone && !is_inside -> release(me)
  :: else ->
     if
     :: !alone -> fence(me)
     :: else
     fi;
     if
     :: is_inside -> departing = 1
     :: else ->
        do
        :: is_calling(me, 1, found);
           if
           :: !found -> release(me); break
           :: else
           fi
        od
     fi
  fi;
  found = 0;
  alone = 0
}

/* ---- Invoking ------------------------------------------------------------------------------- */

inline admit(me, number) {
  load(me, INVOKER, x);
  if
#ifdef EVERYONE_ADMITTED
  :: true -> x = 0
#else
  :: x == number || x == EVERYONE -> x = 0
#endif
  :: else ->
     x = 0;
#ifndef ADMITTED_WITHOUT_LOCK
     lock(me, STRIPE);
#endif
     load(me, INVOKER, x);
     if
     :: x == 0 -> store(me, INVOKER, number)
#ifdef LAST_TAKES_PLACE_OF_FIRST
     :: else -> store(me, INVOKER, number)
#else
     :: else -> store(me, INVOKER, EVERYONE)
#endif
     fi;
#ifndef ADMITTED_WITHOUT_LOCK
     unlock(me, STRIPE);
#endif
     x = 0
  fi
}

inline use(l) { assert(!is_free[l]) }

inline invoke(me, frame, number) {
  load(me, TICKET, epoch);
  store(me, EPOCH(frame), epoch);
  store(me, READS(frame), 0);
#ifdef ADMITTED_BEFORE_FRAME
  admit(me, number);
#endif
  store(me, MULTICAST(frame), 1);
  light(me);
#ifdef ADMITTED_AFTER_LIST
  load(me, LIST, list);
  admit(me, number);
#else
#ifndef ADMITTED_BEFORE_FRAME
  admit(me, number);
#endif
  load(me, LIST, list);
#endif
  store(me, READS(frame), list);
  use(list);
  load(me, DEAD(list), x);
  if
  :: !x ->
     store(me, DELEGATE(frame), 1);
     light(me);
     d_step { use(list); load_here(me, DEAD(list), x) };
     if
     :: !x ->
        d_step { printf("thread %d calls delegate 1\n", me); assert(!freed) };
#if WRITER == 2
        if
        :: me == 0 && !has_written -> has_written = 1; add(0, 1, 1); remove(0, 1, 1)
        :: else
        fi;
#endif
        assert(!freed)
     :: else
     fi;
     store(me, DELEGATE(frame), 0);
     light(me);
     d_step { use(list); load_here(me, DEAD(list), x) };
     if
     :: x -> /* attend; the lock of calls makes it one step */
        x = 0;
        atomic {
          EMPTY(me) ->
          is_calling(me, 1, found);
          if
          :: !found && departing -> departing = 0; release(me)
          :: else
          fi
        };
        found = 0
     :: else
     fi
  :: else
  fi;
  x = 0;
  list = 0;
  store(me, MULTICAST(frame), 0);
  light(me);
  load(me, PENDING, x);
  if
  :: x > epoch -> x = 0; flush(me)
  :: else -> x = 0
  fi;
  epoch = 0
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x, f, l, unfenced, list, epoch; bit found, alone, has_written

proctype A() {
  LOCALS;
  invoke(0, 0, 1);
#if WRITER == 1
  add(0, 1, 0);
  remove(0, 1, 0);
#endif
  done++
}

proctype B() {
  LOCALS;
  invoke(1, 1, 2);
  done++
}

proctype C() {
  LOCALS;
  invoke(2, 2, 3);
  done++
}

proctype W() {
  LOCALS;
  add(3, 0, 0);
  remove(3, 0, 0);
  done++
}

init {
  d_step {
    mem[LIST] = 1;
    mem[TICKET] = 1;
    mem[INVOKER] = KNOWN
  };
  atomic {
    run A();
#if HAS_B
    run B();
#endif
#if HAS_C
    run C();
#endif
#if WRITER == 0
    run W();
#endif
    skip
  };
  d_step {
    done == 1 + HAS_B + HAS_C + (WRITER == 0) && DRAINED ->
    assert(mem[PENDING] == 0);
    assert(!is_retired[1]); /* nothing is left that nobody comes back to */
    assert(!departing);
    assert(WRITER == 2 || (freed && is_free[1]));
    assert(freed == mem[DEAD(2)])
  }
}
