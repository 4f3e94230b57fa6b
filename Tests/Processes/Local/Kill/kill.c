/* Repeatedly kills a process of a group and replaces it with a new process. The other processes
 * must continue and must not lose any notification.
 *
 *   kill DIRECTORY SECONDS STEP WITHIN_MS
 *
 * In the first third of the time, processes are killed at random moments, sometimes while another
 * process is stopped. In the second third, a process is killed at each STEPth beginning or end of a
 * system call. In the last third, a process is killed at each (STEP * STEP)th instruction of a
 * publication, and twice as often if the publication drops entries that a subscriber has not
 * read. */

#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 60, LINE_MAX_SIZE = 512 };

world *the_world;
const char *directory;
static uint64_t kills, lives, published, arrived, lost;
static unsigned told, left; /* number of reported ends; sockets that remained at a report */

uint64_t time_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pause_us(long us) {
  const struct timespec duration = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&duration, NULL);
}

void fail(const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fflush(stdout);
  fprintf(stderr, "kill: %s\n", text);
  _exit(1);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Fails if a process has ended without being killed. Such a process has already printed the reason
 * itself. */
static void look_for_failures(void) {
  for (int p = 0; p < PLACES; ++p) {
    const pid_t process = the_world->places[p].process;
    siginfo_t end = {0};
    if (process > 0 && waitid(P_PID, (id_t)process, &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        end.si_pid != 0)
      fail("%d.%u has ended", p, the_world->places[p].number);
  }
}

static void print_what_is_left(void);

static void wait_for(bool (*is_so)(void), const char *what) {
  const uint64_t deadline = time_now() + (uint64_t)PATIENCE_S * 1000000000u;
  while (!is_so()) {
    look_for_failures();
    if (time_now() > deadline) {
      print_what_is_left();
      fail("%s: not in %d s", what, PATIENCE_S);
    }
    pause_us(200);
  }
}

static bool is_alive(int p) { return the_world->places[p].process > 0; }

/* ---- Lives ----------------------------------------------------------------------------------- */

static void count_life(const place *one) {
  published += one->lives[one->number % LIVES_KEPT].returned;
  arrived += one->arrived;
  lost += one->lost;
}

static void begin_life(int p, task t, bool is_traced) {
  place *one = &the_world->places[p];
  const uint32_t number = one->number + 1;
  pid_t process;
  count_life(one);
  memset(&one->lives[number % LIVES_KEPT], 0, sizeof(life));
  memset(one->met, 0, sizeof one->met);
  memset(one->gone, 0, sizeof one->gone);
  memset(one->here, 0, sizeof one->here);
  one->is_settled = false;
  one->arrived = one->lost = 0;
  one->task = t;
  STORE(one->number, number);
  ++lives;
  fflush(stdout);
  process = fork();
  if (process < 0) fail("fork");
  if (process > 0) one->process = process;
  if (process > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (is_traced && (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0 || raise(SIGSTOP) != 0)) fail("ptrace");
  live(p);
}

static bool is_settled(void) {
  for (int p = 0; p < PLACES; ++p) {
    const place *one = &the_world->places[p];
    if (!LOAD(one->is_settled)) return false;
    for (int q = 0; q < PLACES; ++q) {
      if (q != p && LOAD(one->met[q]) != the_world->places[q].number) return false;
    }
  }
  return true;
}

/* The place of the most recently killed process. */
static int killed;

/* Returns whether the ends of all killed processes of the place `killed` have been reported to the
 * processes that had met them. */
static bool is_told(void) {
  for (int p = 0; p < PLACES; ++p) {
    if (is_alive(p) && LOAD(the_world->places[p].here[killed]) > 0) return false;
  }
  return true;
}

static uint64_t published_then[PUBLISHERS];

static bool do_publish(void) {
  for (int p = 0; p < PUBLISHERS; ++p) {
    const place *one = &the_world->places[p];
    if (is_alive(p) && one->task == GO_ON &&
        LOAD(one->lives[one->number % LIVES_KEPT].returned) <= published_then[p])
      return false;
  }
  return true;
}

/* Counts the files of a folder whose names begin with `begin`, except hidden files. Returns a
 * negative number if the folder does not exist. */
static int count_files(const char *path, const char *begin) {
  DIR *all = opendir(path);
  const struct dirent *entry;
  int count = 0;
  if (all == NULL) return -1;
  while ((entry = readdir(all)) != NULL)
    count += entry->d_name[0] != '.' && strncmp(entry->d_name, begin, strlen(begin)) == 0;
  closedir(all);
  return count;
}

static int count_sockets(const char *begin) {
  char path[LINE_MAX_SIZE];
  snprintf(path, sizeof path, "%s/kill", directory);
  return count_files(path, begin);
}

/* Checks whether the socket file of a killed process remains. A process that notices the kill
 * removes this file before it reports the kill. If the system has not closed the socket by then,
 * the file remains until a later process joins or leaves. */
static void count_socket_of(pid_t process) {
  const place *one = &the_world->places[killed];
  char begin[32];
  bool is_told_of = false;
  snprintf(begin, sizeof begin, "%d-", (int)process);
  for (int p = 0; p < PLACES; ++p)
    is_told_of |= is_alive(p) && LOAD(the_world->places[p].gone[killed]) == one->number;
  told += is_told_of;
  left += is_told_of && count_sockets(begin) > 0;
}

/* Called after a kill. Expects that the other processes continue. */
static void expect_others_to_go_on(int p) {
  const pid_t process = the_world->places[p].process;
  killed = p;
  the_world->places[p].process = 0;
  wait_for(is_told, "all are told that one has gone");
  count_socket_of(process);
  for (int q = 0; q < PUBLISHERS; ++q) {
    const place *one = &the_world->places[q];
    published_then[q] = LOAD(one->lives[one->number % LIVES_KEPT].returned);
  }
  wait_for(do_publish, "the publishers go on");
}

/* Kills the process of a place. `time` is the current time. If `time` is 0, the other processes do
 * not record how long it takes until the kill is reported to them. */
static void kill_now(int p, uint64_t time) {
  place *one = &the_world->places[p];
  STORE(one->lives[one->number % LIVES_KEPT].killed_at, time);
  if (kill(one->process, SIGKILL) != 0) fail("kill");
  ++kills;
}

static void kill_and_wait(int p, uint64_t time) {
  kill_now(p, time);
  if (waitpid(the_world->places[p].process, NULL, 0) < 0) fail("waitpid");
}

static void kill_for_good(int p) {
  kill_and_wait(p, time_now());
  expect_others_to_go_on(p);
}

/* ---- Leftovers ------------------------------------------------------------------------------- */

static int count_descriptors(int p) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd", (int)the_world->places[p].process);
  return count_files(path, "");
}

/* Counts the mappings of transports' shared memory in the process that occupies a place. */
static int count_mappings(int p) {
  char line[LINE_MAX_SIZE];
  FILE *maps;
  int count = 0;
  snprintf(line, sizeof line, "/proc/%d/maps", (int)the_world->places[p].process);
  maps = fopen(line, "r");
  if (maps == NULL) return -1;
  while (fgets(line, sizeof line, maps) != NULL) count += strstr(line, "memfd:multicast") != NULL;
  fclose(maps);
  return count;
}

/* The expected number of descriptors, which is the number at the start of the test. */
static int right_descriptors;

/* Returns whether no descriptor, mapping or socket file is left over from processes that have
 * ended. A folder or a connection may be open for a moment, so the caller must try repeatedly. */
static bool has_nothing_left(void) {
  if (right_descriptors == 0) right_descriptors = count_descriptors(0);
  for (int p = 0; p < PLACES; ++p) {
    if (count_descriptors(p) != right_descriptors || count_mappings(p) != 2 * PLACES) return false;
  }
  return count_sockets("") == PLACES;
}

static void print_what_is_left(void) {
  for (int p = 0; p < PLACES; ++p)
    printf("member %d.%u: %d descriptors, %d mappings; told of %d: %u, ends: %u; %u here\n", p,
           the_world->places[p].number, count_descriptors(p), count_mappings(p), killed,
           LOAD(the_world->places[p].met[killed]), LOAD(the_world->places[p].gone[killed]),
           LOAD(the_world->places[p].here[killed]));
  printf("%d sockets; right: %d descriptors, %d mappings, %d sockets\n", count_sockets(""),
         right_descriptors, 2 * PLACES, PLACES);
}

static void expect_nothing_left(void) {
  wait_for(is_settled, "all have met");
  wait_for(has_nothing_left, "descriptors, memory and files are as many as there are processes");
}

/* ---- At any moment --------------------------------------------------------------------------- */

static uint32_t random_below(uint32_t bound) { return (uint32_t)random() % bound; }

/* Kills several successive processes of a place while a process of another place is stopped. The
 * stopped process meets some of the killed processes only after they have ended. */
static void kill_while_one_is_stopped(int p) {
  const int stopped = (p + 1 + (int)random_below(PLACES - 1)) % PLACES;
  const pid_t process = the_world->places[stopped].process;
  int status;
  if (kill(process, SIGSTOP) != 0 || waitpid(process, &status, WUNTRACED) != process ||
      !WIFSTOPPED(status))
    fail("%d has ended", stopped);
  for (int i = 0; i < 2; ++i) {
    kill_and_wait(p, 0);
    begin_life(p, GO_ON, false);
    pause_us(random_below(8000));
  }
  kill_and_wait(p, 0);
  if (kill(process, SIGCONT) != 0) fail("go on");
  expect_others_to_go_on(p);
}

static void kill_at_any_moment(uint64_t until) {
  for (uint64_t i = 0; time_now() < until; ++i) {
    const int p = (int)random_below(PLACES);
    /* Wait between 4 us and 60 ms, so that some processes are killed soon after their start. */
    pause_us((long)(4 * pow(15000, random_below(1000) / 1000.0)));
    look_for_failures();
    if (i % 4 == 3) kill_while_one_is_stopped(p);
    else kill_for_good(p);
    begin_life(p, GO_ON, false);
    if (i % 16 == 0) expect_nothing_left();
  }
  expect_nothing_left();
}

/* ---- At each system call --------------------------------------------------------------------- */

enum { SYSTEM_CALL = SIGTRAP | 0x80 };

/* Starts a process whose threads stop at each of their system calls. */
static pid_t begin_traced(int p, task t) {
  int status;
  begin_life(p, t, true);
  const pid_t process = the_world->places[p].process;
  if (waitpid(process, &status, 0) != process || !WIFSTOPPED(status)) fail("ptrace");
  if (ptrace(PTRACE_SETOPTIONS, process, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE) != 0)
    fail("ptrace");
  return process;
}

/* Waits for a stop. Returns false if the process has ended. */
static bool wait_for_stop(pid_t process, pid_t *thread, int *status) {
  for (;;) {
    *thread = waitpid(-1, status, __WALL);
    if (*thread < 0) fail("waitpid");
    if (WIFSTOPPED(*status)) return true;
    if (*thread == process) return false;
    for (int p = 0; p < PLACES; ++p) {
      if (*thread == the_world->places[p].process) fail("%d has ended", p);
    }
  }
}

static void wait_for_end(pid_t process) {
  pid_t thread;
  int status;
  while (wait_for_stop(process, &thread, &status)) ptrace(PTRACE_CONT, thread, 0, 0);
}

/* Returns the signal that must be delivered to the stopped thread, or 0. */
static int signal_of(int status) {
  const int signal = WSTOPSIG(status);
  return status >> 16 != 0 || signal == SYSTEM_CALL || signal == SIGSTOP ? 0 : signal;
}

/* Starts a traced process, and kills it at the system-call stop with the number `stop`, counted
 * from 0. Returns false if the process ends before that stop. */
static bool kill_at_stop(int p, int stop) {
  alarm(PATIENCE_S);
  const pid_t process = begin_traced(p, LEAVE_SOON);
  pid_t thread = process;
  int status, count = 0;
  ptrace(PTRACE_SYSCALL, process, 0, 0);
  while (wait_for_stop(process, &thread, &status)) {
    if (WSTOPSIG(status) == SYSTEM_CALL && count++ == stop) {
      kill_now(p, time_now());
      wait_for_end(process);
      return true;
    }
    ptrace(PTRACE_SYSCALL, thread, 0, signal_of(status));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail("%d has ended", p);
  return false;
}

/* ---- At each instruction of a publication ---------------------------------------------------- */

/* Lets the publisher run until it sends itself a signal. */
static pid_t go_to_signal(pid_t process) {
  pid_t thread;
  int status;
  ptrace(PTRACE_CONT, process, 0, 0);
  while (wait_for_stop(process, &thread, &status)) {
    if (WSTOPSIG(status) == SIGUSR1) return thread;
    ptrace(PTRACE_CONT, thread, 0, signal_of(status));
  }
  fail("no signal");
  return 0;
}

/* Starts a traced process, and kills it when it has executed the given number of instructions of a
 * publication. Returns false if the publication has already returned. */
static bool kill_at_instruction(int p, int instruction) {
  alarm(PATIENCE_S);
  const pid_t process = begin_traced(p, STOP_IN_PUBLISH), publisher = go_to_signal(process);
  const life *l = &the_world->places[p].lives[the_world->places[p].number % LIVES_KEPT];
  const uint64_t begun = LOAD(l->begun);
  pid_t thread;
  int status;
  for (int i = 0; i < instruction; ++i) {
    ptrace(PTRACE_SINGLESTEP, publisher, 0, 0);
    do {
      if (!wait_for_stop(process, &thread, &status)) fail("%d has ended", p);
      if (thread != publisher) ptrace(PTRACE_CONT, thread, 0, signal_of(status));
    } while (thread != publisher);
  }
  kill_now(p, time_now());
  wait_for_end(process);
  return LOAD(l->returned) < begun;
}

/* ---- The test -------------------------------------------------------------------------------- */

static void kill_in_order(int p, bool (*kill_at)(int p, int moment), int step, uint64_t until,
                          const char *what) {
  int moment = (int)random_below((uint32_t)step);
  kill_for_good(p);
  while (time_now() < until && kill_at(p, moment)) {
    alarm(0);
    expect_others_to_go_on(p);
    moment += step;
  }
  alarm(0);
  printf("member %d, %s: %d%s\n", p, what, moment, time_now() < until ? ", all" : "");
  expect_others_to_go_on(p);
  begin_life(p, GO_ON, false);
  expect_nothing_left();
}

static void end_all(void) {
  int status;
  STORE(the_world->has_to_end, true);
  for (int p = 0; p < PLACES; ++p) {
    const pid_t process = the_world->places[p].process;
    if (waitpid(process, &status, 0) != process || status != 0) fail("%d has failed", p);
  }
  if (count_sockets("") != -1) fail("the folder of the group is left");
  if (rmdir(directory) != 0) fail("the folder of groups is not empty");
}

static int compare(const void *a, const void *b) {
  const float left = *(const float *)a, right = *(const float *)b;
  return (left > right) - (left < right);
}

static void report(double within_ms) {
  const unsigned count = the_world->delays < DELAYS_MAX ? the_world->delays : DELAYS_MAX;
  float *all = the_world->delay_ms;
  for (int p = 0; p < PLACES; ++p) count_life(&the_world->places[p]);
  qsort(all, count, sizeof *all, compare);
  printf("%llu kills of %llu processes; %llu published, %llu arrived, %llu overwritten\n",
         (unsigned long long)kills, (unsigned long long)lives, (unsigned long long)published,
         (unsigned long long)arrived, (unsigned long long)lost);
  printf("told after: median %.2f ms, 99%% %.2f ms, at most %.2f ms; %u times\n", all[count / 2],
         all[count - 1 - count / 100], all[count - 1], count);
  printf("sockets that were left for a while: %u of %u\n", left, told);
  if (left > told / 2) fail("who is told does not remove sockets");
  if (all[count - 1] > within_ms) fail("told later than in %.0f ms", within_ms);
}

int main(int argc, char **argv) {
  if (argc != 5) fail("usage: kill DIRECTORY SECONDS STEP WITHIN_MS");
  directory = argv[1];
  const uint64_t third = strtoull(argv[2], NULL, 10) * 1000000000u / 3, begin = time_now();
  const int step = atoi(argv[3]);
  static const int each[] = {DROPS, SLOW, BLOCKS};
  the_world = mmap(NULL, sizeof *the_world, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                   0);
  if (the_world == MAP_FAILED) fail("mmap");
  srandom((unsigned)begin);
  for (int p = 0; p < PLACES; ++p) begin_life(p, GO_ON, false);
  expect_nothing_left();
  kill_at_any_moment(begin + third);
  for (uint64_t i = 0; i < 3; ++i)
    kill_in_order(each[i], kill_at_stop, step, begin + third + (i + 1) * third / 3,
                  "system calls");
  kill_in_order(DROPS, kill_at_instruction, (step * step + 1) / 2,
                begin + 2 * third + third * 3 / 4, "instructions");
  kill_in_order(BLOCKS, kill_at_instruction, step * step, begin + 3 * third, "instructions");
  end_all();
  report(atof(argv[4]));
  return 0;
}
