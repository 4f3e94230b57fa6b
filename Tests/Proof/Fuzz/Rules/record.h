/* The input: records of eight bytes, one operation each. The top level performs them in order. A
 * function that the library calls performs the next records while they are marked INSIDE. So the
 * input also decides how operations nest. */

#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_SIZE = 8, RECORDS = 160, INSIDE = 0x80 };

typedef struct record {
  uint8_t operation; /* without its mark */
  uint8_t a, b, c, d, e, f, g;
} record;

void records_begin(const uint8_t *data, size_t size);

/* Reads the next record for the top level. Returns false at the end. */
bool records_next(record *out);

/* Reads the next record for a function that the library has called. If false, the function
 * returns. */
bool records_next_inside(record *out);

#endif
