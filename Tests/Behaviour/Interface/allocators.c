#include "allocators.h"

#include <sys/mman.h>

static void deallocate(void *context, void *block, size_t size, size_t alignment) {
  free(block);
}

void use_allocator(void *(*allocate)(void *, size_t, size_t), void *context) {
  multicast_allocator allocator = multicast_allocator_default();
  allocator.context = context;
  allocator.allocate = allocate;
  allocator.deallocate = deallocate;
  CHECK_OK(multicast_set_allocator(&allocator));
}

void *allocate_aligned(size_t size, size_t alignment) {
  void *block = NULL;
  if (alignment < sizeof(void *)) alignment = sizeof(void *);
  return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static char *region;
static size_t taken;

static void *take_lasting(void *context, size_t size, size_t alignment) {
  const size_t most = (size_t)1 << 30;
  size_t whole = (size + alignment + 63) / 64 * 64;
  size_t end = __atomic_add_fetch(&taken, whole, __ATOMIC_RELAXED);
  if (end > most) return NULL;
  return (void *)(((uintptr_t)region + end - whole + alignment - 1) / alignment * alignment);
}

static void keep_lasting(void *context, void *block, size_t size, size_t alignment) {}

void use_lasting_memory(void) {
  multicast_allocator allocator = MULTICAST_ALLOCATOR_INIT;
  region = mmap(NULL, (size_t)1 << 30, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(region != MAP_FAILED);
  allocator.allocate = take_lasting;
  allocator.deallocate = keep_lasting;
  CHECK_OK(multicast_set_allocator(&allocator));
}
