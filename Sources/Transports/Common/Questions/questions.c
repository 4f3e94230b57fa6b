#include "questions.h"

#include <stdlib.h>

void answerer_drop(answerer *a) {
  if (a == NULL) return;
  if (__atomic_sub_fetch(&a->references, 1, __ATOMIC_ACQ_REL) > 0) return; /* order: references */
  if (a->release != NULL) a->release(a->context);
  free(a);
}

void inquiry_add(inquiry **all, inquiry *i) {
  i->last = &i->first;
  i->next = *all;
  *all = i;
}

void inquiry_remove(inquiry **all, inquiry *i) {
  while (*all != i) all = &(*all)->next;
  *all = i->next;
}

inquiry *inquiry_find(inquiry *all, uint64_t number) {
  while (all != NULL && all->number != number) all = all->next;
  return all;
}

void inquiry_end(inquiry *i, multicast_status why) {
  if (i != NULL && i->end == MULTICAST_PENDING) i->end = why;
}

void inquiry_tell(inquiry *i, told *t) {
  t->next = NULL;
  *i->last = t;
  i->last = &t->next;
}

told *inquiry_take(inquiry *i) {
  told *t = i->first;
  if (t == NULL) return NULL;
  i->first = t->next;
  if (i->first == NULL) i->last = &i->first;
  return t;
}
