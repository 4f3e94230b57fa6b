/// The work of every delegate of the benchmarks, and the loops without a library.
#pragma once

#include <multicast.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Counts the call. The context of each delegate is a counter of its own. Where threads share
/// delegates (WORK_READS) the counter is only read: if several threads wrote to it, the benchmark
/// would measure the transfer of its cache line.
static inline void work(void *context, uint32_t event, const void *payload, size_t size) {
  (void)payload;
#ifdef WORK_READS
  uint64_t sum = *(const uint64_t *)context + event + size;
  __asm__ volatile("" : : "r"(sum));
#else
  *(uint64_t *)context += event + size;
#endif
}

/// `work` as a delegate in the executable, and as one in another shared library.
void work_in_executable(void *context, uint32_t event, const void *payload, size_t size);
void work_in_library(void *context, uint32_t event, const void *payload, size_t size);

/// A `for` loop over an array of delegates. The address of a loop changes its speed by a tenth, so
/// each exists four times, at different offsets from a cache line. The best one counts.
typedef void bare_loop(const multicast_delegate *delegates, size_t count, uint32_t event,
                       const void *payload, size_t size);
enum { BARE_LOOPS = 4 };
extern bare_loop *const bare_loops_in_executable[BARE_LOOPS];
extern bare_loop *const bare_loops_in_library[BARE_LOOPS];

#ifdef __cplusplus
}
#endif
