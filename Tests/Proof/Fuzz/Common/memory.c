#include "memory.h"

#include <stddef.h>
#include <stdlib.h>

#include "expect.h"
#include "multicast.h"

enum { LARGEST = 1 << 26, ROUNDS = 200 };

static int successes_left = -1; /* -1: any number */
static int64_t failures;
static int64_t blocks;

typedef struct header {
  size_t size;
  size_t alignment;
} header;

/* Stores the size and the alignment in front of the block, to compare them when the block is
 * deallocated. */
static void *allocate(void *context, size_t size, size_t alignment) {
  size_t offset = alignment < sizeof(header) ? sizeof(header) : alignment;
  unsigned char *base;
  EXPECT(context == &blocks && size > 0, "an allocation of 0 bytes, or with the wrong context");
  EXPECT(alignment > 0 && alignment <= 128 && (alignment & (alignment - 1)) == 0,
         "an invalid alignment");
  if (successes_left == 0 || size > LARGEST) {
    ++failures;
    return NULL;
  }
  if (successes_left > 0) --successes_left;
  if (posix_memalign((void **)&base, offset, offset + size) != 0) abort();
  header *h = (header *)(void *)(base + offset - sizeof(header));
  h->size = size;
  h->alignment = alignment;
  ++blocks;
  return base + offset;
}

static void deallocate(void *context, void *block, size_t size, size_t alignment) {
  header *h = (header *)block - 1;
  EXPECT(context == &blocks, "a deallocation with the wrong context");
  EXPECT_EQ(size, h->size);
  EXPECT_EQ(alignment, h->alignment);
  --blocks;
  free((unsigned char *)block - (alignment < sizeof(header) ? sizeof(header) : alignment));
}

void memory_install(void) {
  multicast_allocator a = multicast_allocator_default();
  a.context = &blocks;
  a.allocate = allocate;
  a.deallocate = deallocate;
  EXPECT_EQ(multicast_set_allocator(&a), MULTICAST_OK);
}

void memory_fail_after(int allocations) { successes_left = allocations; }
void memory_recover(void) { successes_left = -1; }
bool memory_is_failing(void) { return successes_left >= 0; }
int memory_successes_left(void) { return successes_left; }
int64_t memory_failures(void) { return failures; }
int64_t memory_blocks(void) { return blocks; }

void memory_expect_no_leak(void (*play)(void), int64_t blocks_before) {
  for (int round = 0; round < ROUNDS; ++round) {
    if (blocks <= blocks_before) return;
    blocks_before = blocks;
    play();
  }
  EXPECT_EQ(blocks, blocks_before);
}
