// This file is compiled twice: into the executable and into a shared library.

#include "work.h"

#ifdef IN_LIBRARY
#define PLACE(name) name##_in_library
#else
#define PLACE(name) name##_in_executable
#endif

void PLACE(work)(void *context, uint32_t event, const void *payload, size_t size) {
  work(context, event, payload, size);
}

#define LOOP(number, offset)                                                            \
  __attribute__((aligned(64), noinline)) static void loop##number(                      \
      const multicast_delegate *delegates, size_t count, uint32_t event,                \
      const void *payload, size_t size) {                                               \
    __asm__ volatile(".skip " #offset ", 0x90");                                        \
    for (size_t i = 0; i < count; i++)                                                  \
      delegates[i].function(delegates[i].context, event, payload, size);                \
  }

LOOP(0, 4)
LOOP(1, 12)
LOOP(2, 20)
LOOP(3, 28)

bare_loop *const PLACE(bare_loops)[BARE_LOOPS] = {loop0, loop1, loop2, loop3};
