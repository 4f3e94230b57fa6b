#include "notes.h"

/* ---- The text -------------------------------------------------------------------------------- */

char noted[1 << 16];
size_t noted_length;
int releases[128];

static void append_note(const char *text) {
  size_t length = strlen(text);
  CHECK(noted_length + length + 2 < sizeof noted);
  if (noted_length > 0) noted[noted_length++] = ' ';
  memcpy(noted + noted_length, text, length + 1);
  noted_length += length;
}

void note_call(void *context, uint32_t event, const void *payload, size_t size) {
  char text[64];
  int used = snprintf(text, sizeof text, "%c", (char)(intptr_t)context);
  int number = 0;
  if (size >= sizeof number) {
    memcpy(&number, payload, sizeof number);
    used += snprintf(text + used, sizeof text - (size_t)used, "%d", number);
  }
  if (event != 0) snprintf(text + used, sizeof text - (size_t)used, "@%u", (unsigned)event);
  append_note(text);
}

void count_release_of(void *context) { ADD(releases[(intptr_t)context], 1); }

multicast_delegate noting(char name) {
  return (multicast_delegate){note_call, (void *)(intptr_t)name};
}

/* ---- Parcels --------------------------------------------------------------------------------- */

FUNCTION(keep_parcel, parcel *p) {
  ++p->calls;
  p->payload = payload;
  p->size = size;
  CHECK(size <= sizeof p->bytes);
  if (size > 0) memcpy(p->bytes, payload, size);
}

multicast_delegate keeping(parcel *p) {
  return (multicast_delegate){keep_parcel, p};
}
