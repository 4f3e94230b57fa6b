/* The child of a fork can use the library immediately, and runs the releases that the parent's
 * threads had not yet run. */

#include "process.h"

#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

static blocker busy = BLOCKER_INIT;

TEST(fork_child_can_use_the_library) {
  inherited = multicast_create();
  in_child(use_everything, NULL);
  use_everything(NULL);
}

static multicast_token begin_busy_call(invoker *i) {
  multicast_add_options options = ADD_OPTIONS(.release = release_blocker);
  inherited = multicast_create();
  multicast_token token = add_with(inherited, blocking(&busy), &options);
  invoke_in_background(i, inherited);
  gate_wait(&busy.entered);
  return token;
}

static void remove_and_destroy(void *token) {
  CHECK_OK(multicast_token_remove(*(multicast_token *)token));
  CHECK_EQ(busy.releases, 1);
  CHECK_OK(multicast_destroy(inherited));
}

TEST(fork_child_does_not_wait_for_calls_on_the_parents_threads) {
  invoker i;
  multicast_token token = begin_busy_call(&i);
  in_child(remove_and_destroy, &token);
  CHECK_EQ(LOAD(busy.releases), 0); /* not changed by the release in the child */
  gate_open(&busy.let_go);
  invoke_finished(&i);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(LOAD(busy.releases), 1);
}

static void count_own_releases(void *unused) {
  CHECK_EQ(busy.releases, 1);
}

TEST(fork_child_gets_the_release_of_what_was_removed_and_running) {
  invoker i;
  multicast_token token = begin_busy_call(&i);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  in_child(count_own_releases, NULL);
  CHECK_EQ(LOAD(busy.releases), 0);
  gate_open(&busy.let_go);
  invoke_finished(&i);
  CHECK_EQ(LOAD(busy.releases), 1);
}

/* ---- Threads of the parent that are waiting for a lock --------------------------------------- */

enum { RIVALS = 8 };
static int is_contended;

THREAD(add_and_remove, int *rounds) {
  for (int i = 0; LOAD(is_contended) && i < *rounds; ++i)
    CHECK_OK(multicast_token_remove(add(inherited, counter(&calls))));
}

static void contend(pthread_t *threads, int *rounds) {
  for (int i = 0; i < RIVALS; ++i) threads[i] = start_thread(add_and_remove, rounds);
}

static void contend_in_child(void *unused) {
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  static int rounds = 500;
  pthread_t threads[RIVALS];
  contend(threads, &rounds);
  for (int i = 0; i < RIVALS; ++i) join_thread(threads[i]);
#endif
}

/* When a thread of the child releases a lock, it must wake another thread of the child, rather than
 * try to wake one of the parent's sleeping threads. */
TEST(fork_while_threads_wait_for_a_lock_loses_no_wake_up) {
  static int rounds = INT_MAX;
  pthread_t threads[RIVALS];
  inherited = multicast_create();
  STORE(is_contended, true);
  contend(threads, &rounds);
  for (int i = 0; i < 40; ++i) in_child(contend_in_child, NULL);
  STORE(is_contended, false);
  for (int i = 0; i < RIVALS; ++i) join_thread(threads[i]);
}

static bool fork_is_over;

THREAD(churn, void *unused) {
  multicast_add_options options = multicast_add_options_default();
  while (!LOAD(fork_is_over)) {
    multicast_token token = add_with(inherited, counter(&busy.calls), &options);
    multicast_invoke(inherited, 0, NULL, 0);
    multicast_token_remove(token);
    CHECK_OK(multicast_destroy(multicast_create()));
  }
}

TEST(fork_at_any_moment_of_a_busy_parent) {
  pthread_t threads[2];
  inherited = multicast_create();
  for (int i = 0; i < 2; ++i) threads[i] = start_thread(churn, NULL);
  for (int i = 0; i < 60; ++i) in_child(use_everything, NULL);
  STORE(fork_is_over, true);
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
}

static void fork_inside(void *context, uint32_t event, const void *payload, size_t size) {
  in_child(use_everything, NULL);
  ++*(int *)context;
}

TEST(fork_inside_a_call) {
  int forks = 0;
  inherited = multicast_create();
  add(inherited, DELEGATE(fork_inside, &forks));
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  CHECK_EQ(forks, 1);
}

static void child_goes_on(void *context, uint32_t event, const void *payload, size_t size) {
  *(pid_t *)context = fork();
}

TEST(fork_child_returns_from_the_call_and_goes_on) {
  pid_t child = -1;
  int status = -1, later = 0;
  multicast_delegate d = {child_goes_on, &child};
  inherited = multicast_create();
  add(inherited, d);
  add(inherited, counter(&later));
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 2);
  CHECK_EQ(later, 1);
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);
    CHECK_OK(multicast_remove(inherited, d));
    CHECK_OK(multicast_destroy(inherited));
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

static multicast_token waited_for;
static gate waiter_started = GATE_INIT;

THREAD(wait_for_it, void *unused) {
  gate_open(&waiter_started);
  multicast_token_remove(waited_for);
}

static void fork_while_waited_for(void *context, uint32_t event, const void *payload,
                                  size_t size) {
  pthread_t waiter = start_thread(wait_for_it, NULL);
  gate_wait(&waiter_started);
  pause_ms(A_WHILE_MS);
  *(pid_t *)context = fork();
  if (*(pid_t *)context != 0) CHECK_EQ(pthread_detach(waiter), 0);
}

static int releases_after_fork;
static void release_after_fork(void *context) {
  ++releases_after_fork;
}

TEST(fork_child_does_what_a_waiter_of_the_parent_had_to_do) {
  pid_t child = -1;
  int status = -1;
  multicast_delegate d = {fork_while_waited_for, &child};
  inherited = multicast_create();
  waited_for = add_with(inherited, d, &ADD_OPTIONS(.release = release_after_fork));
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  CHECK(child >= 0);
  if (child == 0) {
    CHECK_EQ(releases_after_fork, 1); /* it ran when the call that called fork() returned */
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

typedef struct remover {
  multicast target;
  blocker b;
  gate has_removed, may_end;
  pthread_t thread;
} remover;
#define REMOVER_INIT {{0}, BLOCKER_INIT, GATE_INIT, GATE_INIT, 0}

/* Overwrites the part of the stack that the library was using. */
__attribute__((noinline)) static void overwrite_stack(void) {
  volatile unsigned char bytes[16384];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = 0x5A;
}

THREAD(remove_and_stay, remover *r) {
  CHECK_OK(multicast_remove(r->target, blocking(&r->b)));
  overwrite_stack();
  gate_open(&r->has_removed);
  gate_wait(&r->may_end);
}

static void expect_released_once(void *removers) {
  remover *r = removers;
  CHECK_EQ(LOAD(r[0].b.releases), 1);
  CHECK_EQ(LOAD(r[1].b.releases), 1);
  use_everything(NULL);
}

TEST(fork_child_finds_nothing_of_an_ended_removal_before_others) {
  static remover removers[2] = {REMOVER_INIT, REMOVER_INIT};
  invoker invokers[2];
  inherited = multicast_create();
  for (int i = 0; i < 2; ++i) {
    remover *r = &removers[i];
    r->target = multicast_create();
    add_with(r->target, blocking(&r->b), &ADD_OPTIONS(.release = release_blocker));
    invoke_in_background(&invokers[i], r->target);
    gate_wait(&r->b.entered);
    r->thread = start_thread(remove_and_stay, r);
    CHECK(!gate_opens_within(&r->has_removed, A_WHILE_MS)); /* the removal is waiting */
  }
  gate_open(&removers[0].b.let_go);
  gate_wait(&removers[0].has_removed);
  CHECK(!LOAD(removers[1].has_removed.is_open));
  in_child(expect_released_once, removers);
  /* the release in the child has not changed the parent's counter */
  CHECK_EQ(LOAD(removers[1].b.releases), 0);
  gate_open(&removers[1].b.let_go);
  for (int i = 0; i < 2; ++i) {
    gate_open(&removers[i].may_end);
    join_thread(removers[i].thread);
    CHECK_EQ(invoke_finished(&invokers[i]), 1);
    CHECK_EQ(LOAD(removers[i].b.releases), 1);
  }
}

static void end_in_child(void *lifetime) {
  CHECK_OK(multicast_lifetime_end(*(multicast_lifetime *)lifetime));
}

TEST_OF_MULTICAST(fork_child_ends_a_lifetime_whose_delegates_the_parent_runs) {
  blocker b = BLOCKER_INIT;
  multicast_lifetime l = multicast_lifetime_create();
  add_with(m, blocking(&b), &ADD_OPTIONS(.lifetime = l));
  begin_blocked(&b, m);
  in_child(end_in_child, &l);
  CHECK_EQ(end_blocked(&b), 1);
  CHECK_OK(multicast_lifetime_end(l));
}
