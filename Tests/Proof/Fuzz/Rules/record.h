/* The input is a sequence of records of eight bytes, with one operation each. The top level
 * performs them in order. A function that the library calls performs the next records as long as
 * they are marked INSIDE, so the input also determines how the operations nest. */

#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_SIZE = 8, RECORDS = 160, INSIDE = 0x80 };

typedef struct record {
  uint8_t operation; /* without the mark INSIDE */
  uint8_t a, b, c, d, e, f, g;
} record;

void records_begin(const uint8_t *data, size_t size);

/* Reads the next record for the top level. Returns false at the end of the input. */
bool records_next(record *out);

/* Reads the next record for a function that the library has called. Returns false if the function
 * should return. */
bool records_next_inside(record *out);

#endif
