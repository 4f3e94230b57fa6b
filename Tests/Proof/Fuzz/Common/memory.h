/* The library's allocator. It uses malloc(), so that the address sanitizer checks each block, and
 * it fails on request. */

#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the allocator. Must be called once, before anything else. */
void memory_install(void);

/* Lets the given number of allocations succeed. After that, all allocations fail until
 * memory_recover() is called. */
void memory_fail_after(int allocations);
void memory_recover(void);
bool memory_is_failing(void); /* now, or after more allocations */

/* Returns how many more allocations can succeed, or -1 if there is no limit. */
int memory_successes_left(void);

/* Returns the number of allocations that have failed since the program began. */
int64_t memory_failures(void);

/* Returns the number of currently allocated blocks. */
int64_t memory_blocks(void);

/* If the input has left more blocks allocated than there were before, plays the input again until
 * the number of blocks stops growing. The library keeps memory for reuse in a few dozen places, so
 * the number may grow a few times. */
void memory_expect_no_leak(void (*play)(void), int64_t blocks_before);

#endif
