/* The requests of libmulticast-local to the system. */

#ifndef REQUESTS_H
#define REQUESTS_H

#include "../../Transports/Faults/requests.h"

enum {
  MEMORY_FILE = FIRST_OF_LIBRARY,
  FILE_SIZE,
  MAPPING,
  CONTROL, /* fcntl */
  EPOLL,
  EPOLL_CHANGE,
  EPOLL_WAITING,
  OPENING,
  FOLDER, /* making or reading one */
  STATUS,
  LOCKING,
  SOCKET,
  BINDING,
  LISTENING,
  CONNECTING,
  ACCEPTING,
  CREDENTIALS,
  SENDING,
  RECEIVING_MESSAGE,
  COPYING /* a memcpy of `disturbed_size` bytes, which is disturbed instead of refused */
};

/* How long a peer may be silent in these tests, in milliseconds. */
#define HELLO_MS 1000
/* How many names a peer may observe or answer in these tests. */
#define NAMES_THERE 600

/* ---- For tests ------------------------------------------------------------------------------- */

/* A copy of `disturbed_size` bytes calls `disturb` after `disturbed_at` bytes. The variables must
 * be set before the copy. */
extern size_t disturbed_size, disturbed_at;
extern void (*disturb)(void);

/* ---- For the library: see replace.h ---------------------------------------------------------- */

/* Sets errno and returns -1. */
int refuse(int error);

void *copy_disturbed(void *to, const void *from, size_t size);

#endif
