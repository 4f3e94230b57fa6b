// multicast-trace: runs a program and writes a timeline of its calls. See `usage`.

#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <multicast.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"

static const char usage[] =
    "Usage: multicast-trace [OPTION ...] PROGRAM [ARGUMENT ...]\n"
    "\n"
    "Runs a program that uses libmulticast.so, and writes a timeline of the calls of its\n"
    "delegates, for https://ui.perfetto.dev. When the program has ended, prints which calls\n"
    "were slow, and which delegates were never removed. The program needs no preparation.\n"
    "\n"
    "  -o FILE      the timeline (default: multicast-trace.json)\n"
    "  --slow TIME  what is slow, for instance 500us, 10ms or 2s (default: 10ms)\n"
    "  --size SIZE  the most that the timeline has, for instance 500KB or 2GB: the last calls\n"
    "               are kept; `all` keeps all of them (default: 64MB)\n"
    "  --label TEXT only calls of delegates whose label or function contains the text\n"
    "  --follow     trace the processes that the program starts, too\n"
    "  --help       print this text\n"
    "  --version    print the version\n"
    "\n"
    "The exit status is that of the program; 128 and the signal, if one has ended it; 125 if\n"
    "multicast-trace fails, 126 or 127 if the program cannot be run.\n"
    "\n"
    "Not seen: a library that is linked statically, except with -rdynamic; programs in secure\n"
    "mode (setuid, setgid, capabilities); multicasts with a watch of their own.\n";

#define NAME "multicast-trace: "
enum { FAILED = 125 };

static void fail(const char *what, const char *why) {
  fprintf(stderr, NAME "%s: %s\n", what, why);
  exit(FAILED);
}

static void must(bool is_done, const char *what) {
  if (!is_done) fail(what, strerror(errno));
}

// ---- Options -----------------------------------------------------------------------------------

static uint64_t parse_time(const char *text) {
  static const struct {
    const char *unit;
    uint64_t ns;
  } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
  char *unit;
  errno = 0;
  unsigned long long count = strtoull(text, &unit, 10);
  for (int i = 0; i < 4; ++i) {
    if (*text >= '0' && *text <= '9' && errno == 0 && strcmp(unit, units[i].unit) == 0 &&
        count > 0 && count <= UINT64_MAX / units[i].ns)
      return count * units[i].ns;
  }
  fail(text, "not a time such as 500us, 10ms or 2s");
  return 0;
}

static int64_t parse_size(const char *text) {
  static const struct {
    const char *unit;
    int64_t bytes;
  } units[] = {{"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000}};
  char *unit;
  errno = 0;
  unsigned long long count = strtoull(text, &unit, 10);
  if (strcmp(text, "all") == 0) return 0;
  for (int i = 0; i < 3; ++i) {
    if (*text >= '0' && *text <= '9' && errno == 0 && strcmp(unit, units[i].unit) == 0 &&
        count > 0 && count <= 1000000)
      return (int64_t)count * units[i].bytes;
  }
  fail(text, "not a size such as 500KB, 64MB or 2GB, and not `all`");
  return 0;
}

static const char *value_of(char **argument) {
  if (argument[1] == NULL) fail(argument[0], "needs a value");
  return argument[1];
}

// ---- Preparing ---------------------------------------------------------------------------------

// Finds libmulticast-trace.so, which is either in this program's folder, where the build puts it,
// or in the folder of the installed libraries.
static void find_object(char *path, size_t size) {
  static const char *const places[] = {"", MULTICAST_TRACE_FOLDER "/"};
  char own[4096];
  ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  must(length > 0, "/proc/self/exe");
  own[length] = '\0';
  *strrchr(own, '/') = '\0';
  for (int i = 0; i < 2; ++i) {
    int count = snprintf(path, size, "%s/%slibmulticast-trace.so", own, places[i]);
    if (count < (int)size && access(path, R_OK) == 0) return;
  }
  fail(path, "not found");
}

static void set_environment(int block) {
  char object[4200], value[64];
  find_object(object, sizeof object);
  // The loader splits LD_PRELOAD at colons and spaces, so replace a path that contains either with
  // a path in /proc.
  if (strpbrk(object, ": ") != NULL) {
    int descriptor = open(object, O_RDONLY | O_CLOEXEC);
    must(descriptor >= 0, object);
    snprintf(object, sizeof object, "/proc/%d/fd/%d", (int)getpid(), descriptor);
  }
  const char *others = getenv("LD_PRELOAD");
  char *preload = malloc(strlen(object) + (others != NULL ? strlen(others) : 0) + 2);
  must(preload != NULL, "memory");
  strcpy(preload, object);
  if (others != NULL && *others != '\0') strcat(strcat(preload, ":"), others);
  snprintf(value, sizeof value, "/proc/%d/fd/%d", (int)getpid(), block);
  must(setenv("LD_PRELOAD", preload, 1) == 0 && setenv(TRACE_VARIABLE, value, 1) == 0, "memory");
  free(preload);
}

// ---- Running -----------------------------------------------------------------------------------

static volatile pid_t child;

static void pass_on(int number) {
  if (child > 0) kill(child, number);
}

// Runs the program. Returns the exit status.
static int run(char **command) {
  // A terminal sends the first two signals to both processes, so only the other signals are
  // forwarded to the program.
  static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  enum { COUNT = sizeof signals / sizeof *signals };
  struct sigaction before[COUNT], after;
  sigset_t all, mask;
  int errors[2], status, error;
  must(pipe2(errors, O_CLOEXEC) == 0, "pipe");
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &mask);
  memset(&after, 0, sizeof after);
  for (int i = 0; i < COUNT; ++i) {
    after.sa_handler = i < 2 ? SIG_IGN : pass_on;
    sigaction(signals[i], &after, &before[i]);
  }
  child = fork();
  must(child >= 0, "fork");
  if (child == 0) {
    for (int i = 0; i < COUNT; ++i) sigaction(signals[i], &before[i], NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    execvp(command[0], command);
    error = errno;
    if (write(errors[1], &error, sizeof error) < 0) perror(command[0]);
    _exit(FAILED);
  }
  sigprocmask(SIG_SETMASK, &mask, NULL);
  close(errors[1]);
  ssize_t size;
  while ((size = read(errors[0], &error, sizeof error)) < 0 && errno == EINTR) continue;
  pid_t ended;
  while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) continue;
  must(ended == child, "waiting");
  if (size == sizeof error) {
    fprintf(stderr, NAME "%s: %s\n", command[0], strerror(error));
    exit(error == ENOENT ? 127 : 126);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// ---- The report --------------------------------------------------------------------------------

// Returns the reason why libmulticast-trace.so was not loaded.
static const char *why_not(const char *program) {
  char path[4096];
  const char *folders = strchr(program, '/') != NULL ? "" : getenv("PATH");
  struct stat file = {0};
  while (folders != NULL) {
    const size_t length = strcspn(folders, ":");
    snprintf(path, sizeof path, "%.*s%s%s", (int)length, folders, length > 0 ? "/" : "", program);
    if (access(path, X_OK) == 0) break;
    folders = folders[length] == ':' ? folders + length + 1 : NULL;
  }
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  Elf64_Ehdr head;
  Elf64_Phdr part;
  const bool is_read = descriptor >= 0 && fstat(descriptor, &file) == 0 &&
                       read(descriptor, &head, sizeof head) == sizeof head &&
                       memcmp(head.e_ident, ELFMAG, SELFMAG) == 0;
  if ((file.st_mode & (S_ISUID | S_ISGID)) != 0 ||
      getxattr(path, "security.capability", NULL, 0) > 0)
    return "it runs in secure mode (setuid, setgid or capabilities), and there the loader ignores "
           "LD_PRELOAD. Trace it as the user that it becomes, or a copy without that mode";
  if (!is_read) return "its file cannot be read, or it is a script of a static interpreter";
  for (int i = 0; head.e_ident[EI_CLASS] == ELFCLASS64 && i < head.e_phnum; ++i) {
    if (pread(descriptor, &part, sizeof part, (off_t)(head.e_phoff + (size_t)i * sizeof part)) ==
            sizeof part && part.p_type == PT_INTERP)
      return "its loader did not load libmulticast-trace.so: see above for its reason";
  }
  return "it is linked statically, and has no loader that could put anything into it";
}

static void print_time(uint64_t ns) {
  if (ns < 1000000) fprintf(stderr, "%9.1f us", (double)ns / 1e3);
  else fprintf(stderr, "%9.1f ms", (double)ns / 1e6);
}

static int compare(const void *left, const void *right) {
  const trace_row *a = left, *b = right;
  if (a->longest_ns != b->longest_ns) return a->longest_ns < b->longest_ns ? 1 : -1;
  return a->count == b->count ? 0 : a->count < b->count ? 1 : -1;
}

static void print_table(const char *title, trace_table *table, bool has_times) {
  uint64_t shown = 0;
  fprintf(stderr, "  %s: %" PRIu64 "\n", title, table->count);
  qsort(table->rows, TRACE_ROWS, sizeof *table->rows, compare);
  for (int i = 0; i < TRACE_ROWS && table->rows[i].count > 0; ++i) {
    trace_row *row = &table->rows[i];
    row->name[sizeof row->name - 1] = '\0';
    shown += row->count;
    fprintf(stderr, "  %6" PRIu64 " x", row->count);
    if (has_times) print_time(row->longest_ns);
    fprintf(stderr, "  %s\n", row->name);
  }
  if (shown < table->count) fprintf(stderr, "  %6" PRIu64 " x  others\n", table->count - shown);
}

static void report(trace_process *it) {
  fprintf(stderr, NAME "%.15s (process %d): calls: %" PRIu64 "\n", it->program,
          atomic_load(&it->pid), it->calls);
  if (it->slow.count > 0) print_table("slow calls, with the longest", &it->slow, true);
  if (it->waits.count > 0) print_table("long waits for calls of", &it->waits, true);
  if (atomic_load(&it->has_ended)) print_table("never removed", &it->kept, false);
  else fputs("  never removed: unknown, because the process did not end by exit()\n", stderr);
  if (atomic_load(&it->own_watches) > 0)
    fputs("  not traced: multicasts for which the program has set a watch of their own\n", stderr);
  if (atomic_load(&it->has_lost_watch))
    fputs("  incomplete: the program has set a watch of all in the place of the trace's\n", stderr);
  if (it->lost > 0)
    fprintf(stderr, "  incomplete: %" PRIu64 " bytes could not be written\n", it->lost);
}

#define BEGINNING                                                                             \
  "[{\"name\": \"trace_begin\", \"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"args\": {}}"

// Removes the first events if the file is larger than `size`. Returns the number of remaining
// events.
static uint64_t keep_end(const trace_state *trace, const char *path) {
  static char text[1 << 16];
  const char next[] = ",\n{", event[] = ",\n{\"name";  // `event` matches no thread name
  int file = open(path, O_RDWR | O_CLOEXEC);
  int64_t end = file < 0 ? 0 : lseek(file, 0, SEEK_END), to = sizeof BEGINNING - 1, from = to;
  uint64_t events = 0;
  if (trace->size != 0 && end > trace->size) {
    // Find the first complete event.
    ssize_t count = pread(file, text, sizeof text, end - trace->size);
    char *first = count > 0 ? memmem(text, (size_t)count, next, sizeof next - 1) : NULL;
    from = first == NULL ? end : end - trace->size + (first - text);
  }
  size_t matching = 0;
  while (from < end) {
    ssize_t count = pread(file, text, sizeof text, from);
    if (count <= 0 || (from != to && pwrite(file, text, (size_t)count, to) != count)) break;
    for (ssize_t i = 0; i < count; ++i) {
      matching = text[i] == event[matching] ? matching + 1 : text[i] == event[0];
      if (matching < sizeof event - 1) continue;
      matching = 0;
      ++events;
    }
    from += count, to += count;
  }
  // Rewrite the beginning of the file, because a process may have freed the blocks that contained
  // it.
  if (to < end && pwrite(file, BEGINNING, sizeof BEGINNING - 1, 0) < 0) from = 0;
  if (file < 0 || from < end || (to < end && ftruncate(file, to) != 0))
    fprintf(stderr, NAME "%s: %s\n", path, strerror(errno));
  if (file >= 0) close(file);
  return events;
}

static void write_names(trace_process *it, int file) {
  for (uint32_t i = 0; i < it->threads && i < TRACE_THREADS; ++i) {
    it->thread[i].name[sizeof it->thread[i].name - 1] = '\0';
    if (dprintf(file, TRACE_THREAD_NAME, atomic_load(&it->pid), it->thread[i].number,
                it->thread[i].name) < 0)
      return;
  }
}

// Writes all processes' buffered text and the end of the timeline. Processes that are still running
// write nothing from then on.
static void end_timeline(trace_state *trace, int file, const char *path, bool is_file) {
  uint64_t events = 0, kept = 0;
  const struct timespec moment = {0, 1000000};
  atomic_store(&trace->is_over, true);
  for (int i = 0; i < TRACE_PROCESSES; ++i) {
    trace_process *it = &trace->process[i];
    // order: pairs with `flush` in timeline.c.
    for (int k = 0; k < 1000 && atomic_load(&it->is_writing) && kill(it->pid, 0) == 0; ++k)
      nanosleep(&moment, NULL);
    int64_t done = atomic_load(&it->is_writing) ? lseek(file, 0, SEEK_END) - it->offset : 0;
    if (it->used > TRACE_TEXT || done < 0 || done > it->used) continue;
    ssize_t rest = (ssize_t)it->used - done;
    if (write(file, it->text + done, (size_t)rest) != rest) it->lost += (uint64_t)rest;
  }
  if (is_file) kept = keep_end(trace, path);
  for (int i = 0; i < TRACE_PROCESSES; ++i) events += trace->process[i].events;
  for (int i = 0; i < TRACE_PROCESSES && kept < events; ++i) write_names(&trace->process[i], file);
  if (is_file && trace->size != 0 && kept < events)
    fprintf(stderr, NAME "%s: left out for --size: the %s %" PRIu64 " of %" PRIu64 " events\n",
            path, atomic_load(&trace->keeps_beginning) ? "last" : "first", events - kept, events);
  if (write(file, "\n]\n", 3) != 3)
    fprintf(stderr, NAME "%s: %s\n", path, strerror(errno));
}

int main(int count, char **arguments) {
  const char *path = "multicast-trace.json";
  uint64_t slow_ns = 10000000;
  int64_t size = 64000000;
  const char *label = "";
  bool follows = false;
  char **argument = arguments + 1;
  for (; *argument != NULL && **argument == '-'; ++argument) {
    if (strcmp(*argument, "--") == 0) {
      ++argument;
      break;
    }
    if (strcmp(*argument, "-o") == 0) path = value_of(argument++);
    else if (strcmp(*argument, "--slow") == 0) slow_ns = parse_time(value_of(argument++));
    else if (strcmp(*argument, "--size") == 0) size = parse_size(value_of(argument++));
    else if (strcmp(*argument, "--label") == 0) label = value_of(argument++);
    else if (strcmp(*argument, "--follow") == 0) follows = true;
    else if (strcmp(*argument, "--help") == 0) return fputs(usage, stdout) < 0;
    else if (strcmp(*argument, "--version") == 0)
      return printf("multicast-trace %d.%d.%d\n", MULTICAST_VERSION_MAJOR, MULTICAST_VERSION_MINOR,
                    MULTICAST_VERSION_PATCH) < 0;
    else fail(*argument, "no such option; see --help");
  }
  if (*argument == NULL) return fputs(usage, stderr), FAILED;
  (void)count;

  struct stat kind = {0};
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  must(file >= 0 && fstat(file, &kind) == 0, path);
  // Writing to a pipe without a reader would end the program with SIGPIPE.
  if (!S_ISREG(kind.st_mode) && !S_ISCHR(kind.st_mode)) fail(path, "not a file");
  int block = (int)syscall(SYS_memfd_create, "multicast-trace", 1u /* MFD_CLOEXEC */);
  must(block >= 0 && ftruncate(block, sizeof(trace_state)) == 0, "memory");
  trace_state *trace =
      mmap(NULL, sizeof(trace_state), PROT_READ | PROT_WRITE, MAP_SHARED, block, 0);
  must(trace != MAP_FAILED, "memory");
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  trace->start_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  trace->slow_ns = slow_ns;
  trace->follows = follows;
  trace->size = size;
  if (strlen(label) >= sizeof trace->label) fail(label, "longer than a label is: 63 bytes");
  strcpy(trace->label, label);
  snprintf(trace->file, sizeof trace->file, "/proc/%d/fd/%d", (int)getpid(), file);
  must(write(file, BEGINNING, sizeof BEGINNING - 1) == sizeof BEGINNING - 1, path);
  set_environment(block);

  int status = run(argument);

  end_timeline(trace, file, path, S_ISREG(kind.st_mode));
  unsigned processes = atomic_load(&trace->processes);
  for (unsigned i = 0; i < processes && i < TRACE_PROCESSES; ++i) report(&trace->process[i]);
  if (processes > TRACE_PROCESSES)
    fprintf(stderr, NAME "%u more processes were not traced\n", processes - TRACE_PROCESSES);
  if (processes > 0)
    fprintf(stderr, NAME "%s: open it in https://ui.perfetto.dev\n", path);
  else if (!atomic_load(&trace->is_loaded))
    fprintf(stderr, NAME "%s: nothing was seen: %s\n", argument[0], why_not(argument[0]));
  else
    fprintf(stderr, NAME "%s: nothing was seen: it has not loaded libmulticast.so. The static "
                    "library can be seen only if the program is linked with -rdynamic%s\n",
            argument[0], follows ? "" : "; the programs that it starts, only with --follow");
  return status;
}
