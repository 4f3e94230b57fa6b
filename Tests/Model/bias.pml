/* Bias: a multicast that changes often is fenced. Its invocations make full fences, and its
 * removals no heavy ones.
 *
 * INVOKER tells the mode. An invocation reads it after it has published its frame. It is biased,
 * and makes light fences; or fenced, and makes a full fence after its frame, and one for each
 * delegate. A writer finds out under the lock of the multicast which fence it needs. The mode
 * changes under the same lock. `since` is the epoch at which the multicast became fenced, or 0 when
 * no biased invocation is left.
 *
 *   begin_fencing, end_fencing   the two changes of the mode
 *   needed_fence                 under the lock: heavy, or full?
 *   invoke                       biased or fenced, as INVOKER says
 *   remove                       marks, makes the fence, waits for the call or defers the release
 *   replace_list, reclaim        as in lists.pml
 *
 * Proved: no delegate is called after its release, no list is read after it was freed, a removal
 * that sleeps is woken, and nothing that was retired or deferred is left over, in both modes and
 * while the mode changes.
 *
 * Threads: A and B invoke. B may change something else inside the call of delegate 1. W removes the
 * last delegate, or replaces list 1. S changes the mode, and makes a heavy fence in between, as the
 * removal of another delegate would.
 *
 * Variants: HAS_A=1 (0: A does nothing), HAS_B=0 (2: it makes a change inside a call), MODE=0 (at
 * the start; 1: fenced), BEGINS=0, FENCES=0, ENDS=0 (what S does; 2: it begins again at the end),
 * DELEGATES=1 (1 or 2), ALL=0 (W removes both), DEFERS=0 (W does not wait), AT_ONCE=0 (W looks at
 * the hazards under the lock, if it needs no heavy fence), LISTS=0 (W replaces the list instead),
 * WRITERS_BUFFERED.
 */

#define FRAMES EITHER(HAS_B, 2, 1)
#define LIST (4 * FRAMES)
#define RETIRED_EPOCH (LIST + 1)
#define INVOKER (LIST + 2) /* 0: biased, 1: fenced */
#define GLOBAL_EPOCH (LIST + 3)
#define STRIPE_LOCK (LIST + 4)
#define WAITS_LOCK (LIST + 5)
#define DEAD(d) (WAITS_LOCK + (d))
#define WORDS (WAITS_LOCK + DELEGATES + 1)
#define THREADS 4
/* A is thread 0. W is thread 1, or 2 beside B. S is the last. */
#define W_NUMBER FRAMES
#define S_NUMBER (FRAMES + 1)
#define BUFFERED EITHER(WRITERS_BUFFERED, (FRAMES + 1), FRAMES)
#define BUFFER 4

#include "reclaim.pml"

byte since;    /* guarded by STRIPE_LOCK */
byte deferred; /* guarded by WAITS_LOCK: a delegate, or 0 */
bit released[DELEGATES + 1];

inline release(me, d) {
  d_step {
    printf("thread %d releases delegate %d\n", me, d);
    assert(!released[d]);
    released[d] = 1
  }
}

/* ---- The mode ------------------------------------------------------------------------------- */

inline advance(me) {
  d_step {
    BUFFER_IS_EMPTY(me) ->
    mem[GLOBAL_EPOCH] = mem[GLOBAL_EPOCH] + 1;
    since = mem[GLOBAL_EPOCH]
  }
}

inline begin_fencing(me) {
  lock(me, STRIPE_LOCK);
  EITHER(EPOCH_ADVANCED_BEFORE_MODE, advance(me);
                                     store(me, INVOKER, 1),
                                     store(me, INVOKER, 1);
                                     advance(me));
  printf("thread %d: fenced since %d\n", me, since);
  unlock(me, STRIPE_LOCK)
}

inline end_fencing(me) {
  UNLESS(ENDED_WITHOUT_LOCK, lock(me, STRIPE_LOCK);)
  since = 0;
  store(me, INVOKER, 0);
  printf("thread %d: biased\n", me);
  UNLESS(ENDED_WITHOUT_LOCK, unlock(me, STRIPE_LOCK))
}

/* Under the lock. */
inline needed_fence(me) {
  load(me, INVOKER, x);
  is_heavy = 1;
  if
  :: x == 0 -> skip
  :: x != 0 && since == 0 -> is_heavy = 0
  EITHER(FENCED_WITHOUT_FENCE, :: x != 0 && since != 0 ->,
                               :: x != 0 && since != 0 && fenced_epoch < since -> skip
                               :: x != 0 && since != 0 && fenced_epoch >= since ->)
     is_heavy = 0;
     is_own = 0;
     f = 0;
#ifndef BIASED_INVOCATION_MISSED
     do
     :: f < FRAMES && !is_heavy ->
        load(me, TARGET(f), x);
        if
        :: x ->
           load(me, EPOCH(f), x);
           if
           :: x < since && f == me -> is_own = 1
           :: x < since && f != me -> is_heavy = 1
           :: else
           fi
        :: else
        fi;
        f++
     :: else -> break
     od;
     f = 0;
#endif
     if
     EITHER(OWN_FRAME_FORGOTTEN, :: !is_heavy -> since = 0, :: !is_heavy && !is_own -> since = 0)
     :: else
     fi;
     is_own = 0
  fi;
  x = 0
}

/* ---- The writer ----------------------------------------------------------------------------- */

inline make_fence(me) {
  printf("thread %d makes a fence, heavy: %d\n", me, is_heavy);
  if
  :: is_heavy -> fence(me)
  EITHER(NO_FULL_FENCE_OF_WRITER, :: else, :: else -> full_fence(me))
  fi
}

inline lock_and_find_need(me) {
  EITHER(NEED_FOUND_BEFORE_LOCK, needed_fence(me);
                                 lock(me, STRIPE_LOCK),
                                 lock(me, STRIPE_LOCK);
                                 needed_fence(me))
}

inline remove(me, d) {
  lock_and_find_need(me);
  printf("thread %d removes delegate %d\n", me, d);
  store(me, DEAD(d), 1);
#if AT_ONCE
  if
  :: !is_heavy ->
     UNLESS(NO_FENCE_UNDER_LOCK, full_fence(me);)
     UNLESS(HAZARDS_NOT_READ_UNDER_LOCK, is_calling(me, d, found);)
     is_reclaimed = !found;
     found = 0
  :: else
  fi;
#endif
  unlock(me, STRIPE_LOCK);
  if
  :: is_reclaimed -> is_reclaimed = 0; is_heavy = 0; release(me, d)
  :: else -> make_fence(me); is_heavy = 0; complete(me, d)
  fi
}

/* Removal.waitForCalls: waits for the call or defers the release. */
inline complete(me, d) {
#if DEFERS
  is_calling(me, d, found); /* most often there is no call, and no lock is taken */
  if
  :: !found -> release(me, d)
  :: else ->
     lock(me, WAITS_LOCK);
     is_calling(me, d, found);
     if
     :: found -> deferred = d; unlock(me, WAITS_LOCK)
     :: else -> unlock(me, WAITS_LOCK); release(me, d)
     fi
  fi;
#else
  is_calling(me, d, found);
  if
  :: found ->
     lock(me, WAITS_LOCK);
     do
     :: is_calling(me, d, found);
        if
        :: found -> sleep(me, WAITS_LOCK)
        :: else -> break
        fi
     od;
     unlock(me, WAITS_LOCK)
  :: else
  fi;
  release(me, d);
#endif
  found = 0
}

inline replace_list(me) {
  lock_and_find_need(me);
  store(me, LIST, 2);
  d_step {
    BUFFER_IS_EMPTY(me) ->
    printf("thread %d replaces list 1\n", me);
    mem[GLOBAL_EPOCH] = mem[GLOBAL_EPOCH] + 1;
    retired_at[1] = mem[GLOBAL_EPOCH];
    is_retired[1] = 1;
    needs_fence[1] = is_heavy
  };
  store(me, RETIRED_EPOCH, retired_at[1]);
  if
  :: is_heavy -> unlock(me, STRIPE_LOCK); make_fence(me); lock_and_reclaim(me)
  :: else -> make_fence(me); reclaim(me); unlock(me, STRIPE_LOCK)
  fi;
  is_heavy = 0
}

/* ---- Invocations ---------------------------------------------------------------------------- */

inline use(l) { assert(!is_free[l]) }

/* Functions of the caller run here: nothing may wait for a delegate of this thread meanwhile. */
inline call_did_return(me, d) {
  lock(me, WAITS_LOCK);
  d_step { wake_all(); found = 1 };
  when(deferred == d, is_calling(me, d, found));
  when(!found, deferred = 0);
  unlock(me, WAITS_LOCK);
  load(me, HAZARD(me), x);
  assert(x == 0); /* no hazard while it releases */
  when(!found, release(me, d));
  found = 0
}

inline call(me, d) {
  d_step { printf("thread %d calls delegate %d\n", me, d); assert(!released[d]) };
  if
  :: HAS_B == 2 && me == 1 && d == 1 ->
     lock(me, STRIPE_LOCK);
     needed_fence(me);
     unlock(me, STRIPE_LOCK);
     is_heavy = 0
  :: else
  fi;
  assert(!released[d])
}

inline call_biased(me) {
  d = 1;
  do
  :: d <= DELEGATES ->
     load(me, DEAD(d), x);
     if
     :: !x ->
        store(me, HAZARD(me), d);
        light_fence(me);
        load(me, DEAD(d), x);
        when(!x, call(me, d));
        store(me, HAZARD(me), 0);
        light_fence(me);
        load(me, DEAD(d), x);
        when(x, call_did_return(me, d))
     :: else
     fi;
     d++
  :: else -> break
  od;
  d = 0;
  x = 0
}

/* Ends the call of `last`. */
inline end_call(me) {
  store(me, HAZARD(me), 0);
  UNLESS(NO_FULL_FENCE_AFTER_CALL, full_fence(me);)
  load(me, DEAD(last), x);
  when(x, call_did_return(me, last));
  last = 0
}

/* One fence for each delegate: after it, the state of the one before is looked at, too. */
inline call_fenced(me) {
  d = 1;
  do
  :: d <= DELEGATES ->
     load(me, DEAD(d), x);
     if
     :: !x ->
        store(me, HAZARD(me), d);
        UNLESS(NO_FULL_FENCE_OF_HAZARD, full_fence(me);)
#ifndef NO_LOOK_AFTER_FENCED_CALL
        if
        :: last ->
           load(me, DEAD(last), x);
           if
           :: x ->
              UNLESS(NEXT_HAZARD_KEPT, store(me, HAZARD(me), 0);)
              call_did_return(me, last);
              store(me, HAZARD(me), d);
              UNLESS(NO_FULL_FENCE_OF_NEXT_HAZARD, full_fence(me))
           :: else
           fi
        :: else
        fi;
#endif
        last = d;
        load(me, DEAD(d), x);
        if
        :: !x -> call(me, d)
        :: else -> end_call(me)
        fi
     :: x && last -> end_call(me)
     :: x && !last
     fi;
     d++
  :: else -> break
  od;
  when(last, end_call(me));
  d = 0;
  x = 0
}

inline invoke(me) {
  load(me, GLOBAL_EPOCH, epoch);
  store(me, EPOCH(me), epoch);
  IF(MODE_READ_BEFORE_FRAME, load(me, INVOKER, is_fenced);)
  store(me, FRAME_LIST(me), 0);
  store(me, TARGET(me), 1);
  light_fence(me);
  UNLESS(MODE_READ_BEFORE_FRAME, load(me, INVOKER, is_fenced);)
  UNLESS(NO_FULL_FENCE_OF_FRAME, when(is_fenced, full_fence(me));)
#if LISTS
  load(me, LIST, list);
  store(me, FRAME_LIST(me), list);
  use(list);
  use(list);
  list = 0;
#else
  if
  :: is_fenced -> call_fenced(me)
  :: else -> call_biased(me)
  fi;
#endif
  store(me, TARGET(me), 0);
  UNLESS(NO_FULL_FENCE_AT_END, when(is_fenced, full_fence(me));)
  is_fenced = 0;
  load(me, RETIRED_EPOCH, x);
  if
  :: x > epoch -> x = 0; lock_and_reclaim(me)
  :: else -> x = 0
  fi;
  epoch = 0
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x, f, l, d, last, unfenced, list, epoch; \
  bit found, kept, is_heavy, is_own, is_fenced, is_reclaimed

proctype A() {
  LOCALS;
  IF(HAS_A, invoke(0);)
  done++
}

THREAD(B, LOCALS, invoke(1))
THREAD(W, LOCALS,
       EITHER(LISTS, replace_list(W_NUMBER),
                     IF(ALL, remove(W_NUMBER, 1);)
                     remove(W_NUMBER, DELEGATES)))

proctype S() {
  byte x, unfenced;
  IF(BEGINS, begin_fencing(S_NUMBER);)
  IF(FENCES, fence(S_NUMBER);)
  IF(ENDS, end_fencing(S_NUMBER);)
#if BEGINS > 1
  begin_fencing(S_NUMBER);
#endif
  done++
}

init {
  d_step {
    mem[LIST] = 1;
    mem[GLOBAL_EPOCH] = 1;
    mem[INVOKER] = MODE
  };
  atomic {
    run A();
    IF(HAS_B, run B();)
    run W();
    run S()
  };
  d_step {
    done == FRAMES + 2 && ALL_DRAINED ->
    assert(!deferred);
    assert(LISTS || released[DELEGATES]);
    assert(mem[RETIRED_EPOCH] == 0);
    assert(!is_retired[1]); /* no retired list is left over */
    assert(!LISTS || is_free[1])
  }
}
