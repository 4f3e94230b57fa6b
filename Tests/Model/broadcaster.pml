/* Names looked up without a lock, while the broadcaster is destroyed and its slot used again.
 *
 *   find                   Broadcaster+Names.swift: find
 *   add                    Broadcaster+Names.swift: make, tableWithRoom
 *   destroy, create        Broadcaster+Create.swift, by the same names
 *
 * Inhabitant 1 has table 1; table 2 replaces it when a name is added. Inhabitant 2 has table 3. Who
 * waits for look-ups looks again and again, as in the implementation.
 *
 * Threads: A looks up by handle 1, B by handle 2, D destroys inhabitant 1; C creates inhabitant 2
 * once the slot is vacant, and destroys it; G adds a name to inhabitant 1.
 *
 * Variants: TWICE (A looks up twice), INSIDE (A is inside an invocation all the time), HAS_B,
 * HAS_C, HAS_G, WRITERS_BUFFERED.
 */

#ifndef TWICE
#define TWICE 0
#endif
#ifndef INSIDE
#define INSIDE 0
#endif
#ifndef HAS_B
#define HAS_B 0
#endif
#ifndef HAS_C
#define HAS_C 0
#endif
#ifndef HAS_G
#define HAS_G 0
#endif

#define FRAMES_OF_A (1 + INSIDE)
#define FRAMES (FRAMES_OF_A + 1)
#define MULTICAST(f) (f)
#define ID FRAMES /* of the broadcaster: its handle, or 0 where it has none */
#define TABLE (ID + 1)
#define NAMES (ID + 2)
#define WORDS (ID + 3)
#define THREADS 5
#if WRITERS_BUFFERED
#define BUFFERED 5
#else
#define BUFFERED 2
#endif

#include "memory.pml"

#define OURS 2
#define AN_INVOCATION 1

bit is_free[4];
bit is_vacant, is_created;
#define OWNER(table) (table == 3 -> 2 : 1)

inline find(me, frame, handle) {
#ifdef NO_LIGHT
#if SYMMETRIC
  store(me, MULTICAST(frame), OURS);
  load(me, TABLE, table);
#else
  load(me, TABLE, table);
  store(me, MULTICAST(frame), OURS);
#endif
#else
  store(me, MULTICAST(frame), OURS);
  light(me);
#ifdef HANDLE_READ_BEFORE_TABLE
  load(me, ID, x);
#endif
  load(me, TABLE, table);
#endif
#ifdef FRAME_LEFT_TOO_EARLY
  store(me, MULTICAST(frame), 0);
#endif
  assert(!is_free[table]); /* its names are read, no matter whose they are */
  assert(!is_free[table]);
#ifndef HANDLE_READ_BEFORE_TABLE
  load(me, ID, x);
#endif
#ifdef HANDLE_NOT_READ
  x = handle;
#endif
  store(me, MULTICAST(frame), 0);
  d_step {
    if
    :: x == handle && table ->
       printf("thread %d by handle %d finds a name in table %d\n", me, handle, table);
       assert(OWNER(table) == handle) /* no name of another broadcaster */
    :: else
    fi;
    x = 0;
    table = 0
  }
}

inline add(me) {
  lock(me, NAMES);
  load(me, ID, x);
  if
  :: x == 1 ->
     store(me, TABLE, 2);
#ifdef TABLE_FREED_WHEN_REPLACED
     is_free[1] = 1;
#endif
     printf("thread %d replaces table 1 by table 2\n", me)
  :: else
  fi;
  x = 0;
  unlock(me, NAMES)
}

inline destroy(me, handle) {
  lock(me, NAMES);
  printf("thread %d destroys inhabitant %d\n", me, handle);
  load(me, TABLE, table);
#ifdef HANDLE_ENDS_AFTER_TABLE
  store(me, TABLE, 0);
  store(me, ID, 0);
#else
  store(me, ID, 0);
  store(me, TABLE, 0);
#endif
  unlock(me, NAMES);
#ifndef NO_FENCE
  heavy(me, unfenced);
#endif
#ifdef SLOT_GIVEN_BACK_BEFORE_WAIT
  is_vacant = 1;
#endif
#ifndef LOOK_UPS_NOT_WAITED_FOR
  f = 0;
  do /* while any record isInvoking */
  :: f < FRAMES ->
     load(me, MULTICAST(f), x);
     if
     :: x == 0 -> f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
     :: x == OURS -> f = 0
#ifdef LOOK_AT_OUTERMOST_FRAME_ONLY
     :: else -> f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
#else
     :: else -> f++
#endif
     fi;
     x = 0
  :: else -> break
  od;
  f = 0;
#endif
  d_step {
    printf("thread %d frees table %d\n", me, table);
    is_free[table] = 1;
    if
    :: table == 2 -> is_free[1] = 1 /* that it has replaced */
    :: else
    fi;
    table = 0
  };
  is_vacant = 1
}

#define LOCALS byte x, f, table, unfenced

proctype A() {
  LOCALS;
  byte times;
  do
  :: times <= TWICE -> find(0, INSIDE, 1); times++
  :: else -> break
  od;
  done++
}

proctype B() {
  LOCALS;
  is_created;
  find(1, FRAMES_OF_A, 2);
  done++
}

proctype D() {
  LOCALS;
  destroy(2, 1);
  done++
}

proctype C() {
  LOCALS;
  is_vacant;
  printf("thread 3 creates inhabitant 2\n");
  store(3, ID, 2);
  lock(3, NAMES);
  store(3, TABLE, 3);
  unlock(3, NAMES);
  is_created = 1;
  destroy(3, 2);
  done++
}

proctype G() {
  LOCALS;
  add(4);
  done++
}

init {
  d_step {
    mem[ID] = 1;
    mem[TABLE] = 1;
    mem[MULTICAST(0)] = INSIDE * AN_INVOCATION;
    is_free[0] = 0
  };
  atomic {
    run A();
#if HAS_B
    run B();
#endif
#if HAS_C
    run C();
#endif
#if HAS_G
    run G();
#endif
    run D()
  };
  d_step {
    done == 2 + HAS_B + HAS_C + HAS_G && DRAINED ->
    assert(is_free[1]);
    assert(is_free[3] == HAS_C)
  }
}
