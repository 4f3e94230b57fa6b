/* Expectations after an invocation with options. */

#include "calls.h"
#include "expect.h"
#include "payloads.h"

static bool is_writable(const multicast_outcome *o) {
  return o != NULL && o->struct_size >= sizeof *o && o->struct_size <= 1024;
}

static void expect_outcome(const multicast_invocation *how, const multicast_outcome *o,
                           int64_t result) {
  EXPECT_EQ(o->flags, 0);
  /* The invocation may have been deferred, in which case it returns 0. */
  if (result == 0 && o->called == 0) EXPECT(o->queued <= 1, "more than one that is deferred");
  else if (result >= 0) EXPECT_EQ(o->called + o->queued, result);
  else if (result != MULTICAST_ERROR_TIMEOUT) EXPECT_EQ(o->called + o->queued + o->refused, 0);
  EXPECT(o->finished + o->unfinished <= o->queued, "more calls than were queued");
  if (!(how->flags & MULTICAST_WAIT)) EXPECT_EQ(o->finished + o->unfinished, 0);
}

static void check(const multicast_invocation *how, const multicast_outcome *o, int64_t result) {
  bool is_known = how != NULL && is_readable(how);
  if (!is_known || (o != NULL && !is_writable(o))) {
    EXPECT(result == MULTICAST_ERROR_INVALID_ARGUMENT || (is_known && result < 0),
           "an invocation with a struct that cannot be read");
  } else if (o != NULL && result != MULTICAST_ERROR_INVALID_ARGUMENT) {
    expect_outcome(how, o, result);
  }
  /* If the library could not read the struct, it has not taken over the payload, which must
   * therefore be freed here. If the size is wrong, the struct may lack these fields. */
  if (is_known || how == NULL || how->struct_size < sizeof *how || how->struct_size > 1024) return;
  if (how->release != NULL && how->copy == NULL) payload_take_back(how->payload);
}

void after_multicast_invoke_with(multicast target, const multicast_invocation *how,
                                 multicast_outcome *out, int64_t result) {
  check(how, out, result);
}

void after_multicast_broadcaster_notify_with(multicast_broadcaster broadcaster,
                                             const char *name,
                                             const multicast_invocation *how,
                                             multicast_outcome *out, int64_t result) {
  check(how, out, result);
}
