/* Reclamation of the lists of one multicast. lists.pml proves it; other scenarios, which prove
 * something else, have the lists 1 and 2.
 *
 *   fence, reclaim, lock_and_reclaim, is_reading   as lists.pml says
 *   is_calling                                     scans the hazards of all frames
 *
 * A scenario defines FRAMES and the addresses from 4 * FRAMES on before it includes this file,
 * which includes memory.pml. */

#ifndef LISTS_OF_ALL
#define LISTS_OF_ALL 2
#define NEWEST_LIST 2
#define NEEDS_FENCE(l) needs_fence[l]
#define IS_THIS(target) true
#define NEXT_THREAD(f) (f + 1)
bit needs_fence[3];
#endif
#define TARGET(f) (f)
#define EPOCH(f) (FRAMES + (f))
#define FRAME_LIST(f) (2 * FRAMES + (f))
#define HAZARD(f) (3 * FRAMES + (f))

#include "memory.pml"

byte fenced_epoch; /* of the newest fence; raised by read-modify-writes, read under the lock */
byte retired_at[LISTS_OF_ALL + 1];
bit is_retired[LISTS_OF_ALL + 1], is_free[LISTS_OF_ALL + 1];

inline fence(me) {
  IF(GLOBAL_EPOCH_READ_AFTER_FENCE, heavy_fence(me, unfenced);)
  load(me, GLOBAL_EPOCH, x);
#if !defined(NO_FENCE) && !defined(GLOBAL_EPOCH_READ_AFTER_FENCE)
  heavy_fence(me, unfenced);
#endif
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
     :: x == 0 -> f = NEXT_THREAD(f)
     :: x && IS_THIS(x) ->
        load(me, EPOCH(f), x);
        if
        :: x < retired_at[list] ->
           load(me, FRAME_LIST(f), x);
           d_step {
             seen = EITHER(UNKNOWN_LIST_IGNORED, x == list, (x == 0 || x == list));
             f++
           }
        :: else -> f++
        fi
     :: else -> f++
     fi;
     x = 0
  :: else -> break
  od;
  f = 0
}

/* Under the lock; the newest first. */
inline reclaim(me) {
  kept = 0;
  l = NEWEST_LIST;
  do
  :: l > 0 ->
     if
     :: is_retired[l] ->
        found = 0;
        if
        EITHER(RECLAIMED_WITHOUT_FENCE, :: false -> skip,
               :: NEEDS_FENCE(l) && retired_at[l] > fenced_epoch -> found = 1)
        :: else -> is_reading(me, l, found)
        fi;
        d_step {
          if
          :: found -> kept = 1
          :: else ->
             printf("thread %d frees list %d\n", me, l);
             is_retired[l] = 0;
             is_free[l] = 1
          fi;
          found = 0
        }
     :: else
     fi;
     l--
  :: else -> break
  od;
  if
  :: EITHER(RETIRED_EPOCH_CLEARED_TOO_EARLY, true, !kept) -> store(me, RETIRED_EPOCH, 0)
  UNLESS(RETIRED_EPOCH_CLEARED_TOO_EARLY, :: else)
  fi;
  kept = 0
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
