/* The requests of libmulticast-local to the system, which tests can refuse. */

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
  FOLDER, /* creating or reading a folder */
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
  COPYING /* a memcpy of `disturbed_size` bytes, which is interrupted instead of refused */
};

/* In these tests, a new peer must send its hello within HELLO_MS milliseconds. */
#define HELLO_MS 1000
/* In these tests, a peer may observe or answer questions about at most NAMES_THERE names. */
#define NAMES_THERE 600
/* In these tests, the library can record only descriptors that are less than DESCRIPTORS_THERE. */
#define DESCRIPTORS_THERE 960

/* ---- For tests ------------------------------------------------------------------------------- */

/* Set these variables to interrupt a copy of `disturbed_size` bytes. The copy then calls `disturb`
 * after `disturbed_at` bytes. */
extern size_t disturbed_size, disturbed_at;
extern void (*disturb)(void);

/* ---- For the library: see replace.h ---------------------------------------------------------- */

/* Sets errno and returns -1. */
int refuse(int error);

void *copy_disturbed(void *to, const void *from, size_t size);

#endif
