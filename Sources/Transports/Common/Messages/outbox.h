/* The publications that wait to be sent, in order. */

#ifndef MULTICAST_TRANSPORTS_OUTBOX_H
#define MULTICAST_TRANSPORTS_OUTBOX_H

#include "../Names/coding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEADER_MAX_SIZE = 16 };

/* Bytes at a place, and their number. */
typedef struct span {
  const void *at; /* may be NULL if there are none */
  size_t size;
} span;

/* A publication before it is in memory of its own. */
typedef struct draft {
  size_t address_size, header_size;
  char address[ADDRESS_MAX_SIZE];
  unsigned char header[HEADER_MAX_SIZE];
  span payload;
  bool is_retained, is_question;
  uint64_t number; /* of a question, or of the one that is answered; 0: it is a notification */
} draft;

typedef struct publication {
  struct publication *next;
  uint64_t ticket; /* counts publications, from 1 */
  size_t whole; /* its size in memory */
  size_t address_size;
  size_t size; /* of the message: a header, if the engine writes one, and the payload */
  bool is_retained, is_question;
  uint64_t number;
  char bytes[]; /* the address, a NUL, the message */
} publication;

typedef struct outbox {
  publication *first, *last;
  uint64_t waiting;
  uint64_t tickets; /* so many were given */
} outbox;

/* How many bytes it takes as a publication. */
size_t draft_size(const draft *d);
/* Writes it there. NULL stays NULL. */
publication *publication_write(publication *p, const draft *d);
const char *publication_message(const publication *p);

void outbox_append(outbox *o, publication *p); /* gives it a ticket */
void outbox_put_back(outbox *o, publication *p);
publication *outbox_take(outbox *o); /* the first one; NULL: none waits */
void outbox_free(outbox *o);

#endif
