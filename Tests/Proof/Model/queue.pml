/* Calls are queued, run and cancelled, while their delegate is removed or the queue is cleared or
 * destroyed.
 *
 * An invocation appends a call under the lock of the queue, if the registration is live and its
 * queue still exists. The thread that runs the queue copies two calls under that lock, sets the
 * hazard of the first call, takes the call out, and opens the head of the ring. After the call it
 * sets the hazard of the second call and takes that call out without the lock, by a
 * compare-and-swap that succeeds only if the head is still open and where this thread left it. At
 * the end of the run, or of the batch, the thread clears the hazard and closes the head, also by a
 * compare-and-swap.
 *
 * A removal marks the registration dead. It then closes the head and retracts the queued calls
 * under the same lock. The order in which the head changes therefore decides whether a run or a
 * removal comes first, and no fence is needed between them. After `cancel`, every call that was
 * taken out is protected by a hazard. A run that has taken out a call earlier finds the head
 * closed, and then checks whether the registration is live.
 *
 *   invoke, append         finds the delegate in the list, appends a call to its queue
 *   run_queue, make, take_next, close_head, look_after   runs queued calls
 *   cancel                 takes the queued calls of the delegate back out of the queue
 *   remove                 marks, retracts, fences, completes the removal
 *   scan_hazards, complete_removal, call_did_return, release   as in invoke_remove.pml
 *
 * The model proves these properties: No queued call runs after a waiting removal has returned
 * MULTICAST_OK, and no call is appended after the release. If another queue takes the slot, it
 * receives no call of the old queue and loses none of its own. Each call is made, cancelled or
 * dropped, exactly once, and its payload is released. Each deferred release runs. No wake-up is
 * lost, neither of a removal nor of a thread that waits for its turn.
 *
 * Delegate 1 is removed, delegate 2 is not. Each queued call holds a reference to its payload.
 *
 * Threads: A invokes. Q runs the queue. R removes the delegate. In other variants D destroys the
 * queue; the slot then gets another queue with a call of delegate 3. C clears the queue. W is the
 * queue's own thread, which waits until Q no longer runs the queue.
 *
 * Variants: HAS_A=0 (how often A invokes), QUEUED=0 (calls of delegate 1 in the queue at the
 * start), OTHER=0 (a call of delegate 2 in the queue at the start: 1 before the calls of delegate
 * 1, 2 after them), HAS_R=0, REMOVER_WAITS=0, SINGLE_INVOKER (R knows that no other thread invokes,
 * and does not fence), HAS_D=0, HAS_C=0, HAS_W=0, RUNS=2 (the limit of calls in one run),
 * REMOVED_IN_CALL (Q removes the delegate inside its call), WRITERS_BUFFERED.
 */

#define FRAMES 2 /* A's and Q's */
#define TARGET(f) (f)
#define HAZARD(f) (FRAMES + (f))
#define DEAD (2 * FRAMES)
#define LIVE (DEAD + 1) /* 1 while the registration is live */
#define STRIPE_LOCK (DEAD + 2)
#define CALLS_LOCK (DEAD + 3)
#define QUEUE_LOCK (DEAD + 4)
#define WORDS (DEAD + 5)
#define THREADS 4
#define BUFFERED EITHER(WRITERS_BUFFERED, 4, 2)

#include "memory.pml"

/* Under the queue's lock. */
byte occupant = 1; /* the queue in the slot; 0: vacant */
#define PLACES 8
byte ring[PLACES]; /* the delegates of the calls; 0: a retracted call */
byte tail;
bit sleeps;        /* whether W sleeps */

/* The word of the head. It is changed under the lock, or by a locked instruction of the thread that
 * runs the queue. */
byte head;
bit is_open;

byte payload_references; /* held by calls of delegate 1 */
byte others;             /* queued calls of delegate 2 */
bit deferred; /* under the lock of calls */
bit released, returned_ok;

/* ---- As in invoke_remove.pml ---------------------------------------------------------------- */

inline scan_hazards(me, seen) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, TARGET(f), x);
     if
     :: x ->
        load(me, HAZARD(f), x);
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

inline release(me) {
  d_step {
    printf("thread %d releases delegate 1\n", me);
    assert(!released);
    released = 1
  }
}

inline call_did_return(me) {
  lock(me, CALLS_LOCK);
  d_step { wake_all() };
  found = 0;
  if
  :: deferred ->
     scan_hazards(me, found);
     d_step {
       found = !found;
       when(found, deferred = 0)
     }
  :: else
  fi;
  unlock(me, CALLS_LOCK);
  when(found, found = 0; release(me))
}

inline complete_removal(me, waits) {
  scan_hazards(me, found);
  if
  :: !found -> release(me)
  :: else ->
     lock(me, CALLS_LOCK);
     do
     :: scan_hazards(me, found);
        if
        :: !found -> unlock(me, CALLS_LOCK); release(me); break
        :: found && waits -> found = 0; sleep(me, CALLS_LOCK)
        :: found && !waits -> deferred = 1; unlock(me, CALLS_LOCK); break
        fi
     od
  fi;
  found = 0
}

/* ---- Removal -------------------------------------------------------------------------------- */

hidden byte i;

/* Moves the head past retracted calls. Used only inside a d_step, under the lock. */
inline skip_gaps() {
  do
  :: head < tail && ring[head] == 0 -> head++
  :: else -> break
  od;
  i = 0
}

/* Retracts the calls of delegate 1, or all calls. Used only inside a d_step, under the lock. */
inline take_back(all, from) {
  i = from;
  do
  :: i < tail ->
     if
     :: ring[i] == 1 -> assert(payload_references > 0); payload_references--; ring[i] = 0
     :: ring[i] == 2 && all -> others--; ring[i] = 0
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0;
  skip_gaps()
}

inline cancel(me) {
  lock(me, QUEUE_LOCK);
  if
  :: occupant == 1 -> d_step {
       assert(!released);
       UNLESS(NOT_CLOSED_BY_REMOVAL, is_open = 0;)
       take_back(false, head)
     }
  :: else
  fi;
  unlock(me, QUEUE_LOCK)
}

inline remove(me, waits) {
  lock(me, STRIPE_LOCK);
  printf("thread %d removes delegate 1\n", me);
  IF(CANCEL_BEFORE_MARK, cancel(me);)
  store(me, DEAD, 1);
  store(me, LIVE, 0);
  IF(SCAN_BEFORE_CANCEL, scan_hazards(me, found);)
#if !defined(CANCEL_BEFORE_MARK) && !defined(NO_CANCEL)
  cancel(me);
#endif
#if SINGLE_INVOKER
  UNLESS(SCAN_BEFORE_CANCEL, scan_hazards(me, found);)
  unlock(me, STRIPE_LOCK);
  if
  :: !found -> release(me)
  :: else -> found = 0; complete_removal(me, waits)
  fi;
#else
  unlock(me, STRIPE_LOCK);
  heavy_fence(me, unfenced);
  complete_removal(me, waits);
#endif
  if
  :: waits -> d_step {
       printf("thread %d: delegate 1 is removed, and not called\n", me);
       returned_ok = 1
     }
  :: else
  fi
}

/* ---- Appending ------------------------------------------------------------------------------ */

inline append(me) {
  IF(LIVENESS_CHECKED_BEFORE_LOCK, load(me, LIVE, x);)
  lock(me, QUEUE_LOCK);
  UNLESS(LIVENESS_CHECKED_BEFORE_LOCK, load(me, LIVE, x);)
  IF(LIVENESS_NOT_CHECKED, x = 1;)
  if
  EITHER(QUEUE_HANDLE_NOT_COMPARED, :: x ->, :: x && occupant == 1 ->)
     d_step {
       printf("thread %d appends a call of delegate 1\n", me);
       assert(!released);          /* the registration is read */
       assert(occupant == 1); /* not the next queue in the slot */
       assert(tail < PLACES);
       ring[tail] = 1;
       tail++;
       payload_references++
     }
  :: else
  fi;
  unlock(me, QUEUE_LOCK);
  x = 0
}

inline invoke(me, frame) {
  store(me, TARGET(frame), 1);
  load(me, DEAD, x);
  if
  :: !x ->
     UNLESS(NO_HAZARD_OF_QUEUED_CALL, store(me, HAZARD(frame), 1);)
     light_fence(me);
     load(me, DEAD, x);
     skip;
     assert(x || !released); /* the registration is read */
     store(me, HAZARD(frame), 0);
     light_fence(me);
     when(!x, found = 1);
     load(me, DEAD, x);
     when(x, x = 0; unfenced = found; call_did_return(me); found = unfenced; unfenced = 0);
     when(found, found = 0; payload_references++; append(me); payload_references--)
  :: else -> x = 0
  fi;
  store(me, TARGET(frame), 0)
}

/* ---- Running -------------------------------------------------------------------------------- */

/* A locked instruction: takes out the next call, if the head is open and has not been moved. */
inline take_next(me) {
#ifdef TAKEN_IN_TWO_STEPS
  taken = (is_open && head == position);
  d_step {
    BUFFER_IS_EMPTY(me) ->
    when(taken, head++)
  }
#else
  d_step {
    BUFFER_IS_EMPTY(me) ->
    taken = (is_open && head == position);
    when(taken, head++)
  }
#endif
}

/* A locked instruction: closes the head, if it is open and has not been moved. */
inline close_head(me) {
  d_step {
    BUFFER_IS_EMPTY(me) ->
    taken = (is_open && head == position);
    when(taken, is_open = 0)
  }
}

inline make(me, d) {
  d_step {
    printf("thread %d calls delegate %d\n", me, d);
    assert(d != 1 || !returned_ok);
    assert(d != 1 || !released);
    made++
  };
  IF(REMOVED_IN_CALL, when(d == 1 && !has_removed, has_removed = 1; remove(me, 0));)
  d_step {
    if
    :: d == 1 ->
       assert(!returned_ok);
       assert(!released);
       assert(payload_references > 0);
       payload_references--
    :: d == 2 -> assert(others > 0); others--
    :: else
    fi
  }
}

inline look_after(me, d) {
  if
  :: d == 1 ->
     load(me, LIVE, x);
     if
     EITHER(NO_CALL_DID_RETURN_AFTER_RUN, :: false -> skip, :: !x -> call_did_return(me))
     :: else -> x = 0
     fi
  :: else
  fi
}

#ifdef NO_LOOK_AFTER_REFUSED_CALL
#define LOOK_AFTER_REFUSED(me) skip
#else
#define LOOK_AFTER_REFUSED(me) look_after(me, refused)
#endif

/* Under the lock: takes out the first call and copies the next one. */
inline take(me, frame) {
  d_step {
    is_open = 0;
    skip_gaps();
    assert(occupant == handle); /* not the next queue in the slot */
    current = ring[head];
    head++;
    position = head;
    next = 0;
    refused = 0;
    when(made + 1 < RUNS && head < tail, next = ring[head])
  };
  EITHER(HAZARD_SET_AFTER_UNLOCK, is_open = 1;
                                  unlock(me, QUEUE_LOCK);
                                  store(me, HAZARD(frame), current),
                                  store(me, HAZARD(frame), current);
                                  EITHER(OPENED_FOR_SLEEPERS, is_open = 1, is_open = !sleeps);
                                  unlock(me, QUEUE_LOCK))
}

/* Makes the second call of a batch. */
inline go_on(me, frame) {
  EITHER(HAZARD_SET_AFTER_TAKE, take_next(me);
                                store(me, HAZARD(frame), next),
                                store(me, HAZARD(frame), next);
                                take_next(me));
  if
  :: taken -> d_step { taken = 0; current = next; position++ }; make(me, current)
  :: else -> refused = next
  fi
}

inline wake_turn(me) {
  when(sleeps, d_step { sleeps = 0; wake_all() })
}

inline run_queue(me, frame) {
  lock(me, QUEUE_LOCK);
  handle = occupant;
  has_lock = 1;
  if
  :: handle == 1 ->
     store(me, TARGET(frame), 2);
     do
#ifdef HANDLE_NOT_CHECKED_AGAIN
     :: has_lock && made < RUNS && head < tail ->
#else
     :: has_lock && made < RUNS && occupant == handle && head < tail ->
#endif
        take(me, frame);
        make(me, current);
        when(next, go_on(me, frame));
        if
        :: made == RUNS && !refused ->
#ifdef HAZARD_CLEARED_AFTER_CLOSE
           close_head(me);
           store(me, HAZARD(frame), 0);
           store(me, TARGET(frame), 0);
#else
           store(me, HAZARD(frame), 0);
           EITHER(FRAME_LEFT_AFTER_CLOSE, close_head(me);
                                          store(me, TARGET(frame), 0),
                                          store(me, TARGET(frame), 0);
                                          close_head(me));
#endif
           has_lock = 0;
           if
           :: taken -> taken = 0
           :: else -> look_after(me, current); lock(me, QUEUE_LOCK); has_lock = 1
           fi
        :: else ->
           lock(me, QUEUE_LOCK);
           store(me, HAZARD(frame), 0);
           taken = 0;
           when(!refused, close_head(me));
           if
           :: taken -> taken = 0
           :: else ->
              unlock(me, QUEUE_LOCK);
              look_after(me, current);
              LOOK_AFTER_REFUSED(me);
              lock(me, QUEUE_LOCK)
           fi
        fi;
        d_step { current = 0; next = 0; position = 0 }
     :: else -> break
     od;
     if
     :: has_lock ->
        when(occupant == handle, wake_turn(me));
        store(me, TARGET(frame), 0);
        unlock(me, QUEUE_LOCK)
     :: else
     fi
  :: else -> unlock(me, QUEUE_LOCK)
  fi;
  d_step { has_lock = 0; refused = 0 }
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x, f, unfenced; bit found

THREAD(A, LOCALS,
       byte times;
       do
       :: times < HAS_A -> invoke(0, 0); times++
       :: else -> break
       od)

/* Runs the queue twice, so that calls may also be queued while no thread runs it. */
proctype Q() {
  LOCALS;
  byte made, handle, times, current, next, refused, position;
  bit has_lock, taken;
  IF(REMOVED_IN_CALL, bit has_removed;)
  do
  :: times < 2 -> made = 0; run_queue(1, 1); times++
  :: else -> break
  od;
  done++
}

/* Q runs the queue while its frame is in use. */
proctype W() {
  byte x;
  lock(3, QUEUE_LOCK);
  do
  :: true ->
     UNLESS(SLEEPS_WITHOUT_CLOSE, is_open = 0;)
     load(3, TARGET(1), x);
     if
     :: x ->
        IF(SLEEPS_WITHOUT_CLOSE, is_open = 0;)
        sleeps = 1;
        sleep(3, QUEUE_LOCK)
     :: else -> break
     fi
  od;
  unlock(3, QUEUE_LOCK);
  done++
}

/* Clears the queue. */
proctype C() {
  byte from;
  lock(3, QUEUE_LOCK);
  d_step {
    UNLESS(NOT_CLOSED_BY_CLEAR, is_open = 0;)
    from = head
  };
  d_step { take_back(true, from) };
  unlock(3, QUEUE_LOCK);
  done++
}

THREAD(R, LOCALS, remove(2, REMOVER_WAITS))

proctype D() {
  LOCALS;
  lock(3, QUEUE_LOCK);
  printf("thread 3 destroys the queue\n");
  d_step { is_open = 0; occupant = 0; take_back(true, head) };
  unlock(3, QUEUE_LOCK);
  remove(3, 1);
  lock(3, QUEUE_LOCK);
  d_step { occupant = 2; ring[tail] = 3; tail++ };
  unlock(3, QUEUE_LOCK);
  done++
}

inline enqueue(d) {
  ring[tail] = d;
  tail++;
  if
  :: d == 1 -> payload_references++
  :: else -> others++
  fi
}

init {
  d_step {
    mem[LIVE] = 1;
#if OTHER == 1
    enqueue(2);
#endif
    do
    :: payload_references < QUEUED -> enqueue(1)
    :: else -> break
    od;
#if OTHER == 2
    enqueue(2);
#endif
    i = 0
  };
  atomic {
    IF(HAS_A, run A();)
    IF(HAS_R, run R();)
    IF(HAS_D, run D();)
    IF(HAS_C, run C();)
    IF(HAS_W, run W();)
    run Q()
  };
  d_step {
    done == (HAS_A > 0) + 1 + HAS_R + HAS_D + HAS_C + HAS_W && ALL_DRAINED ->
    assert(!deferred);
    assert(released || mem[LIVE]); /* no deferred release is left over */
    /* each call is made, cancelled or dropped, once */
    do
    :: head < tail ->
       if
       :: ring[head] == 1 -> assert(payload_references > 0); payload_references--
       :: ring[head] == 2 -> others--
       :: else
       fi;
       assert(mem[LIVE] || ring[head] != 1);
       head++
    :: else -> break
    od;
    assert(payload_references == 0);
    assert(others == 0)
  }
}
