#include "options.h"

#include "process.h"

#include <stdlib.h>
#include <string.h>

/* ---- Settings -------------------------------------------------------------------------------- */

enum { DEFAULT_CAPACITY = 8192, CAPACITY_MAX = 1 << 24 };

static void set_default(uint64_t *ns, uint64_t value) {
  if (*ns == 0) *ns = value;
}

multicast_status settings_complete(settings *s, uint32_t default_payload,
                                   uint32_t largest_payload) {
  const uint64_t longest = (uint64_t)1 << 62;
  if (s->capacity == 0) s->capacity = DEFAULT_CAPACITY;
  if (s->max_payload == 0) s->max_payload = default_payload;
  set_default(&s->reconnect_min_ns, ns_of_second / 10);
  set_default(&s->reconnect_max_ns, 30 * ns_of_second);
  set_default(&s->connect_timeout_ns, 10 * ns_of_second);
  if (s->capacity > CAPACITY_MAX || s->max_payload > largest_payload ||
      (s->overflow != MULTICAST_OVERFLOW_REFUSE && s->overflow != MULTICAST_OVERFLOW_DROP_OLDEST) ||
      s->reconnect_min_ns > s->reconnect_max_ns || s->reconnect_max_ns > longest ||
      s->connect_timeout_ns > longest)
    return MULTICAST_ERROR_INVALID_ARGUMENT;
  return multicast_broadcaster_is_valid(s->broadcaster) &&
                 (s->queue.id == 0 || multicast_queue_is_valid(s->queue))
             ? MULTICAST_OK
             : MULTICAST_ERROR_INVALID_HANDLE;
}

/* ---- Callers' structs ------------------------------------------------------------------------ */

enum { STRUCT_MAX_SIZE = 1024 };

/* Returns `struct_size`, or 0 if this version cannot read or write the struct. */
static uint32_t size_of(const void *from, size_t least) {
  uint32_t size = 0;
  if (from != NULL) memcpy(&size, from, sizeof size);
  return size < least || size > STRUCT_MAX_SIZE ? 0 : size;
}

bool struct_read(void *to, const void *from, size_t size) {
  const unsigned char *bytes = from;
  uint32_t whole = size_of(from, size);
  size_t i;
  for (i = size; i < whole; ++i) {
    if (bytes[i] != 0) return false;
  }
  if (whole != 0) memcpy(to, from, size);
  return whole != 0;
}

bool struct_write(void *to, void *from, size_t size) {
  uint32_t whole = size_of(to, size);
  if (whole == 0) return false;
  memset(to, 0, whole);
  memcpy(from, &whole, sizeof whole);
  memcpy(to, from, size);
  return true;
}

static const char **text_at(void *options, size_t offset) {
  return (const char **)(void *)((char *)options + offset);
}

bool texts_copy(texts *copies, void *options, const size_t *offsets, size_t count) {
  size_t i, size = 0;
  char *at;
  for (i = 0; i < count; ++i) {
    const char *text = *text_at(options, offsets[i]);
    if (text != NULL) size += strlen(text) + 1;
  }
  at = malloc(size);
  if (at == NULL) return false;
  copies->bytes = at;
  copies->size = size;
  for (i = 0; i < count; ++i) {
    const char **text = text_at(options, offsets[i]);
    if (*text == NULL) continue;
    size = strlen(*text) + 1;
    *text = memcpy(at, *text, size);
    at += size;
  }
  return true;
}

void texts_free(texts *copies) {
  if (copies->bytes != NULL) explicit_bzero(copies->bytes, copies->size);
  free(copies->bytes);
}

void text_free(char *text) {
  if (text != NULL) explicit_bzero(text, strlen(text));
  free(text);
}

size_t text_fit(const char *text, size_t most) {
  size_t size = strnlen(text, most + 1);
  if (size <= most) return size;
  /* Go back to the first byte of the character that does not fit. */
  for (size = most; size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80; --size) {
  }
  return size;
}

void text_copy(char *to, size_t size, const char *from) {
  const size_t fits = text_fit(from, size - 1);
  memcpy(to, from, fits);
  to[fits] = '\0';
}
