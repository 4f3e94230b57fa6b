/* In a session, a thread creates an object, adds delegates that use it, lets all threads use the
 * object, and destroys it. If destroying the object returns MULTICAST_OK outside all calls, no call
 * to these delegates may be running. */

#ifndef SESSIONS_H
#define SESSIONS_H

#include <stddef.h>
#include <stdint.h>

/* Ends the queued calls of another thread's session if no thread runs the session's queue. */
void end_abandoned(void);

/* The function of a delegate that must not be called. */
void ignore_call(void *context, uint32_t event, const void *payload, size_t size);

#endif
