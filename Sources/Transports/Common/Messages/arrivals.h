/* The list of received messages that have not been delivered yet. */

#ifndef MULTICAST_TRANSPORTS_ARRIVALS_H
#define MULTICAST_TRANSPORTS_ARRIVALS_H

#include "outbox.h"

/* Counts the messages that a queue has accepted and then dropped. The counter is a separate object,
 * because the queue may drop messages after the client has been freed. */
typedef struct drops {
  int references; /* held by the client and by each message in the queue */
  uint64_t count;
} drops;

/* Identifies a question. `peer` identifies the asker, and `number` is unique among the asker's
 * questions. The engine assigns both. */
typedef struct origin {
  uint64_t peer, number; /* 0 for a notification */
} origin;

typedef struct arrival {
  struct arrival *next;
  drops *drops;    /* NULL if the message is not in a queue */
  bool is_counted; /* a queued message was counted as delivered or lost */
  size_t whole; /* size in memory */
  size_t size;
  const char *name; /* stored after the payload */
  uint32_t event;
  origin from;
  _Alignas(16) unsigned char payload[];
} arrival;
_Static_assert(_Alignof(arrival) <= 16, "malloc() aligns so");

typedef struct arrivals {
  arrival *first, *last;
} arrivals;

/* Returns the number of bytes that a message occupies in memory. */
size_t arrival_size(const char *name, span payload);
/* Writes a message to `a`, which is `whole` bytes long. Returns NULL if `a` is NULL. */
arrival *arrival_write(arrival *a, size_t whole, const char *name, uint32_t event, span payload);

void arrivals_append(arrivals *all, arrival *a);
/* Inserts messages at the front of the list. */
void arrivals_put_back(arrivals *all, const arrivals *left);
void arrivals_free(arrivals *all);

void drops_release(drops *d); /* accepts NULL */

#endif
