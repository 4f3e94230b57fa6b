#include "numbers.h"

int64_t invoke_number(multicast m, int number) {
  return multicast_invoke(m, 0, &number, sizeof number);
}

int64_t invoke_padded_number(multicast m, int number, size_t size) {
  static __thread unsigned char bytes[4096];
  memcpy(bytes, &number, sizeof number);
  return multicast_invoke(m, 0, bytes, size);
}

unsigned next(unsigned *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 16;
}
