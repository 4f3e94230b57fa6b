/* In libmulticast-local, the thread of a peer sleeps while the rings of the other peers are empty.
 * A publisher wakes it with a packet, once per sleep.
 *
 *   go_to_sleep   go_to_sleep in Sources/Transports/Local/session.c
 *   publish       ring_write, ring_show in ring.c
 *
 * The reader announces its sleep by storing an odd number in SLEEPS, executes a fence, and reads
 * the heads once more. A publisher stores its head, executes a fence, and reads SLEEPS. Packets
 * stay in the socket until they are received.
 *
 * The model proves that the reader reads everything that is published without relying on a timeout,
 * and that no publisher sends two packets for one sleep.
 *
 * Threads: the reader R, and PUBLISHERS publishers, each of which publishes NUMBERS times.
 *
 * Variants: PUBLISHERS=1, NUMBERS=2.
 */

#ifndef PUBLISHERS
#define PUBLISHERS 1
#endif
#ifndef NUMBERS
#define NUMBERS 2
#endif

#define SLEEPS 0
#define HEAD(publisher) (publisher) /* from 1 */
#define WORDS 3
#define THREADS (PUBLISHERS + 1)
#define BUFFERED THREADS
#define BUFFER 3
#define R 0

#include "memory.pml"

byte packets;
byte position[3]; /* of the reader, in each ring */
bool is_new;

/* Sets `is_new` if a ring had new entries. */
inline read_all() {
  is_new = false;
  load(R, HEAD(1), head);
  when(head != position[1], is_new = true; position[1] = head);
#if PUBLISHERS > 1
  load(R, HEAD(2), head);
  when(head != position[2], is_new = true; position[2] = head);
#endif
  head = 0
}

#define ALL_READ (position[1] == NUMBERS && (PUBLISHERS == 1 || position[2] == NUMBERS))

/* Receives at most one packet. */
inline go_to_sleep() {
  IF(LOOKS_BEFORE_IT_SAYS, read_all();)
  sleeps++;
  EITHER(SAYS_ONLY_THAT, store(R, SLEEPS, 1), store(R, SLEEPS, sleeps));
  UNLESS(NO_FENCE_OF_READER, full_fence(R);)
  UNLESS(LOOKS_BEFORE_IT_SAYS, EITHER(DOES_NOT_LOOK_AGAIN, is_new = false, read_all());)
  if
  :: is_new || ALL_READ -> skip
  :: else -> full_fence(R); d_step { packets > 0 -> packets-- } /* a system call */
  fi;
  sleeps++;
  EITHER(SAYS_ONLY_THAT, store(R, SLEEPS, 0), store(R, SLEEPS, sleeps))
}

active proctype Reader() {
  byte head, sleeps;
  do
  :: ALL_READ -> break
  :: else -> read_all(); go_to_sleep()
  od;
  printf("thread R: has read all\n");
  done++
}

inline wake() {
  load(me, SLEEPS, sleeps);
  if
  :: sleeps % 2 == 0 || sleeps == woken
  :: else ->
     woken = sleeps;
     d_step { BUFFER_IS_EMPTY(me) -> packets++ };
     assert(packets <= PUBLISHERS * NUMBERS);
     printf("thread %d: wakes from %d\n", me, sleeps)
  fi;
  sleeps = 0
}

proctype Publisher(byte me) {
  byte number, sleeps, woken;
  for (number : 1 .. NUMBERS) {
    EITHER(LOOKS_BEFORE_HEAD, full_fence(me);
                              wake();
                              store(me, HEAD(me), number),
                              store(me, HEAD(me), number);
                              printf("thread %d: publishes %d\n", me, number);
                              UNLESS(NO_FENCE_OF_PUBLISHER, full_fence(me);)
                              wake())
  };
  done++
}

init {
  atomic {
    run Publisher(1);
#if PUBLISHERS > 1
    run Publisher(2);
#endif
    skip
  };
  (done == THREADS)
}
