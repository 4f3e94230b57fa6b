// The events of this process.

#ifndef MULTICAST_TRACE_TIMELINE_H
#define MULTICAST_TRACE_TIMELINE_H

#include <multicast.h>

#include "trace.h"

// The functions of the library that is watched.
typedef struct trace_library {
  multicast_status (*set_watch)(multicast target, const multicast_watch *watch);
  multicast_status (*token_get)(multicast_token token, multicast_registration *out);
  int64_t (*call_stack)(multicast_token *out, size_t capacity);
  multicast_status (*dump)(multicast_writer writer, void *context);
} trace_library;
extern trace_library library;

extern trace_state *trace;
// That of this process; NULL: it is not traced.
extern _Atomic(trace_process *) process;

// Finds the block. If that or joining is not possible, the reason is on standard error.
bool timeline_open(const char *path);
// Makes this process a part of the trace. The library is known.
bool timeline_join(void);
// In the child of a fork, before it has a second thread: it joins, or is left out.
void timeline_in_child(void);
// A call that has returned, or a wait that has taken so long and goes on.
void timeline_add(bool is_wait, multicast_token token, const char *label, uint32_t event,
                  uint64_t elapsed_ns);
// Counts a thing of this name.
void timeline_count(trace_table *table, const char *name, uint64_t elapsed_ns);
// Writes what is left.
void timeline_flush(void);

#endif
