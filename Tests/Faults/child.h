/* Children of a test, which may fail, hang or crash. */

#ifndef CHILD_H
#define CHILD_H

#include "../Interface/harness.h"

#include <sys/types.h>

/* A child whose output comes after the parent's. 0: this is the child. */
pid_t begin_child(void);

/* How it ended: its exit status, or minus the signal; one that hangs is ended. */
int end_of_child(pid_t child);

#endif
