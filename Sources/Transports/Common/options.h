/* The options of all transports, and functions for callers' structs, which begin with the field
 * `struct_size` and may contain strings. */

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

/* Replaces zeros with defaults, and checks all other values. */
multicast_status settings_complete(settings *s, uint32_t default_payload, uint32_t largest_payload);

/* ---- Callers' structs ------------------------------------------------------------------------ */

/* Copies the first `size` bytes of a caller's struct, which are the fields of this version. Returns
 * false if `struct_size` is wrong or the caller has set fields of a later version. */
bool struct_read(void *to, const void *from, size_t size);
/* Copies `size` bytes to a caller's struct, and fills the rest of the struct with zeros. Returns
 * false if the caller's `struct_size` is wrong. */
bool struct_write(void *to, void *from, size_t size);

/* Copies of the strings in a struct, stored one after the other. Some strings may be secrets, so
 * texts_free() overwrites all of them. */
typedef struct texts {
  char *bytes; /* NULL if there are none */
  size_t size;
} texts;

/* Replaces the strings at the given offsets with copies. At least one string must not be NULL.
 * Returns false if there is no memory. */
bool texts_copy(texts *copies, void *options, const size_t *offsets, size_t count);
void texts_free(texts *copies); /* overwrites the strings before it frees them */
void text_free(char *text);     /* overwrites the string before it frees it */

/* Returns how many bytes of a text fit into `most` bytes without splitting a UTF-8 character. */
size_t text_fit(const char *text, size_t most);
/* Copies as much of a text as fits into `size` bytes, and adds a NUL. */
void text_copy(char *to, size_t size, const char *from);

#endif
