// An invocation without libmulticast. The loop is in its own shared library, so that its
// instructions are not attributed to the program. Unlike the timed loops, this loop is not padded.

#include "work.h"

extern bare_loop plain_loop;

void plain_loop(const multicast_delegate *delegates, size_t count, uint32_t event,
                const void *payload, size_t size) {
  for (size_t i = 0; i < count; i++)
    delegates[i].function(delegates[i].context, event, payload, size);
}
