/* The publications that wait to be sent, in order. */

#ifndef MULTICAST_TRANSPORTS_OUTBOX_H
#define MULTICAST_TRANSPORTS_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct publication {
  struct publication *next;
  uint64_t ticket; /* counts publications, from 1 */
  size_t address_size;
  size_t size; /* of the message: a header, if the engine writes one, and the payload */
  bool is_retained;
  char bytes[]; /* the address, a NUL, the message */
} publication;

typedef struct outbox {
  publication *first, *last;
  uint64_t waiting;
  uint64_t tickets; /* so many were given */
} outbox;

/* What is at a place, and how many bytes. */
typedef struct span {
  const void *at; /* may be NULL if there are none */
  size_t size;
} span;

/* NULL: out of memory. To be freed with free(). */
publication *publication_create(const char *address, size_t address_size, span header,
                                span payload);
const char *publication_message(const publication *p);

void outbox_append(outbox *o, publication *p); /* gives it a ticket */
void outbox_put_back(outbox *o, publication *p);
publication *outbox_take(outbox *o); /* the first one; NULL: none waits */
void outbox_free(outbox *o);

#endif
