/* Transports of a broadcaster: each notification is published by one of those that replace each
 * other, and each transport subscribes the names that have observers.
 *
 * A transport is the only delegate of a multicast, so its calls and its end are those of
 * `invoke_remove`: here each is one step. To attach is to make the multicast of the name observed,
 * to exchange the transport, to subscribe, and to wait for the calls of the old transport.
 *
 *   subscribe  under the stripe's lock it looks at the delegates and at the transport, leaves the
 *              lock to call `subscribe` or `unsubscribe`, and looks again, until the last
 *              call matches the state; a thread that finds another one doing so leaves it to that
 *   add        the fast path does not subscribe: not of an observed multicast. If the multicast was
 *              destroyed, the name gets the next one first
 *   remove     the fast path does not subscribe: not of an observed multicast
 *   destroy    ends the multicast of the name under the lock. The last subscription stays with the
 *              name, and the thread that subscribes goes on with the next multicast
 *   notify     publishes; if the transport is detached, it looks for another one
 *
 * Proved: no function of a transport is called after its release; `subscribe` and `unsubscribe` are
 * called by turns, one at a time; the last call matches the state; while transports replace each
 * other, each notification is published exactly once.
 *
 * Threads: A adds a delegate and R removes one, if there is one. X destroys the multicast by its
 * handle. C attaches transport 2, and E transport 3. D detaches what there is. N notifies.
 *
 * Variants: HAS_OLD=0 (transport 1 is attached at first), LIVE=0 (delegates at first), HAS_A=0,
 * HAS_R=0, HAS_X=0, HAS_E=0, HAS_D=0, HAS_N=0; HAS_C=1 (0 leaves C out).
 */

#include "when.pml"

#define TRANSPORTS 4 /* 0: none */

byte current;              /* the transport of the broadcaster */
bit is_detached[TRANSPORTS], is_released[TRANSPORTS], is_subscribed[TRANSPORTS];
byte inside[TRANSPORTS];   /* threads in a call of it */
byte notified_at_once;         /* threads in `subscribe` or `unsubscribe` */
byte published, done;

/* Guarded by the stripe's lock. */
bit is_locked;
byte live;                 /* delegates */
bit is_observed, is_notifying;
byte notified;             /* the transport that has subscribed, or 0 */
bit is_ended;              /* the multicast was destroyed, and the name has no next one yet */
byte generation;           /* of the multicast */

bit was_attached;          /* the broadcaster has or had a transport */

inline lock() { atomic { !is_locked -> is_locked = 1 } }
inline unlock() { is_locked = 0 }

/* The body is executed inside a call. `is_called`: the transport was not detached before. */
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

/* `subscribe` or `unsubscribe`. */
inline call_notifier(t, is_wanted, is_called) {
  begin_call(t, is_called);
  if
  :: is_called ->
     d_step {
       notified_at_once++;
       assert(notified_at_once == 1); /* one at a time */
       assert(is_subscribed[t] != is_wanted); /* by turns */
       is_subscribed[t] = is_wanted;
       printf("transport %d subscribes: %d\n", t, is_wanted)
     };
     notified_at_once--;
     end_call(t)
  :: else
  fi
}

/* The lock is held, and released. */
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
     :: else -> refusing = 255 /* of what was refused before, only the last counts */
#endif
     fi;
     EITHER(NOT_LOOKED_AGAIN, break, look())
  od;
  is_notifying = 0;
  d_step { wanted = 0; was_notified = 0; refusing = 0; t = 0; is_called = 0 };
  unlock()
}

/* Of the multicast that this thread has found. */
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

/* Unless the multicast that this thread has found was destroyed. */
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

/* If the multicast is observed, the next one is, too. */
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
    assert(current == 0 || is_subscribed[current] == (live > 0)); /* the last word is true */
    assert(current == 1 || is_released[1] == HAS_OLD);
    assert(current == 2 || is_released[2] == HAS_C);
    assert(current == 3 || is_released[3] == HAS_E);
    assert(current == 0 || !is_released[current]);
    IF(HAS_N, assert(published <= 1);
              assert(published == 1 || !HAS_OLD || HAS_D))
  }
}
