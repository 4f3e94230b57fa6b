/* Freeing the lists 1 and 2 of one multicast once nobody reads them: for the scenarios where it is
 * not what is looked at, which lists.pml does, with more of them.
 *
 *   fence, reap, flush, is_reading   as in lists.pml
 *   is_calling                       Threads/Calls.swift
 *
 * Includes memory.pml; before come the words of the memory, and FRAMES. */

#include "memory.pml"

byte fenced; /* the newest ticket of which everybody is known to see what came before */
byte ticket_of[3];
bit needs_fence[3];
bit is_retired[3], is_free[3];

inline fence(me) {
  load(me, TICKET, x);
#ifndef NO_FENCE
  heavy(me, unfenced);
#endif
  d_step {
    if
    :: fenced < x -> fenced = x
    :: else
    fi;
    x = 0
  }
}

inline is_reading(me, list, seen) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, MULTICAST(f), x);
     if
     :: x ->
        load(me, EPOCH(f), x);
        if
        :: x < ticket_of[list] ->
           load(me, READS(f), x);
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

inline reap(me) {
  l = 1;
  do
  :: l <= 2 ->
     if
     :: is_retired[l] ->
        found = 0;
        if
        :: needs_fence[l] && ticket_of[l] > fenced -> found = 1
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
  if
  :: !is_retired[1] && !is_retired[2] -> store(me, PENDING, 0)
  :: else
  fi
}

inline flush(me) {
  lock(me, STRIPE);
  reap(me);
  unlock(me, STRIPE)
}

inline is_calling(me, d, seen) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, MULTICAST(f), x);
     if
     :: x -> load(me, DELEGATE(f), x); seen = (x == d)
     :: else
     fi;
     x = 0;
     f++
  :: else -> break
  od;
  f = 0
}
