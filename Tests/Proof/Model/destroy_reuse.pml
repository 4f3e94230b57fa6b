/* A multicast is destroyed and its slot is reused, while threads invoke with stale handles and
 * another thread removes a delegate.
 *
 * Slots are reused immediately, so the next multicast takes the slot while invocations of the
 * previous multicast are still running. To destroy a multicast, a thread clears the handle, retires
 * the live registrations, clears the list and retires the list, all under the lock. The retired
 * lists stay with the slot. An invocation first reads the list and then compares the handle of the
 * slot with its own. If the handles are equal, the list belongs to its multicast. The target of a
 * frame is the slot, not the multicast in the slot. An invocation with a stale handle therefore
 * keeps lists of the next multicast from being freed, and reclaims them when it ends.
 *
 *   destroy   does the steps above; then, like a removal: fences, waits, and frees the slots of the
 *             registrations that it has retired itself
 *   create    resets the word of the invokers and sets the handle; the first add sets the list
 *
 * The model proves that an invocation with a handle calls no delegate of another multicast, no list
 * is read after it has been freed, each delegate is released once, each slot becomes vacant once,
 * and no retired list is left over. core.pml has the steps.
 *
 * Threads: A invokes with handle 1, and B with handle 2 as soon as multicast 2 exists. D destroys
 * multicast 1. R removes its delegate. C creates multicast 2 as soon as the slot is vacant, and
 * adds a delegate, which reuses the slot of the first delegate if that slot is vacant.
 *
 * Variants: HAS_A=1, HAS_B=0, HAS_R=0, GUESSED (B invokes with handle 2 before multicast 2 exists),
 * A_INVOKES_TWICE=0, SEVERAL_INVOKERS=0 (several threads are registered as invokers of multicast 1;
 * otherwise none), DESTROYED_AGAIN=0 (C destroys multicast 2), DESTROYED_IN_CALL=0 (A, instead of
 * D, destroys multicast 1, inside the call of delegate 1), WRITERS_BUFFERED.
 */

#define FRAMES 2
#define NEXT_THREAD(f) (f + 1)
#define SLOTS 2
#define LISTS 2
#define DELEGATES 1
#define HAS_LISTS 1
#define THREADS 5
#define BUFFERED EITHER(WRITERS_BUFFERED, 5, 2)
#define BUFFER 5

#include "core.pml"

bit is_slot_vacant, is_created; /* the slot of the multicasts; multicast 2 */

/* No list has more than one entry. */
inline destroy(me, h) {
  lock(me, STRIPE_LOCK);
  printf("thread %d destroys occupant %d\n", me, h);
  find_need(me);
  store(me, HANDLE, 0);
  load(me, LIST, old);
  load(me, ENTRY(old, 0), t);
  load(me, ID(t), x);
  if
  :: IS_LIVE(x, t) -> store(me, ID(t), t + RETIRED)
  :: else -> EITHER(RETIRED_BY_OTHERS_PUT_BACK, skip, t = 0)
  fi;
  x = 0;
  set_list(me);
  is_slot_vacant = 1;
  fence_and_unlock(me);
  when(t, complete(me, t, (depth == 0)));
  t = 0
}

inline create(me) {
  d_step { is_slot_vacant -> is_slot_vacant = 0 };
  UNLESS(WORD_RESET_AFTER_HANDLE, store(me, WORD, WORD_OF(2));)
  store(me, HANDLE, 2);
  IF(WORD_RESET_AFTER_HANDLE, store(me, WORD, WORD_OF(2));)
  d_step { printf("thread %d creates occupant 2\n", me); is_created = 1 };
  add(me, true)
}

bit has_destroyed;
inline body(me, d) {
#if DESTROYED_IN_CALL
  when(me == 0 && !has_destroyed, has_destroyed = 1; destroy(0, 1));
#endif
  skip
}

THREAD(A, LOCALS,
       byte times;
       do
       :: times <= A_INVOKES_TWICE -> invoke(0, 0, 1); times++
       :: else -> break
       od)

THREAD(B, LOCALS,
       UNLESS(GUESSED, is_created;)
       invoke(1, 1, 2))

THREAD(D, LOCALS, destroy(2, 1))

THREAD(C, LOCALS,
       create(3);
       IF(DESTROYED_AGAIN, destroy(3, 2);)
       skip)

THREAD(R, LOCALS, remove(4, TOKEN(0, 1), 1, 0))

init {
  byte t;
  begin(SEVERAL_INVOKERS * SEVERAL);
  atomic {
    IF(HAS_A, run A();)
    IF(HAS_B, run B();)
    UNLESS(DESTROYED_IN_CALL, run D();)
    IF(HAS_R, run R();)
    run C()
  };
  d_step {
    done == 1 + HAS_A + HAS_B + HAS_R + !DESTROYED_IN_CALL && ALL_DRAINED ->
    check_end();
    assert(released[1])
  }
}
