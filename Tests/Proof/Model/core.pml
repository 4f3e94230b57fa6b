/* The core of the protocol: invocations, removals, and the lists that they share. Five scenarios
 * include this file.
 *
 * Invocations
 *   enter              publishes the frame with the list, is admitted, reads the list again and
 *                      compares the handle
 *   admit              registers this thread as an invoker unless it is registered; reads the mode
 *   visit              the loop over the list: sets the hazard, compares the id, calls
 *   leave              withdraws the frame, and reclaims lists if its own was replaced
 *   call_did_return    wakes the removers that sleep; completes a deferred removal
 *
 * Writers
 *   find_need          under the lock: finds out which fence the change needs, if any
 *   fence              executes a heavy fence, and counts its beginning and its end
 *   remove             retires the registration, fences, completes the removal
 *   complete           while a frame has the token as its hazard: sleeps, or defers the release
 *   put_back           makes the slot vacant; the next registration has another generation
 *   add                takes a vacant slot, and appends it to the list or replaces the list
 *   replace_list       copies the live entries, publishes the new list and retires the old one
 *   reclaim            frees the retired lists that no frame names
 *
 * A token consists of a generation and the number of a slot. The id of a slot is its token plus a
 * kind, which is 0 for a live and plain registration. Lists are numbered from 1. Lists and slots
 * are reused as soon as they are free.
 *
 * Before it includes this file, a scenario defines:
 *   FRAMES                   the number of frames
 *   NEXT_THREAD(f)           the first frame of the thread that follows the owner of frame f
 *   SLOTS, LISTS             the numbers of slots and lists; if LISTS is 1, the list never changes
 *   THREADS, BUFFERED        see memory.pml
 */

#define FRAME_LISTS FRAMES
#define HAZARDS (2 * FRAMES)
#define TARGET(f) (f)
#define FRAME_LIST(f) (FRAME_LISTS + (f))
#define HAZARD(f) (HAZARDS + (f))
#define ID(t) (3 * FRAMES - 1 + SLOT_OF(t))
#define FUNCTION(t) (3 * FRAMES + SLOTS - 1 + SLOT_OF(t))
#define HANDLE (3 * FRAMES + 2 * SLOTS) /* of the multicast in the slot; 0: none */
#define LIST (HANDLE + 1)
#define WORD (HANDLE + 2) /* of the invokers: part of the handle, a number, FENCED */
#define STRIPE_LOCK (HANDLE + 3)
#define WAITS_LOCK (HANDLE + 4)
#define ENTRY(l, i) (HANDLE + 5 + ((l) - 1) * PLACES + (i))
#define PLACES 2
#define LATE_WAITERS (HANDLE + 5 + LISTS * PLACES)
#define WORDS (LATE_WAITERS + 1)

#include "memory.pml"

/* Without lists, a critical section changes only one word that is read without the lock, so the
 * section is modelled as one step. */
#if HAS_LISTS
#define SECTION
#else
#define SECTION atomic
#endif

#define TOKEN(generation, slot) ((generation) * 16 + (slot) * 4)
#define SLOT_OF(t) (((t) / 4) % 4)
#define SPECIAL 1
#define RETIRED 2
#define VACANT 3
#define IS_LIVE(id, t) ((id) == (t) || (id) == (t) + SPECIAL)
#define TOKENS 8 /* two generations */

#define UNTAGGED 1 /* targets of frames: this multicast; light fences */
#define TAGGED 2   /* this multicast; full fences */
#define ELSEWHERE 3 /* another multicast */

#define WORD_OF(h) ((h) * 16)
#define NUMBER_IN(word) ((word) % 8) /* 0, the number of the only invoker, or SEVERAL */
#define NUMBER(me) ((me) + 1)
#define SEVERAL 7
#define FENCED 8

mtype = {NONE, FULL, HEAVY, PRIOR};

byte fences_begun, fences_done;
/* Under the stripe's lock. */
byte stamp[LISTS + 1];
bit is_retired[LISTS + 1], needs_fence[LISTS + 1], is_free[LISTS + 1];
bit is_vacant[SLOTS + 1];
byte unsettled_since;
bit is_settled;
/* Guarded by WAITS_LOCK: for each slot, the token whose release is deferred. */
byte deferred[SLOTS + 1];
/* Used by the assertions only. */
byte readers[LISTS + 1]; /* admitted invocations that read the list */
bit released[TOKENS];    /* the delegate's release has run */
bit returned_ok[TOKENS]; /* a waiting removal has returned MULTICAST_OK */
byte owner_of[TOKENS];   /* the handle of its multicast */

/* An invocation. */
typedef Invocation {
  byte handle, list, place, token, last;
  bit is_published, is_valid, is_fenced, is_reading
}

#define LOCALS \
  byte x, y, f, l, t, old, new, retired, unfenced, fence_number, depth; \
  mtype need = NONE; \
  bit found, own; \
  Invocation at IF(NESTED, , inner)

/* ---- Frames --------------------------------------------------------------------------------- */

/* Sets `seen` if the field of some frame contains the value. A list counts only in a frame of this
 * multicast. Reads the frames of each thread, from the outermost frame to the first unused one. */
inline scan(me, field, value, seen) {
  seen = 0;
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, TARGET(f), x);
     if
     :: x ->
        y = x;
        load(me, field + f, x);
        d_step {
          seen = (x == value) EITHER(TARGET_NOT_COMPARED, ,
                                     && (field == HAZARDS || y != ELSEWHERE));
          y = 0;
          EITHER(OUTERMOST_FRAMES_ONLY, f = NEXT_THREAD(f), f++)
        }
     :: else -> f = NEXT_THREAD(f)
     fi
  :: else -> break
  od;
  f = 0;
  x = 0
}

/* Sets `seen` if another thread has an untagged frame, and `is_own` if this thread has one. */
inline scan_untagged(me, seen, is_own) {
  f = 0;
  do
  :: f < FRAMES && !seen ->
     load(me, TARGET(f), x);
     when(x == UNTAGGED, d_step { is_own = is_own || f == me; seen = (f != me) });
     f++
  :: else -> break
  od;
  f = 0;
  x = 0
}

/* ---- Fences --------------------------------------------------------------------------------- */

inline count_fence(me) {
  d_step { BUFFER_IS_EMPTY(me) -> fences_begun++; fence_number = fences_begun }
}

inline fence(me) {
  printf("thread %d makes a heavy fence\n", me);
  IF(HAS_LISTS, UNLESS(FENCE_COUNTED_AT_END, count_fence(me);))
  UNLESS(NO_HEAVY_FENCE, heavy_fence(me, unfenced);)
  IF(HAS_LISTS, IF(FENCE_COUNTED_AT_END, count_fence(me);)
                d_step {
                  EITHER(FENCES_DONE_COUNTED, fences_done++,
                         EITHER(FENCES_DONE_LOWERED, fences_done = fence_number,
                                when(fences_done < fence_number, fences_done = fence_number)));
                  fence_number = 0
                };)
  skip
}

/* Under the lock: sets `need` to the fence that the change needs before it scans the frames. */
inline find_need(me) {
#if !HAS_LISTS
  need = HEAVY
#else
  load(me, WORD, x);
  if
  :: NUMBER_IN(x) == 0 || NUMBER_IN(x) == NUMBER(me) -> need = NONE
  :: else ->
     if
     :: !(x & FENCED) -> need = HEAVY
     :: x & FENCED && is_settled -> need = FULL
     :: x & FENCED && !is_settled ->
        found = EITHER(SETTLED_WITHOUT_FENCE, 0,
                       EITHER(SETTLED_BY_FENCE_BEFORE, fences_done < unsettled_since,
                              fences_done <= unsettled_since));
        UNLESS(UNTAGGED_FRAMES_FORGOTTEN, when(!found, scan_untagged(me, found, own));)
        d_step {
          need = (found -> HEAVY : FULL);
          is_settled = EITHER(OWN_FRAME_FORGOTTEN, !found, (!found && !own));
          found = 0;
          own = 0
        }
     fi
  fi;
  x = 0
#endif
}

#define IS_QUIET (need == NONE EITHER(OWN_FRAMES_FORGOTTEN, , && depth == 0))

/* ---- Lists ---------------------------------------------------------------------------------- */

inline free_list(me, list) {
  d_step {
    printf("thread %d frees list %d\n", me, list);
    assert(!readers[list]);
    is_retired[list] = 0;
    stamp[list] = 0;
    needs_fence[list] = 0;
    is_free[list] = 1
  }
}

#define MAY_BE_FREE(l) (is_retired[l] && (!needs_fence[l] || FENCE_WAS_MADE(l)))
#define FENCE_WAS_MADE(l) EITHER(RECLAIMED_WITHOUT_FENCE, true, \
                                 fences_done EITHER(FENCE_BEFORE_COUNTS, >=, >) stamp[l])

/* Under the lock: frees the list `only`, or all retired lists if `only` is 0. */
inline reclaim(me, only) {
  l = 0;
  do
  :: l < LISTS ->
     d_step {
       l++;
       do
       :: l < LISTS && (!MAY_BE_FREE(l) || only && l != only) -> l++
       :: else -> break
       od
     };
     if
     :: MAY_BE_FREE(l) && (!(only) || l == only) ->
        scan(me, FRAME_LISTS, l, found);
        when(!found, free_list(me, l));
        found = 0
     :: else
     fi
  :: else -> break
  od;
  l = 0
}

inline lock_and_reclaim(me, only) {
  lock(me, STRIPE_LOCK);
  reclaim(me, only);
  unlock(me, STRIPE_LOCK)
}

/* Under the lock, after the list `old` has been replaced and a full fence has been executed. The
 * full fence is needed because a heavy fence that begins now may pass other threads before it
 * passes this one. Those threads must already find the new list. */
inline retire_list(me) {
  d_step {
    is_retired[old] = 1;
    stamp[old] = fences_begun;
    needs_fence[old] = (need == HEAVY);
    retired = old
  }
}

/* Under the lock: replaces `old` by `new`, which is 0 if the multicast is being destroyed. */
inline set_list(me) {
  IF(STAMPED_BEFORE_STORE, when(old && !IS_QUIET, retire_list(me));)
  printf("thread %d replaces list %d by %d\n", me, old, new);
  store(me, LIST, new);
  if
  :: old && IS_QUIET -> free_list(me, old)
  :: old && !IS_QUIET ->
     UNLESS(STAMPED_WITHOUT_FENCE, full_fence(me);)
     UNLESS(STAMPED_BEFORE_STORE, retire_list(me);)
     skip
  :: else
  fi;
  old = 0;
  new = 0
}

/* Copies the live entries of `old` to `new`, which no other thread can read yet. Used only inside a
 * d_step. */
inline copy_live(me) {
  l = 0;
  f = 0;
  do
  :: old && l < PLACES ->
     load_here(me, ENTRY(old, l), y);
     when(y, load_here(me, ID(y), x);
             when(IS_LIVE(x, y), mem[ENTRY(new, f)] = y; f++));
     l++
  :: else -> break
  od;
  x = 0;
  y = 0;
  l = 0
}

/* Under the lock: replaces the list with a copy that also contains the registration `added`, unless
 * `added` is 0. If no thread is invoking the multicast, the list may be changed in place
 * instead. */
inline replace_list(me, added, in_place) {
  load(me, LIST, old);
  d_step {
    new = 1;
    do
    :: in_place && IS_QUIET -> new = old; assert(!readers[old]); break
    :: !(in_place && IS_QUIET) && !is_free[new] -> new++
    :: !(in_place && IS_QUIET) && is_free[new] -> is_free[new] = 0; break
    od;
    copy_live(me);
    for (l : f .. PLACES - 1) { mem[ENTRY(new, l)] = (l == f -> added : 0) };
    l = 0;
    f = 0
  };
  if
  :: new == old -> old = 0; new = 0
  :: else -> set_list(me)
  fi
}

inline fence_and_reclaim(me) {
  fence(me);
  UNLESS(NOT_RECLAIMED_BY_WRITER, when(retired, lock_and_reclaim(me, retired)))
}

/* The last steps of a change that does not remove a registration. */
inline fence_and_unlock(me) {
  if
  :: retired && need == HEAVY ->
     unlock(me, STRIPE_LOCK);
     fence_and_reclaim(me)
  :: retired && need != HEAVY ->
     UNLESS(NO_FULL_FENCE_OF_WRITER, when(need == FULL, full_fence(me));)
     reclaim(me, retired);
     unlock(me, STRIPE_LOCK)
  :: else -> unlock(me, STRIPE_LOCK)
  fi;
  retired = 0;
  need = NONE
}

/* ---- Registrations -------------------------------------------------------------------------- */

/* Under the lock. */
inline put_back(me, d) {
  store(me, ID(d), d + VACANT);
  d_step {
    assert(!is_vacant[SLOT_OF(d)]); /* exactly once */
    is_vacant[SLOT_OF(d)] = 1
  }
}

inline release(me, d) {
  d_step {
    printf("thread %d releases delegate %d\n", me, d);
    assert(!released[d / 4]); /* exactly once */
    released[d / 4] = 1
  }
}

inline put_back_and_release(me, d) {
  atomic { lock(me, STRIPE_LOCK); put_back(me, d); unlock(me, STRIPE_LOCK) };
  release(me, d)
}

/* Under the lock: takes a vacant slot for `t`. */
inline take(me) {
  d_step {
    t = 4;
    do
    :: !is_vacant[SLOT_OF(t)] -> t = t + 4
    :: else -> break
    od;
    is_vacant[SLOT_OF(t)] = 0;
    load_here(me, ID(t), x);
    t = x - VACANT + TOKEN(1, 0);
    load_here(me, HANDLE, x);
    owner_of[t / 4] = x;
    x = 0
  };
  store(me, FUNCTION(t), t);
  store(me, ID(t), t)
}

/* Begins under the lock and releases it. */
inline add_locked(me, grows) {
  find_need(me);
  take(me);
  printf("thread %d adds delegate %d\n", me, t);
  load(me, LIST, l);
  if
  :: l && !(grows) ->
     load(me, ENTRY(l, 0), x);
     store(me, ENTRY(l, (x -> 1 : 0)), t);
     x = 0;
     l = 0
  :: else -> l = 0; replace_list(me, t, false)
  fi;
  t = 0;
  fence_and_unlock(me)
}

inline add(me, grows) {
  lock(me, STRIPE_LOCK);
  add_locked(me, grows)
}

inline complete(me, d, waits) {
  scan(me, HAZARDS, d, found);
  if
  :: !found -> put_back_and_release(me, d)
  :: else ->
     lock(me, WAITS_LOCK);
     do
     :: scan(me, HAZARDS, d, found);
        if
        :: !found -> unlock(me, WAITS_LOCK); put_back_and_release(me, d); break
        :: found && waits ->
           IF(SCAN_BEFORE_LOCK, unlock(me, WAITS_LOCK);
                                lock(me, WAITS_LOCK);)
           found = 0;
           sleep(me, WAITS_LOCK)
           IF(NO_SCAN_AFTER_WAKE, ;
                                  unlock(me, WAITS_LOCK);
                                  put_back_and_release(me, d);
                                  break)
        :: found && !waits ->
           IF(DEFER_AFTER_UNLOCK, unlock(me, WAITS_LOCK);
                                  lock(me, WAITS_LOCK);)
           deferred[SLOT_OF(d)] = d;
           unlock(me, WAITS_LOCK);
           break
        fi
     od
  fi;
  found = 0
}

/* Waits for a registration that another thread has retired. That thread may not yet have executed
 * its fence. */
inline wait_for_prior(me, d) {
  UNLESS(LATE_WAITER_NOT_COUNTED,
         d_step { BUFFER_IS_EMPTY(me) -> mem[LATE_WAITERS]++ };)
  UNLESS(WAIT_FOR_PRIOR_WITHOUT_FENCE, fence(me);)
  scan(me, HAZARDS, d, found);
  if
  :: found ->
     lock(me, WAITS_LOCK);
     do
     :: scan(me, HAZARDS, d, found);
        if
        :: found -> found = 0; sleep(me, WAITS_LOCK)
        :: else -> break
        fi
     od;
     unlock(me, WAITS_LOCK)
  :: else
  fi
  UNLESS(LATE_WAITER_NOT_COUNTED, ;
         d_step { BUFFER_IS_EMPTY(me) -> mem[LATE_WAITERS]-- })
}

/* If `waits` is set, waits until no call of the delegate is running; otherwise the last call runs
 * the release. `compacts` is 1 to replace the list, and 2 to change the list in place. */
inline remove(me, d, waits, compacts) {
  SECTION {
    IF(NEED_FOUND_BEFORE_LOCK, find_need(me);)
    lock(me, STRIPE_LOCK);
    load(me, ID(d), x);
    if
    :: IS_LIVE(x, d) ->
       x = 0;
       printf("thread %d removes delegate %d\n", me, d);
       UNLESS(NEED_FOUND_BEFORE_LOCK, find_need(me);)
       UNLESS(RETIRED_AFTER_FENCE, store(me, ID(d), d + RETIRED);)
       IF(HAS_LISTS, when(compacts, replace_list(me, 0, (compacts == 2)));)
       skip
    :: else -> x = 0; need = PRIOR
    fi;
    when(need == HEAVY || need == PRIOR, unlock(me, STRIPE_LOCK))
  };
  if
  :: need == HEAVY ->
     fence_and_reclaim(me);
     IF(RETIRED_AFTER_FENCE, store(me, ID(d), d + RETIRED);)
     complete(me, d, waits)
  :: need == PRIOR ->
     when(depth == 0, wait_for_prior(me, d)) /* inside a call it is PENDING: see cycles.pml */
  :: else ->
     UNLESS(NO_FULL_FENCE_OF_WRITER, when(need == FULL, full_fence(me));)
     when(retired, reclaim(me, retired));
     UNLESS(HAZARDS_NOT_READ_UNDER_LOCK, when(!IS_QUIET, scan(me, HAZARDS, d, found));)
     if
     :: !found -> put_back(me, d); unlock(me, STRIPE_LOCK); release(me, d)
     :: else -> found = 0; unlock(me, STRIPE_LOCK); complete(me, d, waits)
     fi
  fi;
  d_step {
    retired = 0;
    need = NONE;
    when(waits, returned_ok[d / 4] = 1)
  }
}

/* ---- Invokers ------------------------------------------------------------------------------- */

/* Sets `found` if the handle is current, and then registers the thread as an invoker. */
inline add_invoker(me, h) {
  UNLESS(REGISTERED_WITHOUT_LOCK, lock(me, STRIPE_LOCK);)
  load(me, HANDLE, x);
  found = (x == h);
  if
  :: found ->
     load(me, WORD, x);
     if
     :: NUMBER_IN(x) != NUMBER(me) ->
        f = (NUMBER_IN(x) -> EITHER(SECOND_REPLACES_FIRST, NUMBER(me), SEVERAL) : NUMBER(me));
        store(me, WORD, WORD_OF(h) + (x & FENCED) + f);
        f = 0
     :: else
     fi
  :: else
  fi;
  x = 0;
  UNLESS(REGISTERED_WITHOUT_LOCK, unlock(me, STRIPE_LOCK))
}

/* Registers the first invoker without the lock, using a locked instruction, which is a full fence.
 * A writer that takes the lock later finds the invoker. */
inline become_first(me, h, inv) {
  d_step {
    BUFFER_IS_EMPTY(me) ->
    found = (mem[WORD] == WORD_OF(h));
    when(found, mem[WORD] = WORD_OF(h) + NUMBER(me))
  };
  UNLESS(LOCK_NOT_LOOKED_AT, when(found, load(me, STRIPE_LOCK, x); found = !x; x = 0);)
  if
  :: found -> IF(NOT_READ_AGAIN, inv.is_valid = 1;) skip
  :: else -> add_invoker(me, h)
  fi
}

#if !defined(FIRST)
#define FIRST 0 /* threads that may register without the lock, as bits: 1 is thread 0 */
#endif

/* Test the word that was read: may any thread invoke with this handle, or is this thread the single
 * invoker? */
#define IS_OPEN(word, h) EITHER(RANGE_NOT_COMPARED, ((word) - WORD_OF(h) + 256) % 256 >= SEVERAL, \
                                (word) - (word) % 16 == WORD_OF(h) && NUMBER_IN(word) == SEVERAL)
#define IS_SINGLE(word, h, me) ((word) % 16 % 8 == NUMBER(me) && (word) - (word) % 16 == WORD_OF(h))

inline admit(me, h, inv) {
  do
  :: !inv.is_valid ->
     load(me, WORD, x);
     if
     EITHER(NOT_REGISTERED, :: true ->, :: IS_OPEN(x, h) || IS_SINGLE(x, h, me) ->)
        d_step { inv.is_valid = 1; inv.is_fenced = ((x & FENCED) != 0); x = 0 }
     :: else ->
        if
        :: x == WORD_OF(h) && FIRST & (1 << me) -> x = 0; become_first(me, h, inv)
        :: else -> x = 0; add_invoker(me, h)
        fi;
        if
        :: !found -> break
        :: else -> found = 0
        fi
     fi
  :: else -> break
  od
}

/* ---- Invocations ---------------------------------------------------------------------------- */

inline mode_fence(me, inv) {
  if
  :: inv.is_fenced -> full_fence(me)
  :: else -> light_fence(me)
  fi
}

inline store_fence_load(me, inv, address, value, from, result) {
  store(me, address, value);
  mode_fence(me, inv);
  load(me, from, result)
}

/* In a mutation without the light fence, the compiler exchanges the store and the load. */
inline store_load(me, inv, address, value, from, result) {
  if
  :: EITHER(SYMMETRIC, true, inv.is_fenced) -> store(me, address, value); load(me, from, result)
  :: else -> load(me, from, result); store(me, address, value)
  fi
}

#define use(inv) assert(!is_free[inv.list])

inline call_did_return(me, d) {
  lock(me, WAITS_LOCK);
  UNLESS(NO_WAKE_IN_CALL_DID_RETURN, d_step { wake_all() };)
  if
  :: deferred[SLOT_OF(d)] == d ->
     EITHER(CALL_DID_RETURN_WITHOUT_SCAN, found = 0, scan(me, HAZARDS, d, found));
     found = !found;
     when(found, deferred[SLOT_OF(d)] = 0)
  :: else
  fi;
  unlock(me, WAITS_LOCK);
  when(found, found = 0; put_back_and_release(me, d))
}

inline enter(me, frame, h, inv) {
#if !HAS_LISTS
  store(me, TARGET(frame), UNTAGGED);
  d_step { inv.handle = h; inv.list = 1; inv.is_valid = 1; depth++ };
#else
  IF(HANDLE_COMPARED_FIRST, load(me, HANDLE, x);
                            own = (x == h);)
  d_step { load_here(me, LIST, inv.list); inv.handle = h };
  IF(ADMITTED_BEFORE_FRAME, admit(me, h, inv);)
  if
  :: inv.list ->
     store(me, FRAME_LIST(frame), inv.list);
     store(me, TARGET(frame), UNTAGGED);
     light_fence(me);
     d_step { depth++; inv.is_published = 1 }
  :: else
  fi;
  UNLESS(ADMITTED_BEFORE_FRAME, UNLESS(ADMITTED_AFTER_LIST, admit(me, h, inv);))
  if
  :: inv.list && inv.is_fenced ->
     store(me, TARGET(frame), TAGGED);
     UNLESS(NO_FULL_FENCE_OF_FRAME, full_fence(me))
  :: else
  fi;
  do
  :: EITHER(LIST_NOT_READ_AGAIN, false &&,) inv.list ->
     d_step {
       load_here(me, LIST, x);
       inv.is_reading = (x && x == inv.list && inv.is_valid && mem[HANDLE] == h);
       readers[x] = readers[x] + inv.is_reading
     };
     if
     :: x == inv.list -> x = 0; break
     :: else ->
        d_step { old = inv.list; inv.list = x; x = 0 };
        UNLESS(LIST_NOT_PUBLISHED_AGAIN, store(me, FRAME_LIST(frame), inv.list);)
        UNLESS(NO_FENCE_OF_LIST, mode_fence(me, inv);)
        UNLESS(DIFFERENCE_FORGOTTEN, lock_and_reclaim(me, old);) /* not yet freed by its writer */
        old = 0 IF(ANOTHER_LIST_NOT_READ_AGAIN, ; break)
     fi
  :: else -> break
  od;
  IF(ADMITTED_AFTER_LIST, admit(me, h, inv);)
  EITHER(HANDLE_COMPARED_FIRST, x = (own -> h : 0); own = 0, load(me, HANDLE, x));
  d_step {
    EITHER(HANDLE_NOT_COMPARED, skip, when(x != h, inv.is_valid = 0));
    x = 0
  }
#endif
}

inline leave(me, frame, inv) {
  d_step {
    when(inv.is_reading, readers[inv.list]--);
    inv.is_reading = 0
  };
#if !HAS_LISTS
  store(me, TARGET(frame), 0);
  depth--;
#else
  if
  :: inv.is_published ->
     inv.is_fenced = inv.is_fenced EITHER(REFUSED_WITHOUT_FULL_FENCE, , || !inv.is_valid);
     EITHER(NO_FENCE_AT_END, store_load, store_fence_load)(me, inv, TARGET(frame), 0, LIST, x);
     IF(LIST_CLEARED_FIRST, inv.list = x;)
     depth--;
     if
     :: x != inv.list ->
        x = 0;
        lock_and_reclaim(me, inv.list)
     :: else -> x = 0
     fi
  :: else
  fi;
#endif
  d_step {
    inv.handle = 0;
    inv.list = 0;
    inv.is_published = 0;
    inv.is_valid = 0;
    inv.is_fenced = 0
  }
}

inline check_call(me, inv) {
  load_here(me, FUNCTION(inv.token), x);
  assert(x == inv.token);               /* the function belongs to this registration */
  assert(!returned_ok[inv.token / 4]);  /* no call after a waiting removal has returned OK */
  assert(!released[inv.token / 4]);     /* no call with a released context */
  assert(owner_of[inv.token / 4] == inv.handle); /* no call for another multicast */
  x = 0
}

/* In a fenced invocation, one full fence serves both as the fence of the next hazard and as the
 * fence after the call of `last`. `call_did_return` may run functions of the program. This thread
 * clears its hazard before that, because a removal could otherwise wait for this thread. */
inline look_at_last(me, frame, inv) {
  load(me, ID(inv.last), y);
  if
  :: !IS_LIVE(y, inv.last) ->
     y = 0;
     UNLESS(NEXT_HAZARD_KEPT, store(me, HAZARD(frame), 0);)
     load(me, HAZARD(frame), x);
     assert(x == 0); /* no hazard during the release */
     call_did_return(me, inv.last);
     store(me, HAZARD(frame), inv.token);
     UNLESS(NO_FULL_FENCE_OF_NEXT_HAZARD, full_fence(me);)
     load(me, ID(inv.token), x)
  :: else -> y = 0
  fi;
  inv.last = 0
}

/* Ends a call. This also happens for a skipped registration, because a remover may have seen its
 * hazard and may be waiting for it. Once the slot is no longer retired, only a late waiter can
 * still be waiting. */
inline end_call(me, frame, inv, called) {
  EITHER(NO_FENCE_AFTER_CALL, store_load, store_fence_load)
  (me, inv, HAZARD(frame), 0, ID(called), x);
  when(!IS_LIVE(x, called) && x != called + RETIRED,
       load(me, LATE_WAITERS, y); x = (y -> called + RETIRED : x); y = 0);
  if
  EITHER(NO_CALL_DID_RETURN, :: false, :: x == called + RETIRED) ->
     x = 0; call_did_return(me, called)
  :: else -> x = 0
  fi
}

/* Each scenario defines `body`, the code of a delegate. A biased invocation executes two light
 * fences per delegate, and a fenced invocation executes one full fence per delegate. */
inline visit(me, frame, inv) {
  do
  :: inv.is_valid && inv.list && inv.place < PLACES ->
     d_step { use(inv); load_here(me, ENTRY(inv.list, inv.place), inv.token) };
     if
     :: inv.token == 0 -> break
     :: else
     fi;
     EITHER(NO_FENCE_OF_HAZARD, store_load, store_fence_load)
     (me, inv, HAZARD(frame), inv.token, ID(inv.token), x);
     UNLESS(NO_LOOK_AFTER_FENCED_CALL, when(inv.last, look_at_last(me, frame, inv));)
     IF(ID_NOT_COMPARED, x = inv.token;)
     IF(GENERATION_NOT_COMPARED, x = (x % 4 -> x : inv.token);)
     IF(ONCE, when(x == inv.token + SPECIAL, claim(me, inv.token));)
     if
     :: x == inv.token ->
        d_step {
          printf("thread %d calls delegate %d of list %d\n", me, inv.token, inv.list);
          check_call(me, inv)
        };
        body(me, inv.token);
        d_step { check_call(me, inv); use(inv) }
     :: else -> x = 0 IF(NO_LOOK_IF_NOT_CALLED, ; store(me, HAZARD(frame), 0); goto next)
     fi;
     if
     :: inv.is_fenced -> inv.last = inv.token
     :: else -> end_call(me, frame, inv, inv.token)
     fi;
IF(NO_LOOK_IF_NOT_CALLED, next:)
     inv.place++
  :: else -> break
  od;
  when(inv.last, end_call(me, frame, inv, inv.last));
  d_step { inv.place = 0; inv.token = 0; inv.last = 0 }
}

inline invoke(me, frame, h) {
  enter(me, frame, h, at);
  visit(me, frame, at);
  leave(me, frame, at)
}

#if NESTED
/* Invokes the multicast again inside a call, but calls only the first delegate. */
inline invoke_inner(me, frame, h) {
  enter(me, frame, h, inner);
  if
  :: inner.list ->
     d_step { use(inner); load_here(me, ENTRY(inner.list, 0), inner.token) };
     store_fence_load(me, inner, HAZARD(frame), inner.token, ID(inner.token), x);
     if
     :: x == inner.token ->
        d_step { printf("thread %d calls delegate %d inside\n", me, x); check_call(me, inner) };
        d_step { check_call(me, inner); use(inner) }
     :: else -> x = 0
     fi;
     end_call(me, frame, inner, inner.token);
     inner.token = 0
  :: else
  fi;
  leave(me, frame, inner)
}
#endif

/* ---- Initial state and final checks ---------------------------------------------------------- */

/* Initially, list 1 contains the delegates 1 ... DELEGATES, and the multicast has handle 1. */
inline begin(word) {
  d_step {
    mem[HANDLE] = 1;
    mem[LIST] = 1;
    mem[WORD] = WORD_OF(1) + word;
    for (k : 1 .. SLOTS) {
      t = TOKEN(0, k);
      mem[FUNCTION(t)] = t;
      if
      :: k <= DELEGATES -> mem[ID(t)] = t; mem[ENTRY(1, k - 1)] = t; owner_of[k] = 1
      :: else -> mem[ID(t)] = t + VACANT; is_vacant[k] = 1
      fi
    };
    for (k : 1 .. LISTS) { is_free[k] = (k != 1) };
    k = 0;
    t = 0
  }
}

/* Used only inside a d_step. */
inline check_end() {
  for (k : 1 .. LISTS) {
    assert(!is_retired[k]); /* no retired list is left over */
    assert(is_free[k] == (k != mem[LIST]))
  };
  for (k : 1 .. SLOTS) {
    assert(!deferred[k]); /* no deferred release is left over */
    t = mem[ID(4 * k)];
    assert(t % 4 == 0 || t % 4 == SPECIAL || t % 4 == VACANT);
    assert(is_vacant[k] == (t % 4 == VACANT));
    assert(t % 4 != VACANT || k > DELEGATES || released[t / 4]);
    t = 0
  };
  k = 0
}
