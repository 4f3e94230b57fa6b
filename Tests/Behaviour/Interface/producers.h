/* Provides threads that queue calls or wait for a queue, and delegates that check the messages they
 * receive. */

#ifndef PRODUCERS_H
#define PRODUCERS_H

#include "harness.h"

/* ---- Messages -------------------------------------------------------------------------------- */

extern size_t largest; /* maximum size of a message */

/* The start of a producer's payload: the number of the producer and the number of the message. */
typedef struct message {
  uint32_t producer, sequence; /* followed by bytes that are derived from both */
} message;
size_t write_message(unsigned char *bytes, uint32_t producer, uint32_t sequence);
message read_message(const void *payload, size_t size);

/* ---- Producers ------------------------------------------------------------------------------- */

/* A thread that invokes a multicast `count` times, with a different message each time. */
typedef struct producer {
  multicast target;
  uint32_t number, count;
  int64_t queued; /* the sum of the results of all its invocations */
  bool may_fail;  /* invocations may fail, because the multicast may be destroyed */
  pthread_t thread;
} producer;
void start_producers(producer *p, uint32_t producers, multicast m, uint32_t count);
int64_t join_producers(producer *p, uint32_t producers);

/* ---- Delegates ------------------------------------------------------------------------------- */

enum { MOST_PRODUCERS = 4 };

/* The context of a delegate that expects the messages of each producer in order, and no overlapping
 * calls. */
typedef struct inbox {
  uint32_t last[MOST_PRODUCERS];
  int inside;
  bool has_gaps; /* some messages may be missing */
  uint32_t received;
} inbox;
multicast_delegate receiving(inbox *in);

enum { ALIVE = 0x600DF00D, DEAD = 0x0BADF00D };

/* The context of a delegate. The context is freed as soon as the delegate's removal has returned
 * MULTICAST_OK. */
typedef struct guest {
  uint32_t magic;
  int calls;
  multicast_token token;
  multicast_lifetime lifetime;
  bool by_lifetime;
} guest;

/* The total number of calls to all guests. */
extern uint64_t calls_seen;
void call_guest(void *context, uint32_t event, const void *payload, size_t size);

/* ---- Sleepers -------------------------------------------------------------------------------- */

/* A thread that waits until a queue contains a call or has room for one. */
typedef struct sleeper {
  multicast_queue queue;
  multicast target;
  int64_t result;
  gate returned;
  pthread_t thread;
} sleeper;
void *wait_in_queue(void *argument);
void *invoke_into_full(void *argument);

#endif
