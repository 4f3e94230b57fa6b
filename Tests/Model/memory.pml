/* What all models share: memory with store buffers, fences, locks and sleep.
 *
 * A model says before it includes this:
 *   WORDS     how many bytes of shared memory there are; an address is a number below that
 *   THREADS   how many threads; they are numbered from 0
 *   BUFFERED  threads 0 ... BUFFERED - 1 have a store buffer; the others' stores are seen at once
 *
 * A store buffer is first in, first out, and forwards to its owner's loads: x86, and what C11 calls
 * a release store and an acquire load is a plain one there. `Memory` moves the oldest store of any
 * buffer to memory at any moment. Each load and each store is a step of its own.
 *
 * Fence.swift: SYMMETRIC makes both halves full fences. Without it `light` stops the compiler
 * alone: the model executes in program order anyway, so that it is nothing here; where a model
 * leaves it out as a mutation, it swaps the accesses, as the compiler may. `heavy` has each thread
 * execute a fence at a moment of its own, in any order.
 */

#ifndef BUFFER
#define BUFFER 4 /* stores that a buffer holds; a thread that stores one more waits */
#endif

#if BUFFERED > 0
#define SLOTS (BUFFERED * BUFFER)
#define OWNERS BUFFERED
#else
#define SLOTS 1
#define OWNERS 1
#endif

byte mem[WORDS];
byte held[OWNERS]; /* how many stores a buffer holds */
byte at[SLOTS];    /* their addresses, the oldest first */
byte what[SLOTS];  /* and their values */

hidden byte k;

#define ROOM(me) (me >= BUFFERED || held[me] < BUFFER)
#define EMPTY(me) (me >= BUFFERED || held[me] == 0)

/* In a d_step: the oldest store reaches memory. */
inline drain_one(q) {
  mem[at[q * BUFFER]] = what[q * BUFFER];
  held[q]--;
  k = 0;
  do
  :: k < held[q] ->
     at[q * BUFFER + k] = at[q * BUFFER + k + 1];
     what[q * BUFFER + k] = what[q * BUFFER + k + 1];
     k++
  :: else -> break
  od;
  at[q * BUFFER + k] = 0;
  what[q * BUFFER + k] = 0;
  k = 0
}

inline drain_all(q) {
  do
  :: held[q] > 0 -> drain_one(q)
  :: else -> break
  od
}

#if BUFFERED > 0
active proctype Memory() {
end:
  do
  :: d_step { held[0] > 0 -> drain_one(0) }
#if BUFFERED > 1
  :: d_step { held[1] > 0 -> drain_one(1) }
#endif
#if BUFFERED > 2
  :: d_step { held[2] > 0 -> drain_one(2) }
#endif
#if BUFFERED > 3
  :: d_step { held[3] > 0 -> drain_one(3) }
#endif
#if BUFFERED > 4
  :: d_step { held[4] > 0 -> drain_one(4) }
#endif
  od
}
#endif

/* In a d_step, where there is room: a store. */
inline store_here(me, address, value) {
  if
  :: me >= BUFFERED -> mem[address] = value
  :: else ->
     at[me * BUFFER + held[me]] = address;
     what[me * BUFFER + held[me]] = value;
     held[me]++
  fi
}

/* In a d_step: a load. */
inline load_here(me, address, result) {
  result = mem[address];
  if
  :: me < BUFFERED ->
     k = 0;
     do
     :: k < held[me] ->
        if
        :: at[me * BUFFER + k] == address -> result = what[me * BUFFER + k]
        :: else
        fi;
        k++
     :: else -> break
     od;
     k = 0
  :: else
  fi
}

inline store(me, address, value) {
  d_step { ROOM(me) -> store_here(me, address, value) }
}

inline load(me, address, result) {
  d_step { load_here(me, address, result) }
}

/* ---- Fences --------------------------------------------------------------------------------- */

inline full_fence(me) { EMPTY(me) }

#if SYMMETRIC
#define light(me) full_fence(me)
#define heavy(me, unfenced) full_fence(me)
#else
#define light(me) skip

/* Uses a variable of the caller's: the threads that have not had their fence yet. */
inline heavy(me, unfenced) {
  d_step { EMPTY(me) -> unfenced = (1 << BUFFERED) - 1 };
  do
#if BUFFERED > 0
  :: d_step { unfenced & 1 -> drain_all(0); unfenced = unfenced & ~1 }
#endif
#if BUFFERED > 1
  :: d_step { unfenced & 2 -> drain_all(1); unfenced = unfenced & ~2 }
#endif
#if BUFFERED > 2
  :: d_step { unfenced & 4 -> drain_all(2); unfenced = unfenced & ~4 }
#endif
#if BUFFERED > 3
  :: d_step { unfenced & 8 -> drain_all(3); unfenced = unfenced & ~8 }
#endif
#if BUFFERED > 4
  :: d_step { unfenced & 16 -> drain_all(4); unfenced = unfenced & ~16 }
#endif
  :: unfenced == 0 -> break
  od;
  skip
}
#endif

/* ---- Locks ---------------------------------------------------------------------------------- */

/* Taking one is a locked instruction, so a full fence; giving it up is a store like any other. */
#define FREE(me, mutex) (EMPTY(me) && mem[mutex] == 0)

inline lock(me, mutex) {
  d_step { FREE(me, mutex) -> mem[mutex] = 1 }
}

inline unlock(me, mutex) { store(me, mutex, 0) }

/* ---- Sleep ---------------------------------------------------------------------------------- */

bit asleep[THREADS];

/* Departures.sleep: gives the lock up and sleeps in one step. Nobody wakes unless woken: that would
 * hide wake-ups that are lost. There is no `sleepers`: nobody sleeps is nobody to wake. */
inline sleep(me, mutex) {
  d_step { EMPTY(me) -> asleep[me] = 1; mem[mutex] = 0 };
  d_step { !asleep[me] && FREE(me, mutex) -> mem[mutex] = 1 }
}

/* In a d_step. */
inline wake_all() {
  k = 0;
  do
  :: k < THREADS -> asleep[k] = 0; k++
  :: else -> break
  od;
  k = 0
}

/* ---- The end -------------------------------------------------------------------------------- */

byte done; /* threads that have nothing left to do */

#if BUFFERED > 4
#define DRAINED (EMPTY(0) && EMPTY(1) && EMPTY(2) && EMPTY(3) && EMPTY(4))
#elif BUFFERED > 3
#define DRAINED (EMPTY(0) && EMPTY(1) && EMPTY(2) && EMPTY(3))
#elif BUFFERED > 2
#define DRAINED (EMPTY(0) && EMPTY(1) && EMPTY(2))
#elif BUFFERED > 1
#define DRAINED (EMPTY(0) && EMPTY(1))
#elif BUFFERED > 0
#define DRAINED EMPTY(0)
#else
#define DRAINED true
#endif
