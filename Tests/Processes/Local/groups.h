/* Groups, and peers of them, in this process and in others. */

#ifndef GROUPS_H
#define GROUPS_H

#include "../Transports/Harness/asking.h"

#include <time.h>

/* A process with a peer, which has observers of some names and does no more. To be started before
 * this process has threads. */
typedef struct remote {
  pid_t pid;
  int *arrived; /* in memory that both have: how many notifications have come there */
} remote;

/* It joins the group of the port when that is there. `name`: the peer's. */
remote remote_start(int port, const char *name, const char *const *names);
void remote_end(remote *r, int signal);

#endif
