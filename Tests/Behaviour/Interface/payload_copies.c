/* If the caller provides a `copy` function for the payload, direct calls receive the original, and
 * all queued calls share one copy. */

#include "notes.h"
#include "payloads.h"

static const cargo fresh;

TEST_OF_MULTICAST(copy_is_not_called_without_a_queued_delegate) {
  cargo c = fresh;
  multicast_invocation how = copying(&c);
  seen s;
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 0);
  add(m, seeing(&s));
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 1);
  CHECK(s.payload == &c && s.size == sizeof c);
  CHECK_OK(multicast_token_pause(add_queued(m, seeing(&s), default_queue())));
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 1);
  CHECK_EQ(copy_count, 0);
  CHECK_EQ(c.releases, 0);
}

TEST_OF_MULTICAST(copy_is_called_once_and_queued_calls_share_what_it_returned) {
  multicast_queue q = default_queue(), other = default_queue();
  cargo c = fresh;
  multicast_invocation how = copying(&c);
  seen direct, queued[3];
  add_queued(m, seeing(&queued[0]), q);
  add_queued(m, seeing(&queued[1]), other);
  add(m, seeing(&direct));
  add_queued(m, seeing(&queued[2]), q);
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 4);
  CHECK_EQ(copy_count, 1);
  CHECK(direct.payload == &c);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(copies[0].releases, 0);
  CHECK_EQ(multicast_queue_run(other, 0), 1);
  CHECK(queued[0].payload == &copies[0] && queued[1].payload == &copies[0] &&
        queued[2].payload == &copies[0]);
  CHECK(queued[0].size == sizeof c && queued[0].releases == 0 && queued[1].releases == 0);
  CHECK_EQ(copies[0].releases, 1);
  CHECK_EQ(copies[0].size, sizeof c);
  CHECK_EQ(c.releases, 0); /* the original still belongs to the caller */
}

static int calls_before_copy;
static int made_by_copy;
static pthread_t copied_on;
static const void *copied_from;
static size_t copied_size;

static const void *note_copy(const void *payload, size_t size) {
  calls_before_copy = made_by_copy;
  copied_on = pthread_self();
  copied_from = payload;
  copied_size = size;
  return copy_cargo(payload, size);
}

TEST_OF_QUEUE(copy_is_called_on_invoking_thread_for_first_queued_call) {
  cargo c = fresh;
  multicast_invocation how = copying(&c);
  how.copy = note_copy;
  how.size = 3;
  add(m, counter(&made_by_copy));
  add(m, counter(&made_by_copy));
  add_queued(m, counter(&made_by_copy), q);
  add(m, counter(&made_by_copy));
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 4);
  CHECK_EQ(calls_before_copy, 2);
  CHECK(pthread_equal(copied_on, pthread_self()));
  CHECK(copied_from == &c && copied_size == 3);
}

TEST_OF_QUEUE(copy_of_size_0_is_called_and_its_result_is_queued) {
  cargo c = fresh;
  multicast_invocation how = copying(&c);
  seen s;
  how.size = 0;
  add_queued(m, seeing(&s), q);
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(s.payload == &copies[0] && s.size == 0);
  CHECK_EQ(copies[0].releases, 1);
  how.payload = NULL; /* the library itself does not read the payload */
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(s.payload == &copies[1] && s.size == 0);
  CHECK_EQ(copies[1].releases, 1);
}

TEST_OF_QUEUE(copy_without_release_is_passed_on_and_never_freed) {
  cargo c = fresh;
  multicast_invocation how = copying(&c);
  seen s;
  how.release = NULL;
  add_queued(m, seeing(&s), q);
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(s.payload == &copies[0]);
  CHECK_EQ(copies[0].releases, 0);
}

TEST_OF_MULTICAST(copy_that_returns_null_once_refuses_all_queued_calls) {
  multicast_queue q = default_queue(), other = default_queue();
  cargo c = fresh;
  multicast_invocation how = copying(&c);
  int calls = 0;
  how.copy = copy_nothing;
  add(m, counter(&calls));
  add_queued(m, counter(&calls), q);
  add_queued(m, counter(&calls), other);
  add_queued(m, counter(&calls), q);
  add(m, counter(&calls));
  for (int round = 1; round <= 2; ++round) {
    CHECK_INVOKED(m, &how, 2, 2, 0, 3, 0, 0);
    CHECK_EQ(refused_copies, round);
    how.flags = MULTICAST_WAIT;
  }
  CHECK_EQ(calls, 4);
  CHECK_TEXT(figures(q), "refused 4");
  CHECK_TEXT(figures(other), "refused 2");
  CHECK_EQ(c.releases, 0); /* `release` is called only for results of `copy` */
}

TEST_OF_MULTICAST(copy_for_calls_all_refused_is_released_by_the_invocation) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  cargo c = fresh;
  multicast_invocation how = copying(&c);
  int calls = 0;
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_invoke_with(m, &how, NULL), 0);
  CHECK(copy_count <= 1);
  CHECK_EQ(copies[0].releases, copy_count);
}

TEST_OF_QUEUE(copy_that_is_cleared_or_removed_is_released_once) {
  cargo c = fresh;
  multicast_invocation how = copying(&c);
  int calls = 0;
  add_queued(m, counter(&calls), q);
  for (int i = 0; i < 3; ++i) {
    CHECK_EQ(multicast_invoke_with(m, &how, NULL), 1);
    if (i == 0) CHECK_EQ(multicast_queue_clear(q), 1);
    if (i == 1) CHECK_EQ(multicast_queue_run(q, 1), 1);
    if (i == 2) CHECK_OK(multicast_queue_destroy(q));
    CHECK_EQ(copies[i].releases, 1);
  }
  CHECK_EQ(copy_count, 3);
}

/* ---- Using the library inside `copy` --------------------------------------------------------- */

typedef struct copier {
  multicast m, other;
  multicast_queue q;
  int calls, nested;
} copier;
static copier the_copier;

THREAD(use_meanwhile, void *unused) {
  CHECK(multicast_invoke(the_copier.m, 0, NULL, 0) >= 0);
  CHECK(multicast_queue_clear(the_copier.q) >= 0);
  CHECK(multicast_count(the_copier.m) == 1);
}

static const void *copy_while_others_work(const void *payload, size_t size) {
  on_another_thread(use_meanwhile, NULL);
  CHECK_EQ(multicast_invoke(the_copier.other, 0, NULL, 0), 1);
  return copy_cargo(payload, size);
}

TEST(copy_runs_while_no_lock_is_held_and_may_call_anything) {
  cargo c = fresh;
  multicast_invocation how = copying(&c);
  how.copy = copy_while_others_work;
  the_copier.m = multicast_create();
  the_copier.other = multicast_create();
  the_copier.q = default_queue();
  add_queued(the_copier.m, counter(&the_copier.calls), the_copier.q);
  add(the_copier.other, counter(&the_copier.nested));
  CHECK_EQ(multicast_invoke_with(the_copier.m, &how, NULL), 1);
  CHECK_EQ(the_copier.nested, 1);
  CHECK_EQ(multicast_queue_run(the_copier.q, 0), 1);
  CHECK_EQ(copies[0].releases, 1);
}

static const void *copy_and_destroy(const void *payload, size_t size) {
  CHECK_OK(multicast_queue_destroy(the_copier.q));
  the_copier.q = default_queue(); /* may reuse the slot */
  return copy_cargo(payload, size);
}

TEST(copy_that_destroys_the_queue_has_its_result_released) {
  cargo c = fresh;
  multicast_invocation how = copying(&c);
  for (int wait = 0; wait < 2; ++wait) {
    how.copy = copy_and_destroy;
    how.flags = wait ? MULTICAST_WAIT : 0;
    the_copier.m = multicast_create();
    the_copier.q = default_queue();
    add_queued(the_copier.m, counter(&the_copier.calls), the_copier.q);
    CHECK_INVOKED(the_copier.m, &how, 0, 0, 0, 0, 0, 0);
    CHECK_EQ(copies[wait].releases, 1);
    CHECK_TEXT(figures(the_copier.q), "");
  }
}
