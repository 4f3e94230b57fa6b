/* If a queue blocks invocations when it is full, it records which thread is expected to make room.
 * In these tests, a different thread becomes responsible for making room. */

#include "queues.h"

/* ---- A worker that is started while another thread runs the queue ---------------------------- */

typedef enum variation { NOTHING, STOPS_IT, REMOVES_WHO_BLOCKS } variation;

/* A queue with room for one call. The test's own thread runs the queue, and a worker is started
 * during that run. */
typedef struct takeover {
  multicast_queue queue;
  multicast queued, direct;
  multicast_token blocked; /* its call, on another thread, invokes into the queue */
  gate begins;
  invoker other;
  variation more;
  bool has_begun;
  int64_t first, second; /* the results of invoking into the queue */
  multicast_status removal;
} takeover;

FUNCTION(invoke_and_block, takeover *t) {
  gate_open(&t->begins);
  multicast_invoke(t->queued, 0, NULL, 0);
}

FUNCTION(start_and_fill, takeover *t) {
  if (t->has_begun) return;
  t->has_begun = true;
  CHECK_OK(multicast_queue_start(t->queue));
  pause_ms(A_WHILE_MS); /* the worker is now waiting for its turn */
  if (t->more == STOPS_IT) CHECK(multicast_queue_stop(t->queue) >= 0);
  t->first = multicast_invoke(t->queued, 0, NULL, 0);
  if (t->more == REMOVES_WHO_BLOCKS) {
    invoke_in_background(&t->other, t->direct);
    gate_wait(&t->begins);
    pause_ms(A_WHILE_MS);
    t->removal = multicast_token_remove(t->blocked);
    return;
  }
  t->second = multicast_invoke(t->queued, 0, NULL, 0);
}

static void take_over(takeover *t, variation more) {
  multicast_delegate starting = {start_and_fill, NULL}, blocking_one = {invoke_and_block, NULL};
  starting.context = blocking_one.context = t;
  t->more = more;
  t->first = t->second = -1;
  t->queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  t->queued = multicast_create();
  t->direct = multicast_create();
  add_queued(t->queued, starting, t->queue);
  t->blocked = add(t->direct, blocking_one);
  CHECK_EQ(multicast_invoke(t->queued, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(t->queue, 0), 1);
  CHECK_EQ(t->first, 1);
}

TEST(queue_full_refuses_who_runs_it_though_it_has_worker_by_then) {
  static takeover t = {.begins = GATE_INIT};
  take_over(&t, NOTHING);
  CHECK_EQ(t.second, 0);
}

TEST(queue_full_refuses_who_runs_it_though_a_worker_came_and_went) {
  static takeover t = {.begins = GATE_INIT};
  take_over(&t, STOPS_IT);
  CHECK_EQ(t.second, 0);
}

TEST(queue_runner_waits_for_no_call_that_waits_for_it) {
  static takeover t = {.begins = GATE_INIT};
  take_over(&t, REMOVES_WHO_BLOCKS);
  CHECK_STATUS(t.removal, MULTICAST_PENDING);
  CHECK_EQ(invoke_finished(&t.other), 1); /* the worker has made room */
}

/* ---- The consumer thread ends ---------------------------------------------------------------- */

typedef struct last_runner {
  multicast_queue queue;
  multicast runs_it;
  multicast_broadcaster names; /* `release` of an observer runs the queue */
  multicast_token wanted;      /* removing it makes listeners_changed run the queue */
  gate has_run, may_end;
} last_runner;

THREAD(run_once_and_end, last_runner *r) {
  CHECK_EQ(multicast_queue_run(r->queue, 0), 1);
  gate_open(&r->has_run);
  gate_wait(&r->may_end);
}

static void run_once_inside(void *context, uint32_t event, const void *payload, size_t size) {
  run_once_and_end(context);
}

static void run_once_at_release(void *context) { run_once_and_end(context); }

static void run_once_for_nobody(void *context, multicast target, bool wanted) {
  if (!wanted) run_once_and_end(context);
}

static pthread_key_t last_word;

static void invoke_at_the_end(void *argument) {
  last_runner *r = argument;
  CHECK_EQ(multicast_invoke(r->runs_it, 0, NULL, 0), 1);
}

static void destroy_names_at_the_end(void *argument) {
  CHECK_OK(multicast_broadcaster_destroy(((last_runner *)argument)->names));
}

static void lose_listeners_at_the_end(void *argument) {
  CHECK_OK(multicast_token_remove(((last_runner *)argument)->wanted));
}

THREAD(end_with_a_last_word, void *argument) {
  CHECK_EQ(multicast_invoke(multicast_create(), 0, NULL, 0), 0); /* registers this thread */
  CHECK_EQ(pthread_setspecific(last_word, argument), 0);
}

static void prepare_last_words(last_runner *r) {
  multicast_delegate d = {run_once_inside, r};
  r->runs_it = multicast_create();
  add(r->runs_it, d);
  r->names = multicast_broadcaster_create(NULL);
  multicast_add_options released = ADD_OPTIONS(.release = run_once_at_release);
  CHECK_OK(multicast_broadcaster_register(r->names, "name", d, &released, NULL));
  r->wanted = add(multicast_create_with(&CREATE_OPTIONS(.listeners_changed = run_once_for_nobody,
                                                        .context = r)), d);
}

static void remove_while_it_ends(void *(*body)(void *), void (*last)(void *)) {
  static takeover t = {.begins = GATE_INIT};
  static last_runner r = {.has_run = GATE_INIT, .may_end = GATE_INIT};
  int calls = 0;
  t.queue = r.queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  t.queued = multicast_create();
  t.direct = multicast_create();
  prepare_last_words(&r);
  /* the library has already created its key, so its destructor runs before this key's destructor */
  CHECK_EQ(pthread_key_create(&last_word, last), 0);
  add_queued(t.queued, counter(&calls), t.queue);
  t.blocked = add(t.direct, DELEGATE(invoke_and_block, &t));
  CHECK_EQ(multicast_invoke(t.queued, 0, NULL, 0), 1);
  pthread_t thread = start_thread(body, &r);
  gate_wait(&r.has_run);
  CHECK_EQ(multicast_invoke(t.queued, 0, NULL, 0), 1); /* fills the queue */
  invoke_in_background(&t.other, t.direct);
  gate_wait(&t.begins);
  pause_ms(A_WHILE_MS);
  /* the thread opens the gate while the removal is sleeping */
  pthread_t ending = start_thread(open_after_a_while, &r.may_end);
  t.removal = multicast_token_remove(t.blocked);
  /* the status is MULTICAST_OK if the call has been refused */
  CHECK(t.removal == MULTICAST_PENDING || t.removal == MULTICAST_OK);
  CHECK_EQ(multicast_queue_run(t.queue, 0), 1);
  CHECK_EQ(invoke_finished(&t.other), 1);
  join_thread(ending);
  join_thread(thread);
}

TEST(removal_ends_its_wait_when_the_thread_to_make_room_ends) {
  remove_while_it_ends(run_once_and_end, NULL);
}

TEST(removal_ends_its_wait_when_consumer_ends_in_destructor) {
  remove_while_it_ends(end_with_a_last_word, invoke_at_the_end);
}

TEST(removal_wakes_when_a_thread_ends_with_a_broadcaster) {
  remove_while_it_ends(end_with_a_last_word, destroy_names_at_the_end);
}

TEST(removal_wakes_when_a_thread_ends_with_interest) {
  remove_while_it_ends(end_with_a_last_word, lose_listeners_at_the_end);
}

/* ---- A new queue in the slot of a queue that has been destroyed inside its call -------------- */

enum { END_THREAD = 1, START_WORKER, COUNT };

typedef struct successor {
  multicast_queue queue, next;
  multicast queued;
  int calls;
} successor;

FUNCTION(be_called_in_next, successor *s) {
  if (event == END_THREAD) pthread_exit(NULL);
  if (event == START_WORKER) {
    CHECK_OK(multicast_queue_start(s->next));
    pause_ms(A_WHILE_MS);
  }
  if (event == COUNT) ADD(s->calls, 1);
}

THREAD(run_next, successor *argument) {
  (void)!multicast_queue_run(argument->next, 0);
}

FUNCTION(destroy_and_go_on, successor *s) {
  CHECK_STATUS(multicast_queue_destroy(s->queue), MULTICAST_PENDING);
  s->next = default_queue();
  add_queued(s->queued, DELEGATE(be_called_in_next, s), s->next);
  CHECK_EQ(multicast_invoke(s->queued, END_THREAD, NULL, 0), 1);
  on_another_thread(run_next, s);
  CHECK_EQ(multicast_invoke(s->queued, START_WORKER, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(s->queued, COUNT, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(s->next, 0), 1); /* the call has started a worker */
}

TEST_OF_MULTICAST(queue_worker_begins_while_last_queue_in_its_slot_runs) {
  static successor s;
  s.queue = default_queue();
  s.queued = multicast_create();
  add_queued(m, DELEGATE(destroy_and_go_on, &s), s.queue);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(s.queue, 0), 1);
  EVENTUALLY(LOAD(s.calls) == 1);
  CHECK_OK(multicast_queue_destroy(s.next));
}

/* ---- Several invocations that are blocked ---------------------------------------------------- */

enum { BLOCKED = 5 };

typedef struct crowd {
  multicast target;
  int returned;
} crowd;

THREAD(invoke_in_crowd, crowd *c) {
  CHECK_EQ(multicast_invoke(c->target, 0, NULL, 0), 1);
  ADD(c->returned, 1);
}

/* Only this thread's runs can wake the blocked threads, since no other thread of the process is
 * active. */
TEST(queue_call_taken_out_lets_one_blocked_invocation_go_on) {
  for (uint32_t round = 0; round < 30; ++round) {
    const int capacity = 1 + (int)round % 3;
    multicast_queue q = queue_with((uint32_t)capacity, MULTICAST_OVERFLOW_BLOCK);
    pthread_t threads[BLOCKED];
    int calls = 0;
    crowd c = {.target = multicast_create()};
    add_queued(c.target, counter(&calls), q);
    for (int i = 0; i < BLOCKED; ++i) threads[i] = start_thread(invoke_in_crowd, &c);
    EVENTUALLY(LOAD(c.returned) == capacity);
    if (round < 10) pause_ms(3);
    for (int i = 1; i <= BLOCKED; ++i) {
      const int free_to_go = capacity + i < BLOCKED ? capacity + i : BLOCKED;
      CHECK_EQ(multicast_queue_run(q, 1), 1);
      EVENTUALLY(LOAD(c.returned) == free_to_go);
    }
    for (int i = 0; i < BLOCKED; ++i) join_thread(threads[i]);
    CHECK_EQ(calls, BLOCKED);
    CHECK_OK(multicast_destroy(c.target));
    CHECK_OK(multicast_queue_destroy(q));
  }
}
