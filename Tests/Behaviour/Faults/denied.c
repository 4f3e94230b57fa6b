/* A sandbox denies system calls, either from the start or at some later point. A function that
 * needs a denied call returns an error status, and everything else keeps working. */

#include "../Interface/harness.h"
#include "functions.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Denies the system call `number` if the argument with the index `argument`, masked with `mask`,
 * equals `value`. */
typedef struct denied {
  uint32_t number, argument, mask, value;
} denied;

static const denied eventfds = {SYS_eventfd2, 0, 0, 0};
static const denied waits = {SYS_futex, 1, UINT32_MAX, FUTEX_WAIT_BITSET_PRIVATE};
static const denied advice = {SYS_madvise, 0, 0, 0};
static const denied new_threads = {SYS_clone, 0, CLONE_THREAD, CLONE_THREAD};
static const denied new_tasks = {SYS_clone3, 0, 0, 0};

/* Denies the system call on this thread and on all threads that it starts from now on. */
static void deny(denied d, uint32_t error) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, d.number, 0, 4),
      /* the lower half of the argument */
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
               (uint32_t)offsetof(struct seccomp_data, args) + 8 * d.argument),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, d.mask),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, d.value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {(unsigned short)(sizeof filter / sizeof *filter), filter};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static const uint32_t errors[] = {EPERM, ENOSYS, EINVAL};
enum { ERRORS = sizeof errors / sizeof *errors };

static void with_each_error(void (*body)(void *)) {
  for (uint32_t i = 0; i < ERRORS; ++i) {
    uint32_t error = errors[i];
    in_child(body, &error);
  }
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

static void use_without_descriptors(void *error) {
  world w;
  world_begin(&w);
  deny(eventfds, *(uint32_t *)error);
  errno = 0;
  CHECK_EQ(multicast_queue_fd(w.queue), -1);
  CHECK_EQ(errno, 0);
  CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 4);
  CHECK_EQ(multicast_queue_wait(w.queue, 0), 1);
  CHECK_EQ(multicast_queue_run(w.queue, 0), 1);
  world_end(&w);
}

TEST(denied_descriptors_are_minus_1_and_queues_work) { with_each_error(use_without_descriptors); }

/* ---- Threads --------------------------------------------------------------------------------- */

static void *do_nothing(void *unused) { return unused; }

/* More than one system call can start a thread, and libc may use one that is not denied. If libc
 * can still start threads, the library must be able to start them, too. */
static void use_without_threads(void *unused) {
  world w;
  pthread_t thread;
  world_begin(&w);
  CHECK_EQ(multicast_invoke(w.m, 0, NULL, 0), 4);
  int error = pthread_create(&thread, NULL, do_nothing, NULL);
  if (error == 0) join_thread(thread);
  for (int i = 0; i < 100; ++i) {
    if (error == 0) {
      CHECK_OK(multicast_queue_start(w.queue));
      EVENTUALLY(stats_of(w.queue).pending == 0);
      CHECK_OK(multicast_queue_stop(w.queue));
    } else {
      CHECK_ERROR(multicast_queue_start(w.queue), SYSTEM);
      CHECK_ERROR(multicast_queue_stop(w.queue), STATE);
    }
    CHECK_EQ(stats_of(w.queue).pending, error == 0 ? 0 : 1);
  }
  CHECK_EQ(multicast_queue_run(w.queue, 0), error == 0 ? 0 : 1);
  world_end(&w);
}

static void use_without_clone3(void *error) {
  deny(new_tasks, *(uint32_t *)error);
  use_without_threads(NULL);
}

static void use_without_clone(void *error) {
  pthread_t thread;
  deny(new_tasks, ENOSYS);
  deny(new_threads, *(uint32_t *)error);
  CHECK(pthread_create(&thread, NULL, do_nothing, NULL) != 0);
  use_without_threads(NULL);
}

TEST(denied_threads_are_system_and_the_program_can_run_the_queue) {
  with_each_error(use_without_clone3);
  with_each_error(use_without_clone);
}

/* ---- Waits ----------------------------------------------------------------------------------- */

/* Waits for a call while the sandbox denies the futex operation with which the library, unlike
 * libc, puts threads to sleep. Waiting threads poll instead. */
static void wait_for_a_call(void) {
  multicast m = multicast_create();
  blocker b = BLOCKER_INIT;
  multicast_token token = add(m, blocking(&b));
  begin_blocked(&b, m);
  CHECK_ERROR(multicast_token_remove_within(token, 20000000), TIMEOUT);
  gate_open(&b.let_go);
  CHECK_ERROR(multicast_token_remove(token), INVALID_HANDLE);
  CHECK(b.has_left);
  CHECK_EQ(invoke_finished(&b.invoking), 1);
  CHECK_OK(multicast_destroy(m));
}

/* The number of calls is small, because threads that poll instead of sleeping are slow on a busy
 * machine. */
enum { CALLS = 400 };

static void *invoke_many_times(void *m) {
  for (int i = 0; i < CALLS; ++i) {
    CHECK_EQ(multicast_invoke(*(multicast *)m, 0, NULL, 0), 1);
  }
  return NULL;
}

/* Producers are waiting for room while a consumer is waiting for calls. */
static void wait_for_room(void) {
  enum { PRODUCERS = 3 };
  multicast m = multicast_create();
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  pthread_t producers[PRODUCERS];
  int calls = 0;
  CHECK_ERROR(multicast_queue_wait(q, 1000000), TIMEOUT);
  add_queued(m, counter(&calls), q);
  CHECK_OK(multicast_queue_start(q));
  for (int i = 0; i < PRODUCERS; ++i) producers[i] = start_thread(invoke_many_times, &m);
  for (int i = 0; i < PRODUCERS; ++i) join_thread(producers[i]);
  EVENTUALLY(LOAD(calls) == CALLS * PRODUCERS);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_OK(multicast_destroy(m));
}

static void use_without_waits(void *error) {
  deny(waits, *(uint32_t *)error);
  wait_for_a_call();
  wait_for_room();
  use_every_function();
}

TEST(denied_futex_waits_end_when_what_they_wait_for_does) { with_each_error(use_without_waits); }

/* ---- Memory ---------------------------------------------------------------------------------- */

static void use_without_advice(void *error) {
  enum { MANY = 4096 };
  static multicast all[MANY];
  deny(advice, *(uint32_t *)error);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < MANY; ++i) CHECK((all[i] = multicast_create()).id != 0);
    for (int i = 0; i < MANY; ++i) CHECK_OK(multicast_destroy(all[i]));
    errno = 0;
    CHECK_EQ(multicast_trim(), 0);
    CHECK_EQ(errno, 0);
    for (int i = 0; i < MANY; ++i) CHECK(!multicast_is_valid(all[i]));
  }
}

TEST(denied_madvise_leaves_trim_with_nothing_to_give) { with_each_error(use_without_advice); }
