// What glibc's module for Swift leaves out, mallinfo2(), and a count of allocations.
#include <malloc.h>
#include <stddef.h>

/// How many blocks this thread has taken.
size_t malloc_count(void);
