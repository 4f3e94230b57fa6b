/* Functions for numeric payloads and for pseudo-random numbers. */

#ifndef NUMBERS_H
#define NUMBERS_H

#include "harness.h"

/* Invokes the multicast with the number as the payload. */
int64_t invoke_number(multicast m, int number);

/* Invokes the multicast with a payload of `size` bytes, at most 4096, that begins with the
 * number. */
int64_t invoke_padded_number(multicast m, int number, size_t size);

/* Returns the next pseudo-random 16-bit number. */
unsigned next(unsigned *seed);

#endif
