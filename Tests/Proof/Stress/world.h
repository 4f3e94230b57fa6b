/* The handles that all threads use. Some of them are stale. */

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
/* The first queue has no thread and is never destroyed during a round. */
extern uint64_t world_queues[QUEUE_COUNT];
extern uint64_t world_broadcasters[BROADCASTER_COUNT];

/* Return a random handle from these tables, which may be stale, or sometimes a forged handle. */
multicast random_multicast(void);
multicast make_multicast(void); /* with random policies, or none */
multicast_token random_token(void);
multicast_lifetime random_lifetime(void);
multicast_queue random_queue(void);
multicast_broadcaster random_broadcaster(void);
const char *random_name(void);
int number_of_name(const char *name); /* below NAME_COUNT */
const char *name_of(int number);

/* Half of the queues have a wake function. */
multicast_queue make_queue(void);
multicast_status destroy_queue(multicast_queue q);

/* In a calm round, a delegate never waits for a thread that might not be inside a call. It
 * therefore does not wait for room in a queue, for a queue's thread to stop, or for queued calls.
 * As a consequence, every removal outside all calls waits until no call is running, even if its
 * result does not say so. In other rounds, such a removal may return earlier, because the removing
 * thread may have to run the queue itself. */
extern bool world_is_calm;
bool waits_for_certain(void);
bool is_outside_of_calls(void);

void world_make(bool is_calm);

/* Called at the end of a round, when only the queues' threads and the thread that runs queues are
 * left. */
void world_destroy_queues(void);
void world_destroy_rest(void);

/* Creates as many objects and threads as can exist in any round. The library then allocates all
 * memory that it keeps for reuse before the first measurement. */
void world_warm_up(void);

#endif
