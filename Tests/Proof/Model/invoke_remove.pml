/* Invocations run while delegates are removed. The model contains hazards, the asymmetric fence,
 * deferred releases and reused slots.
 *
 * The invoker sets its hazard, executes the light fence, compares the id of the slot with the
 * token, and calls the delegate. When the call has returned, the invoker clears the hazard,
 * executes the light fence and compares again. The remover changes the id, executes the heavy fence
 * and scans the hazards of all frames. So either the remover finds the hazard, or the invoker finds
 * the changed id. An invoker that finds the changed id before the call skips the delegate, and an
 * invoker that finds it after the call runs call_did_return. After the removal, the slot is free
 * for a registration with the next generation. core.pml has these steps. `claim`, in this file,
 * removes a delegate with MULTICAST_ONCE when it is called.
 *
 * The model proves these properties: No call begins or runs after a waiting removal has returned
 * MULTICAST_OK. `release` runs exactly once, while no call runs, even if no thread invokes again.
 * No wake-up is lost. A delegate with MULTICAST_ONCE is called at most once. A slot becomes vacant
 * once. A stale list entry never leads to a later registration in the same slot.
 *
 * Threads: A and B invoke. W removes delegate 1 and waits. N removes the last delegate without
 * waiting. S removes delegate 1 like W, and the second of the two waits for the first removal. P
 * pauses delegate 1: its id becomes special, and no invocation calls it.
 *
 * Variants: NESTED=0 (A invokes again inside the call of the last delegate), B_INVOKES_TWICE=0,
 * REMOVED_IN_CALL (A removes delegate 1 inside its call), ONCE (delegate 1 has MULTICAST_ONCE),
 * DELEGATES=1 (their number), HAS_B=0, HAS_W=0, HAS_N=0, HAS_S=0, HAS_P=0, REUSED (W finally adds
 * another delegate to the list), WRITERS_BUFFERED.
 */

#define FRAMES_OF_A (1 + NESTED)
#define FRAMES (FRAMES_OF_A + HAS_B)
#define NEXT_THREAD(f) (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
#define SLOTS DELEGATES
#define LISTS 1
#define HAS_LISTS 0
#define THREADS 6
#define BUFFERED EITHER(WRITERS_BUFFERED, 5, 2)

#include "core.pml"

bit once_called;

/* The invoker's hazard is already set, so a later remover defers the release to this call. */
inline claim(me, d) {
  atomic {
    lock(me, STRIPE_LOCK);
    EITHER(CLAIM_WITHOUT_CHECK, found = 1, load(me, ID(d), x); found = (x == d + SPECIAL); x = 0);
    when(found, store(me, ID(d), d + RETIRED));
    unlock(me, STRIPE_LOCK)
  };
  if
  :: found ->
     found = 0;
     fence(me);
     complete(me, d, 0);
     d_step {
       assert(!once_called);
       once_called = 1;
       x = d
     }
  :: else
  fi
}

/* The function of a delegate. */
inline body(me, d) {
  IF(NESTED, when(me == 0 && d == TOKEN(0, DELEGATES), invoke_inner(0, 1, 1));)
  IF(REMOVED_IN_CALL, when(me == 0 && d == TOKEN(0, 1), remove(0, TOKEN(0, 1), 0, 0));)
  skip
}

inline pause(me, d) {
  atomic {
    lock(me, STRIPE_LOCK);
    load(me, ID(d), x);
    when(x == d, store(me, ID(d), d + SPECIAL));
    x = 0;
    unlock(me, STRIPE_LOCK)
  }
}

THREAD(A, LOCALS, invoke(0, 0, 1))
THREAD(B, LOCALS,
       byte times;
       do
       :: times <= B_INVOKES_TWICE -> invoke(1, FRAMES_OF_A, 1); times++
       :: else -> break
       od)
THREAD(W, LOCALS,
       remove(2, TOKEN(0, 1), 1, 0);
       IF(REUSED, add(2, false);)
       skip)
THREAD(N, LOCALS, remove(3, TOKEN(0, DELEGATES), 0, 0))
THREAD(S, LOCALS, remove(4, TOKEN(0, 1), 1, 0))
THREAD(P, LOCALS, pause(5, TOKEN(0, 1)))

init {
  byte t;
  begin(SEVERAL);
  IF(ONCE, mem[ID(4)] = 4 + SPECIAL;)
  atomic {
    run A();
    IF(HAS_B, run B();)
    IF(HAS_W, run W();)
    IF(HAS_N, run N();)
    IF(HAS_S, run S();)
    IF(HAS_P, run P();)
    skip
  };
  d_step {
    done == 1 + HAS_B + HAS_W + HAS_N + HAS_S + HAS_P && ALL_DRAINED ->
    check_end()
  }
}
