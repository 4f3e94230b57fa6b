/* Whether a multicast has delegates, reported to its `listeners_changed` function, which runs under
 * no lock.
 *
 *   change   under the lock: a delegate comes or goes. Then: notify
 *   notify   one thread at a time: looks under the lock, notifies, looks again, until the last
 *            notification matches the state. A thread that finds another one notifying leaves it
 *            to that one
 *   destroy  ends the multicast under the lock. The thread that notifies last gives the policies
 *            back
 *
 * Proved: no two calls of the function at once; each call says something else than the one before;
 * the last word is true; the policies are given back once, after the last call.
 *
 * Threads: two or three that change, inside a call of the function too, and one that destroys.
 *
 * Variants: CHANGERS=2.
 */

#include "when.pml"

#define CHANGES 2

bit locked;
byte live;         /* delegates */
bit notified;      /* the last notification */
bit is_under_way;
bit is_ended;
bit is_given_back;

byte notifying;    /* threads inside the function */
bit last_word;     /* its last argument */
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

/* Policies.notify: the lock is held, and released. */
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
  /* The last word is true. */
  assert(last_word == IS_WANTED);
  assert(notified == last_word);
  assert(is_given_back == is_ended)
}
