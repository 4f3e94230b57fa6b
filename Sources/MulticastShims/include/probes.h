// USDT probes: see probes.c.

#ifndef MULTICAST_PROBES_H
#define MULTICAST_PROBES_H

#include "shims.h"

// ---- While a watch is set -----------------------------------------------------------------------

// An invocation or visit begins. `event` and what follows are those of the invocation.
SHIMS_HIDDEN void shims_probe_invoke_begin(uint64_t multicast, uint64_t event, const void *payload,
                                           size_t size);

// It has ended. `called` is how many delegates were called or queued.
SHIMS_HIDDEN void shims_probe_invoke_end(uint64_t multicast, uint64_t event, int64_t called);

// The call of a delegate begins.
SHIMS_HIDDEN void shims_probe_call_begin(uint64_t token, uint64_t event,
                                         void (*function)(void *, uint32_t, const void *, size_t),
                                         const void *context);

// It has returned. `label` is that of the registration, or NULL.
SHIMS_HIDDEN void shims_probe_call_end(uint64_t token, uint64_t event, uint64_t elapsed_ns,
                                       const char *label);

// A call was brought to a queue. `outcome`: 0, it waits there; 1, it was refused; 2, it is not
// needed.
SHIMS_HIDDEN void shims_probe_queue_append(uint64_t queue, uint64_t token, uint64_t event,
                                           uint64_t outcome);

// A call was taken out of a queue.
SHIMS_HIDDEN void shims_probe_queue_run(uint64_t queue, uint64_t token, uint64_t event);

// ---- Always -------------------------------------------------------------------------------------

// A thread is about to sleep until calls of a removed registration have returned.
SHIMS_HIDDEN void shims_probe_remove_wait(uint64_t token);

#endif
