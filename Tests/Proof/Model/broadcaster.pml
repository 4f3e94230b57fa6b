/* Threads look up names without a lock, while the broadcaster is destroyed and its slot is reused.
 *
 * A look-up publishes a frame whose target is the broadcaster, executes the light fence, reads the
 * table of names, searches it, and then compares the handle of the slot with its own. Destroying a
 * broadcaster clears the handle and the table under the lock of names, executes the heavy fence,
 * and waits until no frame has the broadcaster as its target. Only then are the tables and the slot
 * freed. A table that has been replaced by a larger one is freed together with the larger table.
 *
 *   find       a look-up
 *   add        replaces the table by a larger one
 *   destroy    destroys the broadcaster; waits for look-ups in a loop, as the implementation does
 *
 * The model proves that no table is read after it has been freed, and that no look-up with the
 * handle of one broadcaster finds a name of another broadcaster.
 *
 * Broadcasters 1 and 2 use the same slot, one after the other. Broadcaster 1 has table 1, which
 * `add` replaces with table 2. Broadcaster 2 has table 3.
 *
 * Threads: A looks up with handle 1, B with handle 2. D destroys broadcaster 1. C creates
 * broadcaster 2 as soon as the slot is vacant, and destroys it. G adds a name to broadcaster 1.
 *
 * Variants: A_LOOKS_UP_TWICE=0, IN_INVOCATION=0 (the look-ups of A are inside an invocation),
 * HAS_B=0, HAS_C=0, HAS_G=0, WRITERS_BUFFERED.
 */

#define FRAMES_OF_A (1 + IN_INVOCATION)
#define FRAMES (FRAMES_OF_A + 1)
#define TARGET(f) (f)
#define HANDLE FRAMES /* the handle of the broadcaster in the slot; 0: vacant */
#define TABLE (HANDLE + 1)
#define NAMES_LOCK (HANDLE + 2)
#define WORDS (HANDLE + 3)
#define THREADS 5
#define BUFFERED EITHER(WRITERS_BUFFERED, 5, 2)

#include "memory.pml"

#define LOOK_UP 2
#define INVOCATION 1

bit is_free[4];
bit is_vacant, is_created;
#define OWNER(table) (table == 3 -> 2 : 1)

inline find(me, frame, handle) {
  EITHER(NO_LIGHT_FENCE, EITHER(SYMMETRIC, store(me, TARGET(frame), LOOK_UP);
                                           load(me, TABLE, table),
                                           load(me, TABLE, table);
                                           store(me, TARGET(frame), LOOK_UP)),
                         store(me, TARGET(frame), LOOK_UP);
                         light_fence(me);
                         IF(HANDLE_READ_BEFORE_TABLE, load(me, HANDLE, x);)
                         load(me, TABLE, table));
  IF(FRAME_CLEARED_TOO_EARLY, store(me, TARGET(frame), 0);)
  assert(!is_free[table]); /* the table is read, no matter which broadcaster owns it */
  assert(!is_free[table]);
  UNLESS(HANDLE_READ_BEFORE_TABLE, load(me, HANDLE, x);)
  IF(HANDLE_NOT_READ, x = handle;)
  store(me, TARGET(frame), 0);
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
  lock(me, NAMES_LOCK);
  load(me, HANDLE, x);
  if
  :: x == 1 ->
     store(me, TABLE, 2);
     IF(TABLE_FREED_WHEN_REPLACED, is_free[1] = 1;)
     printf("thread %d replaces table 1 by table 2\n", me)
  :: else
  fi;
  x = 0;
  unlock(me, NAMES_LOCK)
}

inline destroy(me, handle) {
  lock(me, NAMES_LOCK);
  printf("thread %d destroys occupant %d\n", me, handle);
  load(me, TABLE, table);
  EITHER(HANDLE_CLEARED_AFTER_TABLE, store(me, TABLE, 0);
                                     store(me, HANDLE, 0),
                                     store(me, HANDLE, 0);
                                     store(me, TABLE, 0));
  unlock(me, NAMES_LOCK);
  UNLESS(NO_FENCE, heavy_fence(me, unfenced);)
  IF(SLOT_RECLAIMED_BEFORE_WAIT, is_vacant = 1;)
#ifndef LOOK_UPS_NOT_WAITED_FOR
  f = 0;
  do /* until no frame has this target */
  :: f < FRAMES ->
     load(me, TARGET(f), x);
     if
     :: x == 0 -> f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
     :: x == LOOK_UP -> f = 0
     EITHER(SCAN_OUTERMOST_FRAME_ONLY, :: else -> f = (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES),
                                       :: else -> f++)
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
    :: table == 2 -> is_free[1] = 1 /* table 2 has replaced table 1 */
    :: else
    fi;
    table = 0
  };
  is_vacant = 1
}

#define LOCALS byte x, f, table, unfenced

THREAD(A, LOCALS,
       byte times;
       do
       :: times <= A_LOOKS_UP_TWICE -> find(0, IN_INVOCATION, 1); times++
       :: else -> break
       od)

THREAD(B, LOCALS,
       is_created;
       find(1, FRAMES_OF_A, 2))

THREAD(D, LOCALS, destroy(2, 1))

proctype C() {
  LOCALS;
  is_vacant;
  printf("thread 3 creates occupant 2\n");
  store(3, HANDLE, 2);
  lock(3, NAMES_LOCK);
  store(3, TABLE, 3);
  unlock(3, NAMES_LOCK);
  is_created = 1;
  destroy(3, 2);
  done++
}

THREAD(G, LOCALS, add(4))

init {
  d_step {
    mem[HANDLE] = 1;
    mem[TABLE] = 1;
    mem[TARGET(0)] = IN_INVOCATION * INVOCATION;
    is_free[0] = 0
  };
  atomic {
    run A();
    IF(HAS_B, run B();)
    IF(HAS_C, run C();)
    IF(HAS_G, run G();)
    run D()
  };
  d_step {
    done == 2 + HAS_B + HAS_C + HAS_G && ALL_DRAINED ->
    assert(is_free[1]);
    assert(is_free[3] == HAS_C)
  }
}
