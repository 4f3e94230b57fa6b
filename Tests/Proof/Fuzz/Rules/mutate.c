/* A custom mutator for libFuzzer that changes whole records, so that the mutated input still
 * performs the same operations before the change, and usually also after it. One mutation in four
 * is made by libFuzzer's standard mutator. */

#include <string.h>

#include "operations.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned int seed);

static uint32_t state;

static size_t any(size_t below) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state % below;
}

static void begin(unsigned int seed) { state = seed * 2654435761u | 1; }

/* Half of the new records are marked INSIDE. */
static void make_record(uint8_t *r) {
  r[0] = (uint8_t)(any(OPERATIONS) | (any(2) ? INSIDE : 0));
  for (int i = 1; i < RECORD_SIZE; ++i) r[i] = (uint8_t)(any(4) ? any(64) : any(256));
}

static size_t insert(uint8_t *data, size_t count, size_t at, size_t how_many) {
  memmove(data + (at + how_many) * RECORD_SIZE, data + at * RECORD_SIZE,
          (count - at) * RECORD_SIZE);
  return count + how_many;
}

static size_t erase(uint8_t *data, size_t count, size_t at, size_t how_many) {
  memmove(data + at * RECORD_SIZE, data + (at + how_many) * RECORD_SIZE,
          (count - at - how_many) * RECORD_SIZE);
  return count - how_many;
}

static size_t copy_some(uint8_t *data, size_t count, size_t room) {
  uint8_t some[8 * RECORD_SIZE];
  size_t how_many = 1 + any(8), from = any(count), at = any(count + 1);
  if (how_many > count - from) how_many = count - from;
  if (how_many > room) how_many = room;
  memcpy(some, data + from * RECORD_SIZE, how_many * RECORD_SIZE);
  count = insert(data, count, at, how_many);
  memcpy(data + at * RECORD_SIZE, some, how_many * RECORD_SIZE);
  return count;
}

static void swap(uint8_t *data, size_t count) {
  uint8_t kept[RECORD_SIZE];
  uint8_t *a = data + any(count) * RECORD_SIZE, *b = data + any(count) * RECORD_SIZE;
  memcpy(kept, a, RECORD_SIZE);
  memmove(a, b, RECORD_SIZE);
  memcpy(b, kept, RECORD_SIZE);
}

static size_t mutate_records(uint8_t *data, size_t count, size_t room) {
  size_t at = any(count + 1);
  uint8_t *r = data + (count > 0 ? any(count) : 0) * RECORD_SIZE;
  if (count == 0 || (room > 0 && any(3) == 0)) {
    if (room == 0) return count;
    count = insert(data, count, at, 1);
    make_record(data + at * RECORD_SIZE);
    return count;
  }
  switch (any(7)) {
    case 0: return erase(data, count, any(count), 1);
    case 1: return room > 0 ? copy_some(data, count, room) : count;
    case 2: swap(data, count); break;
    case 3: r[0] ^= INSIDE; break;
    case 4: r[0] = (uint8_t)((r[0] & INSIDE) | any(OPERATIONS)); break;
    case 5: make_record(r); break;
    default: r[1 + any(RECORD_SIZE - 1)] = (uint8_t)any(256);
  }
  return count;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
  size_t count = size / RECORD_SIZE, most = max_size / RECORD_SIZE;
  begin(seed);
  if (most > RECORDS) most = RECORDS;
  if (most == 0 || count > most || any(4) == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (size_t changes = 1 + any(4); changes > 0; --changes)
    count = mutate_records(data, count, most - count);
  return count * RECORD_SIZE;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned int seed) {
  begin(seed);
  size_t first = any(a_size / RECORD_SIZE + 1) * RECORD_SIZE;
  size_t from = any(b_size / RECORD_SIZE + 1) * RECORD_SIZE;
  if (first > max_size) first = max_size;
  size_t second = b_size / RECORD_SIZE * RECORD_SIZE - from;
  if (second > max_size - first) second = max_size - first;
  memcpy(out, a, first);
  memcpy(out + first, b + from, second);
  return first + second;
}
