/* A slot that goes from one stripe to another while it is vacant, and a thread with a token.
 *
 *   stripe   under its lock: gives the slot to an occupant, ends the occupant, frees the slot, or
 *            takes the free slot
 *   trim     the page of the free slot becomes zero; the newest generation is kept beside it
 *   token    locks the stripe that the owner tells, reads the handle, the owner, and the handle
 *
 * Proved: where the token is found in the slot, the lock that is held guards the occupant: it
 * stays. No handle is given to two occupants.
 *
 * The token may be forged: of an occupant that is still to come. The lock of the slabs is held in
 * each step that changes what is free.
 *
 * Threads: two stripes, a trim, and a thread with a token of any generation.
 */

#include "when.pml"

#define GENERATIONS 3
#define NONE 2
#define VACANT(generation) (2 * (generation))
#define LIVE(generation) (2 * (generation) + 1)

bit locked[2];
byte owner;          /* a multicast of this stripe */
byte id;             /* of generation 0 at first, and vacant */
byte newest_known;   /* the floor of the slab */
byte vacant_in = 0;  /* the stripe in whose pool it is, or NONE */
bit is_free;
byte given;          /* the newest generation that an occupant had */

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
