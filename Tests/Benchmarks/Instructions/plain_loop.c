// An invocation without libmulticast. It is in a shared library of its own, so that its
// instructions do not count as the program's, and without the padding of the loops that are timed.

#include "work.h"

extern bare_loop plain_loop;

void plain_loop(const multicast_delegate *delegates, size_t count, uint32_t event,
                const void *payload, size_t size) {
  for (size_t i = 0; i < count; i++)
    delegates[i].function(delegates[i].context, event, payload, size);
}
