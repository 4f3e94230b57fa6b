#include "requests.h"

#include <errno.h>

int refuse(int error) {
  errno = error;
  return -1;
}
