/* Options: those that all transports have; structs of callers, which begin with `struct_size`, and
 * the texts in them. */

#ifndef MULTICAST_TRANSPORTS_OPTIONS_H
#define MULTICAST_TRANSPORTS_OPTIONS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <multicast.h>

/* ---- Settings -------------------------------------------------------------------------------- */

typedef struct settings {
  multicast_broadcaster broadcaster;
  multicast_queue queue;
  const char *prefix;
  bool refuses_offline;
  uint32_t capacity;
  multicast_overflow overflow;
  uint32_t max_payload;
  uint64_t reconnect_min_ns, reconnect_max_ns, connect_timeout_ns;
  void (*changed)(void *context, uint32_t state, int32_t code, const char *reason);
  void *context;
  void (*release)(void *context);
} settings;

/* Puts defaults in the place of zeros, and checks the rest. */
multicast_status settings_complete(settings *s, uint32_t default_payload, uint32_t largest_payload);

/* ---- Structs of callers ---------------------------------------------------------------------- */

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

/* How many bytes of a text fit into so many, without a part of a character in UTF-8. */
size_t text_fit(const char *text, size_t most);
/* Copies what fits, with a NUL. */
void text_copy(char *to, size_t size, const char *from);

#endif
