// Records the events of this process in the timeline.

#ifndef MULTICAST_TRACE_TIMELINE_H
#define MULTICAST_TRACE_TIMELINE_H

#include <multicast.h>

#include "trace.h"

// The functions of the traced library.
typedef struct trace_library {
  multicast_status (*set_watch)(multicast target, const multicast_watch *watch);
  multicast_status (*token_get)(multicast_token token, multicast_registration *out);
  int64_t (*call_stack)(multicast_token *out, size_t capacity);
  multicast_status (*dump)(multicast_writer writer, void *context);
} trace_library;
extern trace_library library;

extern trace_state *trace;
// This process's record; NULL if the process is not traced.
extern _Atomic(trace_process *) process;

// Maps the shared memory. If this function or timeline_join() fails, it prints the reason to
// standard error.
bool timeline_open(const char *path);
// Adds this process to the trace. Called after the library has been found.
bool timeline_join(void);
// Called in the child of a fork, while the child has only one thread. Adds the child to the trace,
// or stops tracing in the child.
void timeline_in_child(void);
// Records a call that has returned, or a long wait that has not ended yet.
void timeline_add(bool is_wait, multicast_token token, const char *label, uint32_t event,
                  uint64_t elapsed_ns);
// Counts one occurrence of a name.
void timeline_count(trace_table *table, const char *name, uint64_t elapsed_ns);
// Writes the buffered text.
void timeline_flush(void);

#endif
