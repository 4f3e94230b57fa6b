/* Sessions: a thread creates an object, adds delegates that use it, lets all threads use it, and
 * destroys it. If that returns MULTICAST_OK outside all calls, no call of those delegates runs. */

#ifndef SESSIONS_H
#define SESSIONS_H

#include <stddef.h>
#include <stdint.h>

void session_under_lifetime(void);
void session_with_queue(void);
void session_with_multicast(void);
void session_with_contexts_of_one_kind(void);

/* Sessions whose queue no other operation uses: the outcome of each invocation is known. */
void session_that_waits(void);            /* for the queue's own thread */
void session_that_waits_for_itself(void); /* the thread that runs the queue */

/* Forks while calls wait. The child must not release the payloads of this process. */
void session_that_forks(void);

/* A session whose queue is never run. `end_abandoned` ends its calls, on another thread. */
void session_that_others_end(void);
void end_abandoned(void);

/* A delegate that is never called. */
void ignore_call(void *context, uint32_t event, const void *payload, size_t size);

#endif
