/* The lock is one word: 0 (free), 1 (held), or 2 (held, and threads may sleep).
 *
 * A thread takes the lock by a compare-and-swap from 0 to 1. If the lock is held, the thread
 * retries for a moment. It then repeats an exchange with 2 until the old value is 0, and sleeps in
 * between while the word is 2. To unlock, a thread exchanges the word with 0, and wakes one thread
 * if the old value was 2. The kernel compares the word and puts the thread to sleep in one step.
 *
 *   lock_word, unlock_word   Lock.lock, Lock.unlock
 *   sleep_with_event         Lock.sleep(with:)
 *   wake_with_event          Lock.wakeAll
 *
 * The model proves that only one thread at a time holds the lock, that it reads the values that
 * earlier holders have written, and that a thread sleeping until it acquires the lock, or until an
 * event occurs, is woken.
 *
 * Threads: each of THREADS threads takes the lock ROUNDS times and increments a counter. With
 * HAS_EVENT, thread 0 sleeps until all other threads have counted.
 *
 * Variants: THREADS=3, ROUNDS=2, SPINS=0 (1: a thread retries once before it sleeps), HAS_EVENT=0.
 */

#define WORD 0
#define COUNT 1 /* guarded by the lock */
#define EVENT 2
#define WORDS 3
#define BUFFERED THREADS
#define BUFFER 3

#include "memory.pml"

bit sleeps_for_event[THREADS];
byte inside; /* threads that are holding the lock */

/* The two locked instructions. Both are full fences. */
inline exchange(me, value, old) {
  d_step { BUFFER_IS_EMPTY(me) -> old = mem[WORD]; mem[WORD] = value }
}

inline compare_and_swap(me, is_taken) {
#ifdef TAKEN_IN_TWO_STEPS
  load(me, WORD, x);
  if
  :: x == 0 -> store(me, WORD, 1); full_fence(me); is_taken = 1
  :: else -> is_taken = 0
  fi;
  x = 0
#else
  d_step {
    BUFFER_IS_EMPTY(me) ->
    is_taken = (mem[WORD] == 0);
    when(is_taken, mem[WORD] = 1)
  }
#endif
}

/* FUTEX_WAIT: the kernel compares the word and puts the thread to sleep in one step. */
inline futex_wait(me, address, value, is_event) {
  d_step {
    BUFFER_IS_EMPTY(me) ->
    if
#ifdef SLEEPS_WITHOUT_COMPARE
    :: true -> asleep[me] = 1; sleeps_for_event[me] = is_event
#else
    :: mem[address] == value -> asleep[me] = 1; sleeps_for_event[me] = is_event
    :: else
#endif
    fi
  };
  !asleep[me]
}

/* FUTEX_WAKE: wakes any one thread that is sleeping until it acquires the lock. */
inline futex_wake_one() {
  atomic {
    if
    :: asleep[0] && !sleeps_for_event[0] -> asleep[0] = 0
    :: asleep[1] && !sleeps_for_event[1] -> asleep[1] = 0
#if THREADS > 2
    :: asleep[2] && !sleeps_for_event[2] -> asleep[2] = 0
#endif
    :: else
    fi
  }
}

inline lock_word(me) {
  compare_and_swap(me, is_taken);
  IF(SPINS, when(!is_taken, compare_and_swap(me, is_taken));)
  if
  :: is_taken
  :: else ->
     do
     EITHER(TAKEN_AS_HELD, :: compare_and_swap(me, is_taken);
                              if
                              :: is_taken -> break
                              :: else -> exchange(me, 2, old)
                              fi,
                           :: exchange(me, 2, old));
        when(old == 0, break);
        futex_wait(me, WORD, 2, 0)
     od
  fi;
  old = 0;
  is_taken = 0;
  d_step { printf("thread %d has the lock\n", me); inside++; assert(inside == 1) }
}

inline unlock_word(me) {
  d_step { printf("thread %d unlocks\n", me); inside-- };
  EITHER(UNLOCKED_IN_TWO_STEPS, load(me, WORD, old);
                                store(me, WORD, 0),
                                exchange(me, 0, old));
  if
  UNLESS(NOT_WOKEN, :: old == 2 -> futex_wake_one())
  :: else
  fi;
  old = 0
}

inline sleep_with_event(me) {
  EITHER(EVENT_READ_AFTER_UNLOCK, unlock_word(me);
                                  load(me, EVENT, seen),
                                  load(me, EVENT, seen);
                                  unlock_word(me));
  futex_wait(me, EVENT, seen, 1);
  seen = 0;
  lock_word(me)
}

/* The event word is changed by a locked instruction. */
inline wake_with_event(me) {
  d_step {
    BUFFER_IS_EMPTY(me) ->
    UNLESS(EVENT_NOT_CHANGED, mem[EVENT] = mem[EVENT] + 1)
  };
  d_step {
    when(asleep[0] && sleeps_for_event[0], asleep[0] = 0)
  }
}

inline count(me) {
  load(me, COUNT, x);
  store(me, COUNT, x + 1);
  x = 0
}

proctype Thread(byte me) {
  byte x, old, seen, round;
  bit is_taken;
  do
  :: round < ROUNDS ->
     lock_word(me);
#if HAS_EVENT
     if
     :: me == 0 ->
        do
        :: load(me, COUNT, x);
           if
           :: x == (THREADS - 1) * ROUNDS -> x = 0; break
           :: else -> x = 0; sleep_with_event(me)
           fi
        od;
        round = ROUNDS - 1 /* once */
     :: else ->
        count(me);
        wake_with_event(me)
     fi;
#else
     count(me);
#endif
     unlock_word(me);
     round++
  :: else -> break
  od;
  done++
}

init {
  atomic {
    run Thread(0);
    run Thread(1);
#if THREADS > 2
    run Thread(2)
#endif
  };
  d_step {
    done == THREADS && ALL_DRAINED ->
    assert(mem[COUNT] == (THREADS - HAS_EVENT) * ROUNDS); /* no increment is lost */
    assert(mem[WORD] == 0)
  }
}
