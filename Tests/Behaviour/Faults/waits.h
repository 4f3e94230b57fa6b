/* A table of all the library's functions that wait. */

#ifndef WAITS_H
#define WAITS_H

#include "../Interface/harness.h"

/* The objects that one wait uses. */
typedef struct scene {
  multicast m; /* the multicast of the name "name", with one delegate, whose call blocks */
  multicast_token token;
  multicast_delegate delegate;
  multicast_queue queue; /* 0 if there is none */
  multicast_lifetime lifetime;
  multicast_broadcaster broadcaster;
  blocker b;
  gate release_may_return;
  bool release_blocks;
  int queued_calls; /* the number of calls to a second delegate, which has a queue */
  pthread_t other;
  bool has_other;
} scene;

typedef struct wait {
  const char *name;
  void (*begin)(scene *s);   /* returns when the wait can begin */
  int64_t (*wait)(scene *s);
  void (*end)(scene *s);     /* ends the wait; NULL: the wait times out */
  int64_t result;
} wait;

extern const wait waits[];
extern const int wait_count;

enum { SHORT_NS = 300000000 }; /* the timeout of the waits that time out */

void scene_begin(scene *s, const wait *w);
void scene_end(scene *s); /* checks calls and releases */

#endif
