// Shared by multicast-trace and the object that it puts into a program: a block of memory, and the
// file of the timeline. So nothing is lost, whatever ends the program.

#ifndef MULTICAST_TRACE_H
#define MULTICAST_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// The variable of the environment that says where the block is.
#define TRACE_VARIABLE "MULTICAST_TRACE"

enum { TRACE_PROCESSES = 128, TRACE_ROWS = 24, TRACE_TEXT = 1 << 16, TRACE_THREADS = 256 };

// Things of one name, counted.
typedef struct trace_row {
  uint64_t count, longest_ns;
  char name[192];
} trace_row;

typedef struct trace_table {
  uint64_t count;  // with those that found no row
  trace_row rows[TRACE_ROWS];
} trace_table;

// A thread: its name comes once more at the end of a timeline whose beginning was left out.
typedef struct trace_thread {
  uint64_t number;
  char name[32];
} trace_thread;

#define TRACE_THREAD_NAME                                                             \
  ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %" PRIu64 ", \"args\": " \
  "{\"name\": \"%s\"}}"

// A process that has the library.
typedef struct trace_process {
  atomic_int pid;
  char program[16];
  atomic_bool has_ended;       // by exit(), so that `kept` is complete
  atomic_bool has_lost_watch;  // the program has put a watch in the place of the trace's
  atomic_bool is_writing;      // `text`; so it stays if that fails, or if the process is killed
  atomic_uint own_watches;     // of single multicasts: these are not traced
  uint64_t calls, lost;        // lost: bytes that could not be written
  uint64_t events;             // of the timeline, with those that were left out
  uint32_t threads;            // may be more than TRACE_THREADS
  trace_thread thread[TRACE_THREADS];
  trace_table slow, waits, kept;
  int64_t offset;  // of the file, when writing began
  uint32_t used;   // of `text`, which is still to be written
  char text[TRACE_TEXT];
} trace_process;

typedef struct trace_state {
  uint64_t start_ns, slow_ns;
  bool follows;           // the processes that the program starts, too
  char file[64];          // the path of the timeline
  int64_t size;           // the most bytes of it that are kept; 0: all
  char label[64];         // only the calls whose names contain this
  atomic_bool keeps_beginning;  // of it, because the file system frees no part of a file
  atomic_bool is_loaded;  // the object, by any process
  atomic_bool is_over;    // the end of the timeline is written
  atomic_uint processes;  // may be more than TRACE_PROCESSES
  trace_process process[TRACE_PROCESSES];
} trace_state;

#endif
