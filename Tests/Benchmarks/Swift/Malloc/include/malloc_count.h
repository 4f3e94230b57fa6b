// Provides mallinfo2(), which glibc's Swift module lacks, and a count of allocations.
#include <malloc.h>
#include <stddef.h>

/// Returns the number of blocks that this thread has allocated.
size_t malloc_count(void);
