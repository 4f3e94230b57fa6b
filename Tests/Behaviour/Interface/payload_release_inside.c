/* The `release` of a payload may use the library whenever it runs, even while its thread is
 * ending. */

#include "payloads.h"

static multicast target, other;
static multicast_token token;
static gate entered, go_on;

static multicast_delegate idle(void) {
  return (multicast_delegate){call_nothing, NULL};
}

static multicast_invocation releasing(void (*release)(const void *, size_t)) {
  return INVOCATION(.payload = "x", .size = 1, .release = release);
}

/* ---- In a destructor of an ending thread ----------------------------------------------------- */

static pthread_key_t late_key;
static pthread_t taker;

static void *take_a_record(void *unused) {
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  gate_open(&entered);
  gate_wait(&go_on);
  CHECK_EQ(multicast_invoke(other, 0, NULL, 0), 1);
  return unused;
}

static void invoke_and_start_another_thread(const void *payload, size_t size) {
  CHECK_EQ(multicast_token_invoke(token, 0, NULL, 0), 1);
  taker = start_thread(take_a_record, NULL);
  gate_wait(&entered);
}

static void invoke_late(void *value) {
  multicast_invocation how = releasing(invoke_and_start_another_thread);
  CHECK_EQ(multicast_invoke_with(target, &how, NULL), 1);
}

static void *end_with_a_late_invocation(void *unused) {
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_EQ(pthread_setspecific(late_key, &late_key), 0);
  return unused;
}

TEST(release_of_payload_in_late_destructor_keeps_record_of_thread) {
  blocker b = BLOCKER_INIT;
  entered = go_on = shut;
  target = multicast_create();
  other = multicast_create();
  token = add(target, idle());
  multicast_token blocked = add(other, blocking(&b));
  /* the library has already created its key, so its destructor runs before this key's destructor */
  CHECK_EQ(pthread_key_create(&late_key, invoke_late), 0);
  on_another_thread(end_with_a_late_invocation, NULL);
  gate_open(&go_on);
  gate_wait(&b.entered);
  CHECK_ERROR(multicast_token_remove_within(blocked, 1), TIMEOUT);
  gate_open(&b.let_go);
  join_thread(taker);
}

/* ---- After a thread has ended inside a call -------------------------------------------------- */

static multicast_queue queue;
static multicast_outcome outcome;

static void end_here(void *context, uint32_t event, const void *payload, size_t size) {
  gate_open(&entered);
  gate_wait(&go_on);
  pthread_exit(NULL);
}

static void wait_for_a_call(const void *payload, size_t size) {
  outcome = multicast_outcome_default();
  CHECK_EQ(multicast_invoke_with(other, &INVOCATION(.flags = MULTICAST_WAIT), &outcome), 1);
}

static void *hand_over_and_end(void *unused) {
  multicast_invocation how = releasing(wait_for_a_call);
  multicast_invoke_with(target, &how, NULL);
  return unused;
}

static void *open_go_on(void *unused) {
  pause_ms(A_WHILE_MS); /* let the removal fall asleep */
  gate_open(&go_on);
  return unused;
}

/* A thread ends inside a call to a delegate while this thread is removing the delegate. After that,
 * the `release` of the payload waits for a call in a queue whose consumer is this thread. */
TEST(release_of_payload_of_ended_thread_may_wait_for_removal) {
  entered = go_on = shut;
  target = multicast_create();
  other = multicast_create();
  queue = default_queue();
  add_queued(other, counter(&calls), queue);
  token = add(target, DELEGATE(end_here, NULL));
  CHECK_EQ(multicast_invoke(other, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(queue, 0), 1);
  pthread_t thread = start_thread(hand_over_and_end, NULL);
  gate_wait(&entered);
  pthread_t opener = start_thread(open_go_on, NULL);
  CHECK_OK(multicast_token_remove(token));
  EVENTUALLY(multicast_queue_run(queue, 0) == 1 || LOAD(calls) == 2);
  join_thread(thread);
  join_thread(opener);
  CHECK_EQ(outcome.queued, 1);
  CHECK_EQ(outcome.finished + outcome.unfinished, 1);
}

/* ---- After a queued call --------------------------------------------------------------------- */

static multicast_status removed;
static int64_t depth;

static void remove_the_delegate(const void *payload, size_t size) {
  depth = multicast_call_stack(NULL, 0);
  removed = multicast_token_remove(token);
}

TEST(release_of_a_payload_runs_when_the_queued_call_is_over) {
  multicast_invocation how = releasing(remove_the_delegate);
  queue = default_queue();
  target = multicast_create();
  token = add_queued(target, idle(), queue);
  CHECK_EQ(multicast_invoke_with(target, &how, NULL), 1);
  CHECK_EQ(multicast_queue_run(queue, 0), 1);
  CHECK_EQ(depth, 0);
  CHECK_OK(removed);
}

/* ---- Before `wake` is called ----------------------------------------------------------------- */

static bool is_destroyed;
static int wakes;

static void wake(void *context) {
  ++wakes;
  CHECK(!is_destroyed);
}

static void destroy_the_queue(const void *payload, size_t size) {
  if (is_destroyed) return;
  CHECK(multicast_queue_destroy(queue) >= 0);
  is_destroyed = true;
}

static void replace(void *context, uint32_t event, const void *payload, size_t size) {
  multicast_invocation how = releasing(destroy_the_queue);
  CHECK_EQ(multicast_invoke_with(other, &how, NULL), 1);
}

TEST(release_of_a_payload_that_is_replaced_may_destroy_the_queue) {
  multicast_invocation how = releasing(destroy_the_queue);
  queue = multicast_queue_create(&QUEUE_OPTIONS(.wake = wake));
  target = multicast_create();
  other = multicast_create();
  add_queued(target, DELEGATE(replace, NULL), queue);
  add_flagged(other, idle(), queue, MULTICAST_LATEST);
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke_with(other, &how, NULL), 1);
  CHECK_EQ(multicast_queue_run(queue, 1), 1);
  CHECK(is_destroyed);
  CHECK_EQ(wakes, 2);
}

/* ---- Runs that end with their thread --------------------------------------------------------- */

static void *run_the_queue(void *unused) {
  multicast_queue_run(queue, 0);
  return unused;
}

static void count_wake(void *context) {
  ADD(wakes, 1);
}

TEST(queue_wake_is_called_if_a_run_ends_with_its_thread) {
  entered = go_on = shut;
  queue = multicast_queue_create(&QUEUE_OPTIONS(.wake = count_wake));
  target = multicast_create();
  add_queued(target, DELEGATE(end_here, NULL), queue);
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  pthread_t runner = start_thread(run_the_queue, NULL);
  gate_wait(&entered);
  CHECK_EQ(multicast_invoke(target, 0, NULL, 0), 1);
  CHECK_EQ(LOAD(wakes), 2);
  CHECK_ERROR(multicast_queue_run(queue, 0), STATE); /* the other thread is still in its run */
  gate_open(&go_on);
  join_thread(runner);
  CHECK_EQ(LOAD(wakes), 3);
  CHECK_OK(multicast_queue_destroy(queue));
}

/* ---- Option structs that end inside a field -------------------------------------------------- */

TEST(queue_options_that_end_inside_wake_are_refused_but_for_zero) {
  multicast_queue_options options = {
      .struct_size = (uint32_t)(offsetof(multicast_queue_options, wake) + sizeof(void *) / 2)};
  CHECK(multicast_queue_create(&options).id != 0);
  options.wake = count_wake;
  CHECK(multicast_queue_create(&options).id == 0);
  CHECK_ERROR(multicast_create_error(), INVALID_ARGUMENT);
}
