/* Sessions: a thread creates an object, adds delegates that use it, lets all threads use it, and
 * destroys it. If the destroy returns MULTICAST_OK outside all calls, no call of those delegates
 * may be running. */

#ifndef SESSIONS_H
#define SESSIONS_H

#include <stddef.h>
#include <stdint.h>

/* Ends the calls of a session of another thread whose queue is never run. */
void end_abandoned(void);

/* A delegate that is never called. */
void ignore_call(void *context, uint32_t event, const void *payload, size_t size);

#endif
