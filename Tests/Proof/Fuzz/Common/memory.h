/* The allocator of the library: malloc, so that the address sanitizer checks each block; and it
 * fails on request. */

#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the allocator; once, before anything else. */
void memory_install(void);

/* After this number of allocations, all fail until memory_recover(). */
void memory_fail_after(int allocations);
void memory_recover(void);
bool memory_is_failing(void); /* now, or after a number of allocations */

/* How many allocations can still succeed; -1: any number. */
int memory_successes_left(void);

/* The number of failed allocations since the program began. */
int64_t memory_failures(void);

/* The number of blocks that the library has. */
int64_t memory_blocks(void);

/* If the input left more blocks than it found, plays it again until it does not: the library keeps
 * some memory for reuse, in a few dozen places, so the number must stop growing. */
void memory_expect_no_leak(void (*play)(void), int64_t blocks_before);

#endif
