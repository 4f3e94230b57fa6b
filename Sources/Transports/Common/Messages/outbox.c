#include "outbox.h"

#include <stdlib.h>
#include <string.h>

size_t draft_size(const draft *d) {
  return sizeof(publication) + d->address_size + 1 + d->header_size + d->payload.size;
}

publication *publication_write(publication *p, const draft *d) {
  char *message;
  if (p == NULL) return NULL;
  p->next = NULL;
  p->whole = draft_size(d);
  p->address_size = d->address_size;
  p->size = d->header_size + d->payload.size;
  p->is_retained = d->is_retained;
  p->is_question = d->is_question;
  p->number = d->number;
  memcpy(p->bytes, d->address, d->address_size + 1);
  message = p->bytes + d->address_size + 1;
  memcpy(message, d->header, d->header_size);
  if (d->payload.size > 0) memcpy(message + d->header_size, d->payload.at, d->payload.size);
  return p;
}

const char *publication_message(const publication *p) { return p->bytes + p->address_size + 1; }

void outbox_append(outbox *o, publication *p) {
  p->ticket = ++o->tickets;
  *(o->first == NULL ? &o->first : &o->last->next) = p;
  o->last = p;
  ++o->waiting;
}

void outbox_put_back(outbox *o, publication *p) {
  if (o->first == NULL) o->last = p;
  p->next = o->first;
  o->first = p;
  ++o->waiting;
}

publication *outbox_take(outbox *o) {
  publication *p = o->first;
  if (p == NULL) return NULL;
  o->first = p->next;
  p->next = NULL;
  --o->waiting;
  return p;
}

void outbox_free(outbox *o) {
  publication *p;
  while ((p = outbox_take(o)) != NULL) free(p);
}
