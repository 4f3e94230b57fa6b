/* The search for a cycle among the published waits, as in cycles.pml. In addition, threads may wait
 * for a queue, until its calls have ended or until it has room.
 *
 * A scenario includes this file after memory.pml, and defines:
 *   CALLS_LOCK                 the lock under which waits are published
 *   CONSUMER_IS_UNKNOWN(wait)  the wait is for the queue, and no thread is known to run the queue
 *   IS_WAITED_FOR(t, wait)     the thread `t` can end the wait
 *   MAY_CLOSE(me, it)          the wait `it` of the thread `me` may close a cycle
 */

#define BIT(d) (1 << ((d) - 1))

byte calls[THREADS]; /* a bit for each delegate that the thread is calling */
byte depth[THREADS]; /* frames in use: invocations and runs of queues */

/* The wait that a thread has published, under the lock of calls: 0 is none, 1 and 2 are waits for
 * the calls of a delegate, and FOR_QUEUE is a wait for the queue. */
#define FOR_QUEUE 3
byte waits_for[THREADS];

#define IS_CALLED(d) ((calls[0] | calls[1] | calls[2] | calls[3]) & BIT(d))

hidden byte stage[THREADS];
hidden byte i, next, closed;

inline reach(it) {
  for (i : 0 .. THREADS - 1) {
    if
    :: stage[i] == 0 &&
         (CONSUMER_IS_UNKNOWN(it) -> waits_for[i] != 0 : IS_WAITED_FOR(i, it)) ->
       stage[i] = 1
    :: else
    fi
  }
}

/* Used only inside a d_step. */
inline closes_cycle(me, it) {
  closed = 0;
  if
  :: MAY_CLOSE(me, it) ->
     for (i : 0 .. THREADS - 1) { stage[i] = 0 };
     reach(it);
     do
     :: stage[me] == 0 ->
        next = 0;
        do
        :: next < THREADS && !(stage[next] == 1 && waits_for[next]) -> next++
        :: else -> break
        od;
        when(next == THREADS, break);
        stage[next] = 2;
        if
        IF(WAIT_NOT_FOLLOWED, :: waits_for[next] == FOR_QUEUE -> skip)
        :: CONSUMER_IS_UNKNOWN(waits_for[next]) ->
           EITHER(UNKNOWN_CONSUMER_IGNORED, skip,
                                            if
                                            :: it != FOR_QUEUE -> closed = 1; break
                                            :: else -> reach(waits_for[next])
                                            fi)
        :: else -> reach(waits_for[next])
        fi
     :: else -> closed = 1; break
     od
  :: else
  fi;
  i = 0;
  next = 0
}

inline sleep_for(me, it) {
  d_step { waits_for[me] = it; asleep[me] = 1; mem[CALLS_LOCK] = 0 };
  d_step { !asleep[me] && mem[CALLS_LOCK] == 0 -> mem[CALLS_LOCK] = 1; waits_for[me] = 0 }
}
