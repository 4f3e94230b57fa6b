#include "timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shims.h"

trace_library library;
_Atomic(trace_process *) process;

// Watches call the functions in this file on any of the program's threads. These functions preserve
// errno, allocate no memory, and are not cancellation points. They do not use the loader, because a
// thread that holds the loader's lock may be waiting for the call that is being recorded.

trace_state *trace;
static int file = -1;
static struct stat identity;  // identifies the file
// Protects the variables below and the process's tables.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// ---- Joining -----------------------------------------------------------------------------------

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool refused(const char *what) {
  dprintf(STDERR_FILENO, "multicast-trace: no trace of process %d: %s: %s\n", (int)getpid(), what,
          strerror(errno));
  return false;
}

bool timeline_open(const char *path) {
  int descriptor = open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return refused(path);
  void *block =
      mmap(NULL, sizeof(trace_state), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (block == MAP_FAILED) return refused("memory");
  trace = block;
  atomic_store(&trace->is_loaded, true);
  return true;
}

bool timeline_join(void) {
  if (file < 0) {
    int opened = open(trace->file, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (opened < 0) return refused(trace->file);
    // Use a high descriptor, because programs may rely on the lowest ones being free.
    file = fcntl(opened, F_DUPFD_CLOEXEC, 200);
    if (file < 0) file = opened;
    else close(opened);
    if (fstat(file, &identity) != 0) return refused(trace->file);
  }
  unsigned number = atomic_fetch_add(&trace->processes, 1);
  if (number >= TRACE_PROCESSES) return false;
  trace_process *mine = &trace->process[number];
  prctl(PR_GET_NAME, mine->program);
  atomic_store(&mine->pid, (int)getpid());
  atomic_store(&process, mine);
  return true;
}

// ---- The file ----------------------------------------------------------------------------------

// Checks that `file` is still the timeline. The program does not know about the descriptor, so the
// program may have closed the descriptor and reused its number.
static bool is_file_there(void) {
  struct stat now;
  return fstat(file, &now) == 0 && now.st_dev == identity.st_dev && now.st_ino == identity.st_ino;
}

// Frees the file's blocks that precede its last `trace->size` bytes. This leaves a hole, which
// multicast-trace removes after the program has ended. Makes the system call directly, because
// fallocate() is a cancellation point.
static void forget_beginning(int64_t end) {
  enum { KEEP_SIZE = 1, PUNCH_HOLE = 2, BLOCK = 4096 };
  const int64_t spare = trace->size / 8, hole = (end - trace->size) / BLOCK * BLOCK;
  if (trace->size == 0 || end <= trace->size + spare) return;
  if (syscall(SYS_fallocate, file, KEEP_SIZE | PUNCH_HOLE, (off_t)0, (off_t)hole) != 0)
    atomic_store(&trace->keeps_beginning, true);
}

// Called under the mutex.
static void flush(trace_process *mine) {
  if (mine->used == 0 || atomic_load(&mine->is_writing) || !is_file_there()) return;
  mine->offset = lseek(file, 0, SEEK_END);
  if (atomic_load(&trace->keeps_beginning)) {
    mine->used = 0;
    return;
  }
  forget_beginning(mine->offset);
  atomic_store(&mine->is_writing, true);
  // order: pairs with `end_timeline` in multicast-trace.c, which sets is_over, waits until no
  // process is writing, and writes the rest of the buffers.
  const bool is_over = atomic_load(&trace->is_over);
  if (!is_over && !shims_write(file, mine->text, mine->used)) return;
  if (!is_over) mine->used = 0;
  atomic_store(&mine->is_writing, false);
}

// Called under the mutex. Appends only complete lines, because multicast-trace writes the buffer to
// the file if the process is killed.
static void append(trace_process *mine, const char *line, int size) {
  if (size <= 0) return;
  if (mine->used + (size_t)size > TRACE_TEXT) flush(mine);
  if (mine->used + (size_t)size > TRACE_TEXT) {
    mine->lost += (uint64_t)size;
    return;
  }
  memcpy(mine->text + mine->used, line, (size_t)size);
  mine->used += (uint32_t)size;
}

void timeline_flush(void) {
  trace_process *mine = atomic_load(&process);
  if (mine == NULL) return;
  pthread_mutex_lock(&mutex);
  flush(mine);
  pthread_mutex_unlock(&mutex);
}

// ---- Names -------------------------------------------------------------------------------------

// Returns the number of bytes in a UTF-8 character, or 0 if the character is invalid.
static size_t length_of_character(const unsigned char *text) {
  unsigned char first = text[0], second = text[1];
  size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (first > 0xF4 || (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
    return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((text[i] & 0xC0) != 0x80) return 0;
  }
  return size;
}

// Copies a name into a JSON string, replacing characters that would have to be escaped. Also
// replaces incomplete characters, because a label may be cut off in the middle of a character.
static void copy_name(char *to, size_t room, const char *name) {
  const unsigned char *from = (const unsigned char *)name;
  while (*from != '\0') {
    size_t size = length_of_character(from);
    bool is_plain = size > 0 && *from >= ' ' && *from != 127;
    if (!is_plain) size = 1;
    if (size >= room) break;
    if (*from == '"' || *from == '\\') *to = '\'';
    else if (!is_plain) *to = '?';
    else memcpy(to, from, size);
    to += size, room -= size, from += size;
  }
  *to = '\0';
}

// A cached description of a token. Tokens are never reused, so a description never becomes wrong.
typedef struct known {
  uint64_t token, target, queue;
  char name[160];
} known;
static known cache[512];

static void name_function(char *to, size_t room, multicast_function function) {
  shims_place place;
  uint64_t address = (uint64_t)(uintptr_t)function;
  char name[SHIMS_NAME_SIZE * 2 + 24];
  if (!shims_locate(address, &place))
    snprintf(name, sizeof name, "0x%" PRIx64, address);
  else if (place.symbol[0] != '\0' && place.offset == 0)
    snprintf(name, sizeof name, "%s", place.symbol);
  else
    snprintf(name, sizeof name, "%s(%s+0x%" PRIx64 ")", place.module, place.symbol, place.offset);
  copy_name(to, room, name);
}

static known find(multicast_token token, const char *label) {
  multicast_registration registration = MULTICAST_REGISTRATION_INIT;
  known *place = &cache[token.id % (sizeof cache / sizeof *cache)], found;
  pthread_mutex_lock(&mutex);
  found = *place;
  pthread_mutex_unlock(&mutex);
  if (found.token == token.id && token.id != 0) return found;
  memset(&found, 0, sizeof found);
  if (library.token_get(token, &registration) == MULTICAST_OK) {
    found.token = token.id;
    found.target = registration.target.id;
    found.queue = registration.queue.id;
    label = registration.label;
    if (label == NULL) name_function(found.name, sizeof found.name, registration.delegate.function);
  }
  // The delegate has already been removed, for instance because of MULTICAST_ONCE.
  else if (label == NULL) label = token.id == 0 ? "a queued call" : "a removed delegate";
  if (label != NULL) copy_name(found.name, sizeof found.name, label);
  if (found.token == 0) return found;
  pthread_mutex_lock(&mutex);
  *place = found;
  pthread_mutex_unlock(&mutex);
  return found;
}

// ---- Events ------------------------------------------------------------------------------------

// This thread's calls. The library reports a call slightly after its end, so the computed times are
// slightly late. Without a correction, a call might seem to begin after a nested call, or before
// the end of the previous call.
enum { LEVELS = 258 };
static __thread struct thread {
  uint64_t number;
  unsigned deepest;
  uint64_t first[LEVELS], end[LEVELS];  // first begin and last end of the calls at each level
} thread __attribute__((tls_model("initial-exec")));

// Returns the start time of the call that has just ended at this level.
static uint64_t begin_of(unsigned level, uint64_t end, uint64_t elapsed) {
  uint64_t begin = end - elapsed;
  if (level + 1 < LEVELS && thread.first[level + 1] != 0 && thread.first[level + 1] < begin)
    begin = thread.first[level + 1];
  for (unsigned i = 0; i <= level; ++i) {
    if (begin < thread.end[i]) begin = thread.end[i];
  }
  while (thread.deepest > level) thread.first[thread.deepest--] = 0;
  thread.deepest = level;
  if (thread.first[level] == 0) thread.first[level] = begin;
  thread.end[level] = end;
  return begin;
}

// Called under the mutex.
static void name_thread(trace_process *mine) {
  char name[32] = "", line[192];
  trace_thread it = {(uint64_t)syscall(SYS_gettid), ""};
  thread.number = it.number;
  prctl(PR_GET_NAME, name);
  copy_name(it.name, sizeof it.name, name);
  if (mine->threads < TRACE_THREADS) mine->thread[mine->threads] = it;
  ++mine->threads;
  append(mine, line,
         snprintf(line, sizeof line, TRACE_THREAD_NAME, atomic_load(&mine->pid), it.number,
                  it.name));
}

void timeline_count(trace_table *table, const char *name, uint64_t elapsed_ns) {
  ++table->count;
  for (int i = 0; i < TRACE_ROWS; ++i) {
    trace_row *row = &table->rows[i];
    if (row->count == 0) snprintf(row->name, sizeof row->name, "%s", name);
    if (strcmp(row->name, name) != 0) continue;
    ++row->count;
    if (elapsed_ns > row->longest_ns) row->longest_ns = elapsed_ns;
    return;
  }
}

void timeline_add(bool is_wait, multicast_token token, const char *label, uint32_t event,
                  uint64_t elapsed_ns) {
  trace_process *mine = atomic_load(&process);
  if (mine == NULL) return;
  const int error = errno;
  const uint64_t end = now_ns() - trace->start_ns;
  const bool is_slow = elapsed_ns >= trace->slow_ns;
  int64_t level = library.call_stack(NULL, 0) + (is_wait ? 1 : 0);
  if (level < 0 || level >= LEVELS) level = LEVELS - 1;
  const uint64_t begin = begin_of((unsigned)level, end, elapsed_ns), length = end - begin;
  const known it = find(token, label);
  char line[640], queue[48] = "";
  if (it.queue != 0) snprintf(queue, sizeof queue, ", \"queue\": \"0x%" PRIx64 "\"", it.queue);

  pthread_mutex_lock(&mutex);
  if (thread.number == 0) name_thread(mine);
  const bool is_wanted = strstr(it.name, trace->label) != NULL;
  if (is_wanted) {
    ++mine->events;
    append(mine, line,
           snprintf(line, sizeof line,
                    ",\n{\"name\": \"%s%s\", \"cat\": \"%s\", \"ph\": \"X\", \"ts\": %" PRIu64
                    ".%03u, \"dur\": %" PRIu64 ".%03u, \"pid\": %d, \"tid\": %" PRIu64
                    ", \"args\": {\"event\": %" PRIu32 ", \"multicast\": \"0x%" PRIx64 "\"%s}}",
                    is_wait ? "waits for " : "", it.name,
                    is_wait ? "wait" : is_slow ? "slow" : "call", begin / 1000,
                    (unsigned)(begin % 1000), length / 1000, (unsigned)(length % 1000),
                    atomic_load(&mine->pid), thread.number, event, it.target, queue));
  }
  if (!is_wait) ++mine->calls;
  if (is_wait) timeline_count(&mine->waits, it.name, elapsed_ns);
  else if (is_slow) timeline_count(&mine->slow, it.name, elapsed_ns);
  pthread_mutex_unlock(&mutex);
  errno = error;
}

// ---- Fork --------------------------------------------------------------------------------------

void timeline_in_child(void) {
  if (atomic_exchange(&process, NULL) == NULL || !trace->follows) return;
  // Reset the mutex, and the lock that protects the list of libraries, because another thread may
  // have held them during the fork.
  mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  shims_locate_none_in_child();
  memset(&thread, 0, sizeof thread);
  timeline_join();
}
