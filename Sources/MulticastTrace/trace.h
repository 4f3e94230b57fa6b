// The memory that multicast-trace shares with libmulticast-trace.so in the traced programs. Its
// data survives no matter how a program ends.

#ifndef MULTICAST_TRACE_H
#define MULTICAST_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// The environment variable with the path of the shared memory.
#define TRACE_VARIABLE "MULTICAST_TRACE"

enum { TRACE_PROCESSES = 128, TRACE_ROWS = 24, TRACE_TEXT = 1 << 16, TRACE_THREADS = 256 };

// How often a name has occurred.
typedef struct trace_row {
  uint64_t count, longest_ns;
  char name[192];
} trace_row;

typedef struct trace_table {
  uint64_t count;  // includes names for which there was no free row
  trace_row rows[TRACE_ROWS];
} trace_table;

// A thread and its name. If the beginning of a timeline is cut off, multicast-trace writes the
// threads' names again at the end of the timeline.
typedef struct trace_thread {
  uint64_t number;
  char name[32];
} trace_thread;

#define TRACE_THREAD_NAME                                                             \
  ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %" PRIu64 ", \"args\": " \
  "{\"name\": \"%s\"}}"

// A traced process.
typedef struct trace_process {
  atomic_int pid;
  char program[16];
  atomic_bool has_ended;       // ended by exit(), so `kept` is complete
  atomic_bool has_lost_watch;  // the program has replaced the trace's watch
  atomic_bool is_writing;      // `text` is being written; stays set after a failure or a kill
  atomic_uint own_watches;     // watches of single multicasts, which are not traced
  uint64_t calls, lost;        // lost: how many bytes could not be written
  uint64_t events;             // events in the timeline, including those cut off
  uint32_t threads;            // may be more than TRACE_THREADS
  trace_thread thread[TRACE_THREADS];
  trace_table slow, waits, kept;
  int64_t offset;  // size of the file when the last write began
  uint32_t used;   // number of bytes of `text` that have not been written
  char text[TRACE_TEXT];
} trace_process;

typedef struct trace_state {
  uint64_t start_ns, slow_ns;
  bool follows;           // also trace the processes that the program starts
  char file[64];          // the path of the timeline
  int64_t size;           // the maximum size of the timeline; 0 for no limit
  char label[64];         // trace only calls whose names contain this text
  atomic_bool keeps_beginning;  // the file system cannot free parts of a file
  atomic_bool is_loaded;  // a process has loaded libmulticast-trace.so
  atomic_bool is_over;    // the end of the timeline is being written
  atomic_uint processes;  // may be more than TRACE_PROCESSES
  trace_process process[TRACE_PROCESSES];
} trace_state;

#endif
