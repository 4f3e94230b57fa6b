/* Ending a lifetime: its members are removed, and their releases waited for, whoever runs them.
 *
 *   end                    Lifetime+End.swift: end, removeMembers, unlink, waitForOthers
 *   finish_one             Lifetime+Storage.swift: finishOne; wake: Departures.swift
 *   join                   Lifetime+Members.swift: join; Multicast+Add.swift: add
 *   remove                 Multicast+Unlink.swift: unlink; Registration.swift: retire
 *   release                Registration.swift: giveBack; Extras.swift: release; memberIsGone
 *   call                   InvocationList+Invoke.swift; Departures.swift: attend
 *
 * Names and marks are seen at once: invoke_remove.pml has shown that the two sides cannot miss each
 * other. Under the locks of a stripe, of the lifetime and of calls a section is one step, each of
 * its own; what is read without a lock is read in a step of its own.
 *
 * Threads: E ends the lifetime, F too (with HAS_F); N removes member 1 without waiting, and then
 * has its slot serve a registration that is no member; J adds member 2; I calls member 1.
 */

#ifndef HAS_F
#define HAS_F 0
#endif
#ifndef HAS_N
#define HAS_N 0
#endif
#ifndef HAS_J
#define HAS_J 0
#endif
#ifndef HAS_I
#define HAS_I 0
#endif

#define BUFFERED 0
#define WORDS 1
#define THREADS 5
#include "memory.pml"

#define LIVE 1
#define ENDED 2
#define VACANT 0

/* Of the lifetime. */
byte id = LIVE;
byte unfinished = 1;  /* changed by read-modify-writes */
byte members = 2;     /* a bit for each live one */

/* Of the registrations 1 and 2. */
byte state[3];
bit is_member[3];     /* in its extras; gone with them */
byte calls[3];
bit is_departing[3];
byte releases[3];     /* that have begun */
byte released[3];     /* and returned */

byte given_back;      /* the lifetime's slot */
bit was_added;

/* ---- Counting ------------------------------------------------------------------------------- */

inline finish_one(me) {
  d_step { assert(unfinished > 0); unfinished--; left = unfinished };
  if
  :: left > 0 ->
     if
#ifdef NOT_WOKEN
     :: false -> skip
#else
     :: left == 1 && id == ENDED -> d_step { wake_all() }
#endif
     :: else
     fi
  :: else ->
#ifdef GIVEN_BACK_WITHOUT_SECOND_LOOK
     is_last = (id == ENDED);
     if
     :: is_last -> d_step {
#else
     if
     :: d_step {
          id == ENDED && unfinished == 0 ->
#endif
          printf("thread %d gives the slot back\n", me);
          id = VACANT;
          given_back++;
          assert(given_back == 1);
          assert(!ending) /* not under the thread that ends it */
        }
     :: else
     fi
  fi;
  left = 0;
  is_last = 0
}

byte ending; /* threads that are in `end` and have not come to their finish_one */

/* ---- Removing ------------------------------------------------------------------------------- */

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
#ifdef COUNTED_BEFORE_RELEASE
  finish_one(me);
#endif
  released[m]++; /* it takes its time */
#if defined(COUNTED_BEFORE_RELEASE) || defined(NOT_COUNTED)
  skip
#else
  finish_one(me)
#endif
}

/* In a d_step, under the stripe's lock and the lifetime's. */
inline unlink(m) {
  state[m] = ENDED;
  members = members & ~(1 << m)
}

inline remove(me) {
  d_step {
    mine = (state[1] == LIVE);
    if
    :: mine -> unlink(1); printf("thread %d removes member 1\n", me)
    :: else
    fi
  };
  if
  :: mine ->
     if
     :: d_step { calls[1] > 0 -> is_departing[1] = 1 }
     :: calls[1] == 0 -> release(me, 1)
     fi
  :: else
  fi;
  mine = 0
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
        d_step { /* attend */
          wake_all();
          mine = (is_departing[m] && calls[m] == 0);
          if
          :: mine -> is_departing[m] = 0
          :: else
          fi
        };
        if
        :: mine -> mine = 0; release(me, m)
        :: else
        fi
     :: else
     fi
  :: else
  fi
}

inline join(me, m) {
  if
#ifdef JOINED_WITHOUT_LOOK
  :: d_step {
#else
  :: d_step {
       id == LIVE ->
#endif
       printf("thread %d adds member %d\n", me, m);
       members = members | (1 << m);
       unfinished++;
       state[m] = LIVE;
       is_member[m] = 1;
       was_added = 1
     }
#ifndef JOINED_WITHOUT_LOOK
  :: id != LIVE
#endif
  fi
}

/* ---- Ending --------------------------------------------------------------------------------- */

bit is_over; /* an end has returned OK */

inline end(me) {
#ifdef COUNTED_AFTER_UNLOCK
  d_step { mine = (id == LIVE); if :: mine -> id = ENDED; ending++ :: else fi };
  if
  :: mine -> unfinished++
  :: else
  fi;
#else
  d_step {
    mine = (id == LIVE);
    if
    :: mine -> printf("thread %d ends the lifetime\n", me); id = ENDED; unfinished++; ending++
    :: else
    fi
  };
#endif
  if
  :: mine ->
     do /* removeMembers */
     :: members == 0 -> break
     :: d_step { members != 0 -> m = (members & 2 -> 1 : 2) };
        d_step { /* under the stripe's lock */
          if
#ifdef MEMBERSHIP_NOT_COMPARED
          :: state[m] == LIVE ->
#else
          :: state[m] == LIVE && is_member[m] ->
#endif
             assert(is_member[m]); /* no registration of somebody else's */
             unlink(m);
             ours = ours | (1 << m)
          :: else
          fi
        }
     od;
     m = 1;
     do /* seeOff */
     :: m <= 2 ->
        if
        :: ours & (1 << m) ->
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
     /* waitForOthers; first for the calls, by settle: that does not matter here */
#ifndef RELEASES_NOT_WAITED_FOR
#ifdef LOOK_BEFORE_SLEEP_WITHOUT_LOCK
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
       ending--
     };
     finish_one(me)
  :: else
  fi;
  mine = 0
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte m, left, ours; bit mine, is_last

proctype E() {
  LOCALS;
  end(0);
  done++
}

proctype N() {
  LOCALS;
  remove(1);
  if
  :: d_step { state[1] == VACANT -> state[1] = LIVE } /* the slot serves somebody else */
  :: state[1] != VACANT
  fi;
  done++
}

proctype J() {
  LOCALS;
  join(2, 2);
  done++
}

proctype I() {
  LOCALS;
  call(3, 1);
  done++
}

proctype F() {
  LOCALS;
  end(4);
  done++
}

init {
  d_step { state[1] = LIVE; is_member[1] = 1 };
  atomic {
    run E();
#if HAS_N
    run N();
#endif
#if HAS_J
    run J();
#endif
#if HAS_I
    run I();
#endif
#if HAS_F
    run F();
#endif
    skip
  };
  d_step {
    done == 1 + HAS_N + HAS_J + HAS_I + HAS_F ->
    assert(given_back == 1);
    assert(unfinished == 0);
    assert(released[1] == 1 && released[2] == was_added)
  }
}
