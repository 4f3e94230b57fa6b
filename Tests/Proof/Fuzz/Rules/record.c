#include "record.h"

static const uint8_t *bytes;
static size_t position, count;

void records_begin(const uint8_t *data, size_t size) {
  bytes = data;
  position = 0;
  count = size / RECORD_SIZE < RECORDS ? size / RECORD_SIZE : RECORDS;
}

bool records_next(record *out) {
  const uint8_t *r = bytes + position * RECORD_SIZE;
  if (position == count) return false;
  ++position;
  out->operation = r[0] & (INSIDE - 1);
  out->a = r[1], out->b = r[2], out->c = r[3], out->d = r[4];
  out->e = r[5], out->f = r[6], out->g = r[7];
  return true;
}

bool records_next_inside(record *out) {
  return position < count && (bytes[position * RECORD_SIZE] & INSIDE) != 0 && records_next(out);
}
