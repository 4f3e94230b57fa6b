/* The allocator of the library. It uses malloc, so that the address sanitizer checks each block,
 * and it fails on request. */

#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the allocator. Called once, before anything else. */
void memory_install(void);

/* After this number of allocations, all allocations fail until memory_recover(). */
void memory_fail_after(int allocations);
void memory_recover(void);
bool memory_is_failing(void); /* now or later */

/* How many allocations can still succeed; -1 if there is no limit. */
int memory_successes_left(void);

/* The number of failed allocations since the program began. */
int64_t memory_failures(void);

/* The number of blocks that the library has. */
int64_t memory_blocks(void);

/* If the input left more blocks than it found, plays it again until it leaves no more. The library
 * keeps some memory for reuse in a few dozen places, but the number of blocks must stop growing. */
void memory_expect_no_leak(void (*play)(void), int64_t blocks_before);

#endif
