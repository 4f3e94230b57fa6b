/* Tests questions to peers while the system refuses memory. */

#include "requests.h"

#include "../../Transports/Faults/faults.h"

static const uint64_t ten_seconds = 10000000000u;

static void answer_same(void *context, const multicast_local_question *question, uint32_t event,
                        const void *payload, size_t size) {
  ADD(*(int *)context, 1);
  CHECK_OK(multicast_local_reply(question, payload, size));
}

static void count_end(void *context) { ADD(*(int *)context, 1000); }

static bool note_status(void *context, multicast_status status, int32_t pid, const char *peer,
                        const void *payload, size_t size) {
  *(multicast_status *)context = status;
  return true;
}

/* Asks a question and returns the status of the answer. */
static multicast_status ask_with(const peer *p, const char *name, size_t size) {
  static const char payload[10000];
  multicast_status status = MULTICAST_PENDING;
  CHECK_OK(multicast_local_ask(&p->transport, name, 1, payload, size, ten_seconds, note_status,
                               &status));
  return status;
}

/* Starts two peers. The peer `there` answers questions about `q`. */
static belongings start(broker *b, peer *here, peer *there, int *calls, multicast_queue q) {
  requests_are_of_the_test();
  broker_start(b, NULL);
  const belongings before = look();
  peer_connect_with(here, b->port, NULL);
  transport_options options = peer_options(there, b->port);
  options.queue = q;
  peer_connect(there, &options);
  EVENTUALLY(peer_stats(here).peers == 1);
  CHECK_OK(multicast_local_answer(&there->transport, "q", answer_same, calls, NULL));
  peer_flush(there);
  CHECK_OK(ask_with(here, "q", 1000));
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

TEST(questions_without_memory_are_refused_and_keep_nothing) {
  broker b;
  peer here, there;
  int calls = 0, refused = 0;
  multicast_status status;
  belongings before = start(&b, &here, &there, &calls, (multicast_queue){0});
  refuse_request(CALLOC, 0, OF_THE_TEST);
  CHECK_ERROR(multicast_local_ask(&here.transport, "q", 1, NULL, 0, ten_seconds, note_status,
                                  &status), OUT_OF_MEMORY);
  CHECK(refusal_was_made());
  CHECK_EQ(peer_stats(&here).refused, 1);
  /* Refuse the memory for the answering function in round 0, and for the name in round 1. */
  for (int which = 0; which < 2; ++which) {
    refuse_request(which == 0 ? MALLOC : CALLOC, 0, OF_THE_TEST);
    CHECK_ERROR(multicast_local_answer(&here.transport, "r", answer_same, &refused, count_end),
                OUT_OF_MEMORY);
    CHECK(refusal_was_made());
    CHECK_EQ(LOAD(refused), 1000 * (which + 1));
  }
  CHECK_OK(ask_with(&here, "q", 1));
  end(&b, &here, &there, before);
  CHECK_EQ(LOAD(refused), 2000);
}

TEST(lack_of_memory_where_one_answers_or_asks_is_told) {
  broker b;
  peer here, there;
  int calls = 0;
  belongings before = start(&b, &here, &there, &calls, (multicast_queue){0});
  /* Each question is larger than all earlier questions, so its payload needs a new allocation. In
   * the first round, the answering peer has no memory for the question. In the second round, the
   * asking peer has no memory for the answer. */
  for (int which = 0; which < 2; ++which) {
    refuse_request(MALLOC, which, OF_A_TRANSPORT);
    CHECK_ERROR(ask_with(&here, "q", 2000 + 1000 * (size_t)which), OUT_OF_MEMORY);
    CHECK(refusal_was_made());
    CHECK_EQ(LOAD(calls), 1 + which);
  }
  CHECK_EQ(peer_stats(&there).lost, 1);
  CHECK_OK(ask_with(&here, "q", 5000));
  end(&b, &here, &there, before);
}

TEST(lack_of_memory_for_the_queue_is_told) {
  broker b;
  peer here, there;
  int calls = 0;
  multicast_queue q = multicast_queue_create(NULL);
  CHECK_OK(multicast_queue_start(q));
  belongings before = start(&b, &here, &there, &calls, q);
  refuse_request(MALLOC, 0, OF_A_TRANSPORT);
  CHECK_ERROR(ask_with(&here, "q", 900), OUT_OF_MEMORY);
  CHECK(refusal_was_made());
  CHECK_EQ(LOAD(calls), 1);
  CHECK_OK(ask_with(&here, "q", 900));
  end(&b, &here, &there, before);
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(names_of_questions_are_told_though_memory_is_refused) {
  broker b;
  peer here, there;
  int calls = 0;
  belongings before = start(&b, &here, &there, &calls, (multicast_queue){0});
  for (int which = 0; which < 3; ++which) {
    const char name[] = {'n', (char)('0' + which), '\0'};
    refuse_request(CALLOC, which, OF_A_TRANSPORT);
    CHECK_OK(multicast_local_answer(&there.transport, name, answer_same, &calls, NULL));
    peer_flush(&there);
    CHECK(refusal_was_made() || which == 2);
    CHECK_OK(ask_with(&here, name, 10));
  }
  end(&b, &here, &there, before);
}

TEST(questions_are_answered_though_system_calls_are_refused) {
  static const int kinds[] = {SENDING, RECEIVING_MESSAGE, EPOLL_WAITING, EPOLL_CHANGE};
  broker b;
  peer here, there;
  int calls = 0;
  belongings before = start(&b, &here, &there, &calls, (multicast_queue){0});
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
    for (int granted = 0; granted < 3; ++granted) {
      refuse_request(kinds[k], granted, OF_A_TRANSPORT);
      CHECK_OK(ask_with(&here, "q", 10));
      refusal_was_made();
      refuse_request(kinds[k], granted, OF_THE_TEST);
      CHECK_OK(ask_with(&here, "q", 10));
      refusal_was_made();
    }
  }
  end(&b, &here, &there, before);
}
