/* Every wait of the library, each ready to be disturbed. */

#ifndef WAITS_H
#define WAITS_H

#include "../Interface/harness.h"

/* What is waited in, by one thread, for another. */
typedef struct scene {
  multicast m; /* that of "name"; has one delegate, which blocks */
  multicast_token token;
  multicast_delegate delegate;
  multicast_queue queue; /* or none */
  multicast_lifetime lifetime;
  multicast_broadcaster broadcaster;
  blocker b;
  gate release_may_return;
  bool release_blocks;
  int waiting_calls; /* of another delegate, which waits in the queue */
  pthread_t other;
  bool has_other;
} scene;

typedef struct wait {
  const char *name;
  void (*begin)(scene *s);   /* until something is there to wait for */
  int64_t (*wait)(scene *s);
  void (*end)(scene *s);     /* brings it about; NULL: the time is up by itself */
  int64_t result;
} wait;

extern const wait waits[];
extern const int wait_count;

enum { SHORT_NS = 300000000 }; /* how long the waits wait whose time is up by itself */

void scene_begin(scene *s, const wait *w);
void scene_end(scene *s); /* and sees to it that nothing is lost or left behind */

#endif
