/* The list of publications waiting to be sent, in order. */

#ifndef MULTICAST_TRANSPORTS_OUTBOX_H
#define MULTICAST_TRANSPORTS_OUTBOX_H

#include "../Names/coding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEADER_MAX_SIZE = 16 };

typedef struct span {
  const void *at; /* may be NULL if the size is 0 */
  size_t size;
} span;

/* The data from which publication_write() creates a publication. */
typedef struct draft {
  size_t address_size, header_size;
  char address[ADDRESS_MAX_SIZE];
  unsigned char header[HEADER_MAX_SIZE];
  span payload;
  bool is_retained, is_question;
  uint64_t number; /* of a question, or of the question that is answered; 0 for a notification */
} draft;

typedef struct publication {
  struct publication *next;
  uint64_t ticket; /* sequence number, from 1 */
  size_t whole; /* size in memory */
  size_t address_size;
  size_t size; /* of the message, which is the header, if there is one, and the payload */
  bool is_retained, is_question;
  uint64_t number;
  char bytes[]; /* the address, a NUL, the message */
} publication;

typedef struct outbox {
  publication *first, *last;
  uint64_t waiting;
  uint64_t tickets; /* the last ticket */
} outbox;

/* Returns the number of bytes that the publication will occupy in memory. */
size_t draft_size(const draft *d);
/* Writes the publication to `p`, which is draft_size() bytes long. Returns NULL if `p` is NULL. */
publication *publication_write(publication *p, const draft *d);
const char *publication_message(const publication *p);

void outbox_append(outbox *o, publication *p); /* assigns the next ticket */
void outbox_put_back(outbox *o, publication *p); /* inserts at the front */
publication *outbox_take(outbox *o); /* removes the first one; returns NULL if there is none */
void outbox_free(outbox *o);

#endif
