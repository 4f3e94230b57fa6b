/* Provides multicasts with policies, and delegates that invoke a multicast inside their calls. */

#ifndef POLICIES_H
#define POLICIES_H

#include "notes.h"

multicast create_with_reentry(multicast_reentry reentry);

/* A delegate that records each call under the letter `name`. If the number n in its payload is
 * below `end`, a call also invokes `target` `times` times, with the numbers 10n + 1, 10n + 2 and so
 * on. */
typedef struct echo {
  multicast target;
  char name;
  int times;
  int end;
  int64_t result;         /* the result of the last of these invocations */
  int calls;
  void (*in_call)(struct echo *); /* called after these invocations */
} echo;
multicast_delegate echoing(echo *e, multicast target, char name, int times, int end);

#endif
