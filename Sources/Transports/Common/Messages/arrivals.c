#include "arrivals.h"

#include <stdlib.h>
#include <string.h>

size_t arrival_size(const char *name, span payload) {
  return sizeof(arrival) + payload.size + strlen(name) + 1;
}

arrival *arrival_write(arrival *a, size_t whole, const char *name, uint32_t event, span payload) {
  if (a == NULL) return NULL;
  a->next = NULL;
  a->drops = NULL;
  a->is_counted = false;
  a->whole = whole;
  a->size = payload.size;
  a->event = event;
  if (payload.size > 0) memcpy(a->payload, payload.at, payload.size);
  a->name = memcpy(a->payload + payload.size, name, whole - sizeof *a - payload.size);
  return a;
}

void arrivals_append(arrivals *all, arrival *a) {
  *(all->first == NULL ? &all->first : &all->last->next) = a;
  all->last = a;
}

void arrivals_put_back(arrivals *all, const arrivals *left) {
  if (left->first == NULL) return;
  left->last->next = all->first;
  if (all->first == NULL) all->last = left->last;
  all->first = left->first;
}

void arrivals_free(arrivals *all) {
  while (all->first != NULL) {
    arrival *a = all->first;
    all->first = a->next;
    free(a);
  }
}

void drops_release(drops *d) {
  if (d != NULL && __atomic_sub_fetch(&d->references, 1, __ATOMIC_ACQ_REL) == 0) free(d);
}
