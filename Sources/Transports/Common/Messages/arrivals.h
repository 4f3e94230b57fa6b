/* Arrivals, in order, until they are delivered. */

#ifndef MULTICAST_TRANSPORTS_ARRIVALS_H
#define MULTICAST_TRANSPORTS_ARRIVALS_H

#include "outbox.h"

/* Counts what a queue has taken and dropped: it may do that after the client is freed. */
typedef struct drops {
  int references; /* the client's, and one of each arrival in the queue */
  uint64_t count;
} drops;

/* Who asks, and which question of that one it is: numbers of the engine. */
typedef struct origin {
  uint64_t peer, number; /* 0: it is no question */
} origin;

typedef struct arrival {
  struct arrival *next;
  drops *drops;    /* NULL: it is not in the queue */
  bool is_counted; /* in the queue: it was delivered, or is counted as lost */
  size_t whole; /* its size in memory */
  size_t size;
  const char *name; /* behind the payload */
  uint32_t event;
  origin from;
  _Alignas(16) unsigned char payload[];
} arrival;
_Static_assert(_Alignof(arrival) <= 16, "malloc() aligns so");

typedef struct arrivals {
  arrival *first, *last;
} arrivals;

/* How many bytes one takes. */
size_t arrival_size(const char *name, span payload);
/* Writes one of this size there. NULL stays NULL. */
arrival *arrival_write(arrival *a, size_t whole, const char *name, uint32_t event, span payload);

void arrivals_append(arrivals *all, arrival *a);
/* Puts them back, before those that have come meanwhile. */
void arrivals_put_back(arrivals *all, const arrivals *left);
void arrivals_free(arrivals *all);

void drops_release(drops *d); /* also NULL */

#endif
