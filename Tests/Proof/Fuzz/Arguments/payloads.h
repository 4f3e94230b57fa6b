/* Payloads that the library owns, or that it has copied by a function. Each is freed when it is
 * released. */

#ifndef PAYLOADS_H
#define PAYLOADS_H

#include <stdbool.h>
#include <stddef.h>

#include "multicast.h"

void payloads_begin(void);
void payloads_end(void); /* expects that all were released */

/* A payload from the input, which `payload_release` has to release. */
void *payload_make(size_t size);

/* The library has refused it without a release. */
void payload_take_back(const void *payload);

void payload_release(const void *payload, size_t size);

/* What it returns has to be released. Sometimes NULL. */
const void *payload_copy(const void *payload, size_t size);

/* What it returns has not. */
const void *payload_copy_forever(const void *payload, size_t size);

/* An invocation, mostly a readable one; sometimes NULL. */
multicast_invocation *any_invocation(void);

/* Whether the library reads it, and so uses its payload. */
bool is_readable(const multicast_invocation *how);

#endif
