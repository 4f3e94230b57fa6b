/* The internal checks detect the unsupported uses that multicast.h lists. Each case runs in a child
 * process, and the check must print its message and end the process by abort(). */

#include "../Interface/harness.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* Runs the body in a child, and expects a check to end the child with a message that contains the
 * given words. */
static void ends_by_check(void (*body)(void), const char *words) {
  char text[4096];
  size_t length = 0;
  ssize_t count;
  int ends[2], status = 0;
  CHECK_EQ(pipe(ends), 0);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    alarm(20);
    body();
    _exit(0);
  }
  close(ends[1]);
  while ((count = read(ends[0], text + length, sizeof text - 1 - length)) > 0) {
    length += (size_t)count;
    if (length == sizeof text - 1) break;
  }
  text[length] = '\0';
  close(ends[0]);
  CHECK(waitpid(child, &status, 0) == child);
  if (strstr(text, words) == NULL) fprintf(stderr, "expected: %s\nprinted: %s\n", words, text);
  CHECK(strstr(text, words) != NULL);
  CHECK(strstr(text, "libmulticast: ") == text && strstr(text, ".swift:") != NULL);
  CHECK(WIFSIGNALED(status));
  CHECK_EQ(WTERMSIG(status), SIGABRT);
}

static jmp_buf place;

static void jump(void *context, uint32_t event, const void *payload, size_t size) {
  longjmp(place, 1);
}

static void jump_from_release(void *context) {
  longjmp(place, 1);
}

static void *jump_from_lock(void *context) {
  jump_from_release(context);
  return context;
}

static bool jump_from_visitor(void *context, const multicast_delegate *delegate) {
  longjmp(place, 1);
  return true;
}

static const multicast_delegate jumper = {jump, NULL};
static const char left[] = "no delegate or visitor is left by longjmp or by an exception";

/* ---- longjmp --------------------------------------------------------------------------------- */

static void leave_a_delegate(void) {
  multicast m = multicast_create();
  add(m, jumper);
  if (setjmp(place) == 0) multicast_invoke(m, 0, NULL, 0);
  multicast_invoke(m, 0, NULL, 0);
}

TEST(delegate_left_by_longjmp_is_found) { ends_by_check(leave_a_delegate, left); }

static void leave_a_lock_or_unlock(void *(*lock)(void *), void (*unlock)(void *)) {
  int calls = 0;
  multicast m = multicast_create();
  multicast_delegate d = counter(&calls);
  add_with(m, d, &ADD_OPTIONS(.lock = lock, .unlock = unlock));
  if (setjmp(place) == 0) multicast_invoke(m, 0, NULL, 0);
  multicast_invoke(m, 0, NULL, 0);
}

static void leave_a_lock(void) { leave_a_lock_or_unlock(jump_from_lock, unlock_nothing); }
static void leave_an_unlock(void) { leave_a_lock_or_unlock(lock_same, jump_from_release); }

TEST(lock_function_left_by_longjmp_is_found) { ends_by_check(leave_a_lock, left); }
TEST(unlock_function_left_by_longjmp_is_found) { ends_by_check(leave_an_unlock, left); }

static void leave_a_visitor(void) {
  multicast m = multicast_create();
  add(m, jumper);
  if (setjmp(place) == 0) multicast_visit(m, jump_from_visitor, NULL);
  multicast_visit(m, jump_from_visitor, NULL);
}

TEST(visitor_left_by_longjmp_is_found) { ends_by_check(leave_a_visitor, left); }

static void leave_a_run(void) {
  multicast m = multicast_create();
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  add_queued(m, jumper, q);
  multicast_invoke(m, 0, NULL, 0);
  multicast_invoke(m, 0, NULL, 0);
  if (setjmp(place) == 0) multicast_queue_run(q, 0);
  multicast_queue_run(q, 0);
}

TEST(queued_call_left_by_longjmp_is_found) { ends_by_check(leave_a_run, left); }

/* Invokes the multicast from deep on the stack. If later calls were deeper on the stack than this
 * call, the checks could mistake them for calls nested inside it. */
static __attribute__((noinline)) void invoke_deeper(multicast m) {
  volatile char room[4096];
  room[0] = 0;
  multicast_invoke(m, 0, NULL, 0);
  (void)room[0];
}

static void leave_and_look_up(void) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  multicast m = multicast_broadcaster_multicast(b, "name");
  add(m, jumper);
  if (setjmp(place) == 0) invoke_deeper(m);
  (void)!multicast_broadcaster_multicast(b, "name").id;
}

TEST(delegate_left_by_longjmp_is_found_at_a_look_up) { ends_by_check(leave_and_look_up, left); }

static multicast inner;

static void catch_a_jump(void *context, uint32_t event, const void *payload, size_t size) {
  if (setjmp(place) == 0) multicast_invoke(inner, 0, NULL, 0);
}

static void leave_an_inner_invocation(void) {
  multicast outer = multicast_create();
  inner = multicast_create();
  add(inner, jumper);
  add(outer, DELEGATE(catch_a_jump, NULL));
  multicast_invoke(outer, 0, NULL, 0);
}

TEST(inner_invocation_left_by_longjmp_is_found_as_outer_one_ends) {
  ends_by_check(leave_an_inner_invocation, "no inner one that was left by longjmp");
}

/* ---- Switched stacks ------------------------------------------------------------------------- */

enum { STACK_SIZE = 256 * 1024 };
static ucontext_t main_stack, fibers[2];
static multicast invoked_by[2];

static void suspend(void *fiber, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(swapcontext(fiber, &main_stack), 0);
}

static void invoke_in_fiber(int which) { multicast_invoke(invoked_by[which], 0, NULL, 0); }

static void resume(int which) { CHECK_EQ(swapcontext(&main_stack, &fibers[which]), 0); }

/* The second fiber's stack is at a lower address than the first, so its calls look as if they were
 * nested inside the first fiber's call. */
static void begin_two_fibers(void) {
  char *stacks = malloc((size_t)2 * STACK_SIZE);
  CHECK(stacks != NULL);
  for (int i = 0; i < 2; ++i) {
    invoked_by[i] = multicast_create();
    add(invoked_by[i], DELEGATE(suspend, &fibers[i]));
    CHECK_EQ(getcontext(&fibers[i]), 0);
    fibers[i].uc_stack.ss_sp = stacks + (size_t)(1 - i) * STACK_SIZE;
    fibers[i].uc_stack.ss_size = STACK_SIZE;
    fibers[i].uc_link = &main_stack;
    makecontext(&fibers[i], (void (*)(void))invoke_in_fiber, 1, i);
    resume(i);
  }
}

static void end_the_first_fiber_first(void) {
  begin_two_fibers();
  resume(0);
}

TEST(calls_of_fibers_that_end_out_of_order_are_found) {
  ends_by_check(end_the_first_fiber_first, "or that has not ended on another stack");
}

TEST(calls_of_fibers_that_end_in_order_are_not_found) {
  begin_two_fibers();
  resume(1);
  CHECK_OK(multicast_destroy(invoked_by[1]));
  resume(0);
  CHECK_OK(multicast_destroy(invoked_by[0]));
}

/* ---- Release functions ----------------------------------------------------------------------- */

static void leave_a_release(void) {
  multicast m = multicast_create();
  multicast_add_options options = ADD_OPTIONS(.release = jump_from_release);
  int calls = 0;
  add_with(m, counter(&calls), &options);
  add_with(m, counter(&calls), &options);
  if (setjmp(place) == 0) multicast_remove(m, counter(&calls));
  multicast_remove(m, counter(&calls));
}

TEST(release_left_by_longjmp_is_found) {
  ends_by_check(leave_a_release, "no release is left by longjmp");
}

/* ---- The allocator --------------------------------------------------------------------------- */

static int what_to_do;
enum { CALL_LIBRARY = 1, END_THREAD };

static void *allocate(void *context, size_t size, size_t alignment) {
  void *block = NULL;
  if (what_to_do == CALL_LIBRARY) (void)!multicast_create().id;
  if (what_to_do == END_THREAD) pthread_exit(NULL);
  return posix_memalign(&block, alignment < 8 ? 8 : alignment, size) == 0 ? block : NULL;
}

static void deallocate(void *context, void *block, size_t size, size_t alignment) {
  free(block);
}

static multicast with_allocator(void) {
  multicast_allocator allocator = multicast_allocator_default();
  allocator.allocate = allocate;
  allocator.deallocate = deallocate;
  CHECK_OK(multicast_set_allocator(&allocator));
  return multicast_create();
}

static void call_from_allocator(void) {
  int calls = 0;
  multicast m = with_allocator();
  what_to_do = CALL_LIBRARY;
  (void)multicast_add(m, counter(&calls), NULL, NULL);
}

TEST(allocator_that_calls_the_library_is_found) {
  ends_by_check(call_from_allocator, "an allocator's functions do not call the library");
}

static void *end_in_allocator(void *target) {
  static int calls;
  multicast_invoke(*(multicast *)target, 0, NULL, 0); /* creates the record of this thread */
  what_to_do = END_THREAD;
  (void)multicast_add(*(multicast *)target, counter(&calls), NULL, NULL);
  return NULL;
}

static void end_thread_in_library(void) {
  multicast m = with_allocator();
  on_another_thread(end_in_allocator, &m);
}

/* Ends a thread in the middle of the library, as asynchronous cancellation would, but at a known
 * point. */
TEST(thread_that_ends_inside_of_the_library_is_found) {
  ends_by_check(end_thread_in_library, "no lock is held");
}

static void end_thread(void *unused) {
  pthread_exit(NULL);
}

static void *end_in_release(void *target) {
  static int calls;
  multicast m = *(multicast *)target;
  multicast_token token = add_with(m, counter(&calls), &ADD_OPTIONS(.release = end_thread));
  multicast_invoke(m, 0, NULL, 0); /* creates the record of this thread */
  (void)multicast_token_remove(token);
  return NULL;
}

static void end_thread_in_release(void) {
  multicast m = multicast_create();
  on_another_thread(end_in_release, &m);
}

TEST(thread_that_ends_inside_of_a_release_is_found) {
  ends_by_check(end_thread_in_release, "no thread ends inside a release");
}

/* ---- Signals and processes ------------------------------------------------------------------- */

static multicast interrupted;
static int handled;

static void add_in_handler(int number) {
  /* A signal handler must not call the library.
   * NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c,cert-msc54-cpp) */
  (void)multicast_add(interrupted, counter(&handled), NULL, NULL);
}

static void *add_and_remove(void *unused) {
  static int calls;
  for (;;) {
    (void)multicast_add(interrupted, counter(&calls), NULL, NULL);
    (void)multicast_remove(interrupted, counter(&calls));
  }
  return unused;
}

static void interrupt_until_found(void) {
  interrupted = multicast_create();
  signal(SIGUSR1, add_in_handler);
  pthread_t thread = start_thread(add_and_remove, NULL);
  for (;;) {
    pause_ms(1);
    pthread_kill(thread, SIGUSR1);
  }
}

/* The handler calls the library again and again. A check fails as soon as a signal arrives while
 * the thread is holding a lock. */
TEST(signal_handler_that_comes_to_a_lock_that_is_held_is_found) {
  ends_by_check(interrupt_until_found, "locks are taken in their order");
}

static void call_in_child_of_vfork(void) {
  multicast m = multicast_create();
  int status = 0;
  /* NOLINTNEXTLINE(bugprone-unsafe-functions,cert-msc24-c,cert-msc33-c) */
  pid_t child = vfork();
  if (child == 0) {
    /* The child of vfork() must not call the library. */
    (void)multicast_invoke(m, 0, NULL, 0);
    (void)!multicast_count(m);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  abort(); /* this process ends like the child */
}

TEST(child_of_vfork_that_calls_the_library_is_found) {
  ends_by_check(call_in_child_of_vfork, "the child of a vfork");
}

/* ---- Supported uses are not reported --------------------------------------------------------- */

static void count_and_end(void *context, uint32_t event, const void *payload, size_t size) {
  count_call(context, event, payload, size);
  if (event == 1) pthread_exit(NULL);
}

static void *invoke_and_end(void *target) {
  multicast_invoke(*(multicast *)target, 1, NULL, 0);
  return NULL;
}

TEST(thread_that_ends_inside_of_a_call_is_not_found) {
  int calls = 0;
  multicast m = multicast_create();
  add(m, DELEGATE(count_and_end, &calls));
  on_another_thread(invoke_and_end, &m);
  on_another_thread(invoke_and_end, &m);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_OK(multicast_destroy(m));
  CHECK_EQ(calls, 3);
}

static void jump_inside(void *context, uint32_t event, const void *payload, size_t size) {
  jmp_buf here;
  count_call(context, event, payload, size);
  if (setjmp(here) == 0) longjmp(here, 1);
}

TEST(delegate_that_jumps_inside_of_itself_is_not_found) {
  int calls = 0;
  multicast m = multicast_create();
  add(m, DELEGATE(jump_inside, &calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_OK(multicast_destroy(m));
}
