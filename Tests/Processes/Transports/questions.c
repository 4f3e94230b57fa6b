/* Tests questions to peers, and the results that the askers receive. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "Harness/asking.h"
#include "Harness/observers.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t ten_seconds = 10000000000u, a_while = 200000000u;

/* ---- Answers --------------------------------------------------------------------------------- */

TEST_OF_BROKER(questions_come_in_order_with_notifications, NULL) {
  SCOPED peer here, there;
  responder a = {"a", 0, 0};
  told t = {.enough = 1};
  int calls = 0;
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  peer_observe(&there, "q", counter(&calls)); /* not called for questions of the same name */
  peer_answer(&there, "q", &a);
  peer_meet(&here, 1);
  for (int i = 1; i <= 100; ++i) {
    CHECK_OK(peer_publish(&here, "q", 1, "x", 1));
    CHECK_OK(ask(&here, &t, "q", "", ten_seconds));
    CHECK_EQ(LOAD(calls), i);
    CHECK_EQ(LOAD(a.calls), i);
  }
  peer_release(&here);
  peer_release(&there);
}

TEST_OF_BROKER(who_comes_late_knows_who_answers, NULL) {
  SCOPED peer here, there;
  responder a = {"a", 0, 0};
  told t = {.enough = 1};
  peer_connect_to(&there, b);
  peer_answer(&there, "q", &a);
  peer_connect_to(&here, b); /* returns when the names of the others are known */
  CHECK_OK(ask(&here, &t, "q", "", ten_seconds));
  CHECK_EQ(t.answers, 1);
  peer_release(&here);
  peer_release(&there);
}

TEST(question_can_be_answered_later_and_once) {
  broker b;
  SCOPED peer here, there;
  late_reply r = {{0, 0, 0}, "later", 1};
  told t = {.enough = 1};
  start_peers(&b, &here, &there, NULL);
  CHECK_OK(transport_answer(&there.transport, "q", keep_question, &r.question, NULL));
  peer_flush(&there);
  pthread_t thread = start_reply(&r);
  CHECK_OK(ask(&here, &t, "q", "", ten_seconds));
  join_thread(thread);
  CHECK_EQ(r.result, MULTICAST_OK);
  CHECK_TEXT(t.each[0].payload, "later");
  /* The second reply is dropped. */
  CHECK_OK(transport_reply(&r.question, "again", 5));
  EVENTUALLY(TRANSPORT_LATE(peer_stats(&here)) == 1);
  peer_release(&here);
#ifdef TRANSPORT_HAS_PEERS
  EVENTUALLY(peer_stats(&there).peers == 0);
  CHECK_ERROR(transport_reply(&r.question, "x", 1), NOT_FOUND);
#endif
  peer_release(&there);
  CHECK_ERROR(transport_reply(&r.question, "x", 1), INVALID_HANDLE);
  broker_delete(&b);
}

TEST(nobody_answers_is_told_at_once) {
  broker b;
  SCOPED peer here, there;
  responder a = {"a", 0, 0};
  told t = {.enough = 1};
  int calls = 0;
  start_peers(&b, &here, &there, NULL);
  peer_observe(&there, "q", counter(&calls));
  CHECK_ERROR(ask(&here, &t, "q", "", MULTICAST_FOREVER), NOT_FOUND);
  peer_answer(&there, "q", &a);
  CHECK_OK(ask(&here, &t, "q", "", ten_seconds));
  CHECK_OK(transport_answer(&there.transport, "q", NULL, NULL, NULL));
  EVENTUALLY(LOAD(a.releases) == 1);
  peer_flush(&there); /* the broker may process the change a moment later */
  EVENTUALLY(ask(&here, &t, "q", "", a_while) == MULTICAST_ERROR_NOT_FOUND);
  CHECK_EQ(t.count, 0);
#ifdef TRANSPORT_HAS_PEERS
  CHECK_EQ(peer_stats(&here).refused, 2);
#endif
  peer_answer(&there, "q", &a);
  CHECK_OK(ask(&here, &t, "q", "", ten_seconds));
  peer_release(&there);
  EVENTUALLY(ask(&here, &t, "q", "", a_while) == MULTICAST_ERROR_NOT_FOUND);
  CHECK_EQ(LOAD(calls), 0);
  peer_release(&here);
  broker_delete(&b);
}

/* ---- Threads that may ask questions ---------------------------------------------------------- */

FUNCTION(ask_here, asking *a) {
  a->result = ask(a->p, &a->t, "q", "inside", ten_seconds);
  STORE(a->is_done, 1);
}

TEST(thread_of_the_transport_may_not_ask) {
  broker b;
  SCOPED peer here, there;
  responder r = {"r", 0, 0};
  asking a = {&here, 1, {.enough = 1}, 0};
  start_peers(&b, &here, &there, NULL);
  peer_answer(&there, "q", &r);
  peer_observe(&here, "n", DELEGATE(ask_here, &a));
  CHECK_OK(peer_publish(&there, "n", 1, "x", 1));
  EVENTUALLY(LOAD(a.is_done) == 1);
  CHECK_ERROR(a.result, STATE);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

/* Observers and answering functions run on the queue's thread, where they may ask questions. */
static void ask_on(void *context, const transport_question *question, uint32_t event,
                   const void *payload, size_t size) {
  asking *a = context;
  STORE(a->result, ask(a->p, &a->t, "r", "on", ten_seconds));
  CHECK_OK(transport_reply(question, a->t.each[0].payload, strlen(a->t.each[0].payload)));
  STORE(a->is_done, 1);
}

TEST(peers_with_queues_ask_inside_and_answer_there) {
  broker b;
  SCOPED peer here, there;
  multicast_queue q = multicast_queue_create(NULL);
  responder r = {"r", 0, 0};
  asking of_here = {&here, 1, {.enough = 1}, 0}, of_there = {&there, 1, {.enough = 1}, 0};
  CHECK_OK(multicast_queue_start(q));
  broker_start(&b, NULL);
  peer_connect_to(&here, &b);
  transport_options options = peer_options(&there, b.port);
  options.queue = q;
  peer_connect(&there, &options);
  peer_meet(&here, 1);
  peer_answer(&here, "r", &r);
  CHECK_OK(transport_answer(&there.transport, "q", ask_on, &of_there, NULL));
  peer_flush(&there);
  CHECK_OK(ask(&here, &of_here.t, "q", "", ten_seconds));
  CHECK_OK(LOAD(of_there.result));
  CHECK_TEXT(of_here.t.each[0].payload, "r:7:on");
  EVENTUALLY(peer_stats(&there).delivered == 1);
  peer_release(&here);
  peer_release(&there);
  CHECK_OK(multicast_queue_destroy(q));
  broker_delete(&b);
}

/* ---- Several requesters ---------------------------------------------------------------------- */

typedef struct many_asker {
  peer *p;
  int number;
} many_asker;

THREAD(ask_often, many_asker *a) {
  for (int i = 0; i < 300; ++i) {
    char text[32], expected[64];
    told t = {.enough = 2};
    snprintf(text, sizeof text, "%d-%d", a->number, i);
    CHECK_OK(ask(a->p, &t, "q", text, ten_seconds));
    CHECK_EQ(t.count, 2);
    for (int k = 0; k < 2; ++k) {
      snprintf(expected, sizeof expected, "r:7:%s", text);
      CHECK_TEXT(t.each[k].payload, expected);
    }
  }
}

TEST(several_ask_at_once) {
  enum { COUNT = 4 };
  broker b;
  peer all[3];
  responder r = {"r", 0, 0};
  many_asker askers[COUNT * 3];
  pthread_t threads[COUNT * 3];
  start_peers(&b, &all[0], &all[1], &all[2]);
  for (int i = 0; i < 3; ++i) peer_answer(&all[i], "q", &r);
  for (int i = 0; i < 3; ++i) peer_meet(&all[i], 2);
  for (int i = 0; i < COUNT * 3; ++i) {
    askers[i] = (many_asker){&all[i % 3], i};
    threads[i] = start_thread(ask_often, &askers[i]);
  }
  for (int i = 0; i < COUNT * 3; ++i) join_thread(threads[i]);
  CHECK_EQ(LOAD(r.calls), COUNT * 3 * 300 * 2);
  for (int i = 0; i < 3; ++i) CHECK_EQ(TRANSPORT_LATE(peer_stats(&all[i])), 0);
  for (int i = 0; i < 3; ++i) peer_release(&all[i]);
  CHECK_EQ(LOAD(r.releases), 3);
  broker_delete(&b);
}

/* ---- Releases -------------------------------------------------------------------------------- */

TEST(release_ends_the_questions_of_a_transport) {
  broker b;
  SCOPED peer here, there;
  transport_question kept = {0, 0, 0};
  asking a = {&here, 1, {.enough = 1}, 0};
  start_peers(&b, &here, &there, NULL);
  CHECK_OK(transport_answer(&there.transport, "q", keep_question, &kept, NULL));
  peer_flush(&there);
  pthread_t thread = start_asking(&a);
  EVENTUALLY(LOAD(kept.transport) != 0);
  here.transport.release(here.transport.context);
  join_thread(thread);
  CHECK_ERROR(a.result, INVALID_HANDLE);
  CHECK_EQ(a.t.count, 0);
  EVENTUALLY(LOAD(here.releases) == 1);
  CHECK_OK(multicast_broadcaster_destroy(here.broadcaster));
  here.broadcaster.id = 0;
  peer_release(&there);
  broker_delete(&b);
}

static gate in_call = GATE_INIT;

static void answer_at_the_gate(void *context, const transport_question *question, uint32_t event,
                               const void *payload, size_t size) {
  ADD(((responder *)context)->calls, 1);
  gate_wait(&in_call);
  CHECK_OK(transport_reply(question, "x", 1));
}

TEST(context_is_released_when_no_call_has_it) {
  broker b;
  SCOPED peer here, there;
  responder first = {"first", 0, 0}, second = {"second", 0, 0}, other = {"other", 0, 0};
  asking a = {&here, 1, {.enough = 1}, 0};
  start_peers(&b, &here, &there, NULL);
  CHECK_OK(transport_answer(&there.transport, "q", answer_at_the_gate, &first,
                            note_release_of_responder));
  peer_flush(&there);
  pthread_t thread = start_asking(&a);
  EVENTUALLY(LOAD(first.calls) == 1);
  CHECK_OK(transport_answer(&there.transport, "q", respond, &second, note_release_of_responder));
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(first.releases), 0);
  gate_open(&in_call);
  join_thread(thread);
  CHECK_OK(a.result);
  EVENTUALLY(LOAD(first.releases) == 1);
  CHECK_OK(ask(&here, &a.t, "q", "", ten_seconds));
  CHECK_TEXT(a.t.each[0].payload, "second:7:");
  CHECK_EQ(LOAD(second.releases), 0);
  /* If transport_answer() fails, it still calls `release`. */
  CHECK_ERROR(transport_answer(&there.transport, "", respond, &other, note_release_of_responder),
              INVALID_ARGUMENT);
  CHECK_EQ(LOAD(other.releases), 1);
  CHECK_ERROR(transport_answer(NULL, "q", respond, &other, note_release_of_responder),
              INVALID_HANDLE);
  CHECK_EQ(LOAD(other.releases), 2);
  CHECK_OK(transport_answer(&there.transport, "q", NULL, &other, note_release_of_responder));
  EVENTUALLY(LOAD(second.releases) == 1); /* later, if its call has not returned yet */
  CHECK_EQ(LOAD(other.releases), 2);
  CHECK_ERROR(transport_answer(&there.transport, "q", NULL, NULL, NULL), NOT_FOUND);
  CHECK_ERROR(transport_answer(&there.transport, "none", NULL, NULL, NULL), NOT_FOUND);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

TEST_OF_BROKER(questions_with_bad_arguments_are_refused, NULL) {
  static char long_name[257];
  static const multicast_transport none = {0};
  SCOPED peer here;
  responder r = {"r", 0, 0};
  told t = {0};
  peer_connect_to(&here, b);
  memset(long_name, 'a', 256);
  const char *const names[] = {NULL, "", long_name};
  const multicast_transport *own = &here.transport;
  for (int i = 0; i < 3; ++i) {
    CHECK_ERROR(ask(&here, &t, names[i], "", 0), INVALID_ARGUMENT);
    CHECK_ERROR(transport_answer(own, names[i], respond, &r, NULL), INVALID_ARGUMENT);
    CHECK_ERROR(transport_answer(own, names[i], NULL, NULL, NULL), INVALID_ARGUMENT);
  }
  CHECK_ERROR(transport_ask(own, "q", 1, NULL, 1, 0, note_told, &t), INVALID_ARGUMENT);
  CHECK_ERROR(transport_ask(own, "q", 1, "x", 1, 0, NULL, &t), INVALID_ARGUMENT);
  CHECK_ERROR(transport_ask(NULL, "q", 1, "x", 1, 0, note_told, &t), INVALID_HANDLE);
  CHECK_ERROR(transport_ask(&none, "q", 1, "x", 1, 0, note_told, &t), INVALID_HANDLE);
  CHECK_ERROR(transport_answer(&none, "q", respond, &r, NULL), INVALID_HANDLE);
  const transport_question question = {0, 1, 1};
  CHECK_ERROR(transport_reply(NULL, "x", 1), INVALID_ARGUMENT);
  CHECK_ERROR(transport_reply(&question, NULL, 1), INVALID_ARGUMENT);
  CHECK_ERROR(transport_reply(&question, "x", 1), INVALID_HANDLE);
  const multicast_transport gone = here.transport;
  peer_release(&here);
  CHECK_ERROR(transport_ask(&gone, "q", 1, "x", 1, 0, note_told, &t), INVALID_HANDLE);
}

/* ---- Forks ----------------------------------------------------------------------------------- */

static bool fork_when_told(void *context, multicast_status status, int32_t pid, const char *peer,
                           const void *payload, size_t size) {
  *(pid_t *)context = fork();
  return true;
}

TEST(child_of_a_fork_does_not_ask_nor_answer) {
  broker b;
  SCOPED peer here, there;
  transport_question kept = {0, 0, 0};
  responder r = {"r", 0, 0};
  told t = {.enough = 1};
  pid_t child = -1;
  start_peers(&b, &here, &there, NULL);
  CHECK_OK(transport_answer(&there.transport, "k", keep_question, &kept, NULL));
  peer_answer(&there, "q", &r);
  CHECK_ERROR(ask(&here, &t, "k", "", a_while), TIMEOUT);
  EVENTUALLY(LOAD(kept.transport) != 0);
  const multicast_status status =
      transport_ask(&here.transport, "q", 1, NULL, 0, ten_seconds, fork_when_told, &child);
  if (child == 0) {
    CHECK_ERROR(status, STATE);
    CHECK_ERROR(ask(&here, &t, "q", "", 0), STATE);
    CHECK_ERROR(transport_reply(&kept, "x", 1), STATE);
    CHECK_ERROR(transport_answer(&here.transport, "q", respond, &r, note_release_of_responder),
                STATE);
    CHECK_EQ(LOAD(r.releases), 1);
    here.transport.release(here.transport.context);
    there.transport.release(there.transport.context);
    CHECK_EQ(LOAD(r.releases), 1);
    CHECK_EQ(LOAD(here.releases), 1);
    _exit(0);
  }
  CHECK_OK(status);
  int end = -1;
  CHECK_EQ(waitpid(child, &end, 0), child);
  CHECK_EQ(end, 0);
  CHECK_OK(ask(&here, &t, "q", "", ten_seconds));
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

typedef struct fork_of_queue {
  int calls;
  pid_t child;
} fork_of_queue;

static void fork_at_first(void *context, const transport_question *question, uint32_t event,
                          const void *payload, size_t size) {
  fork_of_queue *f = context;
  if (f->calls++ == 0) f->child = fork();
}

TEST_OF_BROKER(child_of_a_fork_does_not_answer_what_its_queue_has, NULL) {
  SCOPED peer here, there;
  const multicast_queue queue = multicast_queue_create(NULL);
  fork_of_queue f = {0, -1};
  told t = {.enough = 1};
  int end = -1;
  peer_connect_to(&here, b);
  peer_connect_with(&there, b->port, &OPTIONS(.queue = queue));
  peer_meet(&here, 1);
  CHECK_OK(transport_answer(&there.transport, "q", fork_at_first, &f, NULL));
  peer_flush(&there);
  for (int i = 0; i < 2; ++i) CHECK_ERROR(ask(&here, &t, "q", "", a_while), TIMEOUT);
  EVENTUALLY(peer_stats(&there).received == 2);
  pause_ms(A_WHILE_MS);
  const size_t calls = multicast_queue_run(queue, 0);
  if (f.child == 0) _exit(calls == 1 && f.calls == 1 && multicast_queue_run(queue, 0) == 0 ? 0 : 1);
  CHECK_EQ(calls, 2);
  CHECK_EQ(f.calls, 2);
  CHECK_EQ(waitpid(f.child, &end, 0), f.child);
  CHECK_EQ(end, 0);
  peer_release(&here);
  peer_release(&there);
  CHECK_OK(multicast_queue_destroy(queue));
}

/* Ends the child with _exit(), because exit() would make sanitizers report the transport's memory,
 * which the child does not free, as a leak. */
static void leave(void) { _exit(0); }

/* An answering function that forks on the transport's thread. The child returns from the
 * function. */
static void fork_and_answer(void *context, const transport_question *question, uint32_t event,
                            const void *payload, size_t size) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    atexit(leave);
    return;
  }
  CHECK_OK(transport_reply(question, "x", 1));
  STORE(*(pid_t *)context, child);
}

TEST(function_that_answers_may_fork) {
  broker b;
  SCOPED peer here, there;
  told t = {.enough = 1};
  pid_t child = 0;
  int end = -1;
  start_peers(&b, &here, &there, NULL);
  CHECK_OK(transport_answer(&there.transport, "q", fork_and_answer, &child, NULL));
  peer_flush(&there);
  CHECK_OK(ask(&here, &t, "q", "", ten_seconds));
  CHECK_EQ(t.answers, 1);
  EVENTUALLY(LOAD(child) > 0);
  CHECK_EQ(waitpid(child, &end, 0), child);
  CHECK_EQ(end, 0);
  CHECK_OK(transport_answer(&there.transport, "q", NULL, NULL, NULL));
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

/* ---- Many at once ---------------------------------------------------------------------------- */

enum { ASKERS = 100, LEFT = 20 /* are not answered */ };

/* Stores all questions until the last question has arrived. */
typedef struct pending {
  transport_question all[ASKERS];
  int count;
} pending;

static void keep_each(void *context, const transport_question *question, uint32_t event,
                      const void *payload, size_t size) {
  pending *p = context;
  p->all[p->count] = *question;
  ADD(p->count, 1);
}

typedef struct asker {
  peer *p;
  int result, answers;
  long sleeps;
} asker;

static long sleeps_now(void) {
  struct rusage used;
  CHECK_EQ(getrusage(RUSAGE_THREAD, &used), 0);
  return used.ru_nvcsw;
}

THREAD(ask_once, asker *a) {
  told t = {.enough = 1};
  const long before = sleeps_now();
  a->result = ask(a->p, &t, "q", "x", 2 * ten_seconds);
  a->sleeps = sleeps_now() - before;
  STORE(a->answers, t.answers);
}

static int answered_of(asker *askers) {
  int count = 0;
  for (int i = 0; i < ASKERS; ++i) count += LOAD(askers[i].answers);
  return count;
}

/* Each answer must wake only the thread that waits for it. If each answer woke all asking threads,
 * each thread would wake up once per answer. */
TEST(answer_wakes_its_asker_alone) {
  static asker askers[ASKERS];
  static pending kept;
  pthread_t threads[ASKERS];
  broker b;
  peer here, there;
  long sleeps = 0;
  start_peers(&b, &here, &there, NULL);
  CHECK_OK(transport_answer(&there.transport, "q", keep_each, &kept, NULL));
  peer_flush(&there);
  for (int i = 0; i < ASKERS; ++i) {
    askers[i].p = &here;
    threads[i] = start_thread(ask_once, &askers[i]);
  }
  EVENTUALLY(LOAD(kept.count) == ASKERS);
  for (int i = 0; i < ASKERS - LEFT; ++i) {
    CHECK_OK(transport_reply(&kept.all[i], "x", 1));
    pause_ms(1);
  }
  EVENTUALLY(answered_of(askers) == ASKERS - LEFT);
  peer_release(&here); /* wakes the remaining askers */
  for (int i = 0; i < ASKERS; ++i) {
    join_thread(threads[i]);
    if (askers[i].answers == 0) CHECK_ERROR(askers[i].result, INVALID_HANDLE);
    else CHECK_OK(askers[i].result);
    sleeps += askers[i].sleeps;
  }
  CHECK(sleeps < 20L * ASKERS);
  peer_release(&there);
  broker_delete(&b);
}
