#include "outbox.h"

#include <stdlib.h>
#include <string.h>

publication *publication_create(const char *address, size_t address_size, span header,
                                span payload) {
  publication *p = malloc(sizeof *p + address_size + 1 + header.size + payload.size);
  char *message;
  if (p == NULL) return NULL;
  p->next = NULL;
  p->address_size = address_size;
  p->size = header.size + payload.size;
  p->is_retained = false;
  memcpy(p->bytes, address, address_size + 1);
  message = p->bytes + address_size + 1;
  if (header.size > 0) memcpy(message, header.at, header.size);
  if (payload.size > 0) memcpy(message + header.size, payload.at, payload.size);
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
