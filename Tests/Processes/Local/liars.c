/* Tests peers that break the rules of questions and answers. An invalid entry ends the connection.
 * Answers for which nobody is waiting are dropped. */

#include "groups.h"
#include "strangers.h"

static const uint64_t a_while = 50000000, ten_seconds = 10000000000u;

/* Announces to the victim that this stranger answers questions about `q`. */
static void say_answers(const stranger *s) {
  CHECK_EQ(message_send(s->socket, MESSAGE_WANT, 1, 0, "q", -1), 0);
}

static entry answer_to_victim(uint32_t payload_size, multicast_status status) {
  entry r = entry_for_victim(0, payload_size + 8);
  r.payload_size = payload_size;
  r.kind = ENTRY_ANSWER;
  r.event = (uint32_t)status;
  return r;
}

static void send_answer(stranger *s, uint64_t number, char text) {
  char behind[9] = {text};
  const entry r = answer_to_victim(1, MULTICAST_OK);
  memcpy(behind + 1, &number, sizeof number);
  stranger_write(s, &r, behind, sizeof behind);
}

/* The stranger's thread, which calls `lie` for each question in the victim's ring. */
typedef struct liar {
  scene *c;
  uint64_t at; /* the position up to which it has read */
  int has_to_end, lies;
  void (*lie)(scene *c, uint64_t number);
} liar;

THREAD(be_a_liar, liar *l) {
  const stranger *s = &l->c->s;
  while (!LOAD(l->has_to_end)) {
    entry r;
    uint64_t number;
    if (LOAD(s->its.board->head) == l->at) continue;
    const unsigned char *bytes = memory_at(&s->its, l->at);
    memcpy(&r, bytes, sizeof r);
    memcpy(&number, bytes + sizeof r + r.name_size + r.payload_size, sizeof number);
    l->at += r.size;
    if (r.kind != ENTRY_QUESTION) continue;
    l->lie(l->c, number);
    ADD(l->lies, 1);
  }
}

static void lie_about_the_number(scene *c, uint64_t number) {
  send_answer(&c->s, number + 1, 'a');
  send_answer(&c->s, number - 1, 'a');
  send_answer(&c->s, 0, 'a');
  send_answer(&c->s, UINT64_MAX, 'a');
}
static void answer_twice(scene *c, uint64_t number) {
  send_answer(&c->s, number, 'a');
  send_answer(&c->s, number, 'b');
}
static void let_another_answer(scene *c, uint64_t number) { send_answer(&c->other, number, 'a'); }
static void say_nothing(scene *c, uint64_t number) {}

/* The victim asks one question, and the stranger calls `lie`, which answers the question
 * wrongly. */
static multicast_status ask_liar(scene *c, told *t, void (*lie)(scene *c, uint64_t number)) {
  liar l = {c, LOAD(c->s.its.board->head), 0, 0, lie};
  pthread_t thread = start_thread(be_a_liar, &l);
  /* With all lies except answer_twice(), the question times out. */
  const uint64_t time = lie == answer_twice ? ten_seconds : a_while;
  multicast_status status;
  EVENTUALLY((status = ask(&c->victim, t, "q", "", time)) != MULTICAST_ERROR_NOT_FOUND);
  EVENTUALLY(LOAD(l.lies) == 1);
  STORE(l.has_to_end, 1);
  join_thread(thread);
  return status;
}

static void expect_late(scene *c, uint64_t count) {
  EVENTUALLY(peer_stats(&c->victim).late == count);
  CHECK_EQ(peer_stats(&c->victim).expelled, 0);
}

TEST_OF_SCENE(answers_that_nobody_waits_for_are_dropped) {
  told t = {0};
  scene_meet(c, &c->s);
  scene_meet(c, &c->other);
  say_answers(&c->s);
  CHECK_ERROR(ask_liar(c, &t, lie_about_the_number), TIMEOUT);
  CHECK_EQ(t.count, 1);
  expect_late(c, 4);
  CHECK_ERROR(ask_liar(c, &t, let_another_answer), TIMEOUT);
  CHECK_EQ(t.answers, 0);
  expect_late(c, 5);
  CHECK_OK(ask_liar(c, &t, answer_twice));
  CHECK_EQ(t.count, 1);
  CHECK_TEXT(t.each[0].payload, "a");
  expect_late(c, 6);
  CHECK_ERROR(ask_liar(c, &t, say_nothing), TIMEOUT);
  for (uint64_t i = 0; i < 1000; ++i) {
    send_answer(&c->s, i, 'x');
    if (i % 5 == 4) expect_late(c, i + 7);
  }
  stranger_end(&c->other);
  stranger_end(&c->s);
  EVENTUALLY(peer_stats(&c->victim).peers == 0);
  CHECK_ERROR(ask(&c->victim, &t, "q", "", a_while), NOT_FOUND);
}

/* The asked peer leaves, and a new peer is assigned the same place. The asker must not accept the
 * new peer's answers to the question. */
TEST_OF_SCENE(who_takes_the_place_of_one_that_was_asked_is_not_awaited) {
  told t = {0};
  scene_meet(c, &c->s);
  say_answers(&c->s);
  EVENTUALLY(ask(&c->victim, &t, "q", "", 0) == MULTICAST_ERROR_TIMEOUT);
  stranger_end(&c->s);
  EVENTUALLY(peer_stats(&c->victim).peers == 0);
  scene_meet(c, &c->s);
  for (uint64_t i = 0; i < 5; ++i) send_answer(&c->s, i, 'x');
  expect_late(c, 5);
  stranger_end(&c->s);
}

/* ---- Invalid entries ------------------------------------------------------------------------- */

/* The fields of invalid answers. */
static const struct {
  uint32_t size, name_size, payload_size, kind;
  multicast_status status;
} spoiled[] = {
    {48, 1, 0, ENTRY_ANSWER, 0},          {48, 0, 1, ENTRY_QUESTION, 0},
    {48, 0, 1, ENTRY_NOTIFICATION, 0},    {48, 1, 1, ENTRY_ANSWER + 1, 0},
    {48, 0, 1, UINT16_MAX, 0},            {40, 0, 1, ENTRY_ANSWER, 0},
    {32, 0, 0, ENTRY_ANSWER, 0},          {40, 1, 0, ENTRY_QUESTION, 0},
    {48, 0, 9, ENTRY_ANSWER, 0},          {48, 0, UINT32_MAX, ENTRY_ANSWER, 0},
    {48, 0, UINT32_MAX - 7, ENTRY_ANSWER, 0}, {48, 0, (1 << 15) + 1, ENTRY_ANSWER, 0},
    {48, 0, 1, ENTRY_ANSWER, 1},          {48, 0, 1, ENTRY_ANSWER, MULTICAST_ERROR_TIMEOUT},
    {48, 0, 1, ENTRY_ANSWER, MULTICAST_ERROR_NOT_FOUND}, {48, 0, 1, ENTRY_ANSWER, INT32_MIN}};

TEST_OF_SCENE(questions_and_answers_that_are_none_end_the_connection) {
  static const char behind[64] = "n";
  told t = {0};
  for (row = 0; row < (int)(sizeof spoiled / sizeof *spoiled); ++row) {
    const uint64_t expelled = peer_stats(&c->victim).expelled;
    entry r = answer_to_victim(1, spoiled[row].status);
    scene_meet(c, &c->s);
    say_answers(&c->s);
    r.size = spoiled[row].size;
    r.name_size = (uint16_t)spoiled[row].name_size;
    r.payload_size = spoiled[row].payload_size;
    r.kind = (uint16_t)spoiled[row].kind;
    EVENTUALLY(ask(&c->victim, &t, "q", "", 0) == MULTICAST_ERROR_TIMEOUT);
    stranger_write(&c->s, &r, behind, sizeof behind);
    EVENTUALLY(peer_stats(&c->victim).expelled == expelled + 1);
    stranger_end(&c->s);
  }
  row = -1;
}

/* If a peer breaks the rules while its answer is awaited, it is reported like a peer that has
 * ended. */
THREAD(break_rules, scene *c) {
  static const char behind[16] = "";
  entry r = answer_to_victim(1, MULTICAST_OK);
  EVENTUALLY(LOAD(c->s.its.board->head) > 0);
  r.kind = UINT16_MAX;
  stranger_write(&c->s, &r, behind, sizeof behind);
}

TEST_OF_SCENE(peer_that_is_cut_off_does_not_answer) {
  told t = {0};
  multicast_status status;
  scene_meet(c, &c->s);
  say_answers(&c->s);
  pthread_t thread = start_thread(break_rules, c);
  EVENTUALLY((status = ask(&c->victim, &t, "q", "", ten_seconds)) != MULTICAST_ERROR_NOT_FOUND);
  CHECK_OK(status);
  CHECK_EQ(t.count, 1);
  CHECK_ERROR(t.each[0].status, NOT_FOUND);
  CHECK_TEXT(t.each[0].peer, "stranger");
  join_thread(thread);
  stranger_end(&c->s);
}

/* ---- Strange requests ------------------------------------------------------------------------ */

static void send_question(stranger *s, uint64_t number) {
  char behind[9] = "q";
  entry r = entry_for_victim(1, 8);
  r.kind = ENTRY_QUESTION;
  r.payload_size = 0;
  memcpy(behind + 1, &number, sizeof number);
  stranger_write(s, &r, behind, sizeof behind);
}

/* Expects that the last entry in the victim's ring is the given answer. */
static void expect_answer(const scene *c, uint64_t *at, uint64_t number, multicast_status status) {
  entry r;
  uint64_t got;
  EVENTUALLY(LOAD(c->s.its.board->head) > *at);
  const unsigned char *bytes = memory_at(&c->s.its, *at);
  memcpy(&r, bytes, sizeof r);
  memcpy(&got, bytes + sizeof r + r.payload_size, sizeof got);
  CHECK_EQ(r.kind, ENTRY_ANSWER);
  CHECK_EQ((multicast_status)r.event, status);
  CHECK_EQ(got, number);
  *at += r.size;
}

/* The stranger asks questions with arbitrary numbers, uses some numbers twice, and asks questions
 * about a name without an answerer. Finally, it asks so many questions that the victim's ring has
 * no room for all answers, and does not read the answers. */
TEST_OF_SCENE(strange_questions_do_no_harm) {
  responder r = {"r", 0, 0};
  uint64_t at = 0;
  scene_meet(c, &c->s);
  send_question(&c->s, 0);
  expect_answer(c, &at, 0, MULTICAST_ERROR_STATE);
  CHECK_OK(multicast_local_answer(&c->victim.transport, "q", respond, &r, NULL));
  send_question(&c->s, UINT64_MAX);
  expect_answer(c, &at, UINT64_MAX, MULTICAST_OK);
  send_question(&c->s, UINT64_MAX);
  expect_answer(c, &at, UINT64_MAX, MULTICAST_OK);
  CHECK_EQ(LOAD(r.calls), 2);
  CHECK_OK(multicast_local_answer(&c->victim.transport, "q", NULL, NULL, NULL));
  for (uint64_t i = 0; i < 2000; ++i) {
    send_question(&c->s, i);
    if (i % 5 == 4) EVENTUALLY(peer_stats(&c->victim).received == i + 4);
  }
  EVENTUALLY(peer_stats(&c->victim).lost == 2001);
  stranger_end(&c->s);
  EVENTUALLY(peer_stats(&c->victim).gone == 1);
}
