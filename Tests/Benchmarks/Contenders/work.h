/// The work that every delegate in the benchmarks does, and loops that need no library.
#pragma once

#include <multicast.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Counts the call. Each delegate's context is its own counter. If threads share delegates
/// (WORK_READS), `work` only reads the counter. If it wrote to the counter, the benchmark would
/// measure how the counter's cache line moves between the threads.
static inline void work(void *context, uint32_t event, const void *payload, size_t size) {
  (void)payload;
#ifdef WORK_READS
  uint64_t sum = *(const uint64_t *)context + event + size;
  __asm__ volatile("" : : "r"(sum));
#else
  *(uint64_t *)context += event + size;
#endif
}

/// Delegate functions that call `work`, one in the executable and one in a separate shared library.
void work_in_executable(void *context, uint32_t event, const void *payload, size_t size);
void work_in_library(void *context, uint32_t event, const void *payload, size_t size);

/// A `for` loop over an array of delegates. A loop's speed varies by a tenth with its address, so
/// there are four copies at different offsets within a cache line, and the fastest copy counts.
typedef void bare_loop(const multicast_delegate *delegates, size_t count, uint32_t event,
                       const void *payload, size_t size);
enum { BARE_LOOPS = 4 };
extern bare_loop *const bare_loops_in_executable[BARE_LOOPS];
extern bare_loop *const bare_loops_in_library[BARE_LOOPS];

#ifdef __cplusplus
}
#endif
