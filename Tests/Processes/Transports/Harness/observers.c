#include "observers.h"

record *record_create(void) {
  static record *records; /* never freed, because observers may be called until the process ends */
  record *r = calloc(1, sizeof *r);
  CHECK(r != NULL);
  r->next = records;
  records = r;
  pthread_mutex_init(&r->mutex, NULL);
  return r;
}

FUNCTION(record_call, record *r) {
  pthread_mutex_lock(&r->mutex);
  ++r->count;
  r->event = event;
  r->size = size;
  r->thread = pthread_self();
  if (size > 0) memcpy(r->payload, payload, size < sizeof r->payload ? size : sizeof r->payload);
  pthread_mutex_unlock(&r->mutex);
}

multicast_delegate recorder(record *r) {
  return DELEGATE(record_call, r);
}

static int count_of(record *r) {
  pthread_mutex_lock(&r->mutex);
  int count = r->count;
  pthread_mutex_unlock(&r->mutex);
  return count;
}

void record_wait(record *r, int count) {
  EVENTUALLY(count_of(r) >= count);
  CHECK_EQ(count_of(r), count);
}

bool record_is(record *r, uint32_t event, const void *payload, size_t size) {
  pthread_mutex_lock(&r->mutex);
  bool is_same = r->event == event && r->size == size &&
            (size == 0 || memcmp(r->payload, payload, size) == 0);
  pthread_mutex_unlock(&r->mutex);
  return is_same;
}

FUNCTION(count_in_order, sequence *s) {
  int number;
  if (size != sizeof number) {
    ADD(s->wrong, 1);
    return;
  }
  memcpy(&number, payload, sizeof number);
  if (number == s->next) STORE(s->next, number + 1);
  else if (number < s->next) ADD(s->repeated, 1);
  else ADD(s->wrong, 1);
}

multicast_delegate counting(sequence *s) {
  return DELEGATE(count_in_order, s);
}
