/* Sets of statuses that a function may return. Each status is a bit. */

#ifndef STATUSES_H
#define STATUSES_H

#include <stdint.h>

#include "failure.h"
#include "multicast.h"

enum {
  OK = 1 << 0, /* also a count of zero or more */
  PENDING = 1 << 1,
  INVALID_HANDLE = 1 << 10,
  INVALID_ARGUMENT = 1 << 20,
  NOT_FOUND = 1 << 3,
  OUT_OF_MEMORY = 1 << 4,
  TIMEOUT = 1 << 7,
  STATE = 1 << 8,
  OTHER = 1 << 9 /* never allowed */
};

static inline int status_bit(int64_t status) {
  switch (status) {
    case MULTICAST_OK: return OK;
    case MULTICAST_PENDING: return PENDING;
    case MULTICAST_ERROR_INVALID_HANDLE: return INVALID_HANDLE;
    case MULTICAST_ERROR_INVALID_ARGUMENT: return INVALID_ARGUMENT;
    case MULTICAST_ERROR_NOT_FOUND: return NOT_FOUND;
    case MULTICAST_ERROR_OUT_OF_MEMORY: return OUT_OF_MEMORY;
    case MULTICAST_ERROR_TIMEOUT: return TIMEOUT;
    case MULTICAST_ERROR_STATE: return STATE;
    default: return OTHER;
  }
}

static inline int count_bit(int64_t count) { return count >= 0 ? OK : status_bit(count); }

#define EXPECT(status, set)                                                            \
  MUST(status_bit(status) & (set), "%s", multicast_status_name((multicast_status)(status)))
#define EXPECT_COUNT(count, set) \
  MUST(count_bit(count) & (set), "%lld", (long long)(count))

#endif
