#include "process.h"

#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t forking; /* this process while it forks, or its parent until enter_child(); atomic */
static unsigned fork_count;

static pthread_condattr_t monotonic;
static bool (*start_engine)(void);
static void (*call_in_child)(void);
static bool is_ready;

/* Does the work of the handler in a child. The library's handler was registered earlier, so it runs
 * earlier in the child, and may release transports. Therefore every function that depends on this
 * work calls enter_child() first. */
static void enter_child(void) {
  const pid_t process = __atomic_load_n(&forking, __ATOMIC_RELAXED);
  if (process == 0 || process == getpid()) return;
  __atomic_store_n(&forking, 0, __ATOMIC_RELAXED);
  ++fork_count;
  if (call_in_child != NULL) call_in_child();
  process_unlock();
}

void process_lock(void) {
  enter_child();
  pthread_mutex_lock(&lock);
}

void process_unlock(void) { pthread_mutex_unlock(&lock); }

static void before_fork(void) {
  process_lock();
  __atomic_store_n(&forking, getpid(), __ATOMIC_RELAXED);
}

static void in_parent(void) {
  __atomic_store_n(&forking, 0, __ATOMIC_RELAXED);
  process_unlock();
}

static void start(void) {
  is_ready = pthread_condattr_init(&monotonic) == 0 &&
             pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
             pthread_atfork(before_fork, in_parent, enter_child) == 0 &&
             __atomic_load_n(&start_engine, __ATOMIC_RELAXED)();
}

bool process_start(bool (*engine)(void), void (*in_child_too)(void)) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  /* Several threads may store these pointers at the same time, but all threads store the same
   * values. */
  __atomic_store_n(&start_engine, engine, __ATOMIC_RELAXED);
  __atomic_store_n(&call_in_child, in_child_too, __ATOMIC_RELAXED);
  pthread_once(&once, start);
  return is_ready;
}

unsigned process_forks(void) {
  enter_child();
  return fork_count;
}

void process_block_signals(sigset_t *before) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
  sigset_t all;
  size_t i;
  sigfillset(&all);
  for (i = 0; i < sizeof faults / sizeof *faults; ++i) sigdelset(&all, faults[i]);
  pthread_sigmask(SIG_SETMASK, &all, before);
}

int process_start_thread(pthread_t *thread, void *(*body)(void *), void *argument) {
  pthread_attr_t attributes;
  sigset_t before;
  int result = pthread_attr_init(&attributes);
  if (result != 0) return result;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  process_block_signals(&before);
  result = pthread_create(thread, &attributes, body, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return result;
}

void process_make_condition(pthread_cond_t *condition) {
  pthread_cond_init(condition, &monotonic);
}

uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * ns_of_second + (uint64_t)now.tv_nsec;
}

struct timespec time_of_ns(uint64_t ns) {
  struct timespec time;
  time.tv_sec = (time_t)(ns / ns_of_second);
  time.tv_nsec = (long)(ns % ns_of_second);
  return time;
}
