/* The library's memory: from malloc, so that the address sanitizer watches each block, and failing
 * when told to. */

#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Has the library use it; once, before anything else. */
void memory_install(void);

/* So many allocations succeed from here on, then all fail until memory_recover(). */
void memory_fail_after(int allocations);
void memory_recover(void);
bool memory_is_failing(void); /* or will, after so many */

/* How many have failed since the program began. */
int64_t memory_failures(void);

/* How many blocks the library has now. */
int64_t memory_blocks(void);

/* Plays the input again and again where it left more blocks than it found: the library keeps
 * some of what it once had, in some dozens of places that take their turns, but that comes to an
 * end. */
void memory_expect_no_leak(void (*play)(void), int64_t blocks_before);

#endif
