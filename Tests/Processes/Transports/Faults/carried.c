/* Tests questions to peers in libraries with a broker, while the system refuses memory. */

#include "faults.h"

static const uint64_t ten_seconds = 10000000000u, a_while = 300000000u;

static void answer_same(void *context, const transport_question *question, uint32_t event,
                        const void *payload, size_t size) {
  const multicast_status status = transport_reply(question, payload, size);
  CHECK(status == MULTICAST_OK || status == MULTICAST_ERROR_OUT_OF_MEMORY);
  ADD(*(int *)context, 1);
}

static void count_end(void *context) { ADD(*(int *)context, 1000); }

static bool is_enough(void *context, multicast_status status, int32_t pid, const char *peer,
                      const void *payload, size_t size) {
  CHECK_OK(status);
  return false;
}

static multicast_status ask_with(const peer *p, size_t size, uint64_t timeout_ns) {
  static const char payload[10000];
  return transport_ask(&p->transport, "q", 1, payload, size, timeout_ns, is_enough, NULL);
}

/* Starts two peers. The peer `there` answers questions about `q`. */
static belongings start(broker *b, peer *here, peer *there, int *calls) {
  requests_are_of_the_test();
  broker_start(b, NULL);
  const belongings before = look();
  peer_connect_with(here, b->port, NULL);
  peer_connect_with(there, b->port, NULL);
  CHECK_OK(transport_answer(&there->transport, "q", answer_same, calls, count_end));
  peer_flush(there);
  return before;
}

static void end(broker *b, peer *here, peer *there, belongings before) {
  here->transport.release(here->transport.context);
  there->transport.release(there->transport.context);
  EVENTUALLY(LOAD(here->releases) == 1 && LOAD(there->releases) == 1);
  EVENTUALLY(held_blocks() == before.blocks);
  expect_same(before);
  broker_delete(b);
}

/* The test refuses these allocations in turn: the table of names, the name for the answers, the
 * question, and a large publication. */
TEST(questions_without_memory_are_refused_and_keep_nothing) {
  broker b;
  peer here, there;
  int calls = 0;
  const belongings before = start(&b, &here, &there, &calls);
  for (int which = 0; which < 4; ++which) {
    refuse_request(which == 3 ? MALLOC : CALLOC, which == 1 || which == 2, OF_THE_TEST);
    CHECK_ERROR(ask_with(&here, 1000, ten_seconds), OUT_OF_MEMORY);
    CHECK(refusal_was_made());
  }
  CHECK_EQ(peer_stats(&here).refused, 4);
  CHECK_OK(ask_with(&here, 1000, ten_seconds));
  end(&b, &here, &there, before);
  CHECK_EQ(LOAD(calls), 1001);
}

TEST(answers_without_memory_are_refused_and_keep_nothing) {
  broker b;
  peer here, there;
  int calls = 0, refused = 0;
  const belongings before = start(&b, &here, &there, &calls);
  for (int which = 0; which < 3; ++which) {
    refuse_request(which == 0 ? MALLOC : CALLOC, which == 2, OF_THE_TEST);
    CHECK_ERROR(transport_answer(&here.transport, "r", answer_same, &refused, count_end),
                OUT_OF_MEMORY);
    CHECK(refusal_was_made());
    CHECK_EQ(LOAD(refused), 1000 * (which + 1));
  }
  end(&b, &here, &there, before);
}

/* If the question is lost before it is answered, the asker waits until its timeout. If the asker
 * has no memory for the answer, it receives MULTICAST_ERROR_OUT_OF_MEMORY. */
TEST(lack_of_memory_for_an_answer_is_told) {
  broker b;
  peer here, there;
  int calls = 0, told = 0, granted = 0;
  bool was_made = true;
  const belongings before = start(&b, &here, &there, &calls);
  CHECK_OK(ask_with(&here, 1000, ten_seconds));
  for (granted = 0; was_made && granted < 20; ++granted) {
    refuse_request(MALLOC, granted, OF_A_TRANSPORT);
    const multicast_status status = ask_with(&here, 1000, a_while);
    was_made = refusal_was_made();
    CHECK(status == MULTICAST_OK || status == MULTICAST_ERROR_TIMEOUT ||
          status == MULTICAST_ERROR_OUT_OF_MEMORY);
    told += status == MULTICAST_ERROR_OUT_OF_MEMORY;
  }
  CHECK(!was_made && granted > 2);
  CHECK(told >= 1);
  CHECK_EQ(peer_stats(&here).lost, told);
  CHECK_OK(ask_with(&here, 1000, ten_seconds));
  end(&b, &here, &there, before);
}

void expect_question_lost(int kind, int granted) {
  broker b;
  peer here, there;
  int calls = 0;
  const belongings before = start(&b, &here, &there, &calls);
  CHECK_OK(ask_with(&here, 10, ten_seconds));
  refuse_request(kind, granted, OF_A_TRANSPORT);
  CHECK_ERROR(ask_with(&here, 10, ten_seconds), STATE);
  CHECK(refusal_was_made());
  CHECK_OK(ask_with(&here, 10, ten_seconds));
  end(&b, &here, &there, before);
}

/* Subscribes to names and unsubscribes from them without a connection. */
TEST(names_without_a_connection_are_freed) {
  peer p;
  belongings before = look();
  char name[16];
  requests_are_of_the_test();
  peer_begin(&p, free_port(), NULL);
  CHECK_OK(p.transport.subscribe(p.transport.context, "stays"));
  const int held = held_blocks();
  for (int i = 0; i < 1000; ++i) {
    snprintf(name, sizeof name, "n%d", i);
    CHECK_OK(p.transport.subscribe(p.transport.context, name));
    p.transport.unsubscribe(p.transport.context, name);
  }
  EVENTUALLY(held_blocks() <= held);
  CHECK_EQ(peer_stats(&p).names, 1);
  end_transport(&p, before);
}
