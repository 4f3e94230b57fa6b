/* While the transports of a broadcaster replace each other, each notification is published by
 * exactly one of them. The attached transport is subscribed to the names that have observers.
 *
 * A transport is the only delegate of a multicast, so `invoke_remove` covers its calls and its end,
 * and each of them is one step in this model. Attaching a transport marks the multicast of the name
 * as observed, exchanges the transport, updates the subscription, and waits for the calls of the
 * old transport.
 *
 *   subscribe  reads the delegates and the transport under the stripe's lock, releases the lock to
 *              call `subscribe` or `unsubscribe`, and reads again, until the last call matches the
 *              state. A thread that finds another one doing so leaves the work to that thread
 *   add        if the multicast was destroyed, first gives the name its next multicast. The fast
 *              path never subscribes, and is not taken for an observed multicast
 *   remove     like add, has a fast path that never subscribes
 *   destroy    ends the multicast of the name under the lock. The name keeps the last subscription,
 *              and the subscribing thread goes on with the next multicast
 *   notify     publishes; if the transport has been detached, tries the next transport
 *
 * The model proves that no function of a transport is called after its release, that `subscribe`
 * and `unsubscribe` are called alternately and one at a time, that the last of these calls matches
 * the state, and that each notification is published exactly once while transports replace each
 * other.
 *
 * Threads: A adds a delegate, and R removes a delegate if there is one. X destroys the multicast by
 * its handle. C attaches transport 2, and E attaches transport 3. D detaches the current transport.
 * N notifies.
 *
 * Variants: HAS_OLD=0 (transport 1 is attached at first), LIVE=0 (the number of delegates at
 * first), HAS_A=0, HAS_R=0, HAS_X=0, HAS_E=0, HAS_D=0, HAS_N=0, HAS_C=1 (0 leaves C out).
 */

#include "when.pml"

#define TRANSPORTS 4 /* 0: none */

byte current;              /* the transport of the broadcaster */
bit is_detached[TRANSPORTS], is_released[TRANSPORTS], is_subscribed[TRANSPORTS];
byte inside[TRANSPORTS];   /* threads inside a call to the transport */
byte notified_at_once;         /* threads in `subscribe` or `unsubscribe` */
byte published, done;

/* Guarded by the stripe's lock. */
bit is_locked;
byte live;                 /* delegates */
bit is_observed, is_notifying;
byte notified;             /* the subscribed transport, or 0 */
bit is_ended;              /* the multicast has been destroyed and not yet replaced */
byte generation;           /* of the multicast */

bit was_attached;          /* the broadcaster has or had a transport */

inline lock() { atomic { !is_locked -> is_locked = 1 } }
inline unlock() { is_locked = 0 }

/* Begins a call to the transport. Sets `is_called` unless the transport is detached. */
inline begin_call(t, is_called) {
  d_step {
    is_called = (t != 0 && !is_detached[t]);
    when(is_called, inside[t]++; assert(!is_released[t]))
  }
}
inline end_call(t) { d_step { assert(!is_released[t]); inside[t]-- } }

inline look() {
  d_step {
    if
    :: live == 0 -> wanted = 0
    :: else -> wanted = current
    fi
  }
}

/* Calls `subscribe` or `unsubscribe`. */
inline call_notifier(t, is_wanted, is_called) {
  begin_call(t, is_called);
  if
  :: is_called ->
     d_step {
       notified_at_once++;
       assert(notified_at_once == 1); /* one at a time */
       assert(is_subscribed[t] != is_wanted); /* alternately */
       is_subscribed[t] = is_wanted;
       printf("transport %d subscribes: %d\n", t, is_wanted)
     };
     notified_at_once--;
     end_call(t)
  :: else
  fi
}

/* Begins under the lock and releases it. */
inline notify_locked() {
  refusing = 255;
  look();
  do
  :: wanted == notified || wanted == refusing -> break
  :: else ->
     was_notified = notified;
     notified = wanted;
     unlock();
     if
     :: wanted != 0 -> t = wanted
     :: else -> t = was_notified
     fi;
     call_notifier(t, (wanted != 0), is_called);
     lock();
     if
     :: !is_called -> notified = was_notified; refusing = wanted
#ifdef REFUSAL_KEPT
     :: else
#else
     :: else -> refusing = 255 /* only the last refusal counts */
#endif
     fi;
     EITHER(NOT_LOOKED_AGAIN, break, look())
  od;
  is_notifying = 0;
  d_step { wanted = 0; was_notified = 0; refusing = 0; t = 0; is_called = 0 };
  unlock()
}

/* Updates the subscription, if the multicast that this thread has found still exists. */
inline notify() {
  lock();
  if
#ifdef NOTIFIED_BY_SEVERAL
  :: !is_observed || is_ended || seen != generation -> unlock()
#else
  :: !is_observed || is_ended || seen != generation || is_notifying -> unlock()
#endif
  :: else -> is_notifying = 1; notify_locked()
  fi
}

/* Marks the multicast as observed, if the multicast that this thread has found still exists. */
inline observe() {
  lock();
  if
  :: is_ended || seen != generation
  :: else -> is_observed = 1
  fi;
  unlock()
}

inline add() {
  do
  :: lock();
     if
     :: is_ended ->
        d_step { is_ended = 0; generation++; seen = generation };
        unlock();
        when(was_attached && !is_observed, observe())
     :: else -> break
     fi
  od;
  seen = generation;
  d_step {
    is_slow = is_observed;
    IF(FAST_ADD_TO_OBSERVED, is_slow = 0;)
    live++
  };
  unlock();
  when(is_slow, notify())
}

/* If the multicast is observed, the next multicast of the name is observed, too. */
inline destroy() {
  lock();
  d_step {
    live = 0;
    is_ended = 1;
    is_slow = (is_observed && !is_notifying);
    EITHER(NEXT_NOTIFIED_BY_OTHERS, when(is_slow, t = notified; notified = 0),
                                    when(is_slow, is_notifying = 1))
  };
  unlock();
  if
  EITHER(NEXT_NOTIFIED_BY_OTHERS, :: is_slow && t != 0 -> call_notifier(t, 0, is_called),
                                  :: is_slow -> lock(); notify_locked())
  :: else
  fi
}

inline remove() {
  lock();
  d_step {
    seen = generation;
    is_slow = (live > 0 && is_observed);
    IF(FAST_REMOVAL_OF_OBSERVED, is_slow = 0;)
    when(live > 0, live--)
  };
  unlock();
  when(is_slow, notify())
}

inline detach(t) {
  if
  :: t != 0 ->
     d_step { is_detached[t] = 1; printf("transport %d is detached\n", t) };
     UNLESS(CALLS_NOT_WAITED_FOR, inside[t] == 0;)
     is_released[t] = 1
  :: else
  fi
}

inline attach(next) {
  when(next != 0, d_step { was_attached = 1; seen = generation }; observe());
  IF(DETACHED_BEFORE_EXCHANGE, old = current;
                               detach(old);)
  IF(NOTIFIED_BEFORE_EXCHANGE, notify();)
  atomic { old = current; current = next; printf("transport %d is attached\n", next) };
  UNLESS(NOTIFIED_BEFORE_EXCHANGE, when(next != 0, seen = generation; notify());)
  UNLESS(DETACHED_BEFORE_EXCHANGE, detach(old))
}

#define LOCALS byte wanted, was_notified, refusing, t, old, seen; bit is_called, is_slow

proctype A() { LOCALS; add(); done++ }
proctype R() { LOCALS; remove(); done++ }
proctype X() { LOCALS; destroy(); done++ }
proctype C() { LOCALS; attach(2); done++ }
proctype E() { LOCALS; attach(3); done++ }
proctype D() { LOCALS; attach(0); done++ }

proctype N() {
  byte t, last;
  bit is_called;
  do
  :: t = current;
     when(t == last, break);
     begin_call(t, is_called);
     if
     :: is_called -> published++; end_call(t); break
     :: else -> last = t
     fi
     IF(PUBLISHED_BY_THE_FIRST, ; break)
  od;
  done++
}

init {
  d_step {
    live = LIVE;
    current = HAS_OLD;
    is_observed = HAS_OLD;
    was_attached = HAS_OLD;
    notified = (HAS_OLD && LIVE -> 1 : 0);
    is_subscribed[1] = (HAS_OLD && LIVE)
  };
  atomic {
    IF(HAS_C, run C();)
    IF(HAS_X, run X();)
    IF(HAS_A, run A();)
    IF(HAS_R, run R();)
    IF(HAS_E, run E();)
    IF(HAS_D, run D();)
    IF(HAS_N, run N();)
  };
  d_step {
    done == HAS_C + HAS_A + HAS_R + HAS_X + HAS_E + HAS_D + HAS_N ->
    assert(!is_notifying);
    assert(current == 0 || is_subscribed[current] == (live > 0)); /* the last call is right */
    assert(current == 1 || is_released[1] == HAS_OLD);
    assert(current == 2 || is_released[2] == HAS_C);
    assert(current == 3 || is_released[3] == HAS_E);
    assert(current == 0 || !is_released[current]);
    IF(HAS_N, assert(published <= 1);
              assert(published == 1 || !HAS_OLD || HAS_D))
  }
}
