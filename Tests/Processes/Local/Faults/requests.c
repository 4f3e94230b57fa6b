#include "requests.h"

#include <errno.h>
#include <string.h>

size_t disturbed_size, disturbed_at;
void (*disturb)(void);

int refuse(int error) {
  errno = error;
  return -1;
}

void *copy_disturbed(void *to, const void *from, size_t size) {
  size_t done = 0;
  if (size == __atomic_load_n(&disturbed_size, __ATOMIC_SEQ_CST) && is_refused(COPYING, false)) {
    memcpy(to, from, done = disturbed_at);
    disturb();
  }
  memcpy((char *)to + done, (const char *)from + done, size - done);
  return to;
}
