/* If the system refuses one of the library's requests, the program receives an error status and
 * nothing changes. */

#include "threads.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

/* ---- The first use --------------------------------------------------------------------------- */

static void check_that_nothing_can_be_created(void) {
  multicast_watch watch = MULTICAST_WATCH_INIT;
  multicast all = {0};
  CHECK_EQ(multicast_create().id, 0);
  CHECK_EQ(multicast_lifetime_create().id, 0);
  CHECK_EQ(multicast_queue_create(NULL).id, 0);
  CHECK_EQ(multicast_broadcaster_create(NULL).id, 0);
  CHECK_EQ(multicast_broadcaster_default().id, 0);
  CHECK_OK(multicast_set_watch(all, &watch)); /* this call creates nothing */
  CHECK_OK(multicast_set_watch(all, NULL));
}

static void check_that_all_works(void) {
  int calls = 0;
  multicast m = multicast_create();
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  add(m, counter(&calls));
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(calls, 2);
  CHECK(multicast_broadcaster_default().id != 0);
  CHECK_OK(multicast_destroy(m));
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(start_without_a_thread_key_is_out_of_memory_at_first) {
  static pthread_key_t keys[PTHREAD_KEYS_MAX];
  int count = 0;
  while (count < PTHREAD_KEYS_MAX && pthread_key_create(&keys[count], NULL) == 0) ++count;
  CHECK(count > 0);
  check_that_nothing_can_be_created();
  while (count > 0) CHECK_EQ(pthread_key_delete(keys[--count]), 0);
  check_that_all_works();
}

/* ---- Queues ---------------------------------------------------------------------------------- */

TEST(queue_create_without_room_is_out_of_memory_and_takes_none) {
  use_test_allocator();
  CHECK(multicast_lifetime_create().id != 0);
  int64_t blocks = allocated_blocks;
  fail_after = 1; /* the ring is allocated, but not the queue itself */
  CHECK_EQ(multicast_queue_create(NULL).id, 0);
  CHECK(has_failed);
  CHECK_EQ(allocated_blocks, blocks);
  check_that_all_works();
}

/* A program must not close the queue's descriptor. If a program makes this mistake, the library
 * still leaves errno unchanged. */
TEST_OF_MULTICAST(queue_with_a_closed_descriptor_works_and_leaves_errno) {
  enum { OF_THE_PROGRAM = 7777 };
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  add_queued(m, counter(&calls), q);
  int descriptor = multicast_queue_fd(q);
  CHECK(descriptor >= 0);
  CHECK_EQ(close(descriptor), 0);
  errno = OF_THE_PROGRAM;
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(errno, OF_THE_PROGRAM);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(errno, OF_THE_PROGRAM);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(errno, OF_THE_PROGRAM);
  CHECK_EQ(calls, 1);
}

/* ---- The kernel stops granting the memory barrier -------------------------------------------- */

TEST_OF_MULTICAST(removing_again_what_was_removed_without_barrier_is_system) {
  int releases = 0, others = 0;
  multicast_delegate d = counter(&releases);
  if (is_without_membarrier()) return; /* the barrier was never granted */
  multicast_token token = add_with(m, d, &ADD_OPTIONS(.release = count_release));
  add(m, counter(&others));
  let_two_threads_invoke(m);
  releases = 0;
  deny_membarrier();
  CHECK_ERROR(multicast_token_remove(token), SYSTEM);
  CHECK_ERROR(multicast_token_remove(token), SYSTEM);
  CHECK_ERROR(multicast_token_remove_nowait(token), SYSTEM);
  CHECK_ERROR(multicast_token_remove_within(token, 0), SYSTEM);
  CHECK_ERROR(multicast_remove(m, d), SYSTEM);
  CHECK_ERROR(multicast_remove_many(m, &d, 1), SYSTEM);
  CHECK_ERROR(multicast_destroy(m), SYSTEM);
  CHECK_ERROR(multicast_destroy(m), SYSTEM);
  CHECK_EQ(releases, 0);
  _exit(0); /* a sanitizer would report the memory that cannot be freed as a leak */
}

typedef struct member {
  multicast m;
  multicast_lifetime lifetime;
  multicast_token token;
  int calls, releases;
} member;

static void count_release_of_member(void *context) { ADD(((member *)context)->releases, 1); }

static void call_member(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(((member *)context)->calls, 1);
}

static void begin_member(member *of) {
  multicast_add_options options = ADD_OPTIONS(.release = count_release_of_member);
  of->m = multicast_create();
  of->lifetime = multicast_lifetime_create();
  options.lifetime = of->lifetime;
  of->token = add_with(of->m, DELEGATE(call_member, of), &options);
  let_two_threads_invoke(of->m);
  CHECK_EQ(of->calls, 2);
}

TEST(lifetime_end_without_barrier_is_system_and_releases_nothing) {
  static member of;
  if (is_without_membarrier()) return; /* the barrier was never granted */
  begin_member(&of);
  deny_membarrier();
  CHECK_ERROR(multicast_lifetime_end(of.lifetime), SYSTEM);
  CHECK(!multicast_token_is_valid(of.token));
  CHECK_EQ(multicast_invoke(of.m, 0, NULL, 0), 0);
  CHECK_EQ(of.releases, 0);
}

TEST(lifetime_end_of_what_was_removed_without_barrier_is_system) {
  static member of;
  if (is_without_membarrier()) return; /* the barrier was never granted */
  begin_member(&of);
  deny_membarrier();
  CHECK_ERROR(multicast_token_remove(of.token), SYSTEM);
  CHECK_ERROR(multicast_lifetime_end(of.lifetime), SYSTEM);
  CHECK_EQ(of.releases, 0);
}

THREAD(remove_without_the_barrier, multicast_token *token) {
  deny_membarrier(); /* the kernel refuses the barrier on this thread only */
  CHECK_ERROR(multicast_token_remove(*token), SYSTEM);
}

TEST(lifetime_end_does_not_wait_for_removals_without_barrier) {
  static member of;
  if (is_without_membarrier()) return; /* the barrier was never granted */
  begin_member(&of);
  on_another_thread(remove_without_the_barrier, &of.token);
  CHECK_ERROR(multicast_lifetime_end(of.lifetime), SYSTEM);
  CHECK_EQ(of.releases, 0);
}

/* Makes two threads invoke the multicast of a name with one observer, makes the kernel refuse the
 * barrier from then on, and returns the multicast. */
static multicast begin_name(multicast_broadcaster b, int *calls) {
  CHECK_OK(multicast_broadcaster_register(b, "name", counter(calls), NULL, NULL));
  multicast m = multicast_broadcaster_multicast(b, "name");
  let_two_threads_invoke(m);
  CHECK_EQ(*calls, 2);
  deny_membarrier();
  return m;
}

TEST(unregister_all_without_barrier_is_system_leaves_no_observer) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  if (is_without_membarrier()) return; /* the barrier was never granted */
  multicast m = begin_name(b, &calls);
  CHECK_ERROR(multicast_broadcaster_unregister_all(b, "name"), SYSTEM);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(multicast_broadcaster_notify(b, "name", 0, NULL, 0), 0);
  CHECK_EQ(calls, 2);
}

typedef struct destroyed {
  multicast_broadcaster broadcaster;
  multicast_status status;
} destroyed;

FUNCTION(destroy_without_the_barrier, destroyed *d) {
  deny_membarrier();
  d->status = multicast_broadcaster_destroy(d->broadcaster);
}

/* Because an observer's call destroys the broadcaster, the status would be MULTICAST_PENDING, but
 * MULTICAST_ERROR_SYSTEM takes precedence. */
TEST(broadcaster_destroy_in_a_call_without_barrier_is_system) {
  destroyed d = {{0}, MULTICAST_OK};
  if (is_without_membarrier()) return; /* the barrier was never granted */
  multicast_delegate observer = {destroy_without_the_barrier, &d};
  d.broadcaster = multicast_broadcaster_create(NULL);
  CHECK_OK(multicast_broadcaster_register(d.broadcaster, "name", observer, NULL, NULL));
  CHECK_EQ(multicast_broadcaster_notify(d.broadcaster, "name", 0, NULL, 0), 1);
  CHECK_ERROR(d.status, SYSTEM);
  CHECK_ERROR(multicast_broadcaster_notify(d.broadcaster, "name", 0, NULL, 0), INVALID_HANDLE);
  _exit(0); /* a sanitizer would report its names, which cannot be freed, as a leak */
}

TEST(removal_after_lost_barrier_is_system_and_frees_nothing) {
  int releases = 0, other = 0;
  multicast_add_options options = ADD_OPTIONS(.release = count_release);
  multicast watched = multicast_create();
  if (is_without_membarrier()) return; /* the barrier was never granted */
  multicast_token token = add_with(watched, counter(&releases), &options);
  add(watched, counter(&other));
  let_two_threads_invoke(watched);
  releases = 0;
  deny_membarrier();
  CHECK_ERROR(multicast_token_remove(token), SYSTEM);
  CHECK(!multicast_token_is_valid(token));
  CHECK_EQ(releases, 0);
  CHECK_EQ(multicast_invoke(watched, 0, NULL, 0), 1);
  CHECK_ERROR(multicast_remove_all(watched), SYSTEM);
  CHECK_ERROR(multicast_destroy(watched), SYSTEM);
}

TEST(broadcaster_destroy_after_lost_barrier_calls_no_observer) {
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  if (is_without_membarrier()) return; /* the barrier was never granted */
  multicast m = begin_name(broadcaster, &calls);
  CHECK_ERROR(multicast_broadcaster_destroy(broadcaster), SYSTEM);
  CHECK(!multicast_is_valid(m));
  CHECK_ERROR(multicast_invoke(m, 0, NULL, 0), INVALID_HANDLE);
  CHECK_EQ(calls, 2);
  _exit(0); /* a sanitizer would report its names, which cannot be freed, as a leak */
}
