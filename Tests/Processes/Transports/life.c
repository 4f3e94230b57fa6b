/* Tests that transports can be attached, detached, and released during calls. The tests also cover
 * queues, forks and options. */

#include "Harness/broker.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t ns_of_second = 1000000000u;

/* ---- Attached -------------------------------------------------------------------------------- */

/* Connects a transport and attaches it. */
static void attach(peer *p, const broker *b) {
  peer_connect_reliably(p, b->port);
  CHECK_OK(multicast_broadcaster_attach(p->broadcaster, &p->transport));
}

TEST(attached_broadcasters_notify_each_other) {
  broker b;
  peer here, there;
  record *r = record_create(), *own = record_create();
  multicast_delegate observer = recorder(r);
  broker_start(&b, NULL);
  attach(&here, &b);
  attach(&there, &b);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "n", observer, NULL, NULL));
  CHECK_OK(multicast_broadcaster_register(here.broadcaster, "n", recorder(own), NULL, NULL));
  peer_flush(&here);
  peer_flush(&there);
  CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "n", 3, "hello", 5), 1);
  record_wait(r, 1);
  CHECK(record_is(r, 3, "hello", 5));
  record_wait(own, 1);
  CHECK_EQ(multicast_broadcaster_notify(there.broadcaster, "n", 4, "back", 4), 1);
  record_wait(own, 2);
  CHECK(record_is(own, 4, "back", 4));
  record_wait(r, 2);
  /* If this process has no observers of the name, notify still publishes. */
  CHECK_OK(multicast_broadcaster_unregister(here.broadcaster, "n", recorder(own)));
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).names, 0);
  CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "n", 5, "again", 5), 0);
  record_wait(r, 3);
  /* After the observer has been unregistered, nothing is delivered, even if the broker still sends
   * a message. */
  CHECK_OK(multicast_broadcaster_unregister(there.broadcaster, "n", observer));
  peer_flush(&there);
  CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "n", 6, "lost", 4), 0);
  peer_flush(&here);
  CHECK_EQ(peer_stats(&there).delivered, 2);
  peer_detach(&here);
  peer_detach(&there);
  broker_delete(&b);
}

TEST_OF_BROKER(attached_late_subscribes_what_is_there, NULL) {
  peer here, there;
  record *r = record_create();
  peer_connect_reliably(&there, b->port);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "a", recorder(r), NULL, NULL));
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "b", recorder(r), NULL, NULL));
  CHECK_OK(multicast_broadcaster_attach(there.broadcaster, &there.transport));
  peer_flush(&there);
  CHECK_EQ(peer_stats(&there).names, 2);
  attach(&here, b);
  CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "b", 1, "x", 1), 0);
  record_wait(r, 1);
  peer_detach(&here);
  peer_detach(&there);
}

/* ---- Inside calls ---------------------------------------------------------------------------- */

/* An observer that calls `act` on the transport's thread. `p` is the observer's own peer. */
typedef struct actor {
  peer *p;
  void (*act)(struct actor *a);
  int calls, left;
} actor;

FUNCTION(act, actor *a) {
  ADD(a->calls, 1);
  a->act(a);
  ADD(a->left, 1);
}

static multicast_delegate acting(actor *a) {
  return DELEGATE(act, a);
}

static void expect_act(void (*what)(actor *a), int calls) {
  broker b;
  peer here, there;
  actor a = {&there, what, 0, 0};
  broker_start(&b, NULL);
  attach(&here, &b);
  attach(&there, &b);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "n", acting(&a), NULL, NULL));
  peer_flush(&there);
  for (int i = 0; i < 50; ++i)
    CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "n", 1, &i, sizeof i), 0);
  peer_flush(&here);
  EVENTUALLY(LOAD(a.left) >= calls);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(a.calls), calls);
  peer_detach(&here);
  if (multicast_broadcaster_is_valid(there.broadcaster)) peer_detach(&there);
  EVENTUALLY(LOAD(there.releases) == 1);
  broker_delete(&b);
}

static void unregister_itself(actor *a) {
  CHECK_STATUS(multicast_broadcaster_unregister(a->p->broadcaster, "n", acting(a)),
               MULTICAST_PENDING);
}
static void detach_inside(actor *a) {
  multicast_broadcaster_attach(a->p->broadcaster, NULL);
}
static void destroy_inside(actor *a) {
  CHECK_STATUS(multicast_broadcaster_destroy(a->p->broadcaster), MULTICAST_PENDING);
}
static void flush_inside(actor *a) {
  CHECK_ERROR(transport_flush(&a->p->transport, ns_of_second), STATE);
}

TEST(observer_unregisters_itself) { expect_act(unregister_itself, 1); }
TEST(observer_detaches_its_transport) { expect_act(detach_inside, 1); }
TEST(observer_destroys_its_broadcaster) { expect_act(destroy_inside, 1); }
TEST(observer_cannot_flush) { expect_act(flush_inside, 50); }

FUNCTION(notify_inside, peer *p) {
  multicast_broadcaster_notify(p->broadcaster, "answer", event + 1, payload, size);
}

TEST_OF_BROKER(observer_answers, NULL) {
  peer here, there;
  record *r = record_create();
  multicast_delegate answering = {notify_inside, &there};
  int i;
  attach(&here, b);
  attach(&there, b);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "n", answering, NULL, NULL));
  CHECK_OK(multicast_broadcaster_register(here.broadcaster, "answer", recorder(r), NULL, NULL));
  peer_flush(&here);
  peer_flush(&there);
  for (i = 0; i < 100; ++i)
    CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "n", 1, &i, sizeof i), 0);
  record_wait(r, 100);
  --i;
  CHECK(record_is(r, 2, &i, sizeof i));
  peer_detach(&here);
  peer_detach(&there);
}

/* ---- Released while an observer waits -------------------------------------------------------- */

THREAD(flush_released, peer *p) {
  multicast_status status = transport_flush(&p->transport, MULTICAST_FOREVER);
  /* The broker may have answered before the release. */
  CHECK(status == MULTICAST_ERROR_INVALID_HANDLE || status == MULTICAST_OK);
}

static void detach_and_join(actor *a) {
  pthread_t thread = start_thread(flush_released, a->p);
  pause_ms(A_WHILE_MS);
  CHECK_OK(multicast_broadcaster_attach(a->p->broadcaster, NULL));
  join_thread(thread);
}

TEST_OF_BROKER(observer_detaches_and_waits_for_a_flush, NULL) {
  peer here, there;
  actor a = {&there, detach_and_join, 0, 0};
  attach(&here, b);
  attach(&there, b);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "n", acting(&a), NULL, NULL));
  peer_flush(&there);
  /* Publish without a flush, so that the flush in the observer must wait for the broker. */
  CHECK_OK(peer_publish(&there, "other", 1, "x", 1));
  EVENTUALLY(TRANSPORT_HAS_SENT(peer_stats(&there), 1));
  CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "n", 1, "x", 1), 0);
  EVENTUALLY(LOAD(a.left) == 1);
  peer_detach(&here);
  peer_detach(&there);
}

/* The program's `release` for one transport waits for a message that another transport delivers. */
typedef struct waiting_release {
  int has_begun, may_end, has_ended;
} waiting_release;

static void wait_in_release(void *context) {
  waiting_release *w = context;
  STORE(w->has_begun, 1);
  EVENTUALLY(LOAD(w->may_end));
  STORE(w->has_ended, 1);
}

THREAD(destroy_broadcaster, peer *p) {
  CHECK_OK(multicast_broadcaster_destroy(p->broadcaster));
}

TEST_OF_BROKER(release_may_wait_for_other_transports, NULL) {
  peer here, there, other;
  waiting_release w = {0, 0, 0};
  record *r = record_create();
  char name[16];
  attach(&here, b);
  attach(&there, b);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "n", recorder(r), NULL, NULL));
  peer_flush(&there);
  transport_options options = peer_options(&other, b->port);
  options.changed = NULL;
  options.release = wait_in_release;
  options.context = &w;
  CHECK_OK(transport_connect(&options, &other.transport));
  /* Register many names, because some libraries need time to remove them. */
  for (int i = 0; i < 500; ++i) {
    snprintf(name, sizeof name, "m%d", i);
    CHECK_OK(multicast_broadcaster_register(other.broadcaster, name, recorder(r), NULL, NULL));
  }
  CHECK_OK(multicast_broadcaster_attach(other.broadcaster, &other.transport));
  peer_flush(&other);
  /* Some libraries call `release` on this thread. */
  pthread_t thread = start_thread(destroy_broadcaster, &other);
  EVENTUALLY(LOAD(w.has_begun));
  CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "n", 1, "x", 1), 0);
  record_wait(r, 1);
  CHECK_EQ(LOAD(w.has_ended), 0);
  STORE(w.may_end, 1);
  join_thread(thread);
  EVENTUALLY(LOAD(w.has_ended));
  peer_detach(&here);
  peer_detach(&there);
}

/* ---- Released while messages arrive ---------------------------------------------------------- */

THREAD(flood, peer *p) {
  while (!LOAD(p->releases)) {
    int i = 0;
    if (peer_publish(p, "n", 1, &i, sizeof i) != MULTICAST_OK) pause_ms(1);
    if (LOAD(p->code) == 99) break;
  }
}

static void count_slowly(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(*(int *)context, 1);
}

static void expect_release(bool has_queue) {
  broker b;
  peer here;
  broker_start(&b, NULL);
  peer_connect_reliably(&here, b.port);
  pthread_t thread = start_thread(flood, &here);
  for (int round = 0; round < 10; ++round) {
    peer there;
    int calls = 0;
    multicast_delegate observer = {count_slowly, &calls};
    transport_options options = peer_options(&there, b.port);
    multicast_queue queue = MULTICAST_NONE;
    if (has_queue) {
      queue = multicast_queue_create(&QUEUE_OPTIONS(.capacity = 4,
                                                    .overflow = MULTICAST_OVERFLOW_BLOCK));
      if (round % 2 == 1) CHECK_OK(multicast_queue_start(queue));
      options.queue = queue;
    }
    peer_connect(&there, &options);
    CHECK_OK(multicast_broadcaster_register(there.broadcaster, "n", observer, NULL, NULL));
    CHECK_OK(multicast_broadcaster_attach(there.broadcaster, &there.transport));
    if (!has_queue || round % 2 == 1) {
      EVENTUALLY(LOAD(calls) > round * 3);
    } else {
      EVENTUALLY(multicast_queue_wait(queue, 0) == 4);
    }
    if (round % 3 == 0) {
      CHECK_OK(multicast_broadcaster_destroy(there.broadcaster));
    } else {
      CHECK_OK(multicast_broadcaster_attach(there.broadcaster, NULL));
      CHECK_OK(multicast_broadcaster_destroy(there.broadcaster));
    }
    EVENTUALLY(LOAD(there.releases) == 1);
    if (has_queue) CHECK_OK(multicast_queue_destroy(queue));
  }
  STORE(here.code, 99);
  join_thread(thread);
  peer_release(&here);
  broker_delete(&b);
}

TEST(released_while_messages_arrive) { expect_release(false); }
TEST(released_while_messages_wait_in_a_queue) { expect_release(true); }

TEST_OF_BROKER(released_at_once, NULL) {
  int port = free_port(), round;
  peer p;
  for (round = 0; round < 20; ++round) {
    peer_begin(&p, port, NULL);
    peer_release(&p);
  }
  for (round = 0; round < 20; ++round) {
    peer_begin(&p, b->port, NULL);
    if (round % 2 == 1) pause_ms(round % 5);
    peer_release(&p);
  }
}

static void release_inside(void *context, transport_state state, int32_t code,
                           const char *reason) {
  peer *p = context;
  if (ADD(p->connected, 1) == 1) p->transport.release(p->transport.context);
}

TEST_OF_BROKER(released_inside_of_changed, NULL) {
  peer p;
  broker_end(b, SIGTERM);
  transport_options options = peer_options(&p, b->port);
  options.changed = release_inside;
  /* Stop the broker during connect, so that `changed` is first called after connect has returned
   * the transport. */
  broker_start_again(b);
  CHECK_EQ(kill(b->process, SIGSTOP), 0);
  CHECK_OK(transport_connect(&options, &p.transport));
  CHECK_EQ(kill(b->process, SIGCONT), 0);
  EVENTUALLY(LOAD(p.releases) == 1);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(p.connected), 1);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

TEST_OF_BROKER(observers_run_where_the_queue_is_run, NULL) {
  SCOPED peer here, there;
  record *r = record_create();
  multicast_queue queue = multicast_queue_create(NULL);
  peer_connect_reliably(&here, b->port);
  peer_connect_with(&there, b->port, &OPTIONS(.queue = queue));
  peer_observe(&there, "n", recorder(r));
  CHECK_OK(peer_publish(&here, "n", 3, "hello", 5));
  CHECK(multicast_queue_wait(queue, 10 * ns_of_second) == 1);
  record_wait(r, 0);
  CHECK_EQ(multicast_queue_run(queue, 0), 1);
  record_wait(r, 1);
  CHECK(record_is(r, 3, "hello", 5));
  CHECK(pthread_equal(r->thread, pthread_self()));
  CHECK_EQ(peer_stats(&there).delivered, 1);
  /* Once the queue has been destroyed, arriving messages are lost. */
  CHECK_OK(multicast_queue_destroy(queue));
  CHECK_OK(peer_publish(&here, "n", 3, "hello", 5));
  EVENTUALLY(peer_stats(&there).lost == 1);
}

TEST_OF_BROKER(what_a_queue_has_for_a_broadcaster_that_is_gone_is_lost, NULL) {
  peer here, there;
  int calls = 0;
  multicast_queue queue = multicast_queue_create(NULL);
  peer_connect_reliably(&here, b->port);
  peer_connect_with(&there, b->port, &OPTIONS(.queue = queue));
  peer_observe(&there, "n", counter(&calls));
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  CHECK_EQ(multicast_queue_wait(queue, 10 * ns_of_second), 1);
  CHECK_OK(multicast_broadcaster_destroy(there.broadcaster));
  CHECK_EQ(multicast_queue_run(queue, 0), 1);
  CHECK_EQ(calls, 0);
  CHECK_EQ(peer_stats(&there).lost, 1);
  CHECK_EQ(peer_stats(&there).delivered, 0);
  peer_release(&here);
  there.transport.release(there.transport.context);
  EVENTUALLY(LOAD(there.releases) == 1);
  CHECK_OK(multicast_queue_destroy(queue));
}

TEST_OF_BROKER(what_comes_for_a_broadcaster_that_is_gone_is_lost, NULL) {
  peer here, there;
  int calls = 0;
  peer_connect_reliably(&here, b->port);
  peer_connect_reliably(&there, b->port);
  peer_observe(&there, "n", counter(&calls));
  CHECK_OK(multicast_broadcaster_destroy(there.broadcaster));
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  EVENTUALLY(peer_stats(&there).lost == 1);
  CHECK_EQ(calls, 0);
  CHECK_EQ(peer_stats(&there).delivered, 0);
  peer_release(&here);
  there.transport.release(there.transport.context);
  EVENTUALLY(LOAD(there.releases) == 1);
}

static uint64_t pending_of(multicast_queue queue) {
  multicast_queue_stats stats = multicast_queue_stats_default();
  CHECK_OK(multicast_queue_get_stats(queue, &stats));
  return stats.pending;
}

static void expect_losses(multicast_overflow overflow) {
  broker b;
  peer here, there;
  record *r = record_create();
  multicast_queue queue = queue_with(2, overflow);
  int i;
  broker_start(&b, NULL);
  peer_connect_reliably(&here, b.port);
  peer_connect_with(&there, b.port, &OPTIONS(.queue = queue));
  peer_observe(&there, "n", recorder(r));
  for (i = 0; i < 5; ++i) CHECK_OK(peer_publish(&here, "n", 3, &i, sizeof i));
  EVENTUALLY(peer_stats(&there).lost == 3);
  CHECK_EQ(multicast_queue_run(queue, 0), 2);
  record_wait(r, 2);
  CHECK_EQ(peer_stats(&there).delivered, 2);
  CHECK_EQ(peer_stats(&there).received, 5);
  /* When the queue is destroyed, its messages are also counted as lost. */
  CHECK_OK(peer_publish(&here, "n", 3, &i, sizeof i));
  EVENTUALLY(peer_stats(&there).received == 6);
  EVENTUALLY(pending_of(queue) == 1);
  CHECK_EQ(peer_stats(&there).lost, 3);
  CHECK_OK(multicast_queue_destroy(queue));
  EVENTUALLY(peer_stats(&there).lost == 4);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

TEST(full_queue_loses_and_counts) { expect_losses(MULTICAST_OVERFLOW_REFUSE); }
TEST(queue_that_drops_the_oldest_loses_and_counts) {
  expect_losses(MULTICAST_OVERFLOW_DROP_OLDEST);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* With ThreadSanitizer, all threads must be idle during a fork, because fork() does not acquire the
 * locks of ThreadSanitizer's malloc. In other builds, the threads may be busy. */
#ifdef __SANITIZE_THREAD__
enum { THREADS_REST_AT_FORKS = 1 };
#else
enum { THREADS_REST_AT_FORKS = 0 };
#endif

static void use_in_child(void *context) {
  peer *p = context;
  transport_stats stats = transport_stats_default();
  alarm(30);
  CHECK_ERROR(peer_publish(p, "n", 1, "x", 1), STATE);
  CHECK_ERROR(p->transport.subscribe(p->transport.context, "m"), STATE);
  p->transport.unsubscribe(p->transport.context, "n");
  CHECK_ERROR(transport_flush(&p->transport, 1), STATE);
  CHECK_ERROR(transport_get_stats(&p->transport, &stats), STATE);
  p->transport.release(p->transport.context);
  CHECK_EQ(p->releases, 1);
  CHECK_ERROR(transport_flush(&p->transport, 1), INVALID_HANDLE);
}

static void end_flood(peer *p, pthread_t thread) {
  STORE(p->code, 99);
  join_thread(thread);
}

TEST_OF_BROKER(child_of_a_fork_does_not_use_the_connection, NULL) {
  peer here, there;
  record *r = record_create();
  multicast_queue queue = multicast_queue_create(NULL);
  pthread_t thread;
  peer_connect_reliably(&here, b->port);
  transport_options options = peer_reliable_options(&there, b->port);
  options.queue = queue;
  peer_connect(&there, &options);
  peer_observe(&there, "n", recorder(r));
  for (int round = 0; round < 20; ++round) {
    STORE(here.code, 0);
    thread = start_thread(flood, &here);
    pause_ms(1);
    if (THREADS_REST_AT_FORKS) {
      end_flood(&here, thread);
      peer_flush(&here);
      peer_flush(&there);
      pause_ms(A_WHILE_MS);
    }
    in_child(use_in_child, round % 2 == 0 ? &here : &there);
    if (!THREADS_REST_AT_FORKS) end_flood(&here, thread);
    multicast_queue_run(queue, 0);
  }
  peer_flush(&here);
  CHECK_EQ(LOAD(here.lost), 0);
  CHECK_EQ(LOAD(there.lost), 0);
  peer_release(&here);
  peer_release(&there);
  CHECK_OK(multicast_queue_destroy(queue));
}

/* An observer that forks on the transport's thread or on the thread of a queue. The child returns
 * from the observer. */
typedef struct forker {
  peer *p;
  pid_t child;
  int calls;
  bool detaches;
} forker;

/* Ends the child with _exit(), because exit() would make sanitizers report the transport's memory,
 * which the child does not free, as a leak. */
static void leave(void) { _exit(0); }

FUNCTION(fork_inside, forker *f) {
  if (event == 1) fflush(NULL);
  pid_t child = event == 1 ? fork() : 1;
  if (child == 0) {
    alarm(20);
    atexit(leave);
    if (f->detaches) multicast_broadcaster_attach(f->p->broadcaster, NULL);
    return;
  }
  if (event == 1) STORE(f->child, child);
  ADD(f->calls, 1);
}

static void expect_end_of_child(bool detaches) {
  broker b;
  peer here, there;
  forker f = {&there, 0, 0, detaches};
  multicast_delegate observer = {fork_inside, &f};
  int status = -1;
  broker_start(&b, NULL);
  attach(&here, &b);
  attach(&there, &b);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "n", observer, NULL, NULL));
  peer_flush(&there);
  CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "n", 1, "x", 1), 0);
  EVENTUALLY(LOAD(f.child) != 0);
  for (uint32_t event = 2; event <= 50; ++event)
    CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "n", event, "x", 1), 0);
  /* The child process ends when its observer returns, because the thread that called fork() is the
   * child's only thread. The child has read nothing from the connection, so the parent receives all
   * messages. */
  CHECK_EQ(waitpid(f.child, &status, 0), f.child);
  CHECK_EQ(status, 0);
  EVENTUALLY(LOAD(f.calls) == 50);
  CHECK_EQ(LOAD(there.lost), 0);
  peer_detach(&here);
  peer_detach(&there);
  broker_delete(&b);
}

TEST_OF_BROKER(child_that_returns_from_an_observer_of_a_queue_goes_on, NULL) {
  peer here, there;
  forker f = {&there, 0, 0, false};
  multicast_queue queue = multicast_queue_create(NULL);
  int status = -1;
  peer_connect_reliably(&here, b->port);
  peer_connect_with(&there, b->port, &OPTIONS(.queue = queue));
  peer_observe(&there, "n", DELEGATE(fork_inside, &f));
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  peer_flush(&here);
  CHECK_EQ(multicast_queue_wait(queue, 10 * ns_of_second), 1);
  if (THREADS_REST_AT_FORKS) pause_ms(A_WHILE_MS);
  CHECK_EQ(multicast_queue_run(queue, 0), 1);
  if (f.child == 0) {
    use_in_child(&there);
    leave();
  }
  CHECK_EQ(waitpid(f.child, &status, 0), f.child);
  CHECK_EQ(status, 0);
  CHECK_EQ(peer_stats(&there).delivered, 1);
  peer_release(&here);
  peer_release(&there);
  CHECK_OK(multicast_queue_destroy(queue));
}

TEST(child_that_returns_from_an_observer_ends) { expect_end_of_child(false); }
TEST(child_that_detaches_in_an_observer_ends) { expect_end_of_child(true); }

static void fork_in_changed(void *context, transport_state state, int32_t code,
                            const char *reason) {
  forker *f = context;
  if (state != TRANSPORT_CONNECTED) return;
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    atexit(leave);
  } else {
    STORE(f->child, child);
  }
}

TEST_OF_BROKER(child_that_returns_from_changed_ends, NULL) {
  peer p;
  forker f = {&p, 0, 0, false};
  int status = -1;
  transport_options options = peer_options(&p, b->port);
  options.changed = fork_in_changed;
  options.context = &f;
  options.release = NULL;
  CHECK_OK(transport_connect(&options, &p.transport));
  EVENTUALLY(LOAD(f.child) != 0);
  CHECK_EQ(waitpid(f.child, &status, 0), f.child);
  CHECK_EQ(status, 0);
  peer_flush(&p);
  p.transport.release(p.transport.context);
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}

static void release_in_child(void *context) {
  peer *p = context;
  CHECK_OK(multicast_broadcaster_attach(p->broadcaster, NULL));
  CHECK_EQ(p->releases, 1);
}

THREAD(flush_for_long, peer *p) {
  transport_flush(&p->transport, MULTICAST_FOREVER);
}

TEST(child_releases_while_the_parent_flushes) {
  peer p;
  peer_begin(&p, free_port(), NULL);
  CHECK_OK(multicast_broadcaster_attach(p.broadcaster, &p.transport));
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  pthread_t thread = start_thread(flush_for_long, &p);
  /* Try several times, because the thread may not have called flush yet. */
  for (int round = 0; round < 5; ++round) {
    pause_ms(A_WHILE_MS);
    in_child(release_in_child, &p);
  }
  peer_detach(&p);
  join_thread(thread);
}

/* ---- Released transports --------------------------------------------------------------------- */

TEST(released_transport_is_not_taken_for_a_newer_one) {
  transport_stats stats = transport_stats_default();
  peer p;
  multicast_transport old;
  transport_options options = peer_options(&p, free_port());
  CHECK_OK(transport_connect(&options, &old));
  old.release(old.context);
  EVENTUALLY(LOAD(p.releases) == 1);
  /* One of these transports reuses the memory of the first transport. */
  for (int i = 0; i < 20; ++i) {
    p.releases = 0;
    CHECK_OK(transport_connect(&options, &p.transport));
    CHECK_ERROR(transport_flush(&old, 0), INVALID_HANDLE);
    CHECK_ERROR(transport_get_stats(&old, &stats), INVALID_HANDLE);
    CHECK_ERROR(old.publish(old.context, "n", 1, "x", 1), INVALID_HANDLE);
    CHECK_ERROR(old.subscribe(old.context, "n"), INVALID_HANDLE);
    old.unsubscribe(old.context, "n");
    old.release(old.context);
    CHECK_EQ(LOAD(p.releases), 0);
    CHECK_OK(transport_get_stats(&p.transport, &stats));
    p.transport.release(p.transport.context);
    EVENTUALLY(LOAD(p.releases) == 1);
  }
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}

THREAD(connect_with_others, int *ready) {
  peer p;
  transport_options options = peer_options(&p, free_port());
  ADD(*ready, 1);
  while (LOAD(*ready) < 4) sched_yield();
  CHECK_OK(transport_connect(&options, &p.transport));
  peer_release(&p);
}

/* The threads create the first transports of the process, and so initialize the library at the same
 * time. ThreadSanitizer checks that there is no race. */
TEST(first_transports_may_be_made_at_once) {
  pthread_t threads[4];
  int ready = 0;
  for (int i = 0; i < 4; ++i) threads[i] = start_thread(connect_with_others, &ready);
  for (int i = 0; i < 4; ++i) join_thread(threads[i]);
}

/* The arguments of two threads that release a transport at the same time. */
typedef struct releaser {
  const multicast_transport *transport;
  int *ready;
} releaser;

THREAD(release_with_others, void *context) {
  const releaser *r = context;
  ADD(*r->ready, 1);
  while (LOAD(*r->ready) < 2) sched_yield();
  r->transport->release(r->transport->context);
}

TEST(released_by_two_threads_ends_once) {
  int port = free_port(), round;
  SCOPED peer p, other;
  transport_options options = peer_options(&p, port), others = peer_options(&other, port);
  for (round = 0; round < 1000; ++round) {
    int ready = 0;
    releaser r = {&p.transport, &ready};
    p.releases = 0;
    CHECK_OK(transport_connect(&options, &p.transport));
    pthread_t thread = start_thread(release_with_others, &r);
    release_with_others(&r);
    join_thread(thread);
    EVENTUALLY(LOAD(p.releases) == 1);
  }
  /* The next two transports must not share an entry of the library's table. */
  p.releases = 0;
  CHECK_OK(transport_connect(&options, &p.transport));
  CHECK_OK(transport_connect(&others, &other.transport));
  peer_stats(&p);
  peer_stats(&other);
}

/* ---- The process ----------------------------------------------------------------------------- */

static void on_signal(int number) { (void)number; }

TEST(signals_stay_as_they_are) {
  struct sigaction before, after;
  SCOPED peer p;
  transport_options options = peer_options(&p, free_port());
  memset(&before, 0, sizeof before);
  before.sa_handler = on_signal;
  CHECK_EQ(sigaction(SIGPIPE, &before, NULL), 0);
  CHECK_OK(transport_connect(&options, &p.transport));
  CHECK_EQ(sigaction(SIGPIPE, NULL, &after), 0);
  CHECK(after.sa_handler == on_signal);
}

/* ---- Bad input ------------------------------------------------------------------------------- */

TEST(zeros_and_the_size_are_the_default_of_each_struct) {
  transport_options options, defaults = transport_options_default();
  transport_options initial = TRANSPORT_OPTIONS_INIT;
  transport_stats stats, zeros = transport_stats_default();
  transport_stats initial_stats = TRANSPORT_STATS_INIT;
  memset(&options, 0, sizeof options);
  memset(&stats, 0, sizeof stats);
  options.struct_size = sizeof options;
  stats.struct_size = sizeof stats;
  CHECK_EQ(memcmp(&options, &defaults, sizeof options), 0);
  CHECK_EQ(memcmp(&options, &initial, sizeof options), 0);
  CHECK_EQ(memcmp(&stats, &zeros, sizeof stats), 0);
  CHECK_EQ(memcmp(&stats, &initial_stats, sizeof stats), 0);
}

TEST(transports_that_are_none_are_refused) {
  peer p;
  transport_options options = peer_options(&p, free_port());
  transport_stats stats = transport_stats_default();
  multicast_transport other = MULTICAST_TRANSPORT_INIT;
  CHECK_ERROR(transport_flush(NULL, 0), INVALID_HANDLE);
  CHECK_ERROR(transport_flush(&other, 0), INVALID_HANDLE);
  CHECK_ERROR(transport_get_stats(&other, &stats), INVALID_HANDLE);
  CHECK_OK(transport_connect(&options, &p.transport));
  CHECK_ERROR(transport_get_stats(&p.transport, NULL), INVALID_ARGUMENT);
  stats.struct_size = 8;
  CHECK_ERROR(transport_get_stats(&p.transport, &stats), INVALID_ARGUMENT);
  CHECK_ERROR(peer_publish(&p, "", 1, "x", 1), INVALID_ARGUMENT);
  if (!TRANSPORT_FLUSH_CONNECTS) CHECK_OK(transport_flush(&p.transport, MULTICAST_FOREVER));
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  CHECK_ERROR(transport_flush(&p.transport, 0), TIMEOUT);
  /* A transport of another library, or of the program, may have the same context. */
  other.context = p.transport.context;
  CHECK_ERROR(transport_flush(&other, 0), INVALID_HANDLE);
  CHECK_ERROR(transport_get_stats(&other, &stats), INVALID_HANDLE);
  other = p.transport;
  peer_release(&p);
  stats = transport_stats_default();
  CHECK_ERROR(transport_get_stats(&other, &stats), INVALID_HANDLE);
}

THREAD(flush_forever, peer *p) {
  CHECK_ERROR(transport_flush(&p->transport, MULTICAST_FOREVER), INVALID_HANDLE);
}

TEST(flush_ends_with_the_transport) {
  peer p;
  peer_begin(&p, free_port(), NULL);
  CHECK_OK(peer_publish(&p, "n", 1, "x", 1));
  pthread_t thread = start_thread(flush_forever, &p);
  pause_ms(A_WHILE_MS);
  p.transport.release(p.transport.context);
  join_thread(thread);
  EVENTUALLY(LOAD(p.releases) == 1);
}
