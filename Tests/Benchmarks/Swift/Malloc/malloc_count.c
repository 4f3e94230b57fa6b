#include "malloc_count.h"

// The functions defined in this file replace glibc's functions, even for the libraries.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static __thread size_t taken;

size_t malloc_count(void) { return taken; }

void *malloc(size_t size) {
  taken++;
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  taken++;
  return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
  taken++;
  return __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  taken++;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
  taken++;
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : 12;  // ENOMEM
}
