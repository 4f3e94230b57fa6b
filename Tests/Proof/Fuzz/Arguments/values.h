/* Makes arguments from the input's bytes: valid, stale and forged handles, structs of any size and
 * content, names and payloads. Pointers are valid, and point to exactly as many bytes as the
 * library may read according to the header. */

#ifndef VALUES_H
#define VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "multicast.h"

void values_begin(const uint8_t *data, size_t size);
void values_end(void); /* frees all memory */
bool values_are_left(void);

uint8_t any_byte(void);
uint32_t any_uint32(void);
uint64_t any_uint64(void);
size_t any_size(void); /* a small size, or one larger than any memory */
uint64_t any_timeout(void); /* in nanoseconds */

/* ---- Handles --------------------------------------------------------------------------------- */

/* Stores a handle, so that it can later be passed to any function. Its object is destroyed at the
 * end. */
void keep_handle(uint64_t id);
int kept_handles(void);
uint64_t kept_handle(int index);
uint64_t any_handle(void);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Returns a block of `size` bytes from the input. The address sanitizer checks the block's
 * bounds. */
void *any_bytes(size_t size);

/* Returns a struct that begins with its size, or sometimes NULL. */
void *any_struct(size_t known_size);

/* Like any_struct(), but for a struct that was smaller in an older version, so all sizes from
 * `oldest_size` on are valid. */
void *any_older_struct(size_t oldest_size, size_t known_size);

/* Returns a struct for the library to fill. Only its size field is initialized. */
void *any_output(size_t known_size);

/* Returns a name. For the default broadcaster, the name is one of a few fixed names, because that
 * broadcaster never forgets a name. */
const char *any_name(multicast_broadcaster of);

const char *any_text(void); /* arbitrary bytes, terminated by NUL */

multicast_function any_function(void);
void *any_context(void);
int64_t any_number(void);

/* ---- Objects --------------------------------------------------------------------------------- */

enum { FEW = 4 };
size_t any_room(void); /* at most FEW */

multicast_token any_token(void);
multicast_broadcaster any_broadcaster(void);
multicast_delegate any_delegate(void);

/* Returns `*count` delegates, at most FEW, or NULL with an arbitrary count. */
multicast_delegate *any_delegates(size_t *count);

#endif
