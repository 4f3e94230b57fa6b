/* Payloads that the library owns, or has copied with a function of the caller. Each payload is
 * freed when it is released. */

#ifndef PAYLOADS_H
#define PAYLOADS_H

#include <stdbool.h>
#include <stddef.h>

#include "multicast.h"

void payloads_begin(void);
void payloads_end(void); /* expects that all were released */

/* A payload from the input, which `payload_release` has to release. */
void *payload_make(size_t size);

/* Frees a payload that the library has refused without a release. */
void payload_take_back(const void *payload);

void payload_release(const void *payload, size_t size);

/* Returns a copy that has to be released, or sometimes NULL. */
const void *payload_copy(const void *payload, size_t size);

/* Returns a copy that is not to be released. */
const void *payload_copy_forever(const void *payload, size_t size);

/* An invocation. Mostly readable, sometimes NULL. */
multicast_invocation *any_invocation(void);

/* Whether the library can read the struct, and therefore uses its payload. */
bool is_readable(const multicast_invocation *how);

#endif
