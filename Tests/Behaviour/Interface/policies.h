/* Multicasts with policies, and delegates that invoke inside their calls. */

#ifndef POLICIES_H
#define POLICIES_H

#include "notes.h"

multicast create_with_reentry(multicast_reentry reentry);

/* A delegate that notes its call as that of `name`, and then invokes `target` with the number of
 * its own call times ten plus 1, plus 2 and so on, `times` times. It does so for numbers below
 * `end`. */
typedef struct echo {
  multicast target;
  char name;
  int times;
  int end;
  int64_t result;         /* of the last of these invocations */
  int calls;
  void (*in_call)(struct echo *); /* called after these invocations */
} echo;
multicast_delegate echoing(echo *e, multicast target, char name, int times, int end);

#endif
