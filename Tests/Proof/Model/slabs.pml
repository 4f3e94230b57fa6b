/* A vacant slot moves from one stripe to another while a thread is looking up a token in it.
 *
 *   stripe   under its lock: puts an object into the slot, ends the object, gives the vacant slot
 *            back to the slab, or takes the slot from the slab
 *   trim     zeroes the page of the free slot; the newest generation is stored elsewhere
 *   token    locks the stripe of the slot's owner, then reads the handle, the owner, and the handle
 *            again
 *
 * The model proves that a thread that finds its token in the slot is holding the lock that guards
 * the object, so that the object stays in the slot, and that no two objects receive the same
 * handle.
 *
 * The token may be forged, that is, belong to an object that does not exist yet. Every step that
 * changes whether the slot is free happens under the lock of the slabs.
 *
 * Threads: two stripes, one trim, and one thread with a token of any generation.
 */

#include "when.pml"

#define GENERATIONS 3
#define NONE 2
#define VACANT(generation) (2 * (generation))
#define LIVE(generation) (2 * (generation) + 1)

bit locked[2];
byte owner;          /* the stripe whose multicast owns the slot */
byte id;             /* initially vacant, with generation 0 */
byte newest_known;   /* the newest generation, stored in the slab */
byte vacant_in = 0;  /* the stripe that has the vacant slot in its pool, or NONE */
bit is_free;
byte given;          /* the newest generation of any object so far */

inline lock(s) { atomic { !locked[s] -> locked[s] = 1 } }
inline unlock(s) { locked[s] = 0 }

proctype Stripe(bit s) {
  do
  :: lock(s);
     if
     :: d_step { vacant_in == s && id / 2 < GENERATIONS -> vacant_in = NONE };
        owner = s;
        d_step {
          id = LIVE(id / 2 + 1);
          assert(id / 2 > given);
          given = id / 2
        }
     :: d_step { owner == s && id % 2 -> id = VACANT(id / 2); vacant_in = s }
     :: d_step {
          vacant_in == s ->
          vacant_in = NONE;
          UNLESS(FLOOR_FORGOTTEN, newest_known = id / 2;)
          is_free = 1
        }
     :: d_step { is_free -> is_free = 0; id = VACANT(newest_known); vacant_in = s }
     :: skip
     fi;
     unlock(s)
  :: break
  od
}

proctype Trim() {
  do
  :: d_step { is_free -> id = 0; owner = 0 }
  :: break
  od
}

proctype Token() {
  byte token, s, found;
  select (token : 1 .. GENERATIONS);
  token = LIVE(token);
  do
  :: s = owner;
     lock(s);
#ifdef OWNER_READ_FIRST
     if
     :: owner != s -> unlock(s)
     :: else -> found = id; break
     fi
#else
     found = id;
#ifdef OWNER_NOT_COMPARED
     break
#else
     if
     :: owner != s -> unlock(s)
     :: else ->
        EITHER(HANDLE_READ_ONCE, break,
                                 if
                                 :: id != found -> unlock(s)
                                 :: else -> break
                                 fi)
     fi
#endif
#endif
  od;
  if
  :: found == token ->
     assert(id == token);
     assert(owner == s);
     assert(id == token)
  :: else
  fi;
  unlock(s)
}

init {
  atomic {
    run Stripe(0);
    run Stripe(1);
    run Trim();
    run Token()
  }
}
