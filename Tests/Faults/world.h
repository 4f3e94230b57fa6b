/* What functions are called on: a little of everything. */

#ifndef WORLD_H
#define WORLD_H

#include "../Interface/harness.h"

typedef struct world {
  multicast m;          /* has four delegates: at once, queued, under the lifetime, once more */
  multicast_token token;
  multicast_queue queue; /* has room for 16 calls and refuses */
  multicast_lifetime lifetime;
  multicast_broadcaster broadcaster; /* "known" has one observer */
  multicast known;
  int calls;
  int releases, owed; /* how many releases have run, and are going to have run in the end */
  int names;          /* made up so far */
  uint64_t made[100]; /* handles that calls have created */
  int made_count;
} world;

extern const char *const known_name;
extern const char payload[100]; /* what is passed to delegates, or nothing */

void world_begin(world *w);
void world_end(world *w); /* everything is gone, and every release has run */

/* What can be seen of a world without a change to it. */
typedef struct world_state {
  int64_t delegates, members, observers;
  multicast_delegate list[64];
  bool is_live;
  multicast_queue_stats stats;
  int calls, made_count;
} world_state;
world_state world_look(const world *w);
/* Fails the test where anything has changed since. */
void world_expect(const world *w, const world_state *before);

/* What all of its delegates are; and another, of which it has none at first. */
multicast_delegate delegate_of(world *w);
multicast_delegate other_delegate_of(world *w);
void be_released(void *context); /* counts */

#endif
