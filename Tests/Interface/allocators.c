#include "allocators.h"

static void deallocate(void *context, void *block, size_t size, size_t alignment) {
  (void)context, (void)size, (void)alignment;
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
