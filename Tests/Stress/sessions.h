/* A thread makes something, adds delegates with it, has all threads use it, and ends it: when that
 * has returned MULTICAST_OK outside of all calls, nothing of it runs on any thread. */

#ifndef SESSIONS_H
#define SESSIONS_H

#include <stddef.h>
#include <stdint.h>

void session_under_lifetime(void);
void session_with_queue(void);
void session_with_multicast(void);

/* A delegate that is never called. */
void ignore_call(void *context, uint32_t event, const void *payload, size_t size);

#endif
