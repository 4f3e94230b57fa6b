/* Tests questions that a broker forwards. The broker does not report which peers answer. */

#include "Harness/asking.h"
#include "Harness/observers.h"

#include <signal.h>

static const uint64_t ten_seconds = 10000000000u, a_while = 200000000u;

/* ---- Answers --------------------------------------------------------------------------------- */

TEST(each_that_answers_is_asked_once_and_has_no_name) {
  broker b;
  SCOPED peer here, there, third;
  responder a = {"a", 0, 0}, z = {"z", 0, 0}, own = {"own", 0, 0};
  told t = {.enough = 2};
  start_peers(&b, &here, &there, &third);
  peer_answer(&there, "q", &a);
  peer_answer(&third, "q", &z);
  peer_answer(&here, "q", &own);
  CHECK_OK(ask(&here, &t, "q", "what", ten_seconds));
  CHECK_EQ(t.count, 2);
  const int of_there = t.each[0].payload[0] == 'a' ? 0 : 1;
  CHECK_TEXT(t.each[of_there].payload, "a:7:what");
  CHECK_TEXT(t.each[1 - of_there].payload, "z:7:what");
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(t.each[i].status);
    CHECK_EQ(t.each[i].pid, 0);
    CHECK_TEXT(t.each[i].peer, "");
  }
  CHECK_EQ(TRANSPORT_LATE(peer_stats(&here)), 0);
  /* This question has no payload, and ends with the first answer. A second answer arrives too
   * late. */
  t.enough = 1;
  CHECK_OK(ask(&here, &t, "q", NULL, MULTICAST_FOREVER));
  CHECK_EQ(t.count, 1);
  EVENTUALLY(TRANSPORT_LATE(peer_stats(&here)) == 1);
  CHECK_EQ(LOAD(a.calls), 2);
  CHECK_EQ(LOAD(z.calls), 2);
  CHECK_EQ(LOAD(own.calls), 0);
  CHECK_EQ(peer_stats(&here).published, 2);
  CHECK_EQ(peer_stats(&here).received, 4);
  CHECK_EQ(peer_stats(&here).delivered, 0);
  CHECK_EQ(peer_stats(&there).published, 2);
  EVENTUALLY(peer_stats(&there).delivered == 2);
  broker_delete(&b);
}

TEST(all_answers_come_within_the_time) {
  broker b;
  SCOPED peer here, there, third;
  responder r = {"r", 0, 0};
  told t = {0};
  start_peers(&b, &here, &there, &third);
  peer_answer(&there, "q", &r);
  peer_answer(&third, "q", &r);
  const uint64_t before = time_now();
  CHECK_OK(ask(&here, &t, "q", "", 2 * a_while));
  CHECK(time_now() - before >= 2 * a_while);
  CHECK_EQ(t.count, 2);
  broker_delete(&b);
}

TEST(silence_is_told_when_the_time_is_over) {
  broker b;
  SCOPED peer here, there;
  transport_question kept = {0, 0, 0};
  told t = {0};
  start_peers(&b, &here, &there, NULL);
  CHECK_OK(transport_answer(&there.transport, "q", keep_question, &kept, NULL));
  peer_flush(&there);
  const uint64_t before = time_now();
  CHECK_ERROR(ask(&here, &t, "q", "", a_while), TIMEOUT);
  CHECK(time_now() - before >= a_while);
  CHECK_EQ(t.count, 0);
  /* Send a reply that is too late, a reply to an unknown question, and a reply to an unknown
   * peer. */
  EVENTUALLY(LOAD(kept.transport) != 0);
  CHECK_OK(transport_reply(&kept, "x", 1));
  kept.number += 1000;
  CHECK_OK(transport_reply(&kept, "x", 1));
  EVENTUALLY(TRANSPORT_LATE(peer_stats(&here)) == 2);
  kept.peer = ~kept.peer;
  CHECK_OK(transport_reply(&kept, "x", 1));
  peer_flush(&there);
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).received, 2);
  broker_delete(&b);
}

/* ---- Names ----------------------------------------------------------------------------------- */

TEST(each_name_has_its_questions) {
  static char long_name[256];
  const char *const names[] = {"q", "?q", "%?q", "q/r.s", "=", "ä b>*+#$", long_name};
  enum { COUNT = sizeof names / sizeof *names };
  broker b;
  SCOPED peer here, there;
  responder r[COUNT];
  int calls = 0;
  start_peers(&b, &here, &there, NULL);
  memset(long_name, '/', sizeof long_name - 1);
  for (int i = 0; i < COUNT; ++i) {
    r[i] = (responder){names[i][0] == '/' ? "long" : names[i], 0, 0};
    peer_observe(&there, names[i], counter(&calls));
    peer_answer(&there, names[i], &r[i]);
  }
  for (int i = 0; i < COUNT; ++i) {
    char expected[64];
    told t = {.enough = 1};
    CHECK_OK(ask(&here, &t, names[i], "x", ten_seconds));
    snprintf(expected, sizeof expected, "%s:7:x", r[i].name);
    CHECK_TEXT(t.each[0].payload, expected);
    CHECK_EQ(LOAD(r[i].calls), 1);
  }
  peer_flush(&there);
  CHECK_EQ(LOAD(calls), 0);
  peer_release(&there); /* while `r` still exists */
  broker_delete(&b);
}

/* ---- Connections ----------------------------------------------------------------------------- */

TEST(question_waits_for_the_connection) {
  broker b;
  SCOPED peer here, there;
  responder r = {"r", 0, 0};
  asking a = {&here, 1, {.enough = 1}, 0};
  broker_prepare(&b, NULL);
  peer_begin(&here, b.port, NULL);
  peer_begin(&there, b.port, NULL);
  CHECK_OK(transport_answer(&there.transport, "q", respond, &r, note_release_of_responder));
  CHECK_ERROR(ask(&here, &a.t, "q", "", a_while), TIMEOUT);
  CHECK_ERROR(ask(&here, &a.t, "q", "", 0), TIMEOUT);
  CHECK_EQ(peer_stats(&here).published, 0);
  CHECK_EQ(peer_stats(&here).refused, 2);
  broker_start_again(&b);
  peer_flush(&there);
  CHECK_OK(ask(&here, &a.t, "q", "", ten_seconds));
  CHECK_EQ(LOAD(r.calls), 1);
  /* The transport is released while the question waits for a connection. */
  peer_release(&here);
  broker_end(&b, SIGKILL);
  peer_begin(&here, b.port, NULL);
  pthread_t thread = start_asking(&a);
  pause_ms(A_WHILE_MS);
  peer_release(&here);
  join_thread(thread);
  CHECK_ERROR(a.result, INVALID_HANDLE);
  peer_release(&there);
  CHECK_EQ(LOAD(r.releases), 1);
  broker_delete(&b);
}

TEST_OF_BROKER(question_is_refused_without_a_connection, NULL) {
  SCOPED peer here;
  transport_question question = {0, 1, 1};
  told t = {0};
  peer_connect_with(&here, b->port, &OPTIONS(.flags = TRANSPORT_REFUSE_OFFLINE));
  question.transport = (uint64_t)(uintptr_t)here.transport.context;
  CHECK_ERROR(ask(&here, &t, "q", "", MULTICAST_FOREVER), NOT_FOUND);
  CHECK_OK(transport_reply(&question, "x", 1));
  broker_end(b, SIGKILL);
  EVENTUALLY(LOAD(here.lost) == 1);
  CHECK_ERROR(ask(&here, &t, "q", "", MULTICAST_FOREVER), STATE);
  CHECK_ERROR(transport_reply(&question, "x", 1), STATE);
}

/* If the outbox has no room for the question, `ask` fails immediately instead of waiting for its
 * timeout. */
TEST(question_that_has_no_room_without_a_connection_is_refused) {
  SCOPED peer here;
  told t = {0};
  peer_begin(&here, free_port(), &OPTIONS(.capacity = 2));
  CHECK_ERROR(ask(&here, &t, "q", "", 0), TIMEOUT);
  for (int i = 0; i < 2; ++i) CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  CHECK_ERROR(ask(&here, &t, "q", "", MULTICAST_FOREVER), QUEUE_FULL);
  CHECK_EQ(t.count, 0);
}

/* ---- Flushing -------------------------------------------------------------------------------- */

typedef struct flushing {
  peer *p;
  int result;
} flushing;

THREAD(flush_late, flushing *f) {
  f->result = transport_flush(&f->p->transport, 2 * ten_seconds);
}

/* If a publication is dropped during a flush, the flush fails even if all other publications
 * arrive. The next flush succeeds. */
TEST_OF_BROKER(flush_says_that_a_publication_was_dropped_meanwhile, NULL) {
  SCOPED peer here;
  flushing f = {&here, 1};
  broker_end(b, SIGTERM);
  peer_begin(&here, b->port, &OPTIONS(.capacity = 3, .overflow = MULTICAST_OVERFLOW_DROP_OLDEST));
  for (int i = 0; i < 3; ++i) CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  pthread_t thread = start_thread(flush_late, &f);
  pause_ms(A_WHILE_MS);
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  broker_start_again(b);
  join_thread(thread);
  CHECK_ERROR(f.result, STATE);
  CHECK_EQ(peer_stats(&here).dropped, 1);
  peer_flush(&here);
}

/* When the connection is lost, the waiting question ends immediately. Questions and answers work on
 * the next connection. */
TEST(lost_connection_ends_questions) {
  broker b;
  SCOPED peer here, there;
  responder r = {"r", 0, 0};
  transport_question kept = {0, 0, 0};
  asking a = {&here, 1, {.enough = 1}, 0};
  start_peers(&b, &here, &there, NULL);
  CHECK_OK(transport_answer(&there.transport, "q", keep_question, &kept, NULL));
  peer_flush(&there);
  pthread_t thread = start_asking(&a);
  EVENTUALLY(LOAD(kept.transport) != 0);
  broker_end(&b, SIGKILL);
  join_thread(thread);
  CHECK_ERROR(a.result, STATE);
  CHECK_OK(transport_answer(&there.transport, "q", respond, &r, NULL));
  broker_start_again(&b);
  EVENTUALLY(LOAD(there.connected) == 2 && LOAD(here.connected) == 2);
  peer_flush(&there);
  CHECK_OK(ask(&here, &a.t, "q", "", ten_seconds));
  CHECK_TEXT(a.t.each[0].payload, "r:7:");
  broker_delete(&b);
}

static gate busy = GATE_INIT;

static void wait_busily(void *context, uint32_t event, const void *payload, size_t size) {
  gate_wait(&busy);
}

TEST(question_that_nobody_waits_for_is_not_sent) {
  broker b;
  SCOPED peer here, there;
  responder r = {"r", 0, 0};
  told t = {.enough = 1};
  start_peers(&b, &here, &there, NULL);
  peer_answer(&there, "q", &r);
  peer_observe(&here, "busy", DELEGATE(wait_busily, NULL));
  CHECK_OK(peer_publish(&there, "busy", 1, NULL, 0));
  EVENTUALLY(peer_stats(&here).received == 1);
  pause_ms(A_WHILE_MS); /* until the transport's thread is in the call */
  CHECK_ERROR(ask(&here, &t, "q", "late", a_while), TIMEOUT);
  CHECK_EQ(peer_stats(&here).waiting, 1);
  gate_open(&busy);
  CHECK_OK(ask(&here, &t, "q", "soon", ten_seconds));
  CHECK_TEXT(t.each[0].payload, "r:7:soon");
  CHECK_EQ(LOAD(r.calls), 1);
  CHECK_EQ(peer_stats(&here).dropped, 1);
  CHECK_EQ(peer_stats(&here).waiting, 0);
  broker_delete(&b);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

enum { SIZE = 100000 };

THREAD(reply_with_all, late_reply *r) {
  EVENTUALLY(LOAD(r->question.transport) != 0);
  CHECK_OK(transport_reply(&r->question, r->text, SIZE + 1));
}

TEST(large_questions_and_answers) {
  static char bytes[SIZE + 1];
  broker b;
  SCOPED peer here, there;
  late_reply r = {{0, 0, 0}, bytes, 1};
  told t = {.enough = 1};
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.max_payload = SIZE));
  peer_connect_with(&there, b.port, &OPTIONS(.max_payload = SIZE + 1));
  memset(bytes, 'x', SIZE);
  CHECK_OK(transport_answer(&there.transport, "q", keep_question, &r.question, NULL));
  peer_flush(&there);
  pthread_t thread = start_reply(&r);
  CHECK_OK(ask(&here, &t, "q", bytes, ten_seconds));
  join_thread(thread);
  CHECK_OK(r.result);
  CHECK_EQ(t.each[0].size, SIZE);
  CHECK_ERROR(transport_ask(&here.transport, "q", 1, bytes, SIZE + 1, 0, note_told, &t), LIMIT);
  CHECK_EQ(peer_stats(&here).refused, 1);
  CHECK_ERROR(transport_reply(&r.question, bytes, SIZE + 2), LIMIT);
  /* This answer is larger than the asker's limit. */
  STORE(r.question.transport, 0);
  bytes[SIZE] = 'x';
  thread = start_thread(reply_with_all, &r);
  CHECK_ERROR(ask(&here, &t, "q", "", 2 * a_while), TIMEOUT);
  join_thread(thread);
  EVENTUALLY(peer_stats(&here).ignored == 1 || LOAD(here.lost) == 1);
  broker_delete(&b);
}

typedef struct slow {
  transport_question *question;
  peer *p;
  int calls;
} slow;

/* The first call makes two more answers arrive before it returns. */
static bool tell_slowly(void *context, multicast_status status, int32_t pid, const char *peer,
                        const void *payload, size_t size) {
  slow *s = context;
  if (++s->calls == 1) {
    CHECK_OK(transport_reply(s->question, "y", 1));
    CHECK_OK(transport_reply(s->question, "z", 1));
    EVENTUALLY(peer_stats(s->p).received == 3);
  }
  return true;
}

TEST(answers_that_are_too_many_end_a_question) {
  broker b;
  SCOPED peer here, there;
  late_reply r = {{0, 0, 0}, "x", 1};
  slow s = {&r.question, &here, 0};
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.capacity = 1));
  peer_connect_with(&there, b.port, NULL);
  CHECK_OK(transport_answer(&there.transport, "q", keep_question, &r.question, NULL));
  peer_flush(&there);
  pthread_t thread = start_reply(&r);
  CHECK_ERROR(transport_ask(&here.transport, "q", 1, NULL, 0, MULTICAST_FOREVER, tell_slowly, &s),
              QUEUE_FULL);
  join_thread(thread);
  CHECK_EQ(s.calls, 2);
  CHECK_EQ(peer_stats(&here).lost, 1);
  broker_delete(&b);
}

TEST_OF_BROKER(full_outbox_refuses_questions_and_answers, NULL) {
  SCOPED peer here;
  told t = {0};
  peer_connect_with(&here, b->port, &OPTIONS(.capacity = 1));
  const transport_question question = {(uint64_t)(uintptr_t)here.transport.context, 1, 1};
  SCOPED peer there;
  peer_connect_to(&there, b);
  peer_observe(&here, "busy", DELEGATE(wait_busily, NULL));
  CHECK_OK(peer_publish(&there, "busy", 1, NULL, 0));
  EVENTUALLY(peer_stats(&here).received == 1);
  pause_ms(A_WHILE_MS);
  CHECK_OK(peer_publish(&here, "n", 1, NULL, 0));
  CHECK_ERROR(ask(&here, &t, "q", "", ten_seconds), QUEUE_FULL);
  CHECK_ERROR(transport_reply(&question, "x", 1), QUEUE_FULL);
  CHECK_EQ(peer_stats(&here).refused, 2);
  gate_open(&busy);
  EVENTUALLY(transport_reply(&question, "x", 1) == MULTICAST_OK);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

TEST(flush_does_not_wait_for_a_question_that_nobody_waits_for) {
  broker b;
  SCOPED peer here, there;
  told t = {.enough = 1};
  start_peers(&b, &here, &there, NULL);
  peer_observe(&here, "busy", DELEGATE(wait_busily, NULL));
  CHECK_OK(peer_publish(&there, "busy", 1, NULL, 0));
  EVENTUALLY(peer_stats(&here).received == 1);
  pause_ms(A_WHILE_MS);
  CHECK_ERROR(ask(&here, &t, "q", "", 0), TIMEOUT);
  gate_open(&busy);
  CHECK_OK(transport_flush(&here.transport, ten_seconds));
  CHECK_EQ(peer_stats(&here).dropped, 1);
  /* The flush also succeeds if a publication precedes the question in the outbox. */
  CHECK_OK(peer_publish(&here, "n", 1, NULL, 0));
  ask(&here, &t, "q", "", 0);
  CHECK_OK(transport_flush(&here.transport, ten_seconds));
  broker_delete(&b);
}

/* Stores only the newest question, because on a busy machine earlier questions may have ended
 * without an answer. */
typedef struct newest {
  pthread_mutex_t lock;
  transport_question question;
  int has_to_end;
} newest;

static void keep_newest(void *context, const transport_question *question, uint32_t event,
                        const void *payload, size_t size) {
  newest *n = context;
  pthread_mutex_lock(&n->lock);
  n->question = *question;
  pthread_mutex_unlock(&n->lock);
}

THREAD(reply_without_end, newest *n) {
  while (!LOAD(n->has_to_end)) {
    pthread_mutex_lock(&n->lock);
    const transport_question question = n->question;
    pthread_mutex_unlock(&n->lock);
    if (question.transport != 0) CHECK_OK(transport_reply(&question, "x", 1));
    pause_ms(1);
  }
}

/* Pauses before it returns, so that further answers arrive during the call. */
static bool tell_a_while(void *context, multicast_status status, int32_t pid, const char *peer,
                         const void *payload, size_t size) {
  pause_ms(20);
  return ++*(int *)context < 200;
}

TEST(answers_without_end_end_with_the_time) {
  broker b;
  SCOPED peer here, there;
  newest n = {PTHREAD_MUTEX_INITIALIZER, {0, 0, 0}, 0};
  int calls = 0;
  start_peers(&b, &here, &there, NULL);
  CHECK_OK(transport_answer(&there.transport, "q", keep_newest, &n, NULL));
  peer_flush(&there);
  pthread_t thread = start_thread(reply_without_end, &n);
  EVENTUALLY(transport_ask(&here.transport, "q", 1, NULL, 0, a_while / 10, tell_a_while, &calls) ==
             MULTICAST_OK);
  CHECK(calls < 200);
  STORE(n.has_to_end, 1);
  join_thread(thread);
  broker_delete(&b);
}

TEST(question_that_gives_way_to_a_newer_publication_ends) {
  broker b;
  SCOPED peer here, there;
  asking a = {&here, 1, {.enough = 1}, 0};
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port,
                    &OPTIONS(.capacity = 1, .overflow = MULTICAST_OVERFLOW_DROP_OLDEST));
  peer_connect_to(&there, &b);
  peer_observe(&here, "busy", DELEGATE(wait_busily, NULL));
  CHECK_OK(peer_publish(&there, "busy", 1, NULL, 0));
  EVENTUALLY(peer_stats(&here).received == 1);
  pause_ms(A_WHILE_MS);
  pthread_t thread = start_asking(&a);
  EVENTUALLY(peer_stats(&here).waiting == 1);
  CHECK_OK(peer_publish(&here, "n", 1, NULL, 0));
  join_thread(thread);
  CHECK_ERROR(a.result, QUEUE_FULL);
  gate_open(&busy);
  broker_delete(&b);
}

/* There are more new names than the transport can subscribe to in one step. The question must wait
 * until the transport has also subscribed to the answers. */
TEST(answer_does_not_come_before_the_broker_knows_where_it_goes) {
  enum { COUNT = 1000 };
  broker b;
  SCOPED peer here, there;
  responder r = {"r", 0, 0};
  asking a = {&here, 1, {.enough = 1}, 0};
  start_peers(&b, &here, &there, NULL);
  peer_answer(&there, "q", &r);
  peer_observe(&here, "busy", DELEGATE(wait_busily, NULL));
  CHECK_OK(peer_publish(&there, "busy", 1, NULL, 0));
  EVENTUALLY(peer_stats(&here).received == 1);
  pause_ms(A_WHILE_MS);
  for (int i = 0; i < COUNT; ++i) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    CHECK_OK(here.transport.subscribe(here.transport.context, name));
  }
  pthread_t thread = start_asking(&a);
  EVENTUALLY(peer_stats(&here).waiting == 1);
  gate_open(&busy);
  join_thread(thread);
  CHECK_OK(a.result);
  broker_delete(&b);
}

/* The name, the prefix and the payload have their largest sizes. */
TEST(largest_question_is_answered) {
  static char bytes[SIZE + 1], name[256], prefix[201];
  broker b;
  SCOPED peer here, there;
  late_reply r = {{0, 0, 0}, bytes, 1};
  told t = {.enough = 1};
  memset(bytes, 'x', SIZE);
  memset(name, '%', sizeof name - 1);
  memset(prefix, 'p', sizeof prefix - 1);
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.max_payload = SIZE, .TRANSPORT_PREFIX = prefix));
  peer_connect_with(&there, b.port, &OPTIONS(.max_payload = SIZE, .TRANSPORT_PREFIX = prefix));
  CHECK_OK(transport_answer(&there.transport, name, keep_question, &r.question, NULL));
  peer_flush(&there);
  pthread_t thread = start_reply(&r);
  CHECK_OK(ask(&here, &t, name, bytes, ten_seconds));
  join_thread(thread);
  CHECK_EQ(t.each[0].size, SIZE);
  broker_delete(&b);
}
