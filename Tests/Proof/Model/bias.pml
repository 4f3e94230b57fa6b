/* A multicast that changes often is fenced instead of biased. Its invocations then execute full
 * fences, so its removals need no heavy fences.
 *
 * The word of the invokers contains the mode. An invocation reads the word after it has published
 * its frame. A biased invocation executes light fences. A fenced invocation tags its frame and
 * executes a full fence after the tag and one for each delegate. A writer decides under the lock of
 * the multicast which fence it needs, and the mode changes under the same lock. The mode is settled
 * once two conditions hold: a heavy fence that began after the change has ended, and no untagged
 * frame is left. From then on, a writer executes a full fence and scans the hazards under the lock.
 *
 *   begin_fencing, end_fencing   change the mode; core.pml has the other steps
 *
 * The model proves that, in both modes and while the mode changes, no delegate is called after its
 * release, no list is read after it has been freed, a sleeping removal is woken, and no retired
 * list and no deferred release is left over. This also holds in the presence of an invocation with
 * a stale handle, whose frame is untagged.
 *
 * Threads: A and B invoke. B may decide which fence it needs inside the call of delegate 1, as a
 * removal there would. W removes the last delegate, or grows the list. S changes the mode, and
 * executes a heavy fence between two changes, like the removal of another delegate.
 *
 * Variants: HAS_A=1, A_IS_STALE (A has a stale handle), HAS_B=0 (2: B decides which fence it needs,
 * see above), MODE=0 (the initial mode; 1: fenced and settled), BEGINS=0, FENCES=0, ENDS=0 (the
 * steps of S; if BEGINS is 2, S begins fencing again at the end), DELEGATES=1 (1 or 2), ALL=0 (W
 * removes both), DEFERS=0 (W does not wait), GROWS=0 (W grows the list instead), WRITERS_BUFFERED.
 */

#define FRAMES EITHER(HAS_B, 2, 1)
#define NEXT_THREAD(f) (f + 1)
#define SLOTS 2
#define LISTS EITHER(GROWS, 2, 1)
#define HAS_LISTS 1
#define THREADS 4
/* A is thread 0. W is thread 1, or thread 2 if there is B. S is the last thread. */
#define W_NUMBER FRAMES
#define S_NUMBER (FRAMES + 1)
#define BUFFERED EITHER(WRITERS_BUFFERED, (FRAMES + 2), FRAMES)

#include "core.pml"

inline body(me, d) {
  if
  :: HAS_B == 2 && me == 1 && d == TOKEN(0, 1) ->
     lock(me, STRIPE_LOCK);
     find_need(me);
     need = NONE;
     unlock(me, STRIPE_LOCK)
  :: else
  fi
}

inline begin_fencing(me) {
  lock(me, STRIPE_LOCK);
  IF(STAMPED_BEFORE_MODE, unsettled_since = fences_begun;)
  store(me, WORD, WORD_OF(1) + SEVERAL + FENCED);
  UNLESS(STAMPED_WITHOUT_FENCE, full_fence(me);) /* as in retire_list */
  UNLESS(STAMPED_BEFORE_MODE, unsettled_since = fences_begun;)
  is_settled = 0;
  printf("thread %d: fenced since fence %d\n", me, unsettled_since);
  unlock(me, STRIPE_LOCK)
}

inline end_fencing(me) {
  UNLESS(ENDED_WITHOUT_LOCK, lock(me, STRIPE_LOCK);)
  store(me, WORD, WORD_OF(1) + SEVERAL);
  printf("thread %d: biased\n", me);
  UNLESS(ENDED_WITHOUT_LOCK, unlock(me, STRIPE_LOCK))
}

THREAD(A, LOCALS,
       IF(HAS_A, invoke(0, 0, EITHER(A_IS_STALE, 2, 1));)
       skip)

THREAD(B, LOCALS, invoke(1, 1, 1))

THREAD(W, LOCALS,
       EITHER(GROWS, add(W_NUMBER, true),
              IF(ALL, remove(W_NUMBER, TOKEN(0, 1), !DEFERS, 0);)
              remove(W_NUMBER, TOKEN(0, DELEGATES), !DEFERS, 0)))

THREAD(S, byte x; byte unfenced; byte fence_number,
       IF(BEGINS, begin_fencing(S_NUMBER);)
       IF(FENCES, fence(S_NUMBER);)
       IF(ENDS, end_fencing(S_NUMBER);)
#if BEGINS > 1
       begin_fencing(S_NUMBER);
#endif
       skip)

init {
  byte t;
  begin(SEVERAL + MODE * FENCED);
  is_settled = MODE;
  atomic {
    run A();
    IF(HAS_B, run B();)
    run W();
    run S()
  };
  d_step {
    done == FRAMES + 2 && ALL_DRAINED ->
    check_end()
  }
}
