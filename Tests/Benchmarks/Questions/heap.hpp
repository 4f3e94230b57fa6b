/// Counts the memory that the program and its libraries allocate with malloc. Include this header
/// in only one source file of a program, because it defines malloc.
///
/// The count is the sum of malloc_usable_size() over all blocks. For each block, this is the
/// requested size, rounded up, without the 8 bytes that malloc adds.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <malloc.h>

namespace heap {

/// Only allocations on this thread are counted, because libraries may start other threads.
static thread_local bool is_counted = false;
static thread_local int64_t bytes = 0;

static void *taken(void *block) {
  if (is_counted && block) bytes += int64_t(malloc_usable_size(block));
  return block;
}

static void *given_back(void *block) {
  if (is_counted && block) bytes -= int64_t(malloc_usable_size(block));
  return block;
}

}  // namespace heap

// These definitions replace glibc's functions, so libc itself and operator new also call them.
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t size) noexcept { return heap::taken(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) noexcept {
  return heap::taken(__libc_calloc(count, size));
}
void *realloc(void *block, size_t size) noexcept {
  const int64_t before = heap::bytes;
  heap::given_back(block);
  void *moved = __libc_realloc(block, size);
  if (moved == nullptr && size != 0) heap::bytes = before;  // on failure the old block still exists
  return heap::taken(moved);
}
void *memalign(size_t alignment, size_t size) noexcept {
  return heap::taken(__libc_memalign(alignment, size));
}
void *aligned_alloc(size_t alignment, size_t size) noexcept { return memalign(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) noexcept {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  void *block = memalign(alignment, size);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}
void free(void *block) noexcept { __libc_free(heap::given_back(block)); }
}
