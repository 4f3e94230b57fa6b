/* Common code of the tests of fork, thread exit and process exit. */

#ifndef PROCESS_H
#define PROCESS_H

#include "harness.h"

/* The multicast that a child inherits. */
extern multicast inherited;

/* Uses `inherited` and a multicast of its own, and checks the results. */
void use_everything(void *unused);

#endif
