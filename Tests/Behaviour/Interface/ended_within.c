/* multicast_ended_within() waits until no call that belongs to a given lifetime, multicast, queue
 * or token is running. */

#include "queues.h"

#include <sys/wait.h>
#include <unistd.h>

enum { LIFETIME, MULTICAST, QUEUE, TOKEN, KINDS };

/* The objects of a test, one of each kind, and a delegate that belongs to all of them. The
 * delegate's call ends the object that `kind` selects, and then waits. */
static struct {
  int kind;
  multicast_lifetime lifetime;
  multicast target;
  multicast_queue queue;
  multicast_token token;
  gate entered, let_go;
  multicast_status before, of_end, inside;
  bool is_out;
  int releases;
} it;

static uint64_t handle(void) {
  switch (it.kind) {
    case LIFETIME: return it.lifetime.id;
    case MULTICAST: return it.target.id;
    case QUEUE: return it.queue.id;
    default: return it.token.id;
  }
}

static multicast_status end(void) {
  switch (it.kind) {
    case LIFETIME: return multicast_lifetime_end(it.lifetime);
    case MULTICAST: return multicast_destroy(it.target);
    case QUEUE: return multicast_queue_destroy(it.queue);
    default: return multicast_token_remove(it.token);
  }
}

static multicast_status ended(uint64_t timeout_ns) {
  return multicast_ended_within(handle(), timeout_ns);
}

static void end_itself(void *context, uint32_t event, const void *payload, size_t size) {
  it.before = ended(0);
  it.of_end = end();
  it.inside = ended(MULTICAST_FOREVER);
  gate_open(&it.entered);
  gate_wait(&it.let_go);
  STORE(it.is_out, true);
}

static void count_own_release(void *context) {
  ADD(it.releases, 1);
}

static const gate fresh_gate = GATE_INIT;

static void prepare(int kind) {
  multicast_add_options options = ADD_OPTIONS(.release = count_own_release);
  memset(&it, 0, sizeof it);
  it.kind = kind;
  it.entered = it.let_go = fresh_gate;
  it.lifetime = multicast_lifetime_create();
  it.target = multicast_create();
  it.queue = default_queue();
  options.lifetime = it.lifetime;
  if (kind == QUEUE) options.queue = it.queue;
  it.token = add_with(it.target, DELEGATE(end_itself, &it), &options);
}

static void *call(void *unused) {
  CHECK_EQ(multicast_invoke(it.target, 0, NULL, 0), 1);
  if (it.kind == QUEUE) CHECK_EQ(multicast_queue_run(it.queue, 0), 1);
  return unused;
}

static pthread_t begin_call(void) {
  pthread_t thread = start_thread(call, NULL);
  gate_wait(&it.entered);
  return thread;
}

TEST(ended_within_waits_for_a_call_that_has_ended_its_own) {
  for (int kind = 0; kind < KINDS; ++kind) {
    prepare(kind);
    pthread_t thread = begin_call();
    CHECK_ERROR(it.before, STATE);
    CHECK_STATUS(it.of_end, MULTICAST_PENDING);
    CHECK_STATUS(it.inside, MULTICAST_PENDING);
    CHECK_ERROR(ended(0), TIMEOUT);
    CHECK_ERROR(ended(1000000), TIMEOUT);
    gate_open(&it.let_go);
    CHECK_OK(ended(MULTICAST_FOREVER));
    CHECK(LOAD(it.is_out));
    if (kind == LIFETIME) CHECK_EQ(LOAD(it.releases), 1);
    join_thread(thread);
    CHECK_OK(ended(0));
    CHECK_EQ(it.releases, 1);
  }
}

/* While the call is still running, new objects reuse the slots of the ended objects. */
TEST(ended_within_is_not_about_the_next_one_in_its_slot) {
  for (int kind = 0; kind < KINDS; ++kind) {
    int calls = 0;
    prepare(kind);
    pthread_t thread = begin_call();
    multicast next = multicast_create();
    multicast_queue queue = default_queue();
    add_queued(next, counter(&calls), queue);
    CHECK(multicast_lifetime_create().id != 0);
    CHECK_EQ(multicast_invoke(next, 0, NULL, 0), 1);
    CHECK_EQ(multicast_queue_run(queue, 0), 1);
    CHECK_ERROR(ended(0), TIMEOUT);
    gate_open(&it.let_go);
    join_thread(thread);
    CHECK_OK(ended(0));
    CHECK_ERROR(multicast_ended_within(next.id, 0), STATE);
    CHECK_ERROR(multicast_ended_within(queue.id, 0), STATE);
  }
}

TEST(ended_within_is_ok_after_an_end_that_was) {
  for (int kind = 0; kind < KINDS; ++kind) {
    prepare(kind);
    CHECK_ERROR(ended(0), STATE);
    CHECK_OK(end());
    CHECK_OK(ended(0));
    CHECK_OK(ended(MULTICAST_FOREVER));
    multicast_trim(); /* the slots may read as zeros after this */
    CHECK_OK(ended(0));
  }
}

TEST(ended_within_of_no_handle_is_invalid) {
  const multicast_broadcaster b = multicast_broadcaster_create(NULL);
  const uint64_t later = UINT64_C(1) << 50;
  prepare(TOKEN);
  CHECK_ERROR(multicast_ended_within(0, MULTICAST_FOREVER), INVALID_HANDLE);
  CHECK_ERROR(multicast_ended_within(UINT64_MAX, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_ended_within(b.id, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_ended_within(it.target.id + later, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_ended_within(it.token.id + later, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_ended_within(it.queue.id + later, 0), INVALID_HANDLE);
  CHECK_ERROR(multicast_ended_within(it.lifetime.id + later, 0), INVALID_HANDLE);
  for (int kind = 0; kind < KINDS; ++kind) { /* a handle with the last index, which no slot has */
    it.kind = kind;
    CHECK_ERROR(multicast_ended_within(handle() | 0x3FFFFFF, 0), INVALID_HANDLE);
  }
}

/* Two threads are each in a call that waits for the other thread's call. One call waits in a
 * removal, the other in multicast_ended_within(). */
static multicast second;
static multicast_token of_second;
static multicast_status asked;

static void ask_inside(void *context, uint32_t event, const void *payload, size_t size) {
  gate_open(&it.let_go);
  asked = ended(MULTICAST_FOREVER);
}

static void remove_second(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_STATUS(end(), MULTICAST_PENDING);
  gate_open(&it.entered);
  gate_wait(&it.let_go);
  it.inside = multicast_token_remove(of_second);
}

TEST(ended_within_that_would_close_a_cycle_is_pending) {
  const multicast_delegate ends = {remove_second, NULL}, asks = {ask_inside, NULL};
  prepare(TOKEN);
  CHECK_OK(multicast_token_remove(it.token));
  it.token = add(it.target, ends);
  second = multicast_create();
  of_second = add(second, asks);
  pthread_t thread = begin_call();
  CHECK_EQ(multicast_invoke(second, 0, NULL, 0), 1);
  join_thread(thread);
  /* At least one of the two waits has to return MULTICAST_PENDING. */
  CHECK(asked == MULTICAST_PENDING || it.inside == MULTICAST_PENDING);
  CHECK(asked == MULTICAST_OK || it.inside == MULTICAST_OK);
  CHECK_OK(ended(0));
}

static void expect_over(void *unused) {
  CHECK_OK(ended(0));
}

TEST(ended_within_does_not_wait_for_threads_of_the_parent) {
  for (int kind = 0; kind < KINDS; ++kind) {
    prepare(kind);
    pthread_t thread = begin_call();
    in_child(expect_over, NULL);
    gate_open(&it.let_go);
    join_thread(thread);
  }
}

static gate wake_entered = GATE_INIT, wake_let_go = GATE_INIT;
static void wake_and_wait(void *context) {
  gate_open(&wake_entered);
  gate_wait(&wake_let_go);
}

static void *destroy_queue(void *unused) {
  CHECK_OK(multicast_queue_destroy(it.queue));
  return unused;
}

static void *invoke_to_wake(void *unused) {
  CHECK_EQ(multicast_invoke(it.target, 0, NULL, 0), 1);
  return unused;
}

TEST(ended_within_of_a_queue_waits_for_its_wake_function) {
  prepare(QUEUE);
  it.queue = multicast_queue_create(&QUEUE_OPTIONS(.wake = wake_and_wait));
  it.target = multicast_create();
  add_queued(it.target, counter(&calls), it.queue);
  pthread_t invoking = start_thread(invoke_to_wake, NULL);
  gate_wait(&wake_entered);
  pthread_t destroying = start_thread(destroy_queue, NULL);
  EVENTUALLY(!multicast_queue_is_valid(it.queue));
  CHECK_ERROR(ended(1000000), TIMEOUT);
  gate_open(&wake_let_go);
  CHECK_OK(ended(MULTICAST_FOREVER));
  join_thread(invoking);
  join_thread(destroying);
}
