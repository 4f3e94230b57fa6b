/* The allocator of the library. It uses malloc(), so that the address sanitizer checks each block,
 * and it fails on request. */

#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the allocator. Must be called once, before anything else. */
void memory_install(void);

/* Lets this number of allocations succeed. After that, all allocations fail until
 * memory_recover(). */
void memory_fail_after(int allocations);
void memory_recover(void);
bool memory_is_failing(void); /* now, or after more allocations */

/* How many allocations can still succeed; -1 if there is no limit. */
int memory_successes_left(void);

/* The number of failed allocations since the program began. */
int64_t memory_failures(void);

/* The number of blocks that are allocated. */
int64_t memory_blocks(void);

/* If the input has left more blocks allocated than before, plays it again until their number stops
 * growing. The library keeps memory for reuse in a few dozen places, so the number may grow a few
 * times. */
void memory_expect_no_leak(void (*play)(void), int64_t blocks_before);

#endif
