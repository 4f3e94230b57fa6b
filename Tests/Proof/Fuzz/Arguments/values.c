#include "values.h"

#include <stdlib.h>
#include <string.h>

#include "callees.h"
#include "expect.h"

enum { HANDLES = 512, BLOCKS = 4096, LARGEST_STRUCT = 1024 };

static const uint8_t *bytes;
static size_t position, count;
static uint64_t handles[HANDLES];
static int handle_count;
static void *blocks[BLOCKS];
static int block_count;

void values_begin(const uint8_t *data, size_t size) {
  bytes = data;
  position = 0;
  count = size;
  handle_count = block_count = 0;
}

void values_end(void) {
  while (block_count > 0) free(blocks[--block_count]);
}

bool values_are_left(void) {
  return position < count && block_count < BLOCKS - 16 && handle_count < HANDLES - 8;
}

uint8_t any_byte(void) { return position < count ? bytes[position++] : 0; }

uint32_t any_uint32(void) {
  uint32_t value = any_byte();
  value |= (uint32_t)any_byte() << 8;
  value |= (uint32_t)any_byte() << 16;
  return value | (uint32_t)any_byte() << 24;
}

uint64_t any_uint64(void) {
  uint64_t low = any_uint32();
  return low | (uint64_t)any_uint32() << 32;
}

size_t any_size(void) {
  uint8_t b = any_byte();
  switch (b >> 4) {
    case 15: return SIZE_MAX - (b & 15);
    case 14: return (size_t)1 << (26 + (b & 15)); /* 2^26 is the limit of handles */
    case 13: return ((size_t)1 << 26) + 1;
    default: return b % 5;
  }
}

uint64_t any_timeout(void) { return any_byte() < 128 ? any_uint64() : any_byte(); }

/* ---- Handles --------------------------------------------------------------------------------- */

void keep_handle(uint64_t id) {
  if (id != 0 && handle_count < HANDLES) handles[handle_count++] = id;
}

int kept_handles(void) { return handle_count; }
uint64_t kept_handle(int index) { return handles[index]; }

uint64_t any_handle(void) {
  uint8_t b = any_byte();
  uint64_t id = handle_count > 0 ? handles[any_byte() % handle_count] : 0;
  if (b < 200) return id;
  if (b < 230) return id ^ UINT64_C(1) << b % 64;
  if (b < 240) return id + (uint64_t)(b % 3) - 1;
  return b < 250 ? any_uint64() : 0;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

void *any_bytes(size_t size) {
  unsigned char *block = malloc(size > 0 ? size : 1);
  EXPECT(block != NULL && block_count < BLOCKS, "the fuzz target is out of memory");
  for (size_t i = 0; i < size; ++i) block[i] = any_byte();
  return blocks[block_count++] = block;
}

/* If `struct_size` is invalid, the block contains only the size field. */
void *any_struct(size_t known_size) { return any_older_struct(known_size, known_size); }

void *any_older_struct(size_t oldest_size, size_t known_size) {
  uint8_t b = any_byte();
  uint32_t size = (uint32_t)known_size;
  if (b < 16) return NULL;
  if (b < 24) size = any_uint32();
  if (b >= 24 && b < 40) size += any_byte() * 8u;
  if (b >= 40 && b < 44) size -= any_byte();
  size_t there = size < oldest_size || size > LARGEST_STRUCT ? sizeof size : size;
  unsigned char *block = malloc(there);
  EXPECT(block != NULL && block_count < BLOCKS, "the fuzz target is out of memory");
  memset(block, 0, there);
  memcpy(block, &size, sizeof size);
  if (b >= 24 && b < 28 && there > known_size) block[there - 1] = any_byte();
  return blocks[block_count++] = block;
}

void *any_output(size_t known_size) {
  unsigned char *block = any_struct(known_size);
  uint32_t size;
  if (block == NULL) return NULL;
  memcpy(&size, block, sizeof size);
  if (size < known_size || size > LARGEST_STRUCT) return block;
  for (uint32_t i = sizeof size; i < size; ++i) block[i] = 0xAB;
  return block;
}

const char *any_name(multicast_broadcaster of) {
  static const char *const some[] = {"a", "b", "ab", "", NULL};
  static char longest[300];
  uint8_t b = any_byte();
  if (b < 128 || of.id == multicast_broadcaster_default().id) return some[b % 5];
  size_t size = b < 240 ? any_byte() % 8 : 250 + any_byte() % 10;
  memset(longest, 'x', size);
  char *name = any_bytes(size + 1);
  if (b >= 240) memcpy(name, longest, size);
  name[size] = '\0';
  return name;
}

const char *any_text(void) {
  size_t size = any_byte() % 32;
  char *text = any_bytes(size + 1);
  text[size] = '\0';
  return text;
}

multicast_function any_function(void) {
  return any_byte() < 8 ? NULL : callee_functions[any_byte() % CALLEES];
}

/* Contexts are small numbers, so that the program crashes if the library dereferences one. */
void *any_context(void) { return (void *)(uintptr_t)(any_byte() % 4); }

int64_t any_number(void) {
  return any_byte() & 1 ? (int32_t)any_uint32() : (int64_t)any_uint64();
}

/* ---- Objects --------------------------------------------------------------------------------- */

size_t any_room(void) {
  size_t room = any_size();
  return room > FEW ? FEW : room;
}

multicast_token any_token(void) {
  multicast_token t = {any_handle()};
  if (any_byte() < 32) t = multicast_token_current();
  return t;
}

multicast_broadcaster any_broadcaster(void) {
  multicast_broadcaster b = {any_handle()};
  if (any_byte() < 24) b = multicast_broadcaster_default();
  return b;
}

multicast_delegate any_delegate(void) {
  return (multicast_delegate){any_function(), any_context()};
}

multicast_delegate *any_delegates(size_t *count) {
  multicast_delegate *delegates = any_bytes(FEW * sizeof *delegates);
  *count = any_room();
  for (int i = 0; i < FEW; ++i) delegates[i] = any_delegate();
  if (any_byte() >= 16) return delegates;
  *count = any_size();
  return NULL;
}
