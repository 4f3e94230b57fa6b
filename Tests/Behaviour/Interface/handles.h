/* Checks that every function with a handle parameter refuses invalid handles. */

#ifndef HANDLES_H
#define HANDLES_H

#include "harness.h"

typedef enum handle_kind {
  OF_MULTICAST,
  OF_TOKEN,
  OF_LIFETIME,
  OF_QUEUE,
  OF_BROADCASTER,
  HANDLE_KINDS
} handle_kind;

/* Expects every function with a parameter of that kind to refuse the handle and to change nothing.
 * A function that would have added a delegate with a `release` must run that `release` once. */
void expect_no(handle_kind kind, uint64_t id);

/* Like expect_no(), but for all kinds of parameters, or for all kinds except one. */
void expect_nothing(uint64_t id);
void expect_nothing_but(handle_kind kind, uint64_t id);

/* ---- The calls that handles.py generates from the header ------------------------------------- */

typedef struct handle_call {
  const char *function;
  handle_kind kind;
  int releases;
  bool takes_none;             /* whether 0 is valid and means all multicasts */
  int64_t (*call)(uint64_t id); /* returns the function's status */
} handle_call;
extern const handle_call handle_calls[];
extern const size_t handle_call_count;

/* Arguments of these calls. No call reaches the delegate, and the `release` in the options counts
 * how often it runs. */
extern const multicast_delegate never_called;
extern multicast_add_options handle_options;
extern multicast_token handle_token;
extern multicast_status handle_status;
extern multicast_delegate handle_listed;
bool never_visit(void *context, const multicast_delegate *delegate);
bool never_enumerate(void *context, const multicast_registration *registration);
bool never_write(void *context, const char *line, size_t size);

#endif
