/* Arguments made of the input's bytes: handles that exist, that existed or never did, structs of
 * any size and content, names, payloads. What a C program may pass, however foolish: memory that
 * is named is there, to the last byte that the header says may be read, and not one further. */

#ifndef VALUES_H
#define VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "multicast.h"

void values_begin(const uint8_t *data, size_t size);
void values_end(void); /* frees all that was made */
bool values_are_left(void);

uint8_t any_byte(void);
uint32_t any_uint32(void);
uint64_t any_uint64(void);
size_t any_size(void); /* small, or beyond all memory */

/* ---- Handles --------------------------------------------------------------------------------- */

/* Kept, to be given to any function, and to be destroyed at the end. */
void keep_handle(uint64_t id);
int kept_handles(void);
uint64_t kept_handle(int index);
uint64_t any_handle(void);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* `size` of the input's bytes; the address sanitizer knows its end. */
void *any_bytes(size_t size);

/* A struct that begins with its size: NULL now and then. */
void *any_struct(size_t known_size);

/* One of few names where they stay for ever: in the broadcaster of the process. */
const char *any_name(multicast_broadcaster of);

multicast_function any_function(void);
void *any_context(void);

#endif
