/* Observers that the tests of transports register. */

#ifndef OBSERVERS_H
#define OBSERVERS_H

#include "../../../Behaviour/Interface/harness.h"

/* Stores the last notification, and counts all notifications. */
typedef struct record {
  struct record *next;
  pthread_mutex_t mutex;
  int count;
  uint32_t event;
  size_t size;
  pthread_t thread;
  unsigned char payload[1 << 20];
} record;

record *record_create(void);
multicast_delegate recorder(record *r);
void record_wait(record *r, int count); /* until `count` notifications have arrived in total */
bool record_is(record *r, uint32_t event, const void *payload, size_t size);

/* Expects the numbers 0, 1, 2 and so on, and counts repeated and wrong numbers. */
typedef struct sequence {
  int next;
  int repeated;
  int wrong;
} sequence;
multicast_delegate counting(sequence *s);

#endif
