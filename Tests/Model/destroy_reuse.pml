/* Destroying a multicast, and the next inhabitant of its slot, with invocations by stale handles.
 *
 *   invoke                 Multicast+Invoke.swift: invoke, isAdmitted, admit, leave
 *   destroy                Multicast+Create.swift: destroyAndSettle; Multicast+Unlink.swift
 *   create                 Multicast+Create.swift: create; then Multicast+Add.swift: insert
 *   replace_list, reap     Multicast+Storage.swift
 *
 * Inhabitant 1 has list 1 with delegate 1; inhabitant 2 has list 2 with delegate 2. Departures are
 * as in lists.pml: who waits looks again and again.
 *
 * Threads: A invokes by handle 1, B by handle 2 (once that exists), D destroys inhabitant 1, C
 * creates inhabitant 2 as soon as the slot is vacant.
 *
 * Variants: HAS_A, HAS_B, GUESSED (B invokes by handle 2 before it exists), TWICE (A invokes
 * twice), KNOWN (several threads are known to invoke inhabitant 1; otherwise none), AGAIN (C
 * destroys inhabitant 2), BY_A (A destroys inhabitant 1 inside delegate 1's call, instead of D),
 * WRITERS_BUFFERED.
 */

#ifndef HAS_A
#define HAS_A 1
#endif
#ifndef HAS_B
#define HAS_B 0
#endif
#ifndef TWICE
#define TWICE 0
#endif
#ifndef KNOWN
#define KNOWN 0
#endif
#ifndef AGAIN
#define AGAIN 0
#endif
#ifndef BY_A
#define BY_A 0
#endif

#define FRAMES 2
#define MULTICAST(f) (f)
#define EPOCH(f) (FRAMES + (f))
#define READS(f) (2 * FRAMES + (f))
#define DELEGATE(f) (3 * FRAMES + (f))
#define ID (4 * FRAMES)  /* of the multicast: its handle, or 0 where it has none */
#define LIST (ID + 1)
#define PENDING (ID + 2)
#define INVOKER (ID + 3) /* handle * 8, plus 0, a thread's number from 1, or EVERYONE */
#define TICKET (ID + 4)
#define STRIPE (ID + 5)
#define DEAD(l) (STRIPE + (l))
#define WORDS (STRIPE + 3)
#define THREADS 4
#if WRITERS_BUFFERED
#define BUFFERED 4
#else
#define BUFFERED 2
#endif
#define BUFFER 5
#define EVERYONE 7

#include "reclaim.pml"

bit is_departing[3];
bit freed[3]; /* the delegate of that list is released */
bit exists[3];
bit is_vacant, is_created; /* the slot; inhabitant 2 */

inline release(me, d) {
  d_step {
    printf("thread %d releases delegate %d\n", me, d);
    assert(!freed[d]);
    freed[d] = 1
  }
}

/* ---- Create and destroy --------------------------------------------------------------------- */

/* In the slot that was given back. */
inline create(me) {
#if !defined(INVOKER_NOT_RESET) && !defined(INVOKER_RESET_AFTER_HANDLE)
  store(me, INVOKER, 2 * 8);
#endif
  store(me, ID, 2);
#ifdef INVOKER_RESET_AFTER_HANDLE
  store(me, INVOKER, 2 * 8);
#endif
#ifdef PENDING_RESET_TOO
  store(me, PENDING, 0);
#endif
  d_step { printf("thread %d creates inhabitant 2\n", me); exists[2] = 1; is_created = 1 };
  lock(me, STRIPE);
  store(me, LIST, 2);
  unlock(me, STRIPE)
}

/* Inhabitant and list have the same number, h; `number` is the thread's own, or 0. */
inline destroy(me, h, number) {
  lock(me, STRIPE);
  printf("thread %d destroys inhabitant %d\n", me, h);
  store(me, DEAD(h), 1);
  load(me, INVOKER, x);
  alone = (x == h * 8 || (number && x == h * 8 + number));
  x = 0;
#ifdef HANDLE_ENDS_AFTER_LIST
  store(me, LIST, 0);
  unlock(me, STRIPE);
  lock(me, STRIPE);
  store(me, ID, 0);
#else
  store(me, ID, 0);
  store(me, LIST, 0);
#endif
  exists[h] = 0;
  is_calling(me, h, called);
#ifdef OWN_FRAMES_NOT_LOOKED_AT
  quiet = alone;
#else
  quiet = (alone && !BY_A);
#endif
  if
  :: quiet ->
     is_free[h] = 1; /* nobody invokes it */
     is_vacant = 1;
     unlock(me, STRIPE)
  :: else ->
     d_step {
       EMPTY(me) ->
       mem[TICKET] = mem[TICKET] + 1;
       ticket_of[h] = mem[TICKET];
       is_retired[h] = 1;
       needs_fence[h] = !alone
     };
     store(me, PENDING, ticket_of[h]);
     if
     :: alone -> reap(me)
     :: else
     fi;
     is_vacant = 1;
     unlock(me, STRIPE)
  fi;
  /* Cleanup.finish */
  if
  :: alone && !called -> release(me, h)
  :: else ->
     if
     :: !alone -> fence(me); flush(me)
     :: else
     fi;
     do
     :: is_calling(me, h, found);
        if
        :: !found -> release(me, h); break
        :: found && number && BY_A -> is_departing[h] = 1; break /* its own call: PENDING */
        :: else
        fi
     od
  fi;
  found = 0;
  called = 0;
  quiet = 0;
  alone = 0
}

/* ---- Invocations ---------------------------------------------------------------------------- */

inline use(l) { assert(!is_free[l]) }

/* Multicast+Invoke.swift: isAdmitted, admit. */
inline admit(me, h, number, admitted) {
  load(me, INVOKER, x);
  admitted = 1;
  if
  :: x == h * 8 + number || x == h * 8 + EVERYONE -> x = 0
  :: else ->
     x = 0;
     lock(me, STRIPE);
     load(me, ID, x);
     if
     :: x == h ->
        load(me, INVOKER, x);
        if
        :: x == h * 8 -> store(me, INVOKER, h * 8 + number)
        :: else -> store(me, INVOKER, h * 8 + EVERYONE)
        fi
     :: else -> admitted = 0
     fi;
     unlock(me, STRIPE);
     x = 0
  fi
}

inline invoke(me, frame, h, number) {
  load(me, TICKET, epoch);
  store(me, EPOCH(frame), epoch);
  store(me, READS(frame), 0);
  store(me, MULTICAST(frame), 1);
  light(me);
  admit(me, h, number, found);
  if
  :: found ->
     found = 0;
#ifdef HANDLE_READ_BEFORE_LIST
     load(me, ID, x);
     load(me, LIST, list);
#else
     load(me, LIST, list);
     load(me, ID, x);
#endif
     if
#ifdef HANDLE_NOT_READ
     :: list ->
#else
     :: x == h && list ->
#endif
        x = 0;
        store(me, READS(frame), list);
        use(list);
        store(me, DELEGATE(frame), list);
        light(me);
        d_step { use(list); load_here(me, DEAD(list), x) };
        if
        :: !x ->
           d_step {
             printf("thread %d by handle %d calls delegate %d\n", me, h, list);
             assert(list == h);    /* no delegate of another inhabitant */
             assert(!freed[list])
           };
#if BY_A
           if
           :: me == 0 && !has_destroyed -> has_destroyed = 1; destroy(0, 1, 1)
           :: else
           fi;
#endif
           assert(!freed[list])
        :: else -> x = 0
        fi;
        store(me, DELEGATE(frame), 0);
        light(me);
        d_step { use(list); load_here(me, DEAD(list), x) };
        if
        :: x -> /* attend; the lock of calls makes it one step */
           x = 0;
           atomic {
             EMPTY(me) ->
             is_calling(me, list, found);
             if
             :: !found && is_departing[list] -> is_departing[list] = 0; release(me, list)
             :: else
             fi
           };
           found = 0
        :: else -> x = 0
        fi;
        list = 0
     :: else -> x = 0; list = 0
     fi
  :: else
  fi;
  store(me, MULTICAST(frame), 0);
  light(me);
  load(me, PENDING, x);
#ifdef REFUSED_DOES_NOT_FLUSH
  load(me, ID, l);
  if
  :: l != h -> x = 0
  :: else
  fi;
  l = 0;
#endif
  if
  :: x > epoch -> x = 0; flush(me)
  :: else -> x = 0
  fi;
  epoch = 0
}

/* ---- Threads -------------------------------------------------------------------------------- */

#define LOCALS byte x, f, l, unfenced, list, epoch; bit found, called, alone, quiet, has_destroyed

proctype A() {
  LOCALS;
  byte times;
  do
  :: times <= TWICE -> invoke(0, 0, 1, 1); times++
  :: else -> break
  od;
  done++
}

proctype B() {
  LOCALS;
#if !GUESSED
  is_created;
#endif
  invoke(1, 1, 2, 2);
  done++
}

proctype D() {
  LOCALS;
  destroy(2, 1, 0);
  done++
}

proctype C() {
  LOCALS;
  is_vacant;
  create(3);
#if AGAIN
  destroy(3, 2, 0);
#endif
  done++
}

init {
  d_step {
    mem[ID] = 1;
    mem[LIST] = 1;
    mem[TICKET] = 1;
    mem[INVOKER] = 8 + KNOWN * EVERYONE;
    exists[1] = 1
  };
  atomic {
#if HAS_A
    run A();
#endif
#if HAS_B
    run B();
#endif
#if !BY_A
    run D();
#endif
    run C()
  };
  d_step {
    done == 1 + HAS_A + HAS_B + !BY_A && DRAINED ->
    assert(mem[PENDING] == 0);
    assert(!is_retired[1] && !is_retired[2]); /* nothing is left that nobody comes back to */
    assert(exists[1] || (freed[1] && is_free[1]));
    assert(exists[2] || !AGAIN || (freed[2] && is_free[2]));
    assert(!is_departing[1] && !is_departing[2])
  }
}
