/* Payloads that the library owns or has copied with the caller's `copy` function. Releasing a
 * payload frees it. */

#ifndef PAYLOADS_H
#define PAYLOADS_H

#include <stdbool.h>
#include <stddef.h>

#include "multicast.h"

void payloads_begin(void);
void payloads_end(void); /* expects all payloads to have been released */

/* Returns a payload with bytes from the input, to be released by `payload_release`. */
void *payload_make(size_t size);

/* Frees a payload that the library has refused without releasing it. */
void payload_take_back(const void *payload);

void payload_release(const void *payload, size_t size);

/* Returns a copy that has to be released, or sometimes NULL. */
const void *payload_copy(const void *payload, size_t size);

/* Returns a copy that the library never has to release. */
const void *payload_copy_forever(const void *payload, size_t size);

/* Returns an invocation that the library can usually read, or sometimes NULL. */
multicast_invocation *any_invocation(void);

/* Returns whether the library can read the struct, in which case it uses the payload. */
bool is_readable(const multicast_invocation *how);

#endif
