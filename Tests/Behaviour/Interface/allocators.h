/* Allocators that do something else each time before they allocate. */

#ifndef ALLOCATORS_H
#define ALLOCATORS_H

#include "harness.h"

/* Has the library allocate with `allocate`, which is passed `context`, and deallocate with free. */
void use_allocator(void *(*allocate)(void *, size_t, size_t), void *context);

/* Has the library take memory from a region of its own, and never give it back. The allocator of
 * the address sanitizer does not survive a fork while another thread allocates or deallocates. */
void use_lasting_memory(void);

/* Memory that free() accepts; what such an `allocate` returns. */
void *allocate_aligned(size_t size, size_t alignment);

#endif
