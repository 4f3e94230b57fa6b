/* Tests the policies for invocations that begin inside a call made by the same multicast. */

#include "payloads.h"
#include "policies.h"
#include "queues.h"

#include <sys/wait.h>
#include <unistd.h>

static echo first, second;

/* ---- Recurse --------------------------------------------------------------------------------- */

TEST(reentry_recurse_is_made_at_once) {
  multicast m = create_with_reentry(MULTICAST_REENTRY_RECURSE);
  add(m, echoing(&first, m, 'a', 1, 5));
  add(m, noting('b'));
  CHECK_NOTED(invoke_number(m, 1), 2, "a1 a11 b11 b1");
  CHECK_EQ(first.result, 2);
}

/* ---- Refuse ---------------------------------------------------------------------------------- */

#define TEST_OF_REFUSAL(NAME) \
  TEST_OF(NAME, (multicast m), (create_with_reentry(MULTICAST_REENTRY_REFUSE)))

TEST_OF_REFUSAL(reentry_refuse_is_state_and_calls_nothing) {
  add(m, echoing(&first, m, 'a', 1, 5));
  add(m, noting('b'));
  CHECK_NOTED(invoke_number(m, 1), 2, "a1 b1");
  CHECK_ERROR(first.result, STATE);
  CHECK_EQ(invoke_number(m, 2), 2); /* an invocation outside all calls is made */
  CHECK_TEXT(noted, "a1 b1 a2 b2");
}

/* The context of a delegate that descends through 256 nested calls. A multicast with a policy makes
 * the outermost call. */
typedef struct abyss {
  multicast policed, plain;
  int levels, calls;
  int64_t result, result_of_plain;
} abyss;

FUNCTION(descend, abyss *a) {
  if (++a->levels < 256) {
    CHECK_EQ(multicast_invoke(a->plain, 0, NULL, 0), 1);
  } else if (a->levels == 256) {
    a->result_of_plain = multicast_invoke(a->plain, 0, NULL, 0);
    a->result = multicast_invoke(a->policed, 0, NULL, 0);
  }
}

static abyss descend_below(multicast_reentry reentry) {
  abyss a = {create_with_reentry(reentry), multicast_create(), 0, 0, 99, 99};
  const multicast_delegate d = {descend, &a};
  add(a.policed, d);
  add(a.plain, d);
  CHECK_EQ(multicast_invoke(a.policed, 0, NULL, 0), 1);
  CHECK_ERROR(a.result_of_plain, LIMIT);
  return a;
}

TEST(reentry_policy_comes_before_the_limit_of_nesting) {
  CHECK_ERROR(descend_below(MULTICAST_REENTRY_RECURSE).result, LIMIT);
  CHECK_ERROR(descend_below(MULTICAST_REENTRY_REFUSE).result, STATE);
  const abyss a = descend_below(MULTICAST_REENTRY_DEFER);
  CHECK_EQ(a.result, 0);
  CHECK_EQ(a.levels, 257); /* the deferred invocation has been made */
}

static multicast_token stack[4];
static int64_t depth;
static void look_at_stack(echo *e) {
  if (e->result == MULTICAST_ERROR_STATE) depth = multicast_call_stack(stack, 4);
}

TEST(reentry_refuse_holds_across_other_multicasts) {
  multicast m = create_with_reentry(MULTICAST_REENTRY_REFUSE), other = multicast_create();
  multicast_token outer = add(m, echoing(&first, other, 'a', 1, 50));
  multicast_token inner = add(other, echoing(&second, m, 'b', 1, 500));
  second.in_call = look_at_stack;
  CHECK_NOTED(invoke_number(m, 1), 1, "a1 b11");
  CHECK_EQ(first.result, 1);
  CHECK_ERROR(second.result, STATE);
  CHECK_EQ(depth, 2);
  CHECK_EQ(stack[0].id, outer.id);
  CHECK_EQ(stack[1].id, inner.id);
}

THREAD(invoke_elsewhere, multicast *m) {
  CHECK_EQ(invoke_number(*m, 100), 1);
}
static void invoke_on_another_thread(echo *e) {
  e->in_call = NULL;
  on_another_thread(invoke_elsewhere, &e->target);
}

TEST_OF_REFUSAL(reentry_is_about_the_invocations_of_one_thread) {
  add(m, echoing(&first, m, 'a', 0, 0));
  first.in_call = invoke_on_another_thread;
  CHECK_NOTED(invoke_number(m, 1), 1, "a1 a100");
}

static cargo refused;
static void hand_over_refused(echo *e) {
  multicast_invocation how = handing_over(&refused);
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  out.called = 7;
  e->result = multicast_invoke_with(e->target, &how, &out);
  CHECK_EQ(refused.releases, 1);
  CHECK_OUTCOME(out, 0, 0, 0, 0, 0);
  how = copying(&refused);
  CHECK_ERROR(multicast_invoke_with(e->target, &how, NULL), STATE);
  CHECK_EQ(copy_count, 0);
}

TEST_OF_REFUSAL(reentry_refuse_releases_the_payload) {
  add(m, echoing(&first, m, 'a', 0, 0));
  first.in_call = hand_over_refused;
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_ERROR(first.result, STATE);
}

/* ---- Defer ----------------------------------------------------------------------------------- */

#define TEST_OF_DEFERRAL(NAME) \
  TEST_OF(NAME, (multicast m), (create_with_reentry(MULTICAST_REENTRY_DEFER)))

TEST_OF_DEFERRAL(reentry_defer_is_made_after_outermost_invocation_in_order) {
  add(m, echoing(&first, m, 'a', 2, 5));
  add(m, noting('b'));
  first.result = 77;
  CHECK_EQ(invoke_number(m, 1), 2); /* the result covers only this invocation */
  CHECK_TEXT(noted, "a1 b1 a11 b11 a12 b12");
  CHECK_EQ(first.result, 0);
}

TEST_OF_DEFERRAL(reentry_defer_of_what_is_deferred_goes_last) {
  add(m, echoing(&first, m, 'a', 2, 20));
  CHECK_NOTED(invoke_number(m, 1), 1, "a1 a11 a12 a111 a112 a121 a122");
  noted_length = 0;
  CHECK_EQ(invoke_number(m, 3), 1); /* nothing remains of the first invocation */
  CHECK_TEXT(noted, "a3 a31 a32");
}

TEST_OF_DEFERRAL(reentry_defer_holds_across_nested_multicasts) {
  multicast other = create_with_reentry(MULTICAST_REENTRY_DEFER);
  static echo third;
  add(m, echoing(&first, other, 'a', 1, 5));
  add(m, noting('A'));
  add(other, echoing(&second, m, 'b', 1, 50));
  add(other, echoing(&third, other, 'c', 1, 50));
  CHECK_EQ(invoke_number(m, 1), 2);
  /* An invocation deferred inside the inner invocation is made when the inner invocation ends.
   * Invocations deferred inside the outer invocation follow later. */
  CHECK_TEXT(noted, "a1 b11 c11 b111 c111 A1 a111 A111");
}

TEST(reentry_defer_in_two_multicasts_at_once) {
  multicast outer = create_with_reentry(MULTICAST_REENTRY_DEFER);
  multicast inner = create_with_reentry(MULTICAST_REENTRY_DEFER);
  static echo third;
  add(outer, echoing(&first, inner, 'a', 1, 5));
  add(inner, echoing(&second, inner, 'b', 1, 50));
  add(inner, echoing(&third, outer, 'c', 1, 50));
  CHECK_EQ(invoke_number(outer, 1), 1);
  /* The invocation of `outer` ends last, and only then makes its deferred invocation. */
  CHECK_TEXT(noted, "a1 b11 c11 b111 c111 a111");
}

static bool invoke_in_visit(void *context, const multicast_delegate *delegate) {
  multicast *m = context;
  note_call((void *)(intptr_t)'v', 0, NULL, 0);
  CHECK_EQ(multicast_invoke(*m, 7, NULL, 0), 0);
  return true;
}

TEST_OF_DEFERRAL(reentry_defer_in_visits_is_made_after_the_visit) {
  multicast_token token = add(m, noting('a'));
  CHECK_NOTED(multicast_visit(m, invoke_in_visit, &m), 1, "v a@7");
  CHECK_NOTED(multicast_visit_undo(m, invoke_in_visit, invoke_in_visit, &m), 1, "v a@7 v a@7");
  CHECK_NOTED(multicast_token_visit(token, invoke_in_visit, &m), 1, "v a@7 v a@7 v a@7");
}

static bool invoke_in_enumeration(void *context, const multicast_registration *registration) {
  multicast *m = context;
  CHECK_EQ(multicast_invoke(*m, 7, NULL, 0), 0);
  return true;
}

static multicast locked;
static void *invoke_in_lock(void *context) {
  CHECK_EQ(multicast_invoke(locked, 9, NULL, 0), 0);
  locked.id = 0;
  return context;
}

TEST_OF_DEFERRAL(reentry_defer_in_enumerations_and_prunes_is_made_after_them) {
  add(m, noting('a'));
  CHECK_NOTED(multicast_enumerate(m, invoke_in_enumeration, &m), 1, "a@7");
  locked = m;
  add_with(m, noting('w'), &ADD_OPTIONS(.lock = invoke_in_lock, .unlock = unlock_nothing,
                                        .events = 1));
  CHECK_NOTED(multicast_prune(m), 0, "a@7 a@9");
}

static bool note_visit(void *context, const multicast_delegate *delegate) {
  note_call((void *)(intptr_t)'v', 0, NULL, 0);
  return true;
}
static multicast_token known;
static void visit_and_call(echo *e) {
  e->in_call = NULL;
  CHECK_EQ(multicast_visit(e->target, note_visit, NULL), 2);
  CHECK_EQ(multicast_token_invoke(known, 8, NULL, 0), 1);
  CHECK_EQ(multicast_token_visit(known, note_visit, NULL), 1);
}

TEST(reentry_of_visits_and_of_calls_by_token_is_at_once) {
  multicast_reentry reentry;
  for (reentry = MULTICAST_REENTRY_REFUSE; reentry <= MULTICAST_REENTRY_LATEST; ++reentry) {
    multicast m = create_with_reentry(reentry);
    noted_length = 0;
    add(m, echoing(&first, m, 'a', 0, 0));
    known = add(m, noting('b'));
    first.in_call = visit_and_call;
    CHECK_NOTED(invoke_number(m, 1), 2, "a1 v v b@8 v b1");
  }
}

TEST_OF_DEFERRAL(reentry_defer_inside_a_call_by_token_is_made_after_it) {
  int number = 1;
  multicast_token token = add(m, echoing(&first, m, 'a', 1, 5));
  CHECK_NOTED(multicast_token_invoke(token, 0, &number, sizeof number), 1, "a1 a11");
}

TEST_OF_REFUSAL(reentry_does_not_apply_inside_calls_that_a_queue_makes) {
  multicast_queue q = default_queue();
  add_queued(m, echoing(&first, m, 'a', 1, 5), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(multicast_queue_run(q, 2), 2);
  CHECK_EQ(first.result, 1);
  CHECK_TEXT(noted, "a1 a11");
}

TEST_OF_DEFERRAL(reentry_defer_queues_calls_of_delegates_with_a_queue) {
  multicast_queue q = default_queue();
  add(m, echoing(&first, m, 'a', 1, 5));
  add_queued(m, noting('q'), q);
  CHECK_EQ(invoke_number(m, 1), 2);
  multicast_queue_stats stats = stats_of(q);
  CHECK_EQ(stats.pending, 2);
  CHECK_NOTED(multicast_queue_run(q, 0), 2, "a1 a11 q1 q11");
}

static void add_and_remove(echo *e) {
  if (e->calls > 1) return;
  CHECK_OK(multicast_remove(e->target, noting('b')));
  add(e->target, noting('c'));
}

TEST_OF_DEFERRAL(reentry_defer_is_for_the_delegates_of_its_own_time) {
  add(m, echoing(&first, m, 'a', 1, 5));
  first.in_call = add_and_remove;
  add(m, noting('b'));
  add_with(m, noting('o'), &ADD_OPTIONS(.flags = MULTICAST_ONCE));
  CHECK_NOTED(invoke_number(m, 1), 2, "a1 o1 a11 c11");
}

/* ---- The payload ----------------------------------------------------------------------------- */

static unsigned char large[3000];
static void defer_large(echo *e) {
  if (e->calls > 1) return;
  memset(large, 5, sizeof large);
  CHECK_EQ(multicast_invoke(e->target, 1, large, sizeof large), 0);
  memset(large, 6, sizeof large);
  CHECK_EQ(multicast_invoke(e->target, 2, large, 0), 0); /* a payload of size 0 is not copied */
}
static parcel kept[2];
static void keep_parcel(void *context, uint32_t event, const void *payload, size_t size) {
  if (event == 0) return;
  CHECK(event <= 2);
  kept[event - 1].payload = payload;
  kept[event - 1].size = size;
  memcpy(kept[event - 1].bytes, payload, size);
}

FUNCTION(call_if_first, echo *e) {
  if (event != 0) return;
  ++e->calls;
  e->in_call(e);
}

static void add_first_caller(multicast m, void (*in_first_call)(echo *)) {
  (void)echoing(&first, m, 'x', 0, 0);
  first.in_call = in_first_call;
  add(m, DELEGATE(call_if_first, &first));
}

TEST_OF_DEFERRAL(reentry_defer_copies_the_payload_or_passes_the_pointer) {
  add_first_caller(m, defer_large);
  add(m, DELEGATE(keep_parcel, NULL));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(kept[0].size, sizeof large);
  CHECK(kept[0].bytes[0] == 5 && kept[0].bytes[sizeof large - 1] == 5);
  CHECK_EQ((uintptr_t)kept[0].payload % 16, 0);
  CHECK(kept[1].payload == large && kept[1].size == 0);
}

static cargo handed, original;
static seen last;
static multicast_outcome outcomes[2];
static void defer_cargo(echo *e) {
  multicast_invocation how = handing_over(&handed);
  how.event = 1;
  outcomes[0] = outcomes[1] = multicast_outcome_default();
  handed.releases = copy_count = copies[0].releases = 0;
  CHECK_EQ(multicast_invoke_with(e->target, &how, &outcomes[0]), 0);
  CHECK_EQ(handed.releases, 0);
  how = copying(&original);
  how.event = 2;
  how.flags = MULTICAST_WAIT;
  CHECK_EQ(multicast_invoke_with(e->target, &how, &outcomes[1]), 0);
  CHECK_EQ(copy_count, 1);
}

TEST_OF_DEFERRAL(reentry_defer_owns_or_copies_payload_and_releases_it_once) {
  multicast_queue q = default_queue();
  add_first_caller(m, defer_cargo);
  add(m, seeing(&last));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_OUTCOME(outcomes[0], 0, 1, 0, 0, 0);
  CHECK_OUTCOME(outcomes[1], 0, 1, 0, 0, 1);
  CHECK_EQ(last.calls, 3);
  CHECK(last.event == 2 && last.payload == &copies[0] && last.size == sizeof(cargo));
  CHECK_EQ(handed.releases, 1);
  CHECK_EQ(copies[0].releases, 1);
  CHECK_EQ(original.releases, 0);
  /* Queued calls share the payload. */
  add_queued(m, counter(&last.calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 3);
  CHECK_EQ(handed.releases, 0);
  CHECK_EQ(copies[0].releases, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK_EQ(handed.releases, 1);
  CHECK_EQ(copies[0].releases, 1);
}

static void defer_without_copy(echo *e) {
  multicast_invocation how = copying(&original);
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  how.event = 1;
  how.copy = copy_nothing;
  e->result = multicast_invoke_with(e->target, &how, &out);
  CHECK_OUTCOME(out, 0, 0, 0, 0, 0);
}

TEST_OF_DEFERRAL(reentry_defer_without_memory_for_the_copy_is_out_of_memory) {
  add_first_caller(m, defer_without_copy);
  add(m, seeing(&last));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_ERROR(first.result, OUT_OF_MEMORY);
  CHECK_EQ(refused_copies, 1);
  CHECK_EQ(last.calls, 1);
}

static int failing;
static void defer_failing(echo *e) {
  multicast_invocation how = handing_over(&handed);
  how.event = 1;
  has_failed = false;
  fail_after = failing;
  e->result = multicast_invoke_with(e->target, &how, NULL);
  fail_after = -1;
}

TEST(reentry_defer_out_of_memory_releases_and_calls_nothing) {
  int made = 0;
  use_test_allocator();
  fail_only_once = true;
  multicast m = create_with_reentry(MULTICAST_REENTRY_DEFER);
  add_first_caller(m, defer_failing);
  add(m, seeing(&last));
  CHECK_EQ(multicast_invoke(m, 7, NULL, 0), 2); /* the thread has its record after this */
  for (failing = 0; made == 0; ++failing) {
    last.calls = handed.releases = 0;
    CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
    CHECK_STATUS(first.result, has_failed ? MULTICAST_ERROR_OUT_OF_MEMORY : 0);
    CHECK_EQ(handed.releases, 1);
    CHECK_EQ(last.calls, has_failed ? 1 : 2);
    made = !has_failed;
  }
  CHECK_EQ(failing, 4);
}

/* ---- Latest ---------------------------------------------------------------------------------- */

TEST(reentry_latest_makes_the_newest_only) {
  multicast m = create_with_reentry(MULTICAST_REENTRY_LATEST);
  add(m, echoing(&first, m, 'a', 3, 5));
  add(m, noting('b'));
  CHECK_NOTED(invoke_number(m, 1), 2, "a1 b1 a13 b13");
  CHECK_EQ(first.result, 0);
}

static void defer_two_cargoes(echo *e) {
  CHECK_EQ(hand_over(e->target, &handed), 0);
  CHECK_EQ(hand_over(e->target, &original), 0);
  CHECK_EQ(handed.releases, 1); /* released, because a newer invocation has replaced it */
  CHECK_EQ(original.releases, 0);
  e->in_call = NULL;
}
FUNCTION(call_first_only, echo *e) {
  if (e->in_call != NULL) e->in_call(e);
}

TEST(reentry_latest_releases_what_it_replaces) {
  multicast m = create_with_reentry(MULTICAST_REENTRY_LATEST);
  first.target = m;
  first.in_call = defer_two_cargoes;
  add(m, DELEGATE(call_first_only, &first));
  add(m, seeing(&last));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(last.calls, 2);
  CHECK(last.payload == &original);
  CHECK_EQ(handed.releases, 1);
  CHECK_EQ(original.releases, 1);
}

static void defer_many(echo *e) {
  for (int i = 0; i < 70000; ++i) CHECK_EQ(invoke_number(e->target, i), 0);
  e->in_call = NULL;
}

TEST(reentry_latest_can_go_on_without_limit) {
  multicast m = create_with_reentry(MULTICAST_REENTRY_LATEST);
  first.target = m;
  first.in_call = defer_many;
  add(m, DELEGATE(call_first_only, &first));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
}
/* ---- Limits, and multicasts that are destroyed ----------------------------------------------- */

static int made, most;
static void fill(echo *e) {
  e->in_call = NULL;
  while ((e->result = multicast_invoke(e->target, 1, NULL, 0)) == 0) ++most;
}
static void count_deferred(void *context, uint32_t event, const void *payload, size_t size) {
  made += (int)event;
  call_first_only(context, event, payload, size);
}

TEST_OF_DEFERRAL(reentry_defer_has_a_limit) {
  first.target = m;
  first.in_call = fill;
  add(m, DELEGATE(count_deferred, &first));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_ERROR(first.result, LIMIT);
  CHECK_EQ(most, 65536);
  CHECK_EQ(made, 65536);
}

static void defer_and_destroy(echo *e) {
  e->in_call = NULL;
  CHECK_EQ(hand_over(e->target, &handed), 0);
  CHECK_EQ(hand_over(e->target, &original), 0);
  CHECK_STATUS(multicast_destroy(e->target), MULTICAST_PENDING);
  CHECK_EQ(handed.releases, 0);
}

TEST_OF_DEFERRAL(reentry_defer_of_a_destroyed_multicast_is_only_released) {
  first.target = m;
  first.in_call = defer_and_destroy;
  add(m, DELEGATE(call_first_only, &first));
  add(m, seeing(&last));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(last.calls, 0);
  CHECK_EQ(handed.releases, 1);
  CHECK_EQ(original.releases, 1);
}

/* Destroys the multicast during a call and creates another multicast in the same slot. When the
 * library applies the new multicast's policy, it must not count the running call as a call by the
 * new multicast. */
static void destroy_and_create(echo *e) {
  multicast next;
  e->in_call = NULL;
  CHECK_EQ(hand_over(e->target, &handed), 0);
  CHECK_STATUS(multicast_destroy(e->target), MULTICAST_PENDING);
  do next = create_with_reentry(MULTICAST_REENTRY_REFUSE);
  while (((next.id ^ e->target.id) & 0x3FFFFFF) != 0);
  add(next, seeing(&last));
  CHECK_EQ(multicast_invoke(next, 3, NULL, 0), 1);
  CHECK_EQ(last.calls, 1);
}

TEST_OF_DEFERRAL(reentry_is_not_about_the_next_multicast_in_the_slot) {
  first.target = m;
  first.in_call = destroy_and_create;
  add(m, DELEGATE(call_first_only, &first));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(last.calls, 1);
  CHECK_EQ(handed.releases, 1);
}

static void defer_and_end(echo *e) {
  e->in_call = NULL;
  CHECK_EQ(hand_over(e->target, &handed), 0);
  CHECK_EQ(invoke_number(e->target, 5), 0);
  pthread_exit(NULL);
}
THREAD(invoke_empty, multicast *m) {
  CHECK_EQ(multicast_invoke(*m, 0, NULL, 0), 2);
}
THREAD(invoke_until_the_end, multicast *m) {
  multicast_invoke(*m, 0, NULL, 0);
  CHECK(false);
}

TEST(reentry_defer_of_a_thread_that_ends_is_released_and_not_made) {
  use_test_allocator();
  multicast m = create_with_reentry(MULTICAST_REENTRY_DEFER);
  add(m, DELEGATE(call_first_only, &first));
  add(m, seeing(&last));
  on_another_thread(invoke_empty, &m); /* later threads reuse this thread's record */
  int64_t blocks = allocated_blocks;
  first.target = m;
  first.in_call = defer_and_end;
  on_another_thread(invoke_until_the_end, &m);
  CHECK_EQ(handed.releases, 1);
  CHECK_EQ(last.calls, 1); /* only the first invocation has been made */
  CHECK_EQ(allocated_blocks, blocks);
}

static void end_in_deferred(void *context, uint32_t event, const void *payload, size_t size) {
  if (event == 0) {
    CHECK_EQ(multicast_invoke(first.target, 1, NULL, 0), 0);
    CHECK_EQ(hand_over(first.target, &handed), 0);
    return;
  }
  pthread_exit(NULL);
}

TEST_OF_DEFERRAL(reentry_thread_that_ends_in_deferred_invocation_leaves_rest) {
  first.target = m;
  add(m, DELEGATE(end_in_deferred, NULL));
  on_another_thread(invoke_until_the_end, &m);
  CHECK_EQ(handed.releases, 1);
}

/* ---- Release functions ----------------------------------------------------------------------- */

static void invoke_in_release(const void *payload, size_t size) {
  /* the library makes this invocation after the other deferred invocations */
  CHECK_EQ(multicast_invoke(first.target, 3, NULL, 0), 0);
}
static void defer_with_release(echo *e) {
  e->in_call = NULL;
  multicast_invocation how = INVOCATION(.event = 1, .release = invoke_in_release);
  CHECK_EQ(multicast_invoke_with(e->target, &how, NULL), 0);
  CHECK_EQ(multicast_invoke(e->target, 2, NULL, 0), 0);
}

TEST_OF_DEFERRAL(reentry_defer_in_the_release_of_a_deferred_payload_goes_last) {
  first.target = m;
  first.in_call = defer_with_release;
  add(m, DELEGATE(call_first_only, &first));
  add(m, noting('b'));
  CHECK_NOTED(multicast_invoke(m, 0, NULL, 0), 2, "b b@1 b@2 b@3");
}

/* ---- fork ------------------------------------------------------------------------------------ */

static gate deferred, forked;
static void defer_and_wait(echo *e) {
  e->in_call = NULL;
  CHECK_EQ(hand_over(e->target, &handed), 0);
  CHECK_EQ(invoke_number(e->target, 5), 0);
  gate_open(&deferred);
  gate_wait(&forked);
}
THREAD(invoke_in_parent, multicast *m) {
  CHECK_EQ(multicast_invoke(*m, 0, NULL, 0), 2);
}
static int64_t blocks_in_parent;
static void expect_nothing_deferred(void *argument) {
  multicast *m = argument;
  CHECK_EQ(handed.releases, 0);
  CHECK(allocated_blocks < blocks_in_parent);
  CHECK_EQ(multicast_invoke(*m, 0, NULL, 0), 2);
  CHECK_EQ(last.calls, 2);
}

TEST(fork_child_does_not_make_what_the_parent_has_deferred) {
  use_test_allocator();
  multicast m = create_with_reentry(MULTICAST_REENTRY_DEFER);
  deferred = forked = shut;
  first.target = m;
  first.in_call = defer_and_wait;
  add(m, DELEGATE(call_first_only, &first));
  add(m, seeing(&last));
  CHECK_EQ(multicast_invoke(create_with_reentry(MULTICAST_REENTRY_DEFER), 0, NULL, 0), 0);
  pthread_t thread = start_thread(invoke_in_parent, &m);
  gate_wait(&deferred);
  last.calls = 1;
  blocks_in_parent = allocated_blocks;
  in_child(expect_nothing_deferred, &m);
  gate_open(&forked);
  join_thread(thread);
  CHECK_EQ(last.calls, 4);
  CHECK_EQ(handed.releases, 1);
}

static void defer_and_fork(echo *e) {
  e->in_call = NULL;
  CHECK_EQ(hand_over(e->target, &handed), 0);
  CHECK_EQ(multicast_invoke(e->target, 4, NULL, 0), 0);
  e->result = fork();
}

TEST_OF_DEFERRAL(fork_inside_a_call_keeps_what_the_thread_has_deferred) {
  int status;
  first.target = m;
  first.in_call = defer_and_fork;
  add(m, DELEGATE(call_first_only, &first));
  add(m, seeing(&last));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 2);
  CHECK_EQ(last.calls, 3); /* also in the child */
  CHECK_EQ(last.event, 4);
  /* the payload belongs to the parent, so the child must not have released it */
  if (first.result == 0) _exit(handed.releases == 0 ? 0 : 1);
  CHECK(first.result > 0);
  CHECK_EQ(waitpid((pid_t)first.result, &status, 0), first.result);
  CHECK_EQ(status, 0);
  CHECK_EQ(handed.releases, 1);
}
