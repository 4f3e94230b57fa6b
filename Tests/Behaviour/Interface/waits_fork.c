/* The child of a fork is not disturbed by the waits and removals of the parent's other threads. */

#include "allocators.h"
#include "threads.h"

#include <sched.h>
#include <unistd.h>

/* ---- Releases on other threads, in the child of a fork --------------------------------------- */

static blocker releasing = BLOCKER_INIT;

static void block_release(void *context) { block_call(context, 0, NULL, 0); }

THREAD(remove_everything, multicast *target) {
  CHECK_EQ(multicast_remove_all(*target), 1);
}

static void end_while_a_release_runs(void *is_queue) {
  multicast m = multicast_create();
  multicast_add_options options = ADD_OPTIONS(.release = block_release);
  if (is_queue != NULL) {
    options.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  } else {
    options.lifetime = multicast_lifetime_create();
  }
  add_with(m, blocking(&releasing), &options);
  pthread_t remover = start_thread(remove_everything, &m);
  gate_wait(&releasing.entered);
  pthread_t opener = start_thread(open_after_a_while, &releasing.let_go);
  if (is_queue != NULL) {
    CHECK_OK(multicast_queue_destroy(options.queue));
  } else {
    CHECK_OK(multicast_lifetime_end(options.lifetime));
  }
  CHECK(LOAD(releasing.has_left));
  join_thread(opener);
  join_thread(remover);
}

TEST(lifetime_end_in_the_child_waits_for_releases_there) {
  CHECK_OK(multicast_lifetime_end(multicast_lifetime_create()));
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  in_child(end_while_a_release_runs, NULL);
#endif
  end_while_a_release_runs(NULL);
}

TEST(queue_destroy_in_the_child_waits_for_releases_there) {
  CHECK_OK(multicast_queue_destroy(queue_with(4, MULTICAST_OVERFLOW_REFUSE)));
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  in_child(end_while_a_release_runs, &releasing);
#endif
  end_while_a_release_runs(&releasing);
}

/* ---- A fork while an object is being ended --------------------------------------------------- */

enum { MEMBERS = 20000 };

typedef struct ending {
  multicast target;
  multicast_queue queue;
  multicast_lifetime lifetime; /* 0 if a queue is ended */
  bool has_begun;
} ending;

THREAD(end_it, ending *e) {
  STORE(e->has_begun, true);
  if (e->lifetime.id != 0) {
    CHECK_OK(multicast_lifetime_end(e->lifetime));
  } else {
    CHECK_OK(multicast_queue_destroy(e->queue));
  }
}

static void expect_all_or_nothing(void *argument) {
  ending *e = argument;
  int64_t left = e->lifetime.id != 0 ? multicast_lifetime_count(e->lifetime)
                                     : multicast_queue_wait(e->queue, 0);
  if (left == MULTICAST_ERROR_INVALID_HANDLE) {
    CHECK_EQ(multicast_count(e->target), 0);
    CHECK_EQ(multicast_invoke(e->target, 0, NULL, 0), 0);
  } else {
    CHECK_EQ(multicast_count(e->target), MEMBERS);
  }
}

static void fork_while_it_ends(bool is_queue) {
  static multicast_delegate members[MEMBERS];
  static int contexts[MEMBERS];
  int i, round;
#if defined(__SANITIZE_ADDRESS__)
  use_lasting_memory();
#endif
  for (i = 0; i < MEMBERS; ++i) members[i] = counter(&contexts[i]);
  for (round = 0; round < 10; ++round) {
    multicast_add_options options = multicast_add_options_default();
    ending e = {.target = multicast_create()};
    if (is_queue) {
      options.queue = e.queue = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
    } else {
      options.lifetime = e.lifetime = multicast_lifetime_create();
    }
    CHECK_OK(multicast_add_many(e.target, members, MEMBERS, &options, NULL));
    pthread_t thread = start_thread(end_it, &e);
    while (!LOAD(e.has_begun)) sched_yield();
    usleep((useconds_t)round * 100);
    in_child(expect_all_or_nothing, &e);
    join_thread(thread);
    CHECK_EQ(multicast_count(e.target), 0);
    CHECK_OK(multicast_destroy(e.target));
  }
}

TEST(fork_while_lifetime_ends_leaves_the_child_nothing_of_it) {
  fork_while_it_ends(false);
}

TEST(fork_while_queue_is_destroyed_leaves_child_nothing_of_it) {
  fork_while_it_ends(true);
}

/* ---- Waits of the parent's threads ----------------------------------------------------------- */

#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
typedef struct inheritance {
  multicast outer, inner;
  multicast_token token;
  pthread_t waiter;
  gate is_known;
  blocker b;
} inheritance;

THREAD(wait_for_the_outer_call, inheritance *h) {
  CHECK_EQ(multicast_invoke(h->inner, 0, NULL, 0), 0);
  gate_open(&h->is_known);
  CHECK_OK(multicast_token_remove(h->token));
}

static void wait_for_a_new_thread(void *argument) {
  inheritance *h = argument;
  invoker i;
  add(h->inner, blocking(&h->b));
  invoke_in_background(&i, h->inner);
  gate_wait(&h->b.entered);
  pthread_t opener = start_thread(open_after_a_while, &h->b.let_go);
  CHECK_OK(multicast_remove(h->inner, blocking(&h->b)));
  CHECK(LOAD(h->b.has_left));
  join_thread(opener);
  CHECK_EQ(invoke_finished(&i), 1);
}

FUNCTION(fork_while_another_waits, inheritance *h) {
  h->waiter = start_thread(wait_for_the_outer_call, h);
  gate_wait(&h->is_known);
  pause_ms(A_WHILE_MS); /* the removal is waiting for this call */
  in_child(wait_for_a_new_thread, h);
}

/* A thread of the parent waits for the call that forks. In the child, a new thread reuses that
 * thread's record. The library must not conclude from the record that the new thread is waiting. */
TEST(removal_in_child_waits_for_thread_that_waits_for_nothing) {
  static inheritance h = {{0}, {0}, {0}, 0, GATE_INIT, BLOCKER_INIT};
  h.outer = multicast_create();
  h.inner = multicast_create();
  h.token = add(h.outer, DELEGATE(fork_while_another_waits, &h));
  CHECK_EQ(multicast_invoke(h.outer, 0, NULL, 0), 1);
  join_thread(h.waiter);
}
#endif
