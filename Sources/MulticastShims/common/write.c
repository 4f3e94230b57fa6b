#include <errno.h>

#include "shims.h"

bool shims_write(int descriptor, const void *text, size_t size) {
  const char *rest = text;
  int error = errno;
  while (size > 0) {
    const long written = shims_write_once(descriptor, rest, size);
    if (written < 0 && errno != EINTR) break;
    if (written > 0) {
      rest += written;
      size -= (size_t)written;
    }
  }
  errno = error;
  return size == 0;
}
