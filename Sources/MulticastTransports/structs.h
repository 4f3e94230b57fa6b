/* Structs of callers, which begin with `struct_size`, and the texts in them. */

#ifndef MULTICAST_TRANSPORTS_STRUCTS_H
#define MULTICAST_TRANSPORTS_STRUCTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <multicast.h>

/* Copies what this version knows: `size` bytes, as many as in the first version. False: it cannot
 * be read. */
bool struct_read(void *to, const void *from, size_t size);
/* Copies `size` bytes to the caller, and zeros behind them. False: `to` cannot be written. */
bool struct_write(void *to, void *from, size_t size);

/* Copies of the texts in a struct, one behind the other. Each of them may be a secret. */
typedef struct texts {
  char *bytes; /* NULL: none */
  size_t size;
} texts;

/* Replaces the texts at these offsets by copies; at least one is not NULL. False: out of memory. */
bool texts_copy(texts *copies, void *options, const size_t *offsets, size_t count);
void texts_free(texts *copies);
void text_free(char *text); /* overwrites it, too */

#endif
