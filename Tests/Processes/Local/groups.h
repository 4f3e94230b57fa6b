/* Groups and their peers, in this process and in other processes. */

#ifndef GROUPS_H
#define GROUPS_H

#include "../Transports/Harness/asking.h"

#include <time.h>

/* Another process, whose peer only observes some names. The other process must be started before
 * this process has threads. */
typedef struct remote {
  pid_t pid;
  int *arrived; /* the number of notifications that have arrived there, in shared memory */
} remote;

/* Starts a process that joins the group of the port as soon as the folder exists. `name` is the
 * name of its peer, and `names` are the observed names. */
remote remote_start(int port, const char *name, const char *const *names);
void remote_end(remote *r, int signal);

#endif
