/* While a thread is inside the allocator, another thread destroys or changes objects that the first
 * thread is using. The first thread's add or queued call must still work correctly. */

#include "allocators.h"

/* The allocator must not call the library itself, so the next allocation runs this function on
 * another thread. */
static void *(*meanwhile)(void *);
static bool fails_then;

static void *allocate(void *context, size_t size, size_t alignment) {
  void *(*body)(void *) = meanwhile;
  meanwhile = NULL;
  if (body != NULL) {
    on_another_thread(body, context);
    if (fails_then) return NULL;
  }
  return allocate_aligned(size, alignment);
}

/* ---- Changes during an add ------------------------------------------------------------------- */

typedef struct addition {
  multicast m;
  multicast_add_options options;
  multicast_queue heir;
  int releases;
} addition;

static void expect_that_it_fails(addition *a) {
  multicast_token token = {1};
  CHECK_ERROR(multicast_add(a->m, counter(&a->releases), &a->options, &token), INVALID_HANDLE);
  CHECK(meanwhile == NULL);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(a->releases, 1);
  CHECK_EQ(multicast_count(a->m), 0);
  CHECK_OK(multicast_destroy(a->m));
}

static void begin_addition(addition *a) {
  use_allocator(allocate, a);
  a->m = multicast_create();
  a->options = ADD_OPTIONS(.release = count_release);
  a->options.lifetime = multicast_lifetime_create();
}

THREAD(destroy_the_queue, addition *of) {
  CHECK_OK(multicast_queue_destroy(of->options.queue));
}

TEST(add_to_queue_destroyed_meanwhile_leaves_lifetime_empty) {
  static addition a;
  begin_addition(&a);
  a.options.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  meanwhile = destroy_the_queue;
  expect_that_it_fails(&a);
  CHECK_EQ(multicast_lifetime_count(a.options.lifetime), 0);
  CHECK_OK(multicast_lifetime_end(a.options.lifetime));
}

THREAD(end_the_lifetime, addition *of) {
  CHECK_OK(multicast_lifetime_end(of->options.lifetime));
}

TEST(add_under_a_lifetime_that_ends_meanwhile_fails_and_releases) {
  static addition a;
  begin_addition(&a);
  meanwhile = end_the_lifetime;
  expect_that_it_fails(&a);
}

THREAD(bequeath_the_lifetime, void *of) {
  addition *a = of;
  end_the_lifetime(a);
  /* this queue owns an internal lifetime, which reuses the slot of the ended lifetime */
  a->heir = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
}

TEST(add_under_lifetime_replaced_by_queue_meanwhile_releases) {
  static addition a;
  begin_addition(&a);
  meanwhile = bequeath_the_lifetime;
  expect_that_it_fails(&a);
  CHECK(a.heir.id != 0);
  CHECK_OK(multicast_queue_destroy(a.heir));
}

/* ---- Changes while a call is queued ---------------------------------------------------------- */

static const char payload[100] = "too large to be kept in the queue itself";

TEST(queue_counts_removed_call_without_payload_not_as_refused) {
  static multicast_token token;
  use_allocator(allocate, &token);
  multicast m = multicast_create();
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  token = add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, payload, 1), 1); /* registers this thread */
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  fails_then = true;
  meanwhile = remove_token;
  CHECK_EQ(multicast_invoke(m, 0, payload, sizeof payload), 0);
  CHECK(meanwhile == NULL);
  CHECK_EQ(stats_of(q).refused, 0);
  CHECK_EQ(stats_of(q).queued, 1);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_OK(multicast_destroy(m));
}
