/* Functions for tests that fork child processes, which may fail, hang or crash. */

#ifndef CHILD_H
#define CHILD_H

#include "../Interface/harness.h"

#include <sys/types.h>

/* Flushes all output and forks. Returns the child's process ID, or 0 in the child. */
pid_t begin_child(void);

/* Waits for a child and returns its exit status, or the negative number of the signal that ended
 * it. Kills the child if it hangs. */
int end_of_child(pid_t child);

#endif
