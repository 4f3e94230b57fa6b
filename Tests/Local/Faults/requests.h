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
  RECEIVING_MESSAGE
};

/* ---- For the library: see replace.h ---------------------------------------------------------- */

/* -1, with this errno. */
int refuse(int error);

#endif
