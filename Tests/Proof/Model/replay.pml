/* A multicast that replays its last invocations to a newly added delegate.
 *
 *   invoke   under the lock: buffers the invocation, which gets the next number, and drops old
 *            invocations that no replay needs. Then reads the list, and calls each delegate whose
 *            replay has ended before this number. If the buffer is too full, the invocation first
 *            waits until the slowest replay has ended, unless that replay runs on its own thread
 *   add      under the lock: lists the delegate, and begins its replay with the oldest of the last
 *            MOST invocations. Then calls the delegate with one invocation after the other, each
 *            taken under the lock. If none is left, the replay ends in the same critical section.
 *            From the next number on, invocations call the delegate themselves (a live call)
 *
 * The model proves these properties: A delegate receives each invocation once, from the oldest
 * invocation that is replayed to the last one. The replays come first and in order. The invocations
 * of each thread come in order. An invocation is still buffered when it is replayed. At most MOST +
 * LEAD invocations are buffered, apart from those inside a replay. There is no deadlock.
 *
 * Threads: INVOKERS threads invoke TIMES times each; ADDERS threads add one delegate each. With
 * IS_NESTED, the first replay of each delegate invokes the multicast.
 *
 * Variants: INVOKERS=2, TIMES=2, ADDERS=1.
 */

#include "when.pml"

#define NESTED EITHER(IS_NESTED, 1, 0)
#define MOST 1
#define LEAD 1
#define HIGHEST 255
#define THREADS (INVOKERS + ADDERS)
#define NUMBERS (INVOKERS * TIMES + ADDERS * NESTED + 2)

bit locked;
byte first = 1;          /* the number of the oldest buffered invocation */
byte newest;             /* the number of the newest buffered invocation */
byte by[NUMBERS];        /* the thread of each invocation */
bit is_listed[ADDERS];
byte replayed[ADDERS];   /* the number of the first live call */
byte next[ADDERS];       /* the next number to be replayed */
bit runs[ADDERS];        /* whether the replay is running */

byte start[ADDERS];      /* the number of the first invocation that the delegate has to receive */
byte received[ADDERS];   /* how many invocations it has received */
bit has[ADDERS * NUMBERS];
byte last_of[ADDERS * THREADS];
bit is_replaying[ADDERS];
bit is_called[ADDERS];   /* whether it has had a live call */
byte inside;             /* the number of invocations inside replays */
byte finished;

inline lock() { atomic { !locked -> locked = 1 } }
inline unlock() { locked = 0 }

#define IS_TOO_MUCH (newest - first + 1 >= MOST + LEAD)

/* Under the lock: sets `slow` to a replay that still needs the oldest invocation, or to ADDERS. */
inline find_slowest() {
  d_step {
    slow = 0;
    do
    :: slow < ADDERS && !(runs[slow] && next[slow] == first) -> slow++
    :: else -> break
    od
  }
}

inline drop() {
  find_slowest();
  do
  EITHER(DROPPED_EARLY, :: newest - first + 1 > MOST -> first++,
                        :: newest - first + 1 > MOST && slow == ADDERS -> first++; find_slowest())
  :: else -> break
  od
}

inline receive(d, n) {
  d_step {
    assert(!has[d * NUMBERS + n]);
    has[d * NUMBERS + n] = 1;
    received[d]++;
    assert(n > last_of[d * THREADS + by[n]]);
    last_of[d * THREADS + by[n]] = n
  }
}

/* `own` is the replay inside which this invocation is running, or ADDERS. */
inline invoke(thread, own) {
  d = 0;
#ifdef KEPT_AFTER_LIST
  d_step {
    do
    :: d < ADDERS -> known[d] = is_listed[d]; d++
    :: else -> break
    od;
    d = 0
  }
#endif
  lock();
#ifndef NO_WAIT
  do
  :: IS_TOO_MUCH ->
     find_slowest();
     if
     :: slow == ADDERS || own < ADDERS -> break
     :: else -> unlock(); !runs[slow]; lock()
     fi
  :: else -> break
  od;
#endif
  newest++;
  number = newest;
  by[number] = thread;
  drop();
  assert(newest - first + 1 <= MOST + LEAD + inside);
  unlock();
  do
  :: d < ADDERS ->
     if
#ifdef KEPT_AFTER_LIST
     :: known[d] && replayed[d] <= number ->
#elif defined(NUMBER_NOT_COMPARED)
     :: is_listed[d] && replayed[d] != HIGHEST ->
#else
     :: is_listed[d] && replayed[d] <= number ->
#endif
        assert(!is_replaying[d]);
        is_called[d] = 1;
        receive(d, number)
     :: else
     fi;
     d++
  :: else -> break
  od
}

#ifdef KEPT_AFTER_LIST
#define LOCALS byte number, slow, d; bit known[ADDERS]
#else
#define LOCALS byte number, slow, d
#endif

proctype Invoker(byte thread) {
  byte times = TIMES;
  LOCALS;
  do
  :: times > 0 -> times--; invoke(thread, ADDERS)
  :: else -> break
  od;
  finished++
}

inline begin_replay() {
  next[me] = (newest - first + 1 > MOST -> newest - MOST + 1 : first);
  runs[me] = 1
}

proctype Adder(byte me) {
  byte n;
  bit has_invoked = !NESTED;
  LOCALS;
  lock();
  EITHER(CALLED_BEFORE_REPLAYED, replayed[me] = 0, replayed[me] = HIGHEST);
  start[me] = (newest - first + 1 > MOST -> newest - MOST + 1 : first);
  is_listed[me] = 1;
  IF(BEGUN_LATER, unlock();
                  lock();)
  begin_replay();
  unlock();
  do
  :: lock();
     if
     :: next[me] <= newest ->
        n = next[me];
        assert(n >= first);
        next[me]++;
        drop();
        unlock();
        assert(!is_called[me]);
        is_replaying[me] = 1;
        receive(me, n);
        when(!has_invoked, has_invoked = 1; inside++; invoke(INVOKERS + me, me));
        is_replaying[me] = 0
     :: else -> break
     fi
  od;
  IF(ENDED_LATER, unlock();
                  lock();)
  EITHER(NEXT_NOT_LEFT_OUT, replayed[me] = newest, replayed[me] = newest + 1);
  runs[me] = 0;
  drop();
  unlock();
  finished++
}

init {
  byte i;
  atomic {
    for (i : 0 .. INVOKERS - 1) { run Invoker(i) }
    for (i : 0 .. ADDERS - 1) { run Adder(i) }
  }
  finished == INVOKERS + ADDERS ->
  for (i : 0 .. ADDERS - 1) {
    assert(received[i] == newest - start[i] + 1)
  }
  assert(newest - first + 1 <= MOST)
}
