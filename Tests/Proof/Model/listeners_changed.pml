/* The `listeners_changed` function of a multicast, which is called without a lock when the first
 * delegate is added and when the last delegate is removed.
 *
 *   change   under the lock: adds or removes a delegate; notify follows
 *   notify   only one thread at a time: reads the state under the lock, calls the function, and
 *            reads the state again, until the last notification matches the state. A thread that
 *            finds another one notifying leaves the notification to that thread
 *   destroy  ends the multicast under the lock. The thread that notifies last releases the policies
 *
 * The model proves that calls of the function never overlap, that each call reports a change, that
 * the last report is true, and that the policies are released once, after the last call.
 *
 * Threads: two or three threads make changes, also inside a call of the function. One thread
 * destroys the multicast.
 *
 * Variants: CHANGERS=2.
 */

#include "when.pml"

#define CHANGES 2

bit locked;
byte live;         /* the number of delegates */
bit notified;      /* the state that was reported last */
bit is_under_way;
bit is_ended;
bit is_given_back;

byte notifying;    /* threads inside the function */
bit last_word;     /* the last argument of the function */
byte finished;

inline lock() { atomic { !locked -> locked = 1 } }
inline unlock() { locked = 0 }

inline change() {
  lock();
  if
  :: is_ended
  :: !is_ended && live < 2 -> live++
  :: !is_ended && live > 0 -> live--
  fi;
  unlock()
}

#define IS_WANTED (!is_ended && live > 0)

/* Policies.notify. Begins under the lock and releases it. */
inline notify_locked(changes_inside) {
  do
  :: notified != IS_WANTED ->
     UNLESS(NOTIFIED_SET_AFTER_CALL, notified = IS_WANTED;)
     word = IS_WANTED;
     unlock();
     notifying++;
     assert(notifying == 1);
     assert(!is_given_back);
     assert(word != last_word);
     last_word = word;
     if
     :: changes_inside -> change()
     :: skip
     fi;
     notifying--;
     lock();
     IF(NOTIFIED_SET_AFTER_CALL, notified = IS_WANTED;)
     IF(NOT_LOOKED_AGAIN, break)
  :: else -> break
  od;
  UNLESS(UNDER_WAY_AFTER_UNLOCK, is_under_way = 0;)
  gives_back = is_ended;
  unlock();
  IF(UNDER_WAY_AFTER_UNLOCK, is_under_way = 0;)
  if
  :: gives_back ->
     assert(!is_given_back);
     is_given_back = 1
  :: else
  fi
}

proctype Changer() {
  byte changes = CHANGES;
  bit word, gives_back;
  do
  :: changes > 0 ->
     changes--;
     change();
     /* Policies.notify */
     lock();
     if
     UNLESS(END_NOT_ASKED, :: is_ended -> unlock())
     UNLESS(TWO_NOTIFY, :: is_under_way -> unlock())
     :: else -> is_under_way = 1; notify_locked(true)
     fi
  :: break
  od;
  finished++
}

proctype Destroyer() {
  bit word, gives_back, ends;
  lock();
  live = 0;
  is_ended = 1;
  EITHER(END_ALWAYS_NOTIFIED, ends = 1, ends = !is_under_way);
  when(ends, is_under_way = 1);
  unlock();
  when(ends, lock(); notify_locked(false));
  finished++
}

init {
  byte i, all;
  atomic {
    for (i : 1 .. CHANGERS) { run Changer() }
    all = CHANGERS;
    IF(HAS_DESTROY, run Destroyer();
                    all++)
  }
  finished == all ->
  /* The last report is true. */
  assert(last_word == IS_WANTED);
  assert(notified == last_word);
  assert(is_given_back == is_ended)
}
