/* Tests pauses, the current token, and which tokens are valid. */

#include "handles.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

TEST_OF_MULTICAST(tokens_are_never_given_out_twice) {
  uint64_t previous = 0;
  for (int i = 0; i < 20000; ++i) {
    multicast_token token = add(m, counter(&calls));
    CHECK(token.id != previous);
    previous = token.id;
    CHECK_OK(multicast_token_remove(token));
  }
}

TEST_OF_MULTICAST(token_removes_its_own_registration_among_equal_ones) {
  multicast_token first = add(m, counter(&calls)), second = add(m, counter(&calls));
  CHECK_OK(multicast_token_remove(second));
  CHECK(multicast_token_is_valid(first));
  CHECK_EQ(multicast_count(m), 1);
}

typedef struct resumer {
  multicast target;
  multicast_token earlier, later;
} resumer;

FUNCTION(resume_both, resumer *r) {
  CHECK_OK(multicast_token_resume(r->earlier));
  CHECK_OK(multicast_token_resume(r->later));
}

TEST(resume_during_an_invocation_has_it_call_what_comes_later) {
  int earlier = 0, later = 0;
  resumer r;
  r.target = multicast_create();
  r.earlier = add(r.target, counter(&earlier));
  add(r.target, DELEGATE(resume_both, &r));
  r.later = add(r.target, counter(&later));
  CHECK_OK(multicast_token_pause(r.earlier));
  CHECK_OK(multicast_token_pause(r.later));
  CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 2);
  CHECK(earlier == 0 && later == 1);
  CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 3);
  CHECK(earlier == 1 && later == 2);
}

TEST_OF_MULTICAST(pause_leaves_out_and_resume_takes_in_again) {
  char text[16] = "";
  letter a = {text, 'a'}, b = {text, 'b'}, c = {text, 'c'};
  add(m, writer(&a));
  multicast_token token = add(m, writer(&b));
  add(m, writer(&c));
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_OK(multicast_token_resume(token));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 3);
  CHECK_TEXT(text, "acabc"); /* the delegate is again called in its old position */
}

TEST_OF_MULTICAST(pause_twice_is_as_once) {
  multicast_token token = add(m, counter(&calls));
  CHECK_OK(multicast_token_resume(token)); /* resuming again has no effect */
  CHECK_OK(multicast_token_pause(token));
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_OK(multicast_token_resume(token));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
}

TEST_OF_MULTICAST(pause_survives_growth_and_a_paused_delegate_can_be_removed) {
  int others = 0, releases = 0;
  multicast_token token = add_with(m, counter(&releases), &ADD_OPTIONS(.release = count_release));
  CHECK_OK(multicast_token_pause(token));
  for (int i = 0; i < 100; ++i) add(m, counter(&others));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 100);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(releases, 1);
}

TEST_OF_MULTICAST(pause_of_a_delegate_called_once_keeps_it) {
  multicast_token token = add_with(m, counter(&calls), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK(multicast_token_is_valid(token));
  CHECK_OK(multicast_token_resume(token));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK(!multicast_token_is_valid(token));
}

typedef struct pausing {
  multicast target;
  multicast_token other;
  int adds;
} pausing;

FUNCTION(pause_other, pausing *p) {
  static int ignored;
  for (int i = 0; i < p->adds; ++i) add(p->target, counter(&ignored));
  CHECK_OK(multicast_token_pause(p->other));
}

static void pause_during_invoke(int adds) {
  pausing p = {.adds = adds, .target = multicast_create()};
  add(p.target, DELEGATE(pause_other, &p));
  p.other = add(p.target, counter(&calls));
  CHECK_EQ(multicast_invoke(p.target, 0, NULL, 0), 1);
  CHECK_EQ(calls, 0);
}

TEST(pause_during_invoke_leaves_out) { pause_during_invoke(0); }
TEST(pause_after_growth_during_invoke_leaves_out) { pause_during_invoke(50); }

static multicast_token seen[3];

static void see_current(void *context, uint32_t event, const void *payload, size_t size) {
  int depth = (int)event;
  seen[depth] = multicast_token_current();
  if (depth < 2) CHECK_EQ(multicast_invoke(*(multicast *)context, event + 1, payload, size), 1);
  /* the nested call has not changed the current token */
  CHECK_EQ(multicast_token_current().id, seen[depth].id);
}

TEST_OF_MULTICAST(token_current_is_the_innermost_call_of_this_thread) {
  CHECK_EQ(multicast_token_current().id, 0);
  multicast_token token = add(m, DELEGATE(see_current, &m));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(seen[0].id, token.id);
  CHECK_EQ(seen[2].id, token.id);
  CHECK_EQ(multicast_token_current().id, 0);
}

THREAD(see_none, void *unused) {
  CHECK_EQ(multicast_token_current().id, 0);
}

static void look_from_elsewhere(void *context, uint32_t event, const void *payload, size_t size) {
  on_another_thread(see_none, NULL);
}

TEST_OF_MULTICAST(token_current_is_about_the_calling_thread) {
  add(m, DELEGATE(look_from_elsewhere, NULL));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
}

static bool see_in_visit(void *context, const multicast_delegate *delegate) {
  *(multicast_token *)context = multicast_token_current();
  return true;
}

TEST_OF_MULTICAST(token_current_in_a_visitor_is_the_visited_registration) {
  multicast_token token = add(m, counter(&calls)), current = {0};
  CHECK_EQ(multicast_visit(m, see_in_visit, &current), 1);
  CHECK_EQ(current.id, token.id);
}

static multicast_token outer_token, current_in_release;

static void note_current(void *context) {
  current_in_release = multicast_token_current();
}

static void invoke_inner(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_EQ(multicast_invoke(*(multicast *)context, 0, NULL, 0), 1);
}

TEST(token_current_in_a_release_is_the_call_that_it_is_run_in) {
  multicast m = multicast_create(), inner = multicast_create();
  multicast_delegate outer;
  multicast_add_options options = ADD_OPTIONS(.release = note_current, .flags = MULTICAST_ONCE);
  multicast_delegate once = counter(&calls);
  /* this delegate's `release` runs after its own call, but inside the outer call */
  add_with(inner, once, &options);
  outer.function = invoke_inner;
  outer.context = &inner;
  outer_token = add(m, outer);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(current_in_release.id, outer_token.id);
}

/* ---- The token is written before the first call ---------------------------------------------- */

/* The token is written to a page that is read-only at first, so that the write traps. The signal
 * handler waits until another thread has invoked the multicast, and makes the page writable. */
static void *guarded_page;
static multicast guarded_target;
static int guarded_step; /* 1: invoke now, 2: has invoked, 3: finished */
static int64_t called_before_token = -1;

THREAD(invoke_when_notified, void *unused) {
  /* With this invocation, a second thread has invoked the multicast, so the add cannot assume a
   * single invoker. */
  CHECK_EQ(multicast_invoke(guarded_target, 0, NULL, 0), 0);
  while (LOAD(guarded_step) == 0) sched_yield();
  called_before_token = multicast_invoke(guarded_target, 0, NULL, 0);
  STORE(guarded_step, 2);
}

static void on_write(int number) {
  STORE(guarded_step, 1);
  while (LOAD(guarded_step) != 2) sched_yield();
  if (mprotect(guarded_page, 4096, PROT_READ | PROT_WRITE) != 0) _exit(1);
}

TEST(add_writes_the_token_before_the_delegate_can_be_called) {
  struct sigaction action;
  int calls = 0;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_write;
  CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
  guarded_page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(guarded_page != MAP_FAILED);
  multicast_token *token = guarded_page;
  guarded_target = multicast_create();
  /* Prepare a list with room for another delegate, and invoke the multicast on this thread. */
  multicast_token first = add(guarded_target, counter(&calls));
  CHECK_OK(multicast_token_remove(first));
  CHECK_EQ(multicast_invoke(guarded_target, 0, NULL, 0), 0);
  pthread_t invoking = start_thread(invoke_when_notified, NULL);
  pause_ms(A_WHILE_MS);
  CHECK_OK(multicast_add(guarded_target, counter(&calls), NULL, token));
  join_thread(invoking);
  CHECK_EQ(called_before_token, 0);
  CHECK(multicast_token_is_valid(*token));
  CHECK_EQ(multicast_invoke(guarded_target, 0, NULL, 0), 1);
}
