/* Code shared by the tests of fork, of ending threads and of process exit. */

#ifndef PROCESS_H
#define PROCESS_H

#include "harness.h"

/* The multicast that a child inherits. */
extern multicast inherited;

/* Uses `inherited` and a new multicast, and checks the results. */
void use_everything(void *unused);

#endif
