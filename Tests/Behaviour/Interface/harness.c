#include "harness.h"

#include "linux.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Checks ---------------------------------------------------------------------------------- */

int row = -1;

__attribute__((noreturn)) static void end_test(void) {
  if (row >= 0) fprintf(stderr, "  in row %d, counted from 0\n", row);
  fflush(NULL);
  _exit(1);
}

void check_failed(const char *file, int line, const char *expression, const char *detail) {
  fprintf(stderr, "%s:%d: check failed: %s %s\n", file, line, expression, detail);
  end_test();
}

void check_equal(const char *file, int line, const char *left, const char *right, int64_t a,
                 int64_t b) {
  if (a == b) return;
  fprintf(stderr, "%s:%d: check failed: %s is %lld, but %s is %lld\n", file, line, left,
          (long long)a, right, (long long)b);
  end_test();
}

void check_status(const char *file, int line, const char *expression, int64_t got,
                  int64_t wanted) {
  if (got == wanted) return;
  fprintf(stderr, "%s:%d: check failed: %s is %lld (%s), expected %lld (%s)\n", file, line,
          expression, (long long)got, multicast_status_name((multicast_status)got),
          (long long)wanted, multicast_status_name((multicast_status)wanted));
  end_test();
}

void check_text(const char *file, int line, const char *left, const char *a, const char *b) {
  if (a != NULL && strcmp(a, b) == 0) return;
  fprintf(stderr, "%s:%d: check failed: %s is \"%s\", expected \"%s\"\n", file, line, left,
          a ? a : "(null)", b);
  end_test();
}

/* ---- Threads --------------------------------------------------------------------------------- */

static struct timespec after_ms(int milliseconds) {
  struct timespec moment;
  clock_gettime(CLOCK_REALTIME, &moment);
  moment.tv_sec += milliseconds / 1000;
  moment.tv_nsec += (long)(milliseconds % 1000) * 1000000;
  if (moment.tv_nsec >= 1000000000) {
    moment.tv_sec += 1;
    moment.tv_nsec -= 1000000000;
  }
  return moment;
}

void gate_open(gate *g) {
  pthread_mutex_lock(&g->mutex);
  g->is_open = true;
  pthread_cond_broadcast(&g->condition);
  pthread_mutex_unlock(&g->mutex);
}

static bool opens_within(gate *g, int milliseconds) {
  struct timespec deadline = after_ms(milliseconds);
  int error = 0;
  pthread_mutex_lock(&g->mutex);
  while (!g->is_open && error == 0) {
    error = pthread_cond_timedwait(&g->condition, &g->mutex, &deadline);
  }
  bool is_open = g->is_open;
  pthread_mutex_unlock(&g->mutex);
  return is_open;
}

/* Returns whether all other threads of the process are asleep, or true if the system does not
 * provide this information. */
static bool do_others_sleep(void) {
  DIR *threads = opendir("/proc/self/task");
  struct dirent *each;
  bool do_sleep = true;
  if (threads == NULL) return true;
  while ((each = readdir(threads)) != NULL) {
    char path[64], text[256];
    FILE *file;
    if (each->d_name[0] == '.' || atol(each->d_name) == syscall(SYS_gettid)) continue;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", each->d_name);
    file = fopen(path, "r");
    if (file == NULL) continue; /* the thread has ended */
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *state = strrchr(text, ')'); /* the thread's state follows its name */
    if (state != NULL && strncmp(state, ") R", 3) == 0) do_sleep = false;
  }
  closedir(threads);
  return do_sleep;
}

/* On a loaded machine, A_WHILE_MS may be too short for other threads to act, so gate_opens_within()
 * repeats this wait until they are asleep. It repeats the wait at most this many times, since some
 * tests have threads that never sleep. */
enum { LONGEST_WHILE = 20 };

bool gate_opens_within(gate *g, int milliseconds) {
  int times = 1;
  while (!opens_within(g, milliseconds)) {
    if (milliseconds != A_WHILE_MS || times == LONGEST_WHILE || do_others_sleep()) return false;
    ++times;
  }
  return true;
}

void gate_wait(gate *g) { CHECK(gate_opens_within(g, 20000)); }

pthread_t start_thread(void *(*body)(void *), void *argument) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, body, argument), 0);
  return thread;
}

void join_thread(pthread_t thread) {
#ifdef __linux__
  struct timespec deadline = after_ms(20000);
  int error = pthread_timedjoin_np(thread, NULL, &deadline);
#else /* the alarm ends a test that hangs */
  int error = pthread_join(thread, NULL);
#endif
  if (error == ETIMEDOUT) check_failed(__FILE__, __LINE__, "join_thread", "hangs");
  CHECK_EQ(error, 0);
}

void on_another_thread(void *(*body)(void *), void *argument) {
  join_thread(start_thread(body, argument));
}

static void sleep_ms(int milliseconds) {
  struct timespec duration = {.tv_sec = milliseconds / 1000,
                              .tv_nsec = (long)(milliseconds % 1000) * 1000000};
  while (nanosleep(&duration, &duration) != 0 && errno == EINTR) {
  }
}

__thread uint64_t seed_of_draw = 1;

uint32_t draw(uint32_t below) {
  seed_of_draw = seed_of_draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(seed_of_draw >> 33) % below;
}

void pause_ms(int milliseconds) {
  int times = 1;
  sleep_ms(milliseconds);
  for (; milliseconds == A_WHILE_MS && times < LONGEST_WHILE && !do_others_sleep(); ++times)
    sleep_ms(milliseconds);
}

/* ---- Delegates ------------------------------------------------------------------------------- */

void count_call(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(*(int *)context, 1);
}

void count_call_too(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(*(int *)context, 1);
}

void count_release(void *context) { ADD(*(int *)context, 1); }

void call_nothing(void *context, uint32_t event, const void *payload, size_t size) {}

void end_this_thread(void *context, uint32_t event, const void *payload, size_t size) {
  pthread_exit(NULL);
}

void *lock_dead(void *context) { return NULL; }
void *lock_same(void *context) { return context; }
void unlock_nothing(void *strong) {}

void *remove_token(void *token) {
  CHECK_OK(multicast_token_remove(*(multicast_token *)token));
  return NULL;
}

int calls;

multicast_delegate counter(int *calls) {
  return (multicast_delegate){count_call, calls};
}

void write_letter(void *context, uint32_t event, const void *payload, size_t size) {
  letter *l = context;
  size_t end = strlen(l->text);
  l->text[end] = l->name;
  l->text[end + 1] = '\0';
}

multicast_delegate writer(letter *l) {
  return (multicast_delegate){write_letter, l};
}

void block_call(void *context, uint32_t event, const void *payload, size_t size) {
  blocker *b = context;
  ADD(b->calls, 1);
  gate_open(&b->entered);
  gate_wait(&b->let_go);
  STORE(b->has_left, true);
}

void release_blocker(void *context) { ADD(((blocker *)context)->releases, 1); }

multicast_delegate blocking(blocker *b) {
  return (multicast_delegate){block_call, b};
}

multicast_token add_with(multicast m, multicast_delegate d, const multicast_add_options *options) {
  multicast_token token = {0};
  CHECK_OK(multicast_add(m, d, options, &token));
  CHECK(token.id != 0);
  return token;
}

multicast_token add(multicast m, multicast_delegate d) { return add_with(m, d, NULL); }

multicast_queue queue_with(uint32_t capacity, multicast_overflow overflow) {
  multicast_queue_options options = QUEUE_OPTIONS(.capacity = capacity, .overflow = overflow);
  multicast_queue q = multicast_queue_create(&options);
  CHECK(q.id != 0);
  return q;
}

multicast_token add_queued(multicast m, multicast_delegate d, multicast_queue q) {
  return add_with(m, d, &ADD_OPTIONS(.queue = q));
}

multicast_queue_stats stats_of(multicast_queue q) {
  multicast_queue_stats s = multicast_queue_stats_default();
  CHECK_OK(multicast_queue_get_stats(q, &s));
  CHECK_EQ(s.queued, s.pending + s.delivered + s.dropped + s.cancelled + s.coalesced);
  CHECK(s.highest >= s.pending && s.highest <= s.queued);
  return s;
}

bool is_readable(int descriptor) {
  struct pollfd polled = {0, POLLIN, 0};
  polled.fd = descriptor;
  int count = poll(&polled, 1, 0);
  CHECK(count >= 0);
  CHECK((polled.revents & ~POLLIN) == 0);
  return count == 1;
}

THREAD(invoke_once, invoker *i) {
  i->result = multicast_invoke(i->target, 0, NULL, 0);
}

void invoke_in_background(invoker *i, multicast m) {
  i->target = m;
  i->result = INT64_MIN;
  i->thread = start_thread(invoke_once, i);
}

int64_t invoke_finished(invoker *i) {
  join_thread(i->thread);
  return i->result;
}

void begin_blocked(blocker *b, multicast m) {
  invoke_in_background(&b->invoking, m);
  gate_wait(&b->entered);
}

int64_t end_blocked(blocker *b) {
  gate_open(&b->let_go);
  return invoke_finished(&b->invoking);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

int64_t allocated_bytes, allocated_blocks;
int fail_after = -1;
bool fail_only_once = true;
bool has_failed;

/* The size and alignment that the library has requested, which are stored in front of each
 * block. */
typedef struct asked {
  size_t size, alignment;
} asked;

/* Returns the offset of the block in the allocated memory. The memory has twice the maximum
 * alignment, and the offset gives the block exactly the requested alignment. */
enum { MOST_ALIGNED = 128 };
static size_t distance_of(const asked *a) {
  return a->alignment < MOST_ALIGNED ? MOST_ALIGNED + a->alignment : MOST_ALIGNED;
}

static void *test_allocate(void *context, size_t size, size_t alignment) {
  void *all = NULL;
  asked a = {.size = size, .alignment = alignment};
  CHECK(context == (void *)&allocated_bytes);
  CHECK(size > 0);
  CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0 && alignment <= MOST_ALIGNED);
  if (fail_after == 0) {
    has_failed = true;
    if (fail_only_once) fail_after = -1;
    return NULL;
  }
  if (fail_after > 0) --fail_after;
  if (size > SIZE_MAX / 2) abort();
  if (posix_memalign(&all, (size_t)2 * MOST_ALIGNED, distance_of(&a) + size) != 0) abort();
  unsigned char *block = (unsigned char *)all + distance_of(&a);
  memcpy(block - sizeof a, &a, sizeof a);
  memset(block, 0xA5, size);
  ADD(allocated_bytes, (int64_t)size);
  ADD(allocated_blocks, 1);
  return block;
}

static void test_deallocate(void *context, void *block, size_t size, size_t alignment) {
  asked a;
  CHECK(context == (void *)&allocated_bytes);
  CHECK(block != NULL);
  memcpy(&a, (unsigned char *)block - sizeof a, sizeof a);
  CHECK_EQ(size, a.size);
  CHECK_EQ(alignment, a.alignment);
  memset(block, 0x5A, size);
  ADD(allocated_bytes, -(int64_t)size);
  ADD(allocated_blocks, -1);
  free((unsigned char *)block - distance_of(&a));
}

void use_test_allocator(void) {
  multicast_allocator allocator = multicast_allocator_default();
  allocator.context = &allocated_bytes;
  allocator.allocate = test_allocate;
  allocator.deallocate = test_deallocate;
  CHECK_OK(multicast_set_allocator(&allocator));
}

/* ---- The process ----------------------------------------------------------------------------- */

static int membarrier_count;

#ifdef __linux__
/* The harness passes this number as membarrier's third argument, which the kernel ignores. The
 * filter lets calls with this number pass. */
enum { COUNTED = 4711 };

static void filter_membarrier(uint32_t action) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, COUNTED, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {(unsigned short)(sizeof filter / sizeof filter[0]), filter};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

void deny_membarrier(void) {
  filter_membarrier(SECCOMP_RET_ERRNO | EPERM);
  CHECK(syscall(SYS_membarrier, 0, 0, 0) == -1 && errno == EPERM);
}

static bool ends_by_membarrier;

void end_by_membarrier(void) {
  filter_membarrier(SECCOMP_RET_KILL_PROCESS);
  ends_by_membarrier = true;
}

/* Counts the membarrier call that the filter has trapped, and then executes it. */
static void count_membarrier(int signal, siginfo_t *info, void *context) {
  ucontext_t *state = context;
  int error = errno;
  ADD(membarrier_count, 1);
#if defined(__aarch64__)
  state->uc_mcontext.regs[0] =
      (uint64_t)syscall(SYS_membarrier, state->uc_mcontext.regs[0], 0, COUNTED);
#elif defined(__riscv)
  state->uc_mcontext.__gregs[REG_A0] =
      (uint64_t)syscall(SYS_membarrier, state->uc_mcontext.__gregs[REG_A0], 0, COUNTED);
#elif defined(__arm__)
  state->uc_mcontext.arm_r0 =
      (unsigned long)syscall(SYS_membarrier, state->uc_mcontext.arm_r0, 0, COUNTED);
#elif defined(__i386__)
  state->uc_mcontext.gregs[REG_EAX] =
      (int)syscall(SYS_membarrier, state->uc_mcontext.gregs[REG_EBX], 0, COUNTED);
#else
  state->uc_mcontext.gregs[REG_RAX] =
      syscall(SYS_membarrier, state->uc_mcontext.gregs[REG_RDI], 0, COUNTED);
#endif
  errno = error;
}

void count_membarriers(void) {
  struct sigaction action;
  if (ends_by_membarrier) return; /* a call would end the test, so there is nothing to count */
  memset(&action, 0, sizeof action);
  action.sa_sigaction = count_membarrier;
  action.sa_flags = SA_SIGINFO;
  CHECK_EQ(sigaction(SIGSYS, &action, NULL), 0);
  filter_membarrier(SECCOMP_RET_TRAP);
  CHECK(syscall(SYS_membarrier, 0, 0, 0) >= 0);
  CHECK_EQ(membarriers(), 1);
}
#else /* only Linux has this call */
void deny_membarrier(void) {}
void end_by_membarrier(void) {}
void count_membarriers(void) {}
#endif

int membarriers(void) { return __atomic_exchange_n(&membarrier_count, 0, __ATOMIC_SEQ_CST); }

enum { CHILD_TIMEOUT_MS = 30000 };

pid_t begin_child(void) {
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  return child;
}

/* The parent measures the time, because the child may hang before its fork() returns. */
int end_of_child(pid_t child) {
  int status = 0;
  pid_t ended = 0;
  for (int waited_ms = 0; ended == 0; ++waited_ms) {
    if (waited_ms == CHILD_TIMEOUT_MS) kill(child, SIGALRM);
    if (waited_ms == CHILD_TIMEOUT_MS + 1000) kill(child, SIGKILL);
    ended = waitpid(child, &status, WNOHANG);
    CHECK(ended >= 0 || errno == EINTR);
    if (ended < 0) ended = 0;
    if (ended == 0) pause_ms(1);
  }
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* ThreadSanitizer does not protect the locks of its clocks across a fork. If a thread of the parent
 * holds such a lock during the fork, the child waits for it forever. This is rare, but not on a
 * busy machine. A second or a third child must then succeed. */
#ifdef __SANITIZE_THREAD__
enum { FORKS_THAT_MAY_HANG = 2 };
#else
enum { FORKS_THAT_MAY_HANG = 0 };
#endif

void in_child(void (*body)(void *), void *argument) {
  int status = -SIGALRM;
  for (int hung = 0; status == -SIGALRM && hung <= FORKS_THAT_MAY_HANG; ++hung) {
    pid_t child = begin_child();
    if (child == 0) {
      body(argument);
      fflush(NULL);
      _exit(0);
    }
    status = end_of_child(child);
  }
  CHECK_EQ(status, 0); /* an exit status, or the negative number of a signal */
}
