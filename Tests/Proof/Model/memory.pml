/* Memory with store buffers (x86-TSO), fences, locks and a condition variable, for all scenarios.
 *
 * Before it includes this file, a scenario defines:
 *   WORDS     the size of the shared memory in bytes; an address is a number below it
 *   THREADS   the number of threads; threads are numbered from 0
 *   BUFFERED  threads 0 ... BUFFERED - 1 have a store buffer; stores of the other threads are
 *             visible immediately
 *
 * Stores: a store buffer is a FIFO queue. A thread reads its own buffered stores (forwarding). The
 * process `Memory` moves the oldest store of any buffer to memory at any moment. Each load and each
 * store is one step. In this memory model, a release store and an acquire load are plain accesses.
 *
 * Asymmetric fence: `light_fence` is a compiler fence. The model executes in program order, so a
 * compiler fence is an empty step. A mutation that leaves out a compiler fence exchanges the two
 * accesses, as a compiler may. `heavy_fence` is membarrier: each thread executes a full fence, each
 * at a different moment and in any order. With SYMMETRIC (the fallback without membarrier), both
 * are full fences. */

#include "when.pml"

#ifndef BUFFER
#define BUFFER 4 /* capacity of a store buffer; a thread waits while its buffer is full */
#endif

/* Expands to X(q, bit of q) for each buffer. */
#if BUFFERED > 4
#define EACH_BUFFER(X) X(0, 1) X(1, 2) X(2, 4) X(3, 8) X(4, 16)
#elif BUFFERED > 3
#define EACH_BUFFER(X) X(0, 1) X(1, 2) X(2, 4) X(3, 8)
#elif BUFFERED > 2
#define EACH_BUFFER(X) X(0, 1) X(1, 2) X(2, 4)
#elif BUFFERED > 1
#define EACH_BUFFER(X) X(0, 1) X(1, 2)
#elif BUFFERED > 0
#define EACH_BUFFER(X) X(0, 1)
#else
#define EACH_BUFFER(X)
#endif

#if BUFFERED > 0
#define CELLS (BUFFERED * BUFFER)
#define BUFFERS BUFFERED
#else
#define CELLS 1
#define BUFFERS 1
#endif

byte mem[WORDS];
byte store_count[BUFFERS]; /* stores in the buffer */
byte store_address[CELLS]; /* their addresses, the oldest first */
byte store_value[CELLS];   /* their values */

hidden byte k;

#define BUFFER_HAS_ROOM(me) (me >= BUFFERED || store_count[me] < BUFFER)
#define BUFFER_IS_EMPTY(me) (me >= BUFFERED || store_count[me] == 0)

/* Moves the oldest store of a buffer to memory. Used only inside a d_step. */
inline drain_one(q) {
  mem[store_address[q * BUFFER]] = store_value[q * BUFFER];
  store_count[q]--;
  for (k : 0 .. store_count[q] - 1) {
    store_address[q * BUFFER + k] = store_address[q * BUFFER + k + 1];
    store_value[q * BUFFER + k] = store_value[q * BUFFER + k + 1]
  };
  store_address[q * BUFFER + k] = 0;
  store_value[q * BUFFER + k] = 0;
  k = 0
}

inline drain_all(q) {
  do
  :: store_count[q] > 0 -> drain_one(q)
  :: else -> break
  od
}

#define DRAINS(q, one) :: d_step { store_count[q] > 0 -> drain_one(q) }
#if BUFFERED > 0
active proctype Memory() {
end:
  do
  EACH_BUFFER(DRAINS)
  od
}
#endif

/* Stores the value. Used only inside a d_step, and only if the buffer has room. */
inline store_here(me, address, value) {
  if
  :: me >= BUFFERED -> mem[address] = value
  :: else ->
     store_address[me * BUFFER + store_count[me]] = address;
     store_value[me * BUFFER + store_count[me]] = value;
     store_count[me]++
  fi
}

/* Loads the value. Used only inside a d_step. */
inline load_here(me, address, result) {
  result = mem[address];
  if
  :: me < BUFFERED ->
     for (k : 0 .. store_count[me] - 1) {
       when(store_address[me * BUFFER + k] == address, result = store_value[me * BUFFER + k])
     };
     k = 0
  :: else
  fi
}

inline store(me, address, value) {
  d_step { BUFFER_HAS_ROOM(me) -> store_here(me, address, value) }
}

inline load(me, address, result) {
  d_step { load_here(me, address, result) }
}

/* ---- Fences --------------------------------------------------------------------------------- */

inline full_fence(me) { BUFFER_IS_EMPTY(me) }

#if SYMMETRIC
#define light_fence(me) full_fence(me)
#define heavy_fence(me, unfenced) full_fence(me)
#else
#define light_fence(me) skip

#define FENCES_THREAD(q, one) \
  :: d_step { unfenced & one -> drain_all(q); unfenced = unfenced & ~one }

/* `unfenced`, a variable of the caller, is the set of threads that have not yet executed the
 * fence. */
inline heavy_fence(me, unfenced) {
  d_step { BUFFER_IS_EMPTY(me) -> unfenced = (1 << BUFFERED) - 1 };
  do
  EACH_BUFFER(FENCES_THREAD)
  :: unfenced == 0 -> break
  od;
  skip
}
#endif

/* ---- Locks ---------------------------------------------------------------------------------- */

/* Locking is a locked instruction, which is a full fence. Unlocking is a plain store. */
#define CAN_LOCK(me, mutex) (BUFFER_IS_EMPTY(me) && mem[mutex] == 0)

inline lock(me, mutex) {
  d_step { CAN_LOCK(me, mutex) -> mem[mutex] = 1 }
}

inline unlock(me, mutex) { store(me, mutex, 0) }

/* ---- Sleep ---------------------------------------------------------------------------------- */

bit asleep[THREADS];

/* Models pthread_cond_wait, which unlocks and sleeps in one step. There are no spurious wake-ups,
 * because they would hide lost wake-ups. The model leaves out the implementation's count of
 * sleeping threads, because skipping pthread_cond_broadcast when no thread sleeps makes no
 * difference. */
inline sleep(me, mutex) {
  d_step { BUFFER_IS_EMPTY(me) -> asleep[me] = 1; mem[mutex] = 0 };
  d_step { !asleep[me] && CAN_LOCK(me, mutex) -> mem[mutex] = 1 }
}

/* Models pthread_cond_broadcast. Used only inside a d_step. */
inline wake_all() {
  for (k : 0 .. THREADS - 1) { asleep[k] = 0 };
  k = 0
}

/* ---- The end -------------------------------------------------------------------------------- */

byte done; /* threads that have ended */

#define AND_IS_EMPTY(q, one) && BUFFER_IS_EMPTY(q)
#define ALL_DRAINED (true EACH_BUFFER(AND_IS_EMPTY))
