// What an invocation is without a library. In a library by itself, where its instructions are not
// counted as the program's; and without the padding of those that are timed.

#include "work.h"

extern bare_loop plain_loop;

void plain_loop(const multicast_delegate *delegates, size_t count, uint32_t event,
                const void *payload, size_t size) {
  for (size_t i = 0; i < count; i++)
    delegates[i].function(delegates[i].context, event, payload, size);
}
