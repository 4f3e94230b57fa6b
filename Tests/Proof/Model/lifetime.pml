/* Ending a lifetime removes all its members and waits until all their releases have returned.
 *
 * `unfinished` counts each member whose release has not returned, and the thread that ends the
 * lifetime. That thread removes the members one by one, waits for their calls and releases them.
 * Members that other threads have removed are released by those threads, so the ending thread
 * sleeps until `unfinished` is 1. Then it decrements the count itself. When the count is 0, the
 * lifetime's slot becomes free for reuse.
 *
 *   end           ends the lifetime as described above
 *   second end    an end that finds another thread ending the lifetime: it counts itself as a
 *                 waiter, helps to remove the members, and sleeps until the slot is free
 *   finish_one    decrements the count; wakes the ending thread, or frees the slot and wakes
 *                 waiters
 *   join          an add with this lifetime, under the lock of the lifetime
 *   remove        a removal of member 1 that does not wait
 *   release       runs `release` of a member, then decrements the count
 *   call          a call of member 1, and call_did_return
 *
 * The model proves these properties: When the first end returns MULTICAST_OK, or a second end
 * returns, the releases of all members have returned on all threads. The slot becomes free exactly
 * once, and only after the end is over. No registration of another lifetime is removed. There is no
 * deadlock.
 *
 * Hazards and removals are visible immediately, because invoke_remove.pml proves that the two sides
 * cannot miss each other. A critical section under any lock is one step. A read without a lock is a
 * separate step.
 *
 * Threads: E ends the lifetime. F ends it too. N removes member 1 without waiting, after which a
 * registration that is not a member reuses its slot. J adds member 2. I calls member 1.
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
byte unfinished = 1;  /* changed by atomic read-modify-writes */
byte members = 2;     /* a bit for each live member */
byte waiters;         /* second ends that are waiting until the slot is free */

/* The registrations 1 and 2. */
byte state[3];
bit is_member[3];     /* stored in the details that the release frees */
byte calls[3];
bit is_deferred[3];
byte releases[3];     /* releases that have begun */
byte released[3];     /* releases that have returned */

byte slot_reclaims;      /* how often the slot of the lifetime has become free */
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
          assert(!enders) /* only after the end */
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
  released[m]++; /* a separate step, because the release takes time */
#if defined(COUNTED_BEFORE_RELEASE) || defined(NOT_COUNTED)
  skip
#else
  finish_one(me)
#endif
}

/* Used only inside a d_step, under the locks of the multicast and of the lifetime. */
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
             assert(is_member[m]); /* only members of this lifetime */
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
     /* Waits for the other releases. The library first waits for prior removals, which this model
      * leaves out. */
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
