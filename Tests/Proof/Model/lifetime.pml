/* Ending a lifetime: all its members are removed, and all their releases have returned.
 *
 * `unfinished` counts 1 for each member whose release has not returned, and 1 for the thread that
 * ends the lifetime. That thread removes the members one by one, waits for their calls, releases
 * them, and sleeps until `unfinished` is 1: members that other threads have removed are released by
 * those threads. Then it counts down itself. At 0 the slot becomes free for reuse.
 *
 *   end           as above
 *   second end    finds that another thread ends the lifetime: counts itself as a waiter, helps to
 *                 remove the members, and sleeps until the slot is free
 *   finish_one    counts down; wakes the thread that ends it; or frees the slot, and wakes waiters
 *   join          an add with this lifetime, under the lock of the lifetime
 *   remove        a removal of member 1 that does not wait
 *   release       runs `release` of a member, then counts down
 *   call          a call of member 1, and call_did_return
 *
 * Proved: when an end returns, the first with MULTICAST_OK or a second one, the releases of all
 * members have returned, on whichever thread. The slot becomes free exactly once, and not before
 * the end has returned. No registration of another lifetime is removed. No deadlock.
 *
 * Hazards and marks are visible at once: invoke_remove.pml proves that the two sides cannot miss
 * each other. A critical section of any of the locks is one step. A read without a lock is a step
 * of its own.
 *
 * Threads: E ends the lifetime. F ends it too. N removes member 1 without waiting; then its slot is
 * reused by a registration that is no member. J adds member 2. I calls member 1.
 *
 * Variants: HAS_F=0, HAS_N=0, HAS_J=0, HAS_I=0.
 */

#define BUFFERED 0
#define WORDS 1
#define THREADS 5
#include "memory.pml"

#define LIVE 1
#define ENDED 2
#define VACANT 0

/* The lifetime. */
byte id = LIVE;
byte unfinished = 1;  /* see above; changed by read-modify-writes */
byte members = 2;     /* a bit for each live member */
byte waiters;         /* second ends that wait for the slot to be free */

/* The registrations 1 and 2. */
byte state[3];
bit is_member[3];     /* in its registration details, which the release frees */
byte calls[3];
bit is_deferred[3];
byte releases[3];     /* have begun */
byte released[3];     /* have returned */

byte slot_reclaims;      /* how often the slot of the lifetime became free */
bit was_added;

/* ---- The count ------------------------------------------------------------------------------ */

inline finish_one(me) {
  d_step { assert(unfinished > 0); unfinished--; left = unfinished };
  if
  :: left > 0 ->
     if
     EITHER(NOT_WOKEN, :: false -> skip, :: left == 1 && id == ENDED -> d_step { wake_all() })
     :: else
     fi
  :: else ->
     EITHER(RECLAIMED_WITHOUT_SECOND_CHECK, is_last = (id == ENDED);
                                            if
                                            :: is_last -> d_step {,
                                            if
                                            :: d_step {
                                                 id == ENDED && unfinished == 0 ->)
          printf("thread %d frees the slot\n", me);
          id = VACANT;
          slot_reclaims++;
          assert(slot_reclaims == 1);
          assert(!enders) /* not before the end is over */
        };
        UNLESS(SECOND_END_NOT_WOKEN, when(waiters > 0, d_step { wake_all() }))
     :: else
     fi
  fi;
  left = 0;
  is_last = 0
}

byte enders; /* threads in `end`, before its finish_one */

/* ---- Removal -------------------------------------------------------------------------------- */

inline release(me, m) {
  d_step {
    assert(state[m] == ENDED);
    state[m] = VACANT;
    is_member[m] = 0
  };
  d_step {
    printf("thread %d releases member %d\n", me, m);
    releases[m]++;
    assert(releases[m] == 1);
    assert(calls[m] == 0)
  };
  IF(COUNTED_BEFORE_RELEASE, finish_one(me);)
  released[m]++; /* a step of its own: the release takes time */
#if defined(COUNTED_BEFORE_RELEASE) || defined(NOT_COUNTED)
  skip
#else
  finish_one(me)
#endif
}

/* In a d_step, under the locks of the multicast and of the lifetime. */
inline unlink(m) {
  state[m] = ENDED;
  members = members & ~(1 << m)
}

inline remove(me) {
  d_step {
    is_own = (state[1] == LIVE);
    when(is_own, unlink(1); printf("thread %d removes member 1\n", me))
  };
  if
  :: is_own ->
     if
     :: d_step { calls[1] > 0 -> is_deferred[1] = 1 }
     :: calls[1] == 0 -> release(me, 1)
     fi
  :: else
  fi;
  is_own = 0
}

inline call(me, m) {
  if
  :: d_step {
       state[m] == LIVE && is_member[m] ->
       printf("thread %d calls member %d\n", me, m);
       calls[m]++
     };
     d_step { assert(releases[m] == 0); assert(!is_over); calls[m]-- };
     if
     :: state[m] != LIVE ->
        d_step { /* call_did_return */
          wake_all();
          is_own = (is_deferred[m] && calls[m] == 0);
          when(is_own, is_deferred[m] = 0)
        };
        when(is_own, is_own = 0; release(me, m))
     :: else
     fi
  :: else
  fi
}

inline join(me, m) {
  if
  EITHER(JOINED_WITHOUT_CHECK, :: d_step {,
                               :: d_step {
                                    id == LIVE ->)
       printf("thread %d adds member %d\n", me, m);
       members = members | (1 << m);
       unfinished++;
       state[m] = LIVE;
       is_member[m] = 1;
       was_added = 1
     }
  UNLESS(JOINED_WITHOUT_CHECK, :: id != LIVE)
  fi
}

/* ---- The end -------------------------------------------------------------------------------- */

bit is_over; /* an end has returned OK */

inline end(me) {
#ifdef COUNTED_AFTER_UNLOCK
  d_step { is_own = (id == LIVE); if :: is_own -> id = ENDED; enders++ :: else fi };
  when(is_own, unfinished++);
#else
  d_step {
    is_own = (id == LIVE);
    if
    :: is_own -> printf("thread %d ends the lifetime\n", me); id = ENDED; unfinished++; enders++
    :: else -> is_second = (id == ENDED); waiters = waiters + is_second
    fi
  };
#endif
  if
  :: is_own || is_second ->
     do /* removes the members */
     :: members == 0 -> break
     :: d_step { members != 0 -> m = (members & 2 -> 1 : 2) };
        d_step { /* under the lock of the multicast */
          if
          EITHER(MEMBERSHIP_NOT_COMPARED, :: state[m] == LIVE ->,
                                          :: state[m] == LIVE && is_member[m] ->)
             assert(is_member[m]); /* no registration without this lifetime */
             unlink(m);
             own_members = own_members | (1 << m)
          :: else
          fi
        }
     od;
     m = 1;
     do /* completes the removals */
     :: m <= 2 ->
        if
        :: own_members & (1 << m) ->
           do
           :: calls[m] == 0 -> break
           :: d_step { calls[m] > 0 -> asleep[me] = 1 }; !asleep[me]
           od;
           release(me, m)
        :: else
        fi;
        m++
     :: else -> break
     od;
     /* Waits for the other releases. The wait for prior removals before it is left out. */
     if
     :: is_second ->
        UNLESS(SECOND_END_DOES_NOT_WAIT, do
                                         :: id != ENDED -> break
                                         :: d_step { id == ENDED -> asleep[me] = 1 }; !asleep[me]
                                         od;)
        skip;
        d_step {
          printf("thread %d has waited for the end\n", me);
          assert(released[1] == 1);
          assert(!was_added || released[2] == 1) /* all releases have returned */
        }
     :: else ->
#ifndef RELEASES_NOT_WAITED_FOR
#ifdef CHECK_BEFORE_SLEEP_WITHOUT_LOCK
        do
        :: unfinished == 1 -> break
        :: unfinished != 1 -> asleep[me] = 1; !asleep[me]
        od;
#else
        do
        :: unfinished == 1 -> break
        :: d_step { unfinished != 1 -> asleep[me] = 1 }; !asleep[me]
        od;
#endif
#endif
        skip;
        d_step {
          printf("thread %d has ended the lifetime\n", me);
          is_over = 1;
          assert(released[1] == 1);
          assert(!was_added || released[2] == 1); /* all releases have returned */
          enders--
        };
        finish_one(me)
     fi
  :: else
  fi;
  is_own = 0;
  is_second = 0
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte m, left, own_members; bit is_own, is_second, is_last

THREAD(E, LOCALS, end(0))

proctype N() {
  LOCALS;
  remove(1);
  if
  :: d_step { state[1] == VACANT -> state[1] = LIVE } /* the slot is reused */
  :: state[1] != VACANT
  fi;
  done++
}

THREAD(J, LOCALS, join(2, 2))
THREAD(I, LOCALS, call(3, 1))
THREAD(F, LOCALS, end(4))

init {
  d_step { state[1] = LIVE; is_member[1] = 1 };
  atomic {
    run E();
    IF(HAS_N, run N();)
    IF(HAS_J, run J();)
    IF(HAS_I, run I();)
    IF(HAS_F, run F();)
    skip
  };
  d_step {
    done == 1 + HAS_N + HAS_J + HAS_I + HAS_F ->
    assert(slot_reclaims == 1);
    assert(unfinished == 0);
    assert(released[1] == 1 && released[2] == was_added)
  }
}
