/* multicast_token_invoke() and multicast_token_visit() call the delegate of one registration. */

#include "notes.h"
#include "payloads.h"
#include "producers.h"
#include "removals.h"

static int64_t invoke_token(multicast_token t) { return multicast_token_invoke(t, 0, NULL, 0); }

/* Notes "v" followed by the delegate's letter. */
static bool visit_and_note(void *context, const multicast_delegate *delegate) {
  note_call(context, 0, NULL, 0);
  note_call(delegate->context, 0, NULL, 0);
  return false; /* the result is ignored */
}

static int64_t visit_token(multicast_token t) {
  return multicast_token_visit(t, visit_and_note, (void *)(intptr_t)'v');
}

/* ---- Kinds of delegates ---------------------------------------------------------------------- */

TEST_OF_MULTICAST(token_invoke_calls_this_registration_only) {
  seen s;
  int number = 3;
  add(m, noting('a'));
  multicast_token b = add(m, noting('b'));
  add(m, noting('b'));
  CHECK_NOTED(multicast_token_invoke(b, 7, &number, sizeof number), 1, "b3@7");
  CHECK_EQ(multicast_token_invoke(add(m, seeing(&s)), UINT32_MAX, &number, sizeof number), 1);
  CHECK(s.payload == &number && s.size == sizeof number && s.event == UINT32_MAX);
}

TEST_OF_MULTICAST(token_visit_passes_this_registration_only) {
  add(m, noting('a'));
  multicast_token b = add(m, noting('b'));
  CHECK_NOTED(visit_token(b), 1, "v b");
  CHECK_ERROR(multicast_token_visit(b, NULL, NULL), INVALID_ARGUMENT);
}

static int strong_of[128];
static void *lock_letter(void *context) {
  ++strong_of[(intptr_t)context];
  return (void *)((intptr_t)context - 'a' + 'A');
}
static void unlock_letter(void *strong) { --strong_of[(intptr_t)strong - 'A' + 'a']; }

TEST_OF_MULTICAST(token_invoke_and_visit_lock_and_unlock_a_weak_context) {
  multicast_add_options options = ADD_OPTIONS(.lock = lock_letter, .unlock = unlock_letter);
  multicast_token t = add_with(m, noting('a'), &options);
  CHECK_EQ(invoke_token(t), 1);
  CHECK_NOTED(visit_token(t), 1, "A v A");
  CHECK_EQ(strong_of['a'], 0);
}

TEST_OF_MULTICAST(token_invoke_and_visit_of_a_dead_context_are_0_and_remove_it) {
  multicast_token t[2];
  multicast_add_options options = ADD_OPTIONS(.release = count_release_of, .lock = lock_dead,
                                              .unlock = unlock_letter);
  for (int i = 0; i < 2; ++i) t[i] = add_with(m, noting('a'), &options);
  CHECK_EQ(invoke_token(t[0]), 0);
  CHECK_EQ(releases['a'], 1);
  CHECK_ERROR(invoke_token(t[0]), INVALID_HANDLE);
  CHECK_EQ(visit_token(t[1]), 0);
  CHECK_EQ(releases['a'], 2);
  CHECK_NOTED(multicast_count(m), 0, "");
}

TEST_OF_MULTICAST(token_invoke_and_visit_remove_a_delegate_of_once) {
  multicast_token t[2];
  multicast_add_options options = ADD_OPTIONS(.release = count_release_of, .flags = MULTICAST_ONCE);
  for (int i = 0; i < 2; ++i) t[i] = add_with(m, noting('a'), &options);
  CHECK_EQ(invoke_token(t[0]), 1);
  CHECK_EQ(releases['a'], 1);
  CHECK_ERROR(invoke_token(t[0]), INVALID_HANDLE);
  CHECK_EQ(visit_token(t[1]), 1);
  CHECK_EQ(releases['a'], 2);
  CHECK_TEXT(noted, "a v a");
}

TEST_OF_MULTICAST(token_invoke_and_visit_of_a_paused_delegate_are_0) {
  multicast_token t = add(m, noting('a'));
  CHECK_OK(multicast_token_pause(t));
  CHECK_EQ(invoke_token(t), 0);
  CHECK_EQ(visit_token(t), 0);
  CHECK_OK(multicast_token_resume(t));
  CHECK_NOTED(invoke_token(t), 1, "a");
}

TEST_OF_MULTICAST(token_invoke_of_an_event_that_is_not_wanted_is_0) {
  multicast_token t = add_with(m, noting('a'), &ADD_OPTIONS(.events = 1u << 4));
  CHECK_EQ(multicast_token_invoke(t, 5, NULL, 0), 0);
  CHECK_EQ(multicast_token_invoke(t, 4, NULL, 0), 1);
  CHECK_NOTED(multicast_token_invoke(t, 64, NULL, 0), 1, "a@4 a@64");
  CHECK_EQ(visit_token(t), 1); /* a visit ignores `events` */
}

TEST_OF_MULTICAST(token_invoke_of_a_queued_delegate_is_queued) {
  multicast_queue q = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
  static parcel p;
  unsigned char bytes[100];
  multicast_token t = add_queued(m, keeping(&p), q);
  memset(bytes, 1, sizeof bytes);
  CHECK_EQ(multicast_token_invoke(t, 0, bytes, sizeof bytes), 1);
  CHECK_EQ(multicast_token_invoke(t, 0, bytes, 4), 1);
  CHECK_EQ(multicast_token_invoke(t, 0, bytes, 4), 0); /* the full queue refuses the call */
  CHECK_TEXT(figures(q), "pending 2, queued 2, refused 1");
  memset(bytes, 2, sizeof bytes);
  CHECK_EQ(p.calls, 0);
  CHECK_EQ(multicast_queue_run(q, 1), 1);
  CHECK(p.size == 100 && p.bytes[0] == 1 && p.bytes[99] == 1);
  CHECK_EQ(multicast_queue_run(q, 1), 1);
  CHECK(p.size == 4 && p.bytes[3] == 1);
  CHECK_EQ(multicast_token_invoke(t, 0, &p, 0), 1); /* a payload of size 0 is not copied */
  CHECK_EQ(multicast_queue_run(q, 1), 1);
  CHECK(p.payload == &p);
}

TEST_OF_MEMORY(token_invoke_frees_the_copies_of_large_payloads) {
  static const unsigned char bytes[3000];
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  multicast_token t = add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_token_invoke(t, 0, bytes, sizeof bytes), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  int64_t before = allocated_blocks;
  for (int i = 0; i < 3; ++i) CHECK_EQ(multicast_token_invoke(t, 0, bytes, sizeof bytes), i == 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(allocated_blocks, before);
}

THREAD(invoke_token_into_full, sleeper *s) {
  s->result = invoke_token((multicast_token){s->target.id});
  gate_open(&s->returned);
}

TEST(token_invoke_waits_for_room_in_the_queue) {
  narrow n;
  sleeper s;
  fill_narrow(&n, NULL);
  s.target.id = n.token.id;
  s.returned = shut;
  s.thread = start_thread(invoke_token_into_full, &s);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  CHECK_EQ(multicast_queue_run(n.queue, 1), 1);
  join_thread(s.thread);
  CHECK_EQ(s.result, 1);
  CHECK_TEXT(figures(n.queue), "pending 1, queued 2, delivered 1");
  CHECK_EQ(invoke_token(n.token), 0); /* refused, because this thread runs the queue */
}

TEST_OF_QUEUE(token_visit_of_a_queued_delegate_is_on_this_thread) {
  multicast_token t = add_queued(m, noting('a'), q);
  CHECK_NOTED(visit_token(t), 1, "v a");
  CHECK_TEXT(figures(q), "");
}

/* ---- Inside the call ------------------------------------------------------------------------- */

typedef struct own {
  multicast m;
  multicast_token token;
  int calls, releases, releases_inside;
  multicast_status status;
  bool destroys;
} own;

FUNCTION(end_own, own *o) {
  ++o->calls;
  CHECK_EQ(multicast_token_current().id, o->token.id);
  o->status = o->destroys ? multicast_destroy(o->m) : multicast_token_remove(o->token);
  CHECK_ERROR(invoke_token(o->token), INVALID_HANDLE);
  o->releases_inside = o->releases;
}

static bool visit_own(void *context, const multicast_delegate *delegate) {
  end_own(delegate->context, 0, NULL, 0);
  return true;
}

static void release_own(void *context) { ++((own *)context)->releases; }

TEST(token_invoke_and_visit_of_one_that_removes_or_destroys) {
  for (int round = 0; round < 4; ++round) {
    own o = {{0}, {0}, 0, 0, 0, INT32_MIN, false};
    o.m = multicast_create();
    o.destroys = round >= 2;
    o.token = add_with(o.m, DELEGATE(end_own, &o), &ADD_OPTIONS(.release = release_own));
    CHECK_EQ(round % 2 == 0 ? invoke_token(o.token)
                            : multicast_token_visit(o.token, visit_own, NULL), 1);
    CHECK_STATUS(o.status, MULTICAST_PENDING);
    CHECK(o.calls == 1 && o.releases_inside == 0 && o.releases == 1);
    CHECK_EQ(multicast_is_valid(o.m), !o.destroys);
    CHECK_EQ(multicast_token_current().id, 0);
  }
}

typedef struct deep {
  multicast_token token;
  int depth;
  int64_t last_invoke, last_visit;
} deep;

static bool count_visit(void *context, const multicast_delegate *delegate) {
  ++*(int *)context;
  return true;
}

FUNCTION(invoke_itself, deep *d) {
  ++d->depth;
  int64_t result = invoke_token(d->token);
  if (result != 1) {
    int visits = 0;
    d->last_invoke = result;
    d->last_visit = multicast_token_visit(d->token, count_visit, &visits);
    CHECK_EQ(visits, 0);
  }
}

TEST(token_invoke_nests_256_levels) {
  deep d = {{0}, 0, 0, 0};
  d.token = add(multicast_create(), DELEGATE(invoke_itself, &d));
  CHECK_EQ(invoke_token(d.token), 1);
  CHECK_EQ(d.depth, 256);
  CHECK_ERROR(d.last_invoke, LIMIT);
  CHECK_ERROR(d.last_visit, LIMIT);
}

static void add_and_remove_many(void *context, uint32_t event, const void *payload, size_t size) {
  multicast m = *(multicast *)context;
  multicast_token tokens[100];
  static int calls;
  for (int i = 0; i < 100; ++i) tokens[i] = add(m, counter(&calls));
  for (int i = 0; i < 100; ++i) CHECK_EQ(invoke_token(tokens[i]), 1);
  for (int i = 0; i < 100; ++i) CHECK_OK(multicast_token_remove(tokens[i]));
  CHECK_EQ(calls, 100);
}

TEST_OF_MULTICAST(token_invoke_of_what_was_added_during_an_invocation_calls_it) {
  multicast_token t = add(m, DELEGATE(add_and_remove_many, &m));
  CHECK_EQ(invoke_token(t), 1);
}

THREAD(invoke_token_and_end, multicast_token *argument) {
  invoke_token(*argument);
  CHECK(false);
}

TEST_OF_MULTICAST(thread_that_ends_inside_a_token_invoke_holds_nothing_up) {
  multicast_token t = add(m, DELEGATE(end_this_thread, NULL));
  on_another_thread(invoke_token_and_end, &t);
  CHECK_OK(multicast_token_remove(t));
  CHECK_OK(multicast_destroy(m));
}

/* ---- Removal waits --------------------------------------------------------------------------- */

static bool block_visit(void *context, const multicast_delegate *delegate) {
  block_call(delegate->context, 0, NULL, 0);
  return true;
}

static bool visits;

THREAD(invoke_token_in_thread, invoker *i) {
  multicast_token t = {0};
  t.id = i->target.id;
  i->result = visits ? multicast_token_visit(t, block_visit, NULL) : invoke_token(t);
}

static void removal_waits(bool has_other_invoker) {
  int64_t (*const ways[])(removal *) = {by_token, by_remove, by_destroy, by_all};
  for (size_t i = 0; i < 8; ++i) {
    blocker b = BLOCKER_INIT;
    invoker in_thread;
    removal r;
    prepare_removal(&r, multicast_create(), &b, ways[i % 4]);
    add(r.target, (multicast_delegate){count_call, &r.result});
    if (has_other_invoker) CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 1);
    CHECK_EQ(multicast_remove_all(r.target), 1);
    r.token = add_with(r.target, r.delegate, &ADD_OPTIONS(.release = release_blocker));
    visits = i >= 4;
    in_thread.target.id = r.token.id;
    in_thread.thread = start_thread(invoke_token_in_thread, &in_thread);
    gate_wait(&b.entered);
    expect_to_wait(&r, MULTICAST_OK);
    CHECK_EQ(invoke_finished(&in_thread), 1);
    CHECK_EQ(b.releases, 1);
  }
}

TEST(removal_waits_for_a_token_invoke_on_another_thread) { removal_waits(false); }
TEST(removal_waits_for_token_invoke_beside_a_single_invoker) {
  removal_waits(true);
}

TEST_OF_MULTICAST(removal_without_waiting_leaves_release_to_token_invoke) {
  blocker b = BLOCKER_INIT;
  invoker in_thread;
  multicast_token t = add_with(m, blocking(&b), &ADD_OPTIONS(.release = release_blocker));
  visits = false;
  in_thread.target.id = t.id;
  in_thread.thread = start_thread(invoke_token_in_thread, &in_thread);
  gate_wait(&b.entered);
  CHECK_STATUS(multicast_token_remove_nowait(t), MULTICAST_PENDING);
  CHECK_EQ(b.releases, 0);
  gate_open(&b.let_go);
  CHECK_EQ(invoke_finished(&in_thread), 1);
  CHECK_EQ(b.releases, 1);
}

/* ---- Many threads ---------------------------------------------------------------------------- */

enum { INVOKERS = 3, SLOTS = 40, ROUNDS = 6000 };
static multicast_token shared[SLOTS];
static guarded guards[SLOTS];
static multicast moving;
static bool is_over;

static bool visit_guarded(void *context, const multicast_delegate *delegate) {
  delegate->function(delegate->context, 0, NULL, 0);
  return true;
}

THREAD(invoke_tokens, void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  while (!LOAD(is_over)) {
    int64_t result;
    multicast_token t = {LOAD(shared[next(&seed) % SLOTS].id)};
    if (next(&seed) % 2 == 0) {
      result = invoke_token(t);
    } else {
      result = multicast_token_visit(t, visit_guarded, NULL);
    }
    CHECK(result == 0 || result == 1 || result == MULTICAST_ERROR_INVALID_HANDLE);
  }
}

TEST(token_invoke_of_many_threads_while_another_adds_and_removes) {
  pthread_t threads[INVOKERS];
  unsigned seed = 1;
  moving = multicast_create();
  for (int i = 0; i < INVOKERS; ++i)
    threads[i] = start_thread(invoke_tokens, (void *)(uintptr_t)(i + 2));
  for (int i = 0; i < ROUNDS; ++i) {
    unsigned which = next(&seed) % SLOTS;
    if (shared[which].id != 0) {
      multicast_token t = shared[which];
      STORE(shared[which].id, 0);
      CHECK_OK(multicast_token_remove(t));
      end_guarded(&guards[which]); /* a later call would fail */
    } else {
      multicast_add_options options = ADD_OPTIONS(.priority = (int32_t)(next(&seed) % 3));
      multicast_token t = add_with(moving, begin_guarded(&guards[which]), &options);
      CHECK_EQ(invoke_token(t), 1);
      STORE(shared[which].id, t.id);
    }
    if (i % 1000 == 999) {
      CHECK(multicast_remove_all(moving) >= 0);
      memset(guards, 0, sizeof guards);
      for (which = 0; which < SLOTS; ++which) STORE(shared[which].id, 0);
    }
  }
  STORE(is_over, true);
  for (int i = 0; i < INVOKERS; ++i) join_thread(threads[i]);
  CHECK_OK(multicast_destroy(moving));
}
