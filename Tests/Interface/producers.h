/* Threads that queue calls or sleep in a queue, and delegates that check what arrives. */

#ifndef PRODUCERS_H
#define PRODUCERS_H

#include "harness.h"

/* ---- Messages -------------------------------------------------------------------------------- */

extern size_t largest; /* bytes in a message */

/* The payload of a producer: who it is from, and which of them it is. */
typedef struct message {
  uint32_t producer, sequence; /* then bytes that follow from them */
} message;
size_t write_message(unsigned char *bytes, uint32_t producer, uint32_t sequence);
message read_message(const void *payload, size_t size);

/* ---- Producers ------------------------------------------------------------------------------- */

/* A thread that invokes with one message after the other. */
typedef struct producer {
  multicast target;
  uint32_t number, count;
  int64_t queued; /* what invoke returned, in all */
  bool may_fail;  /* the multicast may be gone */
  pthread_t thread;
} producer;
void start_producers(producer *p, uint32_t producers, multicast m, uint32_t count);
int64_t join_producers(producer *p, uint32_t producers);

/* ---- Delegates ------------------------------------------------------------------------------- */

enum { MOST_PRODUCERS = 4 };

/* Expects the messages of each producer in their order, one call at a time. */
typedef struct inbox {
  uint32_t last[MOST_PRODUCERS];
  int inside;
  bool has_gaps; /* calls may be missing */
  uint32_t received;
} inbox;
multicast_delegate receiving(inbox *in);

enum { ALIVE = 0x600DF00D, DEAD = 0x0BADF00D };

/* A context that is freed as soon as the removal has said that it may be. */
typedef struct guest {
  uint32_t magic;
  int calls;
  multicast_token token;
  multicast_lifetime lifetime;
  bool by_lifetime;
} guest;

/* How many calls all guests have had. */
extern uint64_t calls_seen;
void call_guest(void *context, uint32_t event, const void *payload, size_t size);

/* ---- Sleepers -------------------------------------------------------------------------------- */

/* A thread that sleeps in a queue, until there is a call or until there is room. */
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
