/* Rule 9: fork, the end of threads, dlclose, exit. */

#include "harness.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- fork ------------------------------------------------------------------------------------ */

static multicast inherited;
static int calls;
static blocker busy = BLOCKER_INIT;

static void use_everything(void *unused) {
  multicast_token token;
  int before = calls;
  multicast m;
  (void)unused;
  token = add(inherited, counter(&calls));
  CHECK(multicast_count(inherited) >= 1);
  CHECK_OK(multicast_token_remove(token));
  m = multicast_create();
  token = add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(calls, before + 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_OK(multicast_destroy(m));
}

TEST(fork_child_can_use_the_library) {
  inherited = multicast_create();
  in_child(use_everything, NULL);
  use_everything(NULL);
}


TEST(fork_child_does_not_wait_for_calls_on_the_parents_threads) {
  multicast_options options = with_release(release_blocker);
  multicast_token token;
  invoker i;
  inherited = multicast_create();
  token = add_with(inherited, blocking(&busy), &options);
  invoke_in_background(&i, inherited);
  gate_wait(&busy.entered);
  {
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(20);
      CHECK_OK(multicast_token_remove(token));
      CHECK_EQ(busy.releases, 1);
      CHECK_OK(multicast_destroy(inherited));
      _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
  }
  CHECK_EQ(LOAD(busy.releases), 0); /* the parent's is not the child's */
  gate_open(&busy.let_go);
  invoke_finished(&i);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(LOAD(busy.releases), 1);
}

static void count_own_releases(void *unused) {
  (void)unused;
  CHECK_EQ(busy.releases, 1);
}

TEST(fork_child_gets_the_release_of_what_was_removed_and_running) {
  multicast_options options = with_release(release_blocker);
  multicast_token token;
  invoker i;
  inherited = multicast_create();
  token = add_with(inherited, blocking(&busy), &options);
  invoke_in_background(&i, inherited);
  gate_wait(&busy.entered);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_PENDING);
  in_child(count_own_releases, NULL);
  CHECK_EQ(LOAD(busy.releases), 0);
  gate_open(&busy.let_go);
  invoke_finished(&i);
  CHECK_EQ(LOAD(busy.releases), 1);
}

static bool fork_is_over;

static void *churn(void *unused) {
  multicast_options options = multicast_options_default();
  (void)unused;
  while (!LOAD(fork_is_over)) {
    multicast_token token = add_with(inherited, counter(&busy.calls), &options);
    multicast_invoke(inherited, 0, NULL, 0);
    multicast_token_remove(token);
    CHECK_OK(multicast_destroy(multicast_create()));
  }
  return NULL;
}

TEST(fork_at_any_moment_of_a_busy_parent) {
  pthread_t threads[2];
  int i;
  inherited = multicast_create();
  for (i = 0; i < 2; ++i) threads[i] = start_thread(churn, NULL);
  for (i = 0; i < 60; ++i) in_child(use_everything, NULL);
  STORE(fork_is_over, true);
  for (i = 0; i < 2; ++i) join_thread(threads[i]);
}

static void fork_inside(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  in_child(use_everything, NULL);
  ++*(int *)context;
}

TEST(fork_inside_a_call) {
  int forks = 0;
  multicast_delegate d;
  d.function = fork_inside;
  d.context = &forks;
  inherited = multicast_create();
  add(inherited, d);
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  CHECK_EQ(forks, 1);
}

static void child_goes_on(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  *(pid_t *)context = fork();
}

TEST(fork_child_returns_from_the_call_and_goes_on) {
  pid_t child = -1;
  int status = -1, later = 0;
  multicast_delegate d;
  d.function = child_goes_on;
  d.context = &child;
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

/* ---- The end of threads ---------------------------------------------------------------------- */

static void *invoke_and_end(void *unused) {
  (void)unused;
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  return NULL;
}

TEST(threads_that_end_give_their_records_back) {
  int64_t bytes = 0;
  int i;
  use_test_allocator();
  inherited = multicast_create();
  add(inherited, counter(&calls));
  for (i = 0; i < 1000; ++i) {
    on_another_thread(invoke_and_end, NULL);
    if (i == 10) bytes = allocated_bytes;
  }
  CHECK_EQ(calls, 1000);
  CHECK_EQ(allocated_bytes, bytes);
}

static pthread_key_t late_key;

static void invoke_late(void *rounds) {
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  if ((intptr_t)rounds > 1)
    pthread_setspecific(late_key, (void *)((intptr_t)rounds - 1));
}

static void *end_with_destructor(void *unused) {
  (void)unused;
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  CHECK_EQ(pthread_setspecific(late_key, (void *)3), 0);
  return NULL;
}

TEST(thread_local_destructors_may_invoke) {
  inherited = multicast_create(); /* its key, then ours: destructors run in either order */
  add(inherited, counter(&calls));
  CHECK_EQ(pthread_key_create(&late_key, invoke_late), 0);
  on_another_thread(end_with_destructor, NULL);
  CHECK_EQ(calls, 4);
  CHECK_OK(multicast_remove(inherited, counter(&calls)));
}

static void end_thread(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  multicast_token_remove_nowait(multicast_token_current());
  ADD(*(int *)context, 1);
  pthread_exit(NULL);
}

static void *invoke_until_exit(void *unused) {
  (void)unused;
  multicast_invoke(inherited, 0, NULL, 0);
  CHECK(false);
  return NULL;
}

TEST(thread_that_ends_inside_a_call_holds_nothing_up) {
  int releases = 0;
  multicast_options options = with_release(count_release);
  multicast_delegate d;
  d.function = end_thread;
  d.context = &releases;
  inherited = multicast_create();
  add_with(inherited, d, &options);
  on_another_thread(invoke_until_exit, NULL);
  CHECK_EQ(LOAD(releases), 2); /* one call, one release */
  CHECK_EQ(multicast_count(inherited), 0);
  CHECK_OK(multicast_destroy(inherited));
}

static void end_thread_once(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  ADD(*(int *)context, 1);
  pthread_exit(NULL);
}

TEST(thread_that_ends_inside_the_call_of_a_delegate_called_once_releases_it) {
  int releases = 0;
  multicast_options options = with_release(count_release);
  multicast_delegate d;
  d.function = end_thread_once;
  d.context = &releases;
  options.flags = MULTICAST_ONCE;
  inherited = multicast_create();
  add_with(inherited, d, &options);
  on_another_thread(invoke_until_exit, NULL);
  CHECK_EQ(LOAD(releases), 2); /* one call, one release */
}

typedef struct replacer {
  int calls;
  bool ends_thread;
} replacer;

static void replace_list(void *context, uint32_t event, const void *payload, size_t size) {
  replacer *r = context;
  multicast_token tokens[100];
  int i;
  (void)event;
  (void)payload;
  (void)size;
  for (i = 0; i < 100; ++i) tokens[i] = add(inherited, counter(&r->calls));
  for (i = 0; i < 100; ++i) CHECK_OK(multicast_token_remove(tokens[i]));
  if (r->ends_thread) pthread_exit(NULL);
}

static void *invoke_to_the_end(void *unused) {
  (void)unused;
  multicast_invoke(inherited, 0, NULL, 0);
  return NULL;
}

/* What is held after a call that has the list it is in replaced. */
static int64_t bytes_held(bool ends_thread) {
  replacer r = {0, false};
  multicast_delegate d;
  int64_t bytes;
  r.ends_thread = ends_thread;
  d.function = replace_list;
  d.context = &r;
  inherited = multicast_create();
  add(inherited, d);
  on_another_thread(invoke_to_the_end, NULL);
  bytes = allocated_bytes;
  CHECK_OK(multicast_destroy(inherited));
  return bytes;
}

TEST(thread_that_ends_inside_a_call_leaves_no_list_behind) {
  use_test_allocator();
  bytes_held(false); /* takes what is kept for later */
  CHECK_EQ(bytes_held(true), bytes_held(false));
}

static multicast_token waited_for;
static gate waiter_started = GATE_INIT;

static void *wait_for_it(void *unused) {
  (void)unused;
  gate_open(&waiter_started);
  multicast_token_remove(waited_for);
  return NULL;
}

static void fork_while_waited_for(void *context, uint32_t event, const void *payload,
                                  size_t size) {
  pthread_t waiter = start_thread(wait_for_it, NULL);
  (void)event;
  (void)payload;
  (void)size;
  gate_wait(&waiter_started);
  pause_ms(A_WHILE_MS);
  *(pid_t *)context = fork();
  if (*(pid_t *)context != 0) CHECK_EQ(pthread_detach(waiter), 0);
}

static int releases_after_fork;
static void release_after_fork(void *context) {
  (void)context;
  ++releases_after_fork;
}

TEST(fork_child_does_what_a_waiting_thread_of_the_parent_would_have_done) {
  pid_t child = -1;
  int status = -1;
  multicast_options options = with_release(release_after_fork);
  multicast_delegate d;
  d.function = fork_while_waited_for;
  d.context = &child;
  inherited = multicast_create();
  waited_for = add_with(inherited, d, &options);
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  CHECK(child >= 0);
  if (child == 0) {
    CHECK_EQ(releases_after_fork, 1); /* by the call that the child came out of */
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

typedef struct remover {
  multicast target;
  blocker b;
  gate has_removed, let_go;
  pthread_t thread;
} remover;
#define REMOVER_INIT {{0}, BLOCKER_INIT, GATE_INIT, GATE_INIT, 0}

/* Leaves nothing on the stack of what the library had there. */
__attribute__((noinline)) static void overwrite_stack(void) {
  volatile unsigned char bytes[16384];
  size_t i;
  for (i = 0; i < sizeof bytes; ++i) bytes[i] = 0x5A;
}

static void *remove_and_stay(void *argument) {
  remover *r = argument;
  CHECK_OK(multicast_remove(r->target, blocking(&r->b)));
  overwrite_stack();
  gate_open(&r->has_removed);
  gate_wait(&r->let_go);
  return NULL;
}

static void expect_released_once(void *removers) {
  remover *r = removers;
  CHECK_EQ(LOAD(r[0].b.releases), 1);
  CHECK_EQ(LOAD(r[1].b.releases), 1);
  use_everything(NULL);
}

TEST(fork_child_finds_nothing_of_a_removal_that_is_over_though_a_later_one_waits) {
  static remover removers[2] = {REMOVER_INIT, REMOVER_INIT};
  multicast_options options = with_release(release_blocker);
  invoker invokers[2];
  int i;
  inherited = multicast_create();
  for (i = 0; i < 2; ++i) {
    remover *r = &removers[i];
    r->target = multicast_create();
    add_with(r->target, blocking(&r->b), &options);
    invoke_in_background(&invokers[i], r->target);
    gate_wait(&r->b.entered);
    r->thread = start_thread(remove_and_stay, r);
    CHECK(!gate_opens_within(&r->has_removed, A_WHILE_MS)); /* it waits */
  }
  gate_open(&removers[0].b.let_go);
  gate_wait(&removers[0].has_removed);
  CHECK(!LOAD(removers[1].has_removed.is_open));
  in_child(expect_released_once, removers);
  CHECK_EQ(LOAD(removers[1].b.releases), 0); /* the parent's is not the child's */
  gate_open(&removers[1].b.let_go);
  for (i = 0; i < 2; ++i) {
    gate_open(&removers[i].let_go);
    join_thread(removers[i].thread);
    CHECK_EQ(invoke_finished(&invokers[i]), 1);
    CHECK_EQ(LOAD(removers[i].b.releases), 1);
  }
}

TEST(delegate_of_a_thread_that_has_ended_can_be_removed) {
  multicast_token token;
  inherited = multicast_create();
  token = add(inherited, counter(&calls));
  on_another_thread(invoke_and_end, NULL);
  CHECK_OK(multicast_token_remove(token));
}

/* ---- dlclose --------------------------------------------------------------------------------- */

#ifdef MULTICAST_SHARED_LIBRARY
typedef struct library {
  multicast (*create)(void);
  multicast_status (*add)(multicast, multicast_delegate, const multicast_options *,
                          multicast_token *);
  int64_t (*invoke)(multicast, uint32_t, const void *, size_t);
  multicast_status (*destroy)(multicast);
} library;

static library opened;
static multicast in_opened;
static gate closed = GATE_INIT, has_invoked = GATE_INIT;

static void *find(void *handle, const char *name) {
  void *found = dlsym(handle, name);
  CHECK(found != NULL);
  return found;
}

static void open_library(void **handle) {
  *handle = dlopen(MULTICAST_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (*handle == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(*handle != NULL);
  *(void **)&opened.create = find(*handle, "multicast_create");
  *(void **)&opened.add = find(*handle, "multicast_add");
  *(void **)&opened.invoke = find(*handle, "multicast_invoke");
  *(void **)&opened.destroy = find(*handle, "multicast_destroy");
}

static void *invoke_before_and_after(void *unused) {
  (void)unused;
  CHECK_EQ(opened.invoke(in_opened, 0, NULL, 0), 1);
  gate_open(&has_invoked);
  gate_wait(&closed);
  CHECK_EQ(opened.invoke(in_opened, 0, NULL, 0), 1);
  return NULL; /* the library's destructor for this thread runs after this */
}

TEST(dlclose_while_threads_use_the_library_is_safe) {
  void *handle;
  pthread_t thread;
  open_library(&handle);
  in_opened = opened.create();
  CHECK_OK(opened.add(in_opened, counter(&calls), NULL, NULL));
  thread = start_thread(invoke_before_and_after, NULL);
  gate_wait(&has_invoked);
  CHECK_EQ(dlclose(handle), 0);
  gate_open(&closed);
  join_thread(thread);
  CHECK_EQ(LOAD(calls), 2);
}

TEST(dlopen_use_and_dlclose_again_and_again) {
  int i;
  for (i = 0; i < 100; ++i) {
    void *handle;
    open_library(&handle);
    in_opened = opened.create();
    CHECK_OK(opened.add(in_opened, counter(&calls), NULL, NULL));
    CHECK_EQ(opened.invoke(in_opened, 0, NULL, 0), 1);
    CHECK_OK(opened.destroy(in_opened));
    CHECK_EQ(dlclose(handle), 0);
  }
  CHECK_EQ(calls, 100);
}
#endif

/* ---- exit ------------------------------------------------------------------------------------ */

static void use_at_exit(void) {
  int before = calls;
  use_everything(NULL);
  CHECK_EQ(calls, before + 1);
}

static void end_by_exit(void *unused) {
  (void)unused;
  CHECK_EQ(atexit(use_at_exit), 0);
  inherited = multicast_create();
  add(inherited, counter(&calls));
  multicast_invoke(inherited, 0, NULL, 0);
  exit(0);
}

TEST(calls_after_main_has_returned_are_harmless) { in_child(end_by_exit, NULL); }

static void *invoke_for_ever(void *unused) {
  (void)unused;
  for (;;) multicast_invoke(inherited, 0, NULL, 0);
  return NULL;
}

static void end_while_others_invoke(void *unused) {
  (void)unused;
  inherited = multicast_create();
  add(inherited, counter(&calls));
  start_thread(invoke_for_ever, NULL);
  pause_ms(5);
  exit(0);
}

TEST(exit_while_other_threads_invoke_is_harmless) {
  int i;
  for (i = 0; i < 5; ++i) in_child(end_while_others_invoke, NULL);
}

/* ---- Threads that are cancelled in their last destructors ----------------------------------- */

static pthread_key_t last_word;
static gate in_last_word = GATE_INIT;

static void wait_to_be_cancelled(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)payload, (void)size;
  if (event == 0) return;
  gate_open(&in_last_word);
  for (;;) pause(); /* a cancellation point */
}

static void invoke_at_the_end(void *unused) {
  (void)unused;
  multicast_invoke(inherited, 1, NULL, 0);
}

static void *end_with_a_last_word(void *unused) {
  (void)unused;
  CHECK_EQ(multicast_invoke(inherited, 0, NULL, 0), 1);
  CHECK_EQ(pthread_setspecific(last_word, &last_word), 0);
  return NULL;
}

TEST(thread_that_is_cancelled_inside_a_call_of_its_last_destructor_ends_the_call) {
  multicast_delegate d = {wait_to_be_cancelled, NULL};
  multicast_token token;
  pthread_t thread;
  inherited = multicast_create(); /* the library's destructors run before those of later keys */
  CHECK_EQ(pthread_key_create(&last_word, invoke_at_the_end), 0);
  token = add(inherited, d);
  thread = start_thread(end_with_a_last_word, NULL);
  gate_wait(&in_last_word);
  CHECK_EQ(pthread_cancel(thread), 0);
  join_thread(thread);
  CHECK_OK(multicast_token_remove(token));
}
