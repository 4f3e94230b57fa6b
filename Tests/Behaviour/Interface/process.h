/* What the tests of fork, of the end of threads and of exit have in common. */

#ifndef PROCESS_H
#define PROCESS_H

#include "harness.h"

/* The multicast of such a test. A child inherits it. */
extern multicast inherited;

/* Uses `inherited` and a multicast of its own, and checks what comes of it. */
void use_everything(void *unused);

#endif
