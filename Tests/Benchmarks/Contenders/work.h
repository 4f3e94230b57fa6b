/// What every delegate of the benchmarks does, and the loops without a library.
#pragma once

#include <multicast.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Counts the call; each delegate has a counter of its own for a context. Where threads share
/// delegates (WORK_READS) the counter is only read: written by several, its cache line would be all
/// that is measured.
static inline void work(void *context, uint32_t event, const void *payload, size_t size) {
  (void)payload;
#ifdef WORK_READS
  uint64_t sum = *(const uint64_t *)context + event + size;
  __asm__ volatile("" : : "r"(sum));
#else
  *(uint64_t *)context += event + size;
#endif
}

/// `work` as a delegate that stands in the executable, and one in another shared library.
void work_in_executable(void *context, uint32_t event, const void *payload, size_t size);
void work_in_library(void *context, uint32_t event, const void *payload, size_t size);

/// `for` over an array of delegates. Where a loop happens to stand moves its speed by a tenth, so
/// there are four of each, at different offsets from a cache line; the best one counts.
typedef void bare_loop(const multicast_delegate *delegates, size_t count, uint32_t event,
                       const void *payload, size_t size);
enum { BARE_LOOPS = 4 };
extern bare_loop *const bare_loops_in_executable[BARE_LOOPS];
extern bare_loop *const bare_loops_in_library[BARE_LOOPS];

#ifdef __cplusplus
}
#endif
