#include "questions.h"

#include "../process.h"

#include <stdlib.h>

void answerer_drop(answerer *a) {
  if (a == NULL) return;
  if (__atomic_sub_fetch(&a->references, 1, __ATOMIC_ACQ_REL) > 0) return; /* order: references */
  if (a->release != NULL) a->release(a->context);
  free(a);
}

static inquiry **list_of(const inquiries *all, uint64_t number) {
  return (inquiry **)(uintptr_t)&all->lists[number % INQUIRY_LISTS];
}

void inquiry_add(inquiries *all, inquiry *i) {
  inquiry **list;
  i->number = ++all->numbers;
  i->last = &i->first;
  process_make_condition(&i->changed);
  list = list_of(all, i->number);
  i->next = *list;
  *list = i;
  ++all->count;
}

void inquiry_remove(inquiries *all, inquiry *i) {
  inquiry **place = list_of(all, i->number);
  while (*place != i) place = &(*place)->next;
  *place = i->next;
  --all->count;
  pthread_cond_destroy(&i->changed);
}

inquiry *inquiry_find(const inquiries *all, uint64_t number) {
  inquiry *i = *list_of(all, number);
  while (i != NULL && i->number != number) i = i->next;
  return i;
}

inquiry *inquiry_next(const inquiries *all, const inquiry *i) {
  size_t list = 0;
  if (i != NULL && i->next != NULL) return i->next;
  if (i != NULL) list = (size_t)(i->number % INQUIRY_LISTS) + 1;
  while (list < INQUIRY_LISTS && all->lists[list] == NULL) ++list;
  return list < INQUIRY_LISTS ? all->lists[list] : NULL;
}

void inquiries_wake(const inquiries *all) {
  inquiry *i;
  if (all->count == 0) return;
  for (i = inquiry_next(all, NULL); i != NULL; i = inquiry_next(all, i))
    pthread_cond_signal(&i->changed);
}

void inquiry_end(inquiry *i, multicast_status why) {
  if (i == NULL || i->end != MULTICAST_PENDING) return;
  i->end = why;
  pthread_cond_signal(&i->changed);
}

void inquiry_tell(inquiry *i, told *t) {
  t->next = NULL;
  *i->last = t;
  i->last = &t->next;
  pthread_cond_signal(&i->changed);
}

told *inquiry_take(inquiry *i) {
  told *t = i->first;
  if (t == NULL) return NULL;
  i->first = t->next;
  if (i->first == NULL) i->last = &i->first;
  return t;
}
