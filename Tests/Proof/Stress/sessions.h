/* Sessions: a thread creates an object, adds delegates that use it, lets all threads use it, and
 * destroys it. If that returns MULTICAST_OK outside all calls, no call of those delegates runs. */

#ifndef SESSIONS_H
#define SESSIONS_H

#include <stddef.h>
#include <stdint.h>

/* Ends the calls of sessions whose queue is never run, on another thread. */
void end_abandoned(void);

/* A delegate that is never called. */
void ignore_call(void *context, uint32_t event, const void *payload, size_t size);

#endif
