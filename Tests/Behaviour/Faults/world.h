/* A world contains one object of each kind for the functions under test. */

#ifndef WORLD_H
#define WORLD_H

#include "../Interface/harness.h"

typedef struct world {
  multicast m; /* its four delegates are plain, queued, in the lifetime, and plain */
  multicast_token token;
  multicast_queue queue; /* has room for 16 calls and refuses */
  multicast_lifetime lifetime;
  multicast_broadcaster broadcaster; /* "known" has one observer */
  multicast known;
  int calls;
  int releases, owed; /* releases that have run, and releases due by the end */
  int payloads, payloads_released; /* payloads handed over, and payloads released */
  int names;          /* number of new names */
  uint64_t made[100]; /* handles that the functions have created */
  int made_count;
} world;

extern const char *const known_name;
extern const char payload[100]; /* delegates receive this payload or none */

void world_begin(world *w);
void world_end(world *w); /* destroys everything, and checks that every release has run */

/* The part of a world's state that the library's functions report. */
typedef struct world_state {
  int64_t delegates, members, observers;
  multicast_delegate list[64];
  bool is_live;
  multicast_queue_stats stats;
  int calls, made_count;
} world_state;
world_state world_look(const world *w);
/* Fails the test if the state has changed. */
void world_expect(const world *w, const world_state *before);

/* delegate_of() returns the delegate of all registrations in the world. other_delegate_of() returns
 * a second delegate, which is not registered at first. */
multicast_delegate delegate_of(world *w);
multicast_delegate other_delegate_of(world *w);
void be_released(void *context); /* counts its calls */

#endif
