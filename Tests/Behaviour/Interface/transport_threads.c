/* Tests removals that wait for calls to transports, concurrent calls, payloads that are handed
 * over, and fork. */

#include "payloads.h"
#include "transports.h"

#include <unistd.h>

static multicast_broadcaster b;
static wire it;

/* ---- Waiting for running calls --------------------------------------------------------------- */

static gate entered, let_go;
static bool has_left;
static void stay_inside(wire *w) {
  w->inside = NULL;
  gate_open(&entered);
  gate_wait(&let_go);
  STORE(has_left, true);
}

THREAD(notify_it, void *unused) {
  CHECK_EQ(notify(b, NAME), 0);
}

THREAD(register_it, void *unused) {
  observe(b, NAME, counter(&calls));
}

THREAD(unregister_it, void *unused) {
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 1);
}

THREAD(destroy_it, void *unused) {
  CHECK_OK(multicast_destroy(find(b, NAME)));
}

/* Starts a thread, and returns once the thread is inside one of the transport's functions. */
static pthread_t begin_calling(void *(*body)(void *)) {
  b = create();
  attach(b, &it);
  if (body == unregister_it || body == destroy_it) observe(b, NAME, counter(&calls));
  entered = let_go = shut;
  has_left = false;
  it.inside = stay_inside;
  pthread_t thread = start_thread(body, NULL);
  gate_wait(&entered);
  return thread;
}

static wire other;
static int64_t by_detaching(void) { return multicast_broadcaster_attach(b, NULL); }
static int64_t by_replacing(void) {
  multicast_transport transport = transport_of(&other);
  return multicast_broadcaster_attach(b, &transport);
}
static int64_t by_destroying(void) { return multicast_broadcaster_destroy(b); }
static int64_t by_destroying_within(void) {
  return multicast_broadcaster_destroy_within(b, MULTICAST_FOREVER);
}

TEST(transport_is_detached_when_its_calls_elsewhere_have_returned) {
  int64_t (*const ways[])(void) = {by_detaching, by_replacing, by_destroying, by_destroying_within};
  void *(*const functions[])(void *) = {notify_it, register_it, unregister_it, destroy_it};
  for (int way = 0; way < 4; ++way) {
    for (int function = 0; function < 4; ++function) {
      pthread_t thread = begin_calling(functions[function]), opener;
      memset(&other, 0, sizeof other);
      opener = start_thread(open_after_a_while, &let_go);
      CHECK_OK(ways[way]());
      CHECK(LOAD(has_left));
      CHECK_EQ(it.releases, 1);
      join_thread(opener);
      join_thread(thread);
    }
  }
}

TEST(transport_of_destroyed_broadcaster_is_waited_for_so_long) {
  pthread_t thread = begin_calling(notify_it);
  CHECK_ERROR(multicast_broadcaster_destroy_within(b, 1000000), TIMEOUT);
  CHECK_EQ(LOAD(it.releases), 0);
  CHECK_ERROR(notify(b, NAME), INVALID_HANDLE);
  gate_open(&let_go);
  join_thread(thread);
  CHECK_EQ(it.releases, 1);
}

TEST(transport_call_does_not_delay_other_transports) {
  pthread_t thread = begin_calling(notify_it);
  multicast_broadcaster another = create();
  attach(another, &other);
  CHECK_EQ(notify(another, NAME), 0);
  detach(another);
  CHECK_EQ(other.releases, 1);
  gate_open(&let_go);
  join_thread(thread);
  detach(b);
}

/* Two threads, each inside a function of a transport, detach each other's transport. */
typedef struct end {
  multicast_broadcaster own, others;
  multicast_status result;
  gate entered;
  wire w;
} end;
static end ends[2];

static void detach_others(wire *w) {
  end *e = w == &ends[0].w ? &ends[0] : &ends[1], *o = w == &ends[0].w ? &ends[1] : &ends[0];
  w->inside = NULL;
  gate_open(&e->entered);
  gate_wait(&o->entered);
  e->result = multicast_broadcaster_attach(o->own, NULL);
}

THREAD(notify_end, end *argument) {
  CHECK_EQ(notify(argument->own, NAME), 0);
}

TEST(transports_that_detach_each_other_do_not_hang) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    ends[i].own = create();
    attach(ends[i].own, &ends[i].w);
    ends[i].w.inside = detach_others;
    ends[i].entered = shut;
  }
  for (int i = 0; i < 2; ++i) threads[i] = start_thread(notify_end, &ends[i]);
  for (int i = 0; i < 2; ++i) join_thread(threads[i]);
  CHECK(ends[0].result == MULTICAST_PENDING || ends[1].result == MULTICAST_PENDING);
  CHECK(ends[0].w.releases == 1 && ends[1].w.releases == 1);
}

THREAD(end_in_publish, void *unused) {
  notify(b, NAME);
  CHECK(false); /* not reached, because the thread has ended */
}

static void end_thread(wire *w) {
  w->inside = NULL;
  pthread_exit(NULL);
}

/* Creates the broadcaster `b` with the transport `it`. */
static multicast_broadcaster begin(void) {
  b = create();
  attach(b, &it);
  return b;
}

#define TEST_OF_ATTACHED(NAME) TEST_OF(NAME, (multicast_broadcaster unused), (begin()))

TEST_OF_ATTACHED(thread_that_ends_inside_a_transport_is_not_waited_for) {
  it.inside = end_thread;
  join_thread(start_thread(end_in_publish, NULL));
  CHECK(it.inside == NULL);
  detach(b);
  CHECK_EQ(it.releases, 1);
}

/* ---- Names whose multicast a caller destroys ---------------------------------------- */

TEST(transport_is_notified_of_next_multicast_by_the_same_thread) {
  pthread_t thread = begin_calling(destroy_it);
  expect_notified(&it, "+" NAME " -" NAME);
  register_it(NULL);
  expect_notified(&it, "");
  gate_open(&let_go);
  join_thread(thread);
  expect_notified(&it, "+" NAME);
  destroy_it(NULL);
  expect_notified(&it, "-" NAME);
}

TEST(transport_is_not_notified_of_next_multicast_in_slot) {
  pthread_t thread = begin_calling(register_it);
  destroy_it(NULL);
  register_it(NULL);
  destroy_it(NULL);
  register_it(NULL);
  gate_open(&let_go);
  join_thread(thread);
  expect_notified(&it, "+" NAME);
  CHECK_EQ(notify(b, NAME), 1);
  destroy_it(NULL);
  expect_notified(&it, "!" NAME " -" NAME);
}

TEST(transport_is_notified_of_a_multicast_destroyed_meanwhile) {
  pthread_t thread = begin_calling(register_it);
  destroy_it(NULL);
  expect_notified(&it, "+" NAME);
  gate_open(&let_go);
  join_thread(thread);
  expect_notified(&it, "-" NAME);
}

static void register_and_destroy(wire *w) {
  w->inside = NULL;
  register_it(NULL);
  destroy_it(NULL);
  register_it(NULL);
}

TEST_OF_ATTACHED(transport_may_destroy_multicast_of_name_and_register_again) {
  it.inside = register_and_destroy;
  register_it(NULL);
  CHECK_EQ(notify(b, NAME), 1);
  expect_notified(&it, "+" NAME " !" NAME);
  it.inside = register_and_destroy;
  destroy_it(NULL);
  CHECK_EQ(notify(b, NAME), 1);
  expect_notified(&it, "-" NAME " +" NAME " !" NAME);
}

static void expect_next_notified(void *unused) {
  expect_notified(&it, "+" NAME); /* the other thread's pending notification */
  destroy_it(NULL);
  register_it(NULL);
  expect_notified(&it, "-" NAME " +" NAME);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_EQ(it.releases, 1);
}

TEST(fork_child_notifies_of_the_next_multicast_of_a_name) {
  pthread_t thread = begin_calling(destroy_it);
  register_it(NULL);
  expect_notified(&it, "+" NAME " -" NAME);
  in_child(expect_next_notified, NULL);
  gate_open(&let_go);
  join_thread(thread);
  expect_notified(&it, "+" NAME);
}

/* ---- Concurrent calls ------------------------------------------------------------------------ */

enum { THREADS = 4, CHANGES = 2000 };

/* The context of a transport that checks its notifications. */
typedef struct checker {
  int inside;      /* number of running subscribe and unsubscribe calls for NAME */
  int is_wanted;
  int published;
  int releases;
} checker;

static multicast_status check_publish(void *context, const char *name, uint32_t event,
                                      const void *payload, size_t size) {
  checker *c = context;
  CHECK_EQ(LOAD(c->releases), 0);
  ADD(c->published, 1);
  return MULTICAST_OK;
}
static void check_notified(checker *c, int is_wanted) {
  CHECK_EQ(LOAD(c->releases), 0);
  CHECK_EQ(ADD(c->inside, 1), 1);             /* notifications do not overlap */
  CHECK_EQ(LOAD(c->is_wanted), 1 - is_wanted); /* notifications alternate */
  STORE(c->is_wanted, is_wanted);
  ADD(c->inside, -1);
}
static multicast_status check_subscribe(void *context, const char *name) {
  check_notified(context, 1);
  return MULTICAST_OK;
}
static void check_unsubscribe(void *context, const char *name) {
  check_notified(context, 0);
}
static void check_release(void *context) {
  checker *c = context;
  CHECK_EQ(LOAD(c->inside), 0);
  CHECK_EQ(ADD(c->releases, 1), 1);
}

static multicast_transport checked(checker *c) {
  memset(c, 0, sizeof *c);
  return TRANSPORT_WITH(.context = c, .publish = check_publish, .subscribe = check_subscribe,
                        .unsubscribe = check_unsubscribe, .release = check_release);
}

static int notified, has_finished;

THREAD(change_at_once, void *unused) {
  for (int i = 0; i < CHANGES; ++i) {
    multicast_token token = observe(b, NAME, counter(&calls));
    if (i % 4 == 0) {
      CHECK(notify(b, NAME) >= 1);
      ADD(notified, 1);
    }
    CHECK_OK(multicast_token_remove(token));
  }
  ADD(has_finished, 1);
}

TEST(transports_that_replace_each_other_are_notified_all) {
  enum { TRANSPORTS = 400 };
  static checker checkers[TRANSPORTS];
  pthread_t threads[THREADS];
  int count = 0, published = 0;
  multicast_transport transport = checked(&checkers[0]);
  b = create();
  CHECK_OK(multicast_broadcaster_attach(b, &transport));
  for (int i = 0; i < THREADS; ++i) threads[i] = start_thread(change_at_once, NULL);
  while (++count < TRANSPORTS && LOAD(has_finished) < THREADS) {
    transport = checked(&checkers[count]);
    CHECK_OK(multicast_broadcaster_attach(b, &transport));
    CHECK_EQ(checkers[count - 1].releases, 1);
  }
  for (int i = 0; i < THREADS; ++i) join_thread(threads[i]);
  for (int i = 0; i < count; ++i) published += checkers[i].published;
  CHECK_EQ(published, notified); /* each notification was published by exactly one transport */
  CHECK_EQ(checkers[count - 1].is_wanted, 0);
  multicast_token token = observe(b, NAME, counter(&calls));
  CHECK_EQ(checkers[count - 1].is_wanted, 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(checkers[count - 1].is_wanted, 0);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_EQ(checkers[count - 1].releases, 1);
}

THREAD(destroy_at_once, void *unused) {
  for (int i = 0; i < CHANGES; ++i) {
    multicast_token token = observe(b, NAME, counter(&calls));
    multicast_status status = i % 2 == 0 ? multicast_destroy(find(b, NAME))
                                         : multicast_token_remove(token);
    CHECK(status == MULTICAST_OK || status == MULTICAST_ERROR_INVALID_HANDLE);
  }
}

TEST(transport_is_notified_by_turns_while_multicasts_end) {
  pthread_t threads[THREADS];
  checker c;
  multicast_transport transport = checked(&c);
  b = create();
  CHECK_OK(multicast_broadcaster_attach(b, &transport));
  for (int i = 0; i < THREADS; ++i) threads[i] = start_thread(destroy_at_once, NULL);
  for (int i = 0; i < THREADS; ++i) join_thread(threads[i]);
  CHECK_EQ(c.is_wanted, multicast_count(find(b, NAME)) > 0);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(c.is_wanted, 1);
  destroy_it(NULL);
  CHECK_EQ(c.is_wanted, 0);
  CHECK_OK(multicast_broadcaster_destroy(b));
  CHECK_EQ(c.releases, 1);
}

static checker rivals[THREADS][200];
THREAD(attach_at_once, checker *c) {
  for (int i = 0; i < 200; ++i) {
    multicast_transport transport = checked(&c[i]);
    CHECK_OK(multicast_broadcaster_attach(b, i % 8 == 7 ? NULL : &transport));
  }
}

TEST(transports_attached_at_once_are_released_but_for_one) {
  pthread_t threads[THREADS];
  int left = 0;
  b = create();
  observe(b, NAME, counter(&calls));
  for (int i = 0; i < THREADS; ++i) threads[i] = start_thread(attach_at_once, rivals[i]);
  for (int i = 0; i < THREADS; ++i) join_thread(threads[i]);
  for (int i = 0; i < THREADS; ++i) {
    for (int k = 0; k < 200; ++k) left += k % 8 != 7 && rivals[i][k].releases == 0;
  }
  CHECK(left <= 1);
  detach(b);
  for (int i = 0; i < THREADS; ++i) {
    for (int k = 0; k < 200; ++k) CHECK_EQ(rivals[i][k].releases, k % 8 != 7);
  }
}

THREAD(attach_to_the_end, void *unused) {
  static checker many[2000];
  for (int i = 0; i < 2000; ++i) {
    multicast_transport transport = checked(&many[i]);
    multicast_broadcaster target = {LOAD(shared.id)};
    multicast_status status = multicast_broadcaster_attach(target, &transport);
    if (status == MULTICAST_OK) continue;
    CHECK_ERROR(status, INVALID_HANDLE);
    CHECK_EQ(many[i].releases, 1);
  }
  for (int i = 0; i < 2000; ++i) CHECK(LOAD(many[i].releases) <= 1);
}

THREAD(deliver_to_the_end, void *unused) {
  while (!LOAD(is_over)) {
    multicast_broadcaster target = {LOAD(shared.id)};
    CHECK(multicast_broadcaster_deliver(target, NAME, 0, NULL, 0) <= 1);
    CHECK(notify(target, "Other") <= 0);
  }
}

TEST(transports_are_attached_while_the_broadcaster_is_destroyed) {
  pthread_t threads[2];
  shared = b = create();
  threads[0] = start_thread(attach_to_the_end, NULL);
  threads[1] = start_thread(deliver_to_the_end, NULL);
  for (int i = 0; i < 300; ++i) {
    multicast_broadcaster old = shared, next = create();
    observe(next, NAME, counter(&calls));
    STORE(shared.id, next.id);
    CHECK_OK(multicast_broadcaster_destroy(old));
  }
  join_thread(threads[0]);
  STORE(is_over, true);
  join_thread(threads[1]);
}

/* ---- Payloads that are handed over ----------------------------------------------------------- */

static int releases_at_publish;
static void note_releases(wire *w) {
  releases_at_publish = ((const cargo *)w->payload)->releases;
}

static int64_t hand_over_by_name(cargo *c, multicast_outcome *out) {
  multicast_invocation how = handing_over(c);
  return multicast_broadcaster_notify_with(b, NAME, &how, out);
}

TEST_OF_ATTACHED(transport_publishes_a_payload_before_it_is_released) {
  cargo c = {0};
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  it.inside = note_releases;
  CHECK_EQ(hand_over_by_name(&c, &out), 0);
  CHECK(it.payload == &c);
  CHECK_EQ(releases_at_publish, 0);
  CHECK_EQ(c.releases, 1);
  it.inside = NULL;
  observe(b, NAME, counter(&calls));
  it.inside = note_releases;
  CHECK_EQ(hand_over_by_name(&c, &out), 1);
  CHECK_EQ(releases_at_publish, 1);
  CHECK_EQ(c.releases, 2);
  CHECK_EQ(out.called, 1);
  CHECK_OK(multicast_destroy(find(b, NAME)));
  it.inside = note_releases;
  CHECK_EQ(hand_over_by_name(&c, &out), 0);
  CHECK_EQ(releases_at_publish, 2);
  CHECK_EQ(c.releases, 3);
}

TEST(transport_publishes_a_payload_that_queued_calls_still_need) {
  cargo c = {0};
  multicast_queue q = create_queue();
  b = create_on(q);
  attach(b, &it);
  observe(b, NAME, counter(&calls));
  it.inside = note_releases;
  CHECK_EQ(hand_over_by_name(&c, NULL), 1);
  CHECK_EQ(releases_at_publish, 0);
  CHECK_EQ(c.releases, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(c.releases, 1);
}

TEST(transport_publishes_the_payload_and_not_its_copies) {
  cargo c = {0};
  multicast_invocation how = copying(&c);
  multicast_queue q = create_queue();
  b = create_on(q);
  attach(b, &it);
  observe(b, NAME, counter(&calls));
  CHECK_EQ(multicast_broadcaster_notify_with(b, NAME, &how, NULL), 1);
  CHECK(it.payload == &c);
  CHECK_EQ(copy_count, 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(copies[0].releases, 1);
}

TEST(transport_publishes_what_was_waited_for_too_long) {
  cargo c = {0};
  multicast_invocation how = handing_over(&c);
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  multicast_queue q = create_queue();
  b = create_on(q);
  attach(b, &it);
  observe(b, NAME, counter(&calls));
  expect_notified(&it, "+" NAME);
  CHECK_EQ(notify(b, NAME), 1);
  /* this run makes this thread the queue's consumer, so the notification below must not wait for
   * calls */
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  how.flags = MULTICAST_WAIT;
  CHECK_EQ(multicast_broadcaster_notify_with(b, NAME, &how, &out), 1);
  CHECK_EQ(out.unfinished, 1);
  expect_notified(&it, "!" NAME " !" NAME);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(c.releases, 1);
}

static cargo late;
THREAD(time_out, void *unused) {
  multicast_invocation how = handing_over(&late);
  how.flags = MULTICAST_WAIT;
  how.timeout_ns = 1000000;
  CHECK_ERROR(multicast_broadcaster_notify_with(b, NAME, &how, NULL), TIMEOUT);
  CHECK(it.payload == &late);
  CHECK_EQ(late.releases, 0);
}

TEST(transport_publishes_after_a_timeout) {
  multicast_queue q = create_queue();
  b = create_on(q);
  attach(b, &it);
  observe(b, NAME, counter(&calls));
  expect_notified(&it, "+" NAME);
  join_thread(start_thread(time_out, NULL));
  expect_notified(&it, "!" NAME);
  it.status = MULTICAST_ERROR_STATE; /* the status of the wait takes precedence */
  join_thread(start_thread(time_out, NULL));
  expect_notified(&it, "!" NAME);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_EQ(late.releases, 2);
}

static cargo lost;
THREAD(hand_over_and_end, void *unused) {
  hand_over_by_name(&lost, NULL);
  CHECK(false); /* not reached, because the thread has ended */
}

TEST_OF_ATTACHED(thread_that_ends_inside_a_transport_gives_the_payload_back) {
  observe(b, NAME, counter(&calls));
  it.inside = end_thread;
  join_thread(start_thread(hand_over_and_end, NULL));
  CHECK_EQ(lost.releases, 1);
  detach(b);
}

TEST_OF_ATTACHED(transport_failure_leaves_the_outcome) {
  cargo c = {0};
  multicast_outcome out = MULTICAST_OUTCOME_INIT;
  observe(b, NAME, counter(&calls));
  it.status = MULTICAST_ERROR_TIMEOUT;
  CHECK_ERROR(hand_over_by_name(&c, &out), TIMEOUT);
  CHECK_EQ(out.called, 1);
  CHECK_EQ(c.releases, 1);
}

/* ---- Memory and fork ------------------------------------------------------------------------- */

THREAD(use_on_small_stack, void *unused) {
  attach(b, &it);
  CHECK_EQ(notify(b, NAME), 0);
  detach(b);
}

TEST(transport_needs_little_stack) {
  b = create();
  on_small_stack(use_on_small_stack, NULL);
}

static void use_in_child(void *unused) {
  CHECK_EQ(it.releases, 0);
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 1);
  expect_notified(&it, "!" NAME " -" NAME);
  detach(b);
  CHECK_EQ(it.releases, 1);
}

TEST_OF_ATTACHED(fork_child_has_the_transport_too) {
  observe(b, NAME, counter(&calls));
  expect_notified(&it, "+" NAME);
  in_child(use_in_child, NULL);
  CHECK_EQ(it.releases, 0);
  detach(b);
  CHECK_EQ(it.releases, 1);
}

static void detach_in_child(void *unused) {
  it.inside = NULL;
  detach(b); /* no thread of the child is inside the transport */
  CHECK_EQ(it.releases, 1);
  attach(b, &it);
  expect_notified(&it, "+" NAME);
}

TEST(fork_child_does_not_wait_for_a_transport_of_the_parent) {
  pthread_t thread = begin_calling(notify_it);
  it.inside = NULL;
  observe(b, NAME, counter(&calls));
  in_child(detach_in_child, NULL);
  gate_open(&let_go);
  join_thread(thread);
  detach(b);
}

static void expect_notified_in_fork(void *unused) {
  expect_notified(&it, "+" NAME " -" NAME); /* the other thread's pending notifications */
  detach(b);
  CHECK_EQ(it.releases, 1);
}

TEST(fork_child_notifies_a_transport_instead_of_the_parent) {
  pthread_t thread = begin_calling(register_it);
  CHECK_EQ(multicast_broadcaster_unregister_all(b, NAME), 1);
  in_child(expect_notified_in_fork, NULL);
  expect_notified(&it, "+" NAME);
  gate_open(&let_go);
  join_thread(thread);
  expect_notified(&it, "-" NAME);
}

static int child_status = -1;
static void fork_inside(wire *w) {
  w->inside = NULL;
  pid_t child = fork();
  CHECK(child >= 0);
  child_status = (int)child;
}

TEST_OF_ATTACHED(fork_inside_a_transport_goes_on_in_both_processes) {
  observe(b, NAME, counter(&calls));
  it.inside = fork_inside;
  CHECK_EQ(notify(b, NAME), 1);
  CHECK_EQ(notify(b, NAME), 1);
  detach(b);
  CHECK_EQ(it.releases, 1);
  if (child_status == 0) _exit(0);
}
