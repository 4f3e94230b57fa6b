/* Replaces the allocator that the library uses in a test. */

#ifndef ALLOCATORS_H
#define ALLOCATORS_H

#include "harness.h"

/* Makes the library allocate with `allocate`, which receives `context`, and deallocate with free().
 * `allocate` must return memory from allocate_aligned(). */
void use_allocator(void *(*allocate)(void *, size_t, size_t), void *context);

/* Makes the library allocate from a private region and never free anything. Tests that fork need
 * this, because the address sanitizer's allocator is unusable in the child if another thread was
 * allocating or deallocating at the fork. */
void use_lasting_memory(void);

/* Returns memory that free() accepts. Intended for use inside an `allocate` function. */
void *allocate_aligned(size_t size, size_t alignment);

#endif
