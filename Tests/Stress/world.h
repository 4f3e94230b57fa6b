/* The handles that all threads use at once; some of them are stale. */

#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>

#include "multicast.h"

enum {
  MULTICAST_COUNT = 10,
  TOKEN_COUNT = 96,
  LIFETIME_COUNT = 4,
  QUEUE_COUNT = 5,
  BROADCASTER_COUNT = 2,
  NAME_COUNT = 12
};

extern uint64_t world_multicasts[MULTICAST_COUNT];
extern uint64_t world_tokens[TOKEN_COUNT];
extern uint64_t world_lifetimes[LIFETIME_COUNT];
/* The first is nobody's to destroy, and has no thread of its own. */
extern uint64_t world_queues[QUEUE_COUNT];
extern uint64_t world_broadcasters[BROADCASTER_COUNT];

/* One of those, perhaps stale; sometimes forged. */
multicast random_multicast(void);
multicast_token random_token(void);
multicast_lifetime random_lifetime(void);
multicast_queue random_queue(void);
multicast_broadcaster random_broadcaster(void);
const char *random_name(void);

multicast_queue make_queue(void);

/* In a calm round no call waits for what a thread does that may be outside of all calls: for room
 * in a queue, or for a queue's thread to stop. Then no removal from outside of all calls is ever
 * refused its wait, also where what it returns does not tell. Else a removal may have to return
 * early: the thread that it comes from might be the one that has to run the queue. */
extern bool world_is_calm;
bool waits_for_certain(void);
bool is_outside_of_calls(void);

void world_make(bool is_calm);

/* Nobody else is there any more but queues' own threads, and who keeps the queues going. */
void world_destroy_queues(void);
void world_destroy_rest(void);

/* As many of everything at once as there will ever be, so that what the library keeps for the next
 * is all there before anything is measured. */
void world_warm_up(void);

#endif
