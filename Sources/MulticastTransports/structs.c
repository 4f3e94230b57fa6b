#include "structs.h"

#include <stdlib.h>
#include <string.h>

enum { STRUCT_MAX_SIZE = 1024 };

/* 0: none that this version reads or writes. */
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
