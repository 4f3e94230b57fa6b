/* Reclamation of the lists 1 and 2 of one multicast: for scenarios that prove something else.
 * lists.pml proves the reclamation itself, with more lists.
 *
 *   fence, reclaim, lock_and_reclaim, is_reading   as in lists.pml
 *   is_calling                                     scans the hazards of all frames
 *
 * A scenario defines FRAMES and the addresses from 4 * FRAMES on before it includes this file, which
 * includes memory.pml. */

#define TARGET(f) (f)
#define EPOCH(f) (FRAMES + (f))
#define FRAME_LIST(f) (2 * FRAMES + (f))
#define HAZARD(f) (3 * FRAMES + (f))

#include "memory.pml"

byte fenced_epoch; /* all threads see what was changed before this epoch */
byte retired_at[3];
bit needs_fence[3];
bit is_retired[3], is_free[3];

inline fence(me) {
  load(me, GLOBAL_EPOCH, x);
  UNLESS(NO_FENCE, heavy_fence(me, unfenced);)
  d_step {
    when(fenced_epoch < x, fenced_epoch = x);
    x = 0
  }
}

inline is_reading(me, list, seen) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, TARGET(f), x);
     if
     :: x ->
        load(me, EPOCH(f), x);
        if
        :: x < retired_at[list] ->
           load(me, FRAME_LIST(f), x);
           seen = (x == 0 || x == list)
        :: else
        fi
     :: else
     fi;
     x = 0;
     f++
  :: else -> break
  od;
  f = 0
}

inline reclaim(me) {
  l = 1;
  do
  :: l <= 2 ->
     if
     :: is_retired[l] ->
        found = 0;
        if
        :: needs_fence[l] && retired_at[l] > fenced_epoch -> found = 1
        :: else -> is_reading(me, l, found)
        fi;
        d_step {
          if
          :: !found ->
             printf("thread %d frees list %d\n", me, l);
             is_retired[l] = 0;
             is_free[l] = 1
          :: else
          fi;
          found = 0
        }
     :: else
     fi;
     l++
  :: else -> break
  od;
  l = 0;
  when(!is_retired[1] && !is_retired[2], store(me, RETIRED_EPOCH, 0))
}

inline lock_and_reclaim(me) {
  lock(me, STRIPE_LOCK);
  reclaim(me);
  unlock(me, STRIPE_LOCK)
}

inline is_calling(me, d, seen) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, TARGET(f), x);
     when(x, load(me, HAZARD(f), x); seen = (x == d));
     x = 0;
     f++
  :: else -> break
  od;
  f = 0
}
