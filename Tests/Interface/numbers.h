/* A number as the payload, followed by as many bytes as a test wants. */

#ifndef NUMBERS_H
#define NUMBERS_H

#include "harness.h"

/* Not that of notes.h, which has no size: who includes one has no need of the other. */
static inline int64_t invoke_number(multicast m, int number, size_t size) {
  static __thread unsigned char bytes[4096];
  memcpy(bytes, &number, sizeof number);
  return multicast_invoke(m, 0, bytes, size);
}

#endif
