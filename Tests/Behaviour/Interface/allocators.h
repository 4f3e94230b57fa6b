/* Allocators for tests: the test decides what happens before each allocation. */

#ifndef ALLOCATORS_H
#define ALLOCATORS_H

#include "harness.h"

/* Makes the library allocate with `allocate`, which receives `context`, and deallocate with
 * free(). */
void use_allocator(void *(*allocate)(void *, size_t, size_t), void *context);

/* Makes the library take memory from a private region and never return it. Tests that fork need
 * this, because the allocator of the address sanitizer does not survive a fork while another thread
 * allocates or deallocates. */
void use_lasting_memory(void);

/* Returns memory that free() accepts. For use inside an `allocate` function. */
void *allocate_aligned(size_t size, size_t alignment);

#endif
