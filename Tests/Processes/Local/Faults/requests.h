/* What libmulticast-local asks the system for. */

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
  COPYING /* a memcpy of `disturbed_size` bytes: what is to be refused is disturbed instead */
};

/* So long a peer may say nothing here. */
#define HELLO_MS 1000
/* So many names one may observe or answer here. */
#define NAMES_THERE 600

/* ---- For tests ------------------------------------------------------------------------------- */

/* In such a copy this function is called when so many bytes are copied. To be set before. */
extern size_t disturbed_size, disturbed_at;
extern void (*disturb)(void);

/* ---- For the library: see replace.h ---------------------------------------------------------- */

/* -1, with this errno. */
int refuse(int error);

void *copy_disturbed(void *to, const void *from, size_t size);

#endif
