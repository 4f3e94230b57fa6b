/* Groups and their peers, in this process and in others. */

#ifndef GROUPS_H
#define GROUPS_H

#include "../Transports/Harness/asking.h"

#include <time.h>

/* A process with a peer that only has observers of some names. It must be started before this
 * process has threads. */
typedef struct remote {
  pid_t pid;
  int *arrived; /* in shared memory: how many notifications have arrived there */
} remote;

/* The process joins the group of the port when that exists. `name` is the name of the peer. */
remote remote_start(int port, const char *name, const char *const *names);
void remote_end(remote *r, int signal);

#endif
