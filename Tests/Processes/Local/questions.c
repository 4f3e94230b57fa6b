/* Tests questions to peers, and the results that the askers receive. */

#include "groups.h"
#include "strangers.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t ten_seconds = 10000000000u;

/* ---- Answers --------------------------------------------------------------------------------- */

TEST(each_peer_that_answers_is_asked_once) {
  broker b;
  SCOPED peer here, there, third;
  responder a = {"a", 0, 0}, z = {"z", 0, 0};
  told t = {0};
  start_peers(&b, &here, &there, &third);
  peer_answer(&there, "q", &a);
  peer_answer(&third, "q", &z);
  peer_answer(&here, "q", &a); /* does not receive its own question */
  CHECK_OK(ask(&here, &t, "q", "what", ten_seconds));
  CHECK_EQ(t.count, 2);
  const int of_there = strcmp(t.each[0].peer, "there") == 0 ? 0 : 1;
  CHECK_TEXT(t.each[of_there].peer, "there");
  CHECK_TEXT(t.each[of_there].payload, "a:7:what");
  CHECK_TEXT(t.each[1 - of_there].peer, "third");
  CHECK_TEXT(t.each[1 - of_there].payload, "z:7:what");
  CHECK(t.each[0].status == MULTICAST_OK && t.each[1].status == MULTICAST_OK);
  CHECK_EQ(t.each[0].pid, getpid());
  CHECK_EQ(LOAD(a.calls), 1);
  CHECK_EQ(LOAD(z.calls), 1);
  /* This question has no payload, and ends with the first answer. */
  t.enough = 1;
  CHECK_OK(ask(&here, &t, "q", NULL, MULTICAST_FOREVER));
  CHECK_EQ(t.count, 1);
  EVENTUALLY(LOAD(a.calls) == 2 && LOAD(z.calls) == 2);
  CHECK_EQ(peer_stats(&here).sent, 2);
  CHECK_EQ(peer_stats(&there).received, 2);
  EVENTUALLY(peer_stats(&there).delivered == 2);
  CHECK_EQ(peer_stats(&here).received, 0);
  peer_release(&here);
  peer_release(&there);
  peer_release(&third);
  CHECK_EQ(LOAD(a.releases), 2);
  CHECK_EQ(LOAD(z.releases), 1);
  broker_delete(&b);
}

TEST(large_questions_and_answers) {
  enum { SIZE = (1 << 15) - 1024 };
  static char bytes[SIZE + 1];
  broker b;
  SCOPED peer here, there;
  late_reply r = {{0, 0, 0}, bytes, 1};
  told t = {0};
  broker_start(&b, NULL);
  peer_connect_with(&here, b.port, &OPTIONS(.ring_bytes = 1 << 16));
  peer_connect_with(&there, b.port, &OPTIONS(.ring_bytes = 1 << 16));
  peer_meet(&here, 1);
  memset(bytes, 'x', SIZE);
  CHECK_OK(multicast_local_answer(&there.transport, "q", keep_question, &r.question, NULL));
  peer_flush(&there);
  for (int i = 0; i < 20; ++i) {
    STORE(r.question.transport, 0);
    pthread_t thread = start_reply(&r);
    CHECK_OK(ask(&here, &t, "q", bytes, ten_seconds));
    join_thread(thread);
    CHECK_EQ(r.result, MULTICAST_OK);
    CHECK_EQ(t.each[0].size, SIZE);
  }
  CHECK_ERROR(multicast_local_reply(&r.question, bytes, SIZE + 1), LIMIT);
  bytes[SIZE] = 'x';
  CHECK_ERROR(multicast_local_ask(&here.transport, "q", 1, bytes, SIZE + 1, 0, note_told, &t),
              LIMIT);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

/* ---- No answers ------------------------------------------------------------------------------ */

static gate busy = GATE_INIT;

static void wait_busily(void *context, uint32_t event, const void *payload, size_t size) {
  gate_wait(&busy);
}

THREAD(open_busy, peer *p) {
  EVENTUALLY(peer_stats(p).sent == 2);
  gate_open(&busy);
}

/* When the peer stops answering questions about the name, a question is already in the ring. The
 * peer reads this question later. */
TEST(peer_that_does_not_answer_any_more_says_so) {
  broker b;
  SCOPED peer here, there;
  responder a = {"a", 0, 0};
  told t = {0};
  start_peers(&b, &here, &there, NULL);
  peer_observe(&there, "busy", DELEGATE(wait_busily, NULL));
  peer_answer(&there, "q", &a);
  CHECK_OK(peer_publish(&here, "busy", 1, NULL, 0));
  EVENTUALLY(peer_stats(&there).received == 1);
  CHECK_OK(multicast_local_answer(&there.transport, "q", NULL, NULL, NULL));
  pthread_t thread = start_thread(open_busy, &here);
  CHECK_OK(ask(&here, &t, "q", "", ten_seconds));
  join_thread(thread);
  CHECK_EQ(t.count, 1);
  CHECK_ERROR(t.each[0].status, STATE);
  CHECK_EQ(LOAD(a.calls), 0);
  EVENTUALLY(peer_stats(&there).lost == 1); /* counted after the peer has refused the question */
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

TEST(silence_is_told_when_the_time_is_over) {
  broker b;
  SCOPED peer here, there, third;
  multicast_local_question kept = {0, 0, 0};
  responder a = {"a", 0, 0};
  told t = {0};
  start_peers(&b, &here, &there, &third);
  CHECK_OK(multicast_local_answer(&there.transport, "q", keep_question, &kept, NULL));
  peer_flush(&there);
  peer_answer(&third, "q", &a);
  const uint64_t before = time_now();
  CHECK_ERROR(ask(&here, &t, "q", "", 100000000), TIMEOUT);
  CHECK(time_now() - before >= 100000000);
  CHECK_EQ(t.count, 2);
  CHECK_TEXT(t.each[0].peer, "third");
  CHECK_OK(t.each[0].status);
  CHECK_TEXT(t.each[1].peer, "there");
  CHECK_ERROR(t.each[1].status, TIMEOUT);
  /* This reply comes too late. */
  EVENTUALLY(LOAD(kept.transport) != 0);
  CHECK_OK(multicast_local_reply(&kept, "x", 1));
  EVENTUALLY(peer_stats(&here).late == 1);
  CHECK_ERROR(ask(&here, &t, "q", "", 0), TIMEOUT);
  CHECK_EQ(t.count, 2);
  peer_release(&here);
  peer_release(&there);
  peer_release(&third);
  broker_delete(&b);
}

/* If `row` is 0, makes the peer observe a name. If `row` is 1, makes the peer answer questions
 * about the name. */
static void change_names_when_gone(void *context, multicast_local_state state, int32_t pid,
                                   const char *text) {
  static multicast_local_question unused;
  const multicast_transport *own = &((const peer *)context)->transport;
  if (state != MULTICAST_LOCAL_GONE) return;
  CHECK_OK(row == 0 ? own->subscribe(own->context, "q")
                    : multicast_local_answer(own, "q", keep_question, &unused, NULL));
}

/* `changed` adds a name on the transport's thread. At this time, the thread has already sent its
 * other names to the peers, and is about to sleep for a second. The thread must announce the new
 * name before it sleeps, because nothing would wake it. */
TEST_OF_BROKER(names_that_change_before_a_sleep_are_told_before_it, NULL) {
  for (row = 0; row < 2; ++row) {
    SCOPED peer here;
    stranger first, second;
    message m = {0};
    int file;
    transport_options options = peer_options(&here, b->port);
    options.changed = change_names_when_gone;
    CHECK_OK(transport_connect(&options, &here.transport));
    peer_flush(&here);
    stranger_connect(&first, b);
    stranger_connect(&second, b);
    stranger_greet(&first);
    stranger_greet(&second);
    EVENTUALLY(peer_stats(&here).peers == 2);
    const uint64_t before = time_now();
    stranger_end(&first);
    EVENTUALLY(message_receive(second.socket, &m, &file) == RECEIPT_MESSAGE &&
               m.kind == MESSAGE_WANT);
    CHECK_EQ(m.place, row);
    CHECK(time_now() - before < 900000000u);
    peer_release(&here);
    stranger_end(&second);
  }
  row = -1;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

THREAD(release_peer, peer *p) {
  EVENTUALLY(peer_stats(p).received == 1);
  peer_release(p);
}

TEST(peer_that_detaches_without_an_answer_is_told) {
  broker b;
  SCOPED peer here, there;
  multicast_local_question kept = {0, 0, 0};
  told t = {0};
  start_peers(&b, &here, &there, NULL);
  CHECK_OK(multicast_local_answer(&there.transport, "q", keep_question, &kept, NULL));
  peer_flush(&there);
  pthread_t thread = start_thread(release_peer, &there);
  CHECK_OK(ask(&here, &t, "q", "", MULTICAST_FOREVER));
  join_thread(thread);
  CHECK_EQ(t.count, 1);
  CHECK_ERROR(t.each[0].status, NOT_FOUND);
  CHECK_TEXT(t.each[0].peer, "there");
  peer_release(&here);
  broker_delete(&b);
}

/* Counts the questions that a process receives. The process answers only questions whose payload is
 * one byte. The count is in shared memory. */
typedef struct silent {
  int asked;
} silent;

static void stay_silent(void *context, const multicast_local_question *question, uint32_t event,
                        const void *payload, size_t size) {
  silent *s = context;
  if (size == 1) CHECK_OK(multicast_local_reply(question, "x", 1));
  ADD(s->asked, 1);
}

static void run_silent(int port, const char *folder, silent *s) {
  peer p;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  EVENTUALLY(access(folder, F_OK) == 0);
  peer_connect_with(&p, port, &OPTIONS(.name = "silent"));
  CHECK_OK(multicast_local_answer(&p.transport, "q", stay_silent, s, NULL));
  for (;;) pause();
}

typedef struct killer {
  silent *s;
  pid_t pid;
  int signal;
  int delay_ms;
  uint64_t at;
} killer;

THREAD(kill_silent, killer *k) {
  EVENTUALLY(LOAD(k->s->asked) > 0);
  pause_ms(k->delay_ms);
  k->at = time_now();
  CHECK_EQ(kill(k->pid, k->signal), 0);
}

/* The kill must be reported within 10 ms. Only the fastest of several rounds counts, because other
 * processes may use the processors. */
TEST(killed_peer_is_told_soon) {
  enum { ROUNDS = 5 };
  silent *s = mmap(NULL, sizeof *s * ROUNDS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
  uint64_t best = UINT64_MAX;
  killer all[ROUNDS];
  broker b;
  peer here;
  told t = {0};
  CHECK(s != MAP_FAILED);
  broker_prepare(&b, NULL);
  fflush(NULL);
  for (int i = 0; i < ROUNDS; ++i) {
    all[i] = (killer){.s = &s[i], .pid = fork(), .signal = SIGKILL, .delay_ms = 30 * i};
    CHECK(all[i].pid >= 0);
    if (all[i].pid == 0) run_silent(b.port, b.folder, &s[i]);
  }
  peer_connect_to(&here, &b);
  peer_meet(&here, ROUNDS);
  EVENTUALLY(ask(&here, &t, "q", "x", ten_seconds) == MULTICAST_OK && t.answers == ROUNDS);
  for (int i = 0; i < ROUNDS; ++i) STORE(s[i].asked, 0);
  pthread_t threads[ROUNDS];
  for (int i = 0; i < ROUNDS; ++i) threads[i] = start_thread(kill_silent, &all[i]);
  CHECK_OK(ask(&here, &t, "q", "", MULTICAST_FOREVER));
  CHECK_EQ(t.count, ROUNDS);
  for (int i = 0; i < ROUNDS; ++i) join_thread(threads[i]);
  for (int i = 0; i < ROUNDS; ++i) {
    int k = 0;
    while (k < ROUNDS && all[k].pid != t.each[i].pid) ++k;
    CHECK(k < ROUNDS);
    CHECK_ERROR(t.each[i].status, NOT_FOUND);
    CHECK(t.each[i].at - all[k].at < 1000000000u);
    if (t.each[i].at - all[k].at < best) best = t.each[i].at - all[k].at;
    CHECK_EQ(waitpid(all[k].pid, NULL, 0), all[k].pid);
  }
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  CHECK(best < 10000000u);
#endif
  peer_release(&here);
  broker_delete(&b);
}

/* ---- Full rings ------------------------------------------------------------------------------ */

static void fill(const peer *p, const char *name) {
  static const char payload[1000];
  while (p->transport.publish(p->transport.context, name, 1, payload, sizeof payload) ==
         MULTICAST_OK) {
  }
  while (p->transport.publish(p->transport.context, name, 1, NULL, 0) == MULTICAST_OK) {
  }
}

static void expect_no_room(multicast_overflow overflow) {
  static const uint64_t short_ns = 50000000;
  broker b;
  SCOPED peer here, there;
  multicast_local_question kept = {0, 0, 0};
  told t = {0};
  broker_start(&b, NULL);
  const transport_options options =
      OPTIONS(.ring_bytes = 1 << 16, .overflow = overflow, .block_ns = 400000000);
  peer_connect_with(&here, b.port, &options);
  peer_connect_with(&there, b.port, &options);
  peer_meet(&here, 1);
  CHECK_OK(multicast_local_answer(&there.transport, "q", keep_question, &kept, NULL));
  peer_observe(&here, "busy", DELEGATE(wait_busily, NULL));
  peer_observe(&there, "busy", DELEGATE(wait_busily, NULL));
  CHECK_ERROR(ask(&here, &t, "q", "", short_ns), TIMEOUT);
  EVENTUALLY(LOAD(kept.transport) != 0);
  fill(&here, "busy");
  fill(&there, "busy");
  /* The question waits for room, but not longer than it would wait for an answer. */
  const uint64_t before = time_now();
  CHECK_ERROR(ask(&here, &t, "q", "", short_ns), QUEUE_FULL);
  CHECK(time_now() - before < 300000000);
  CHECK_EQ(t.count, 0);
  CHECK_ERROR(multicast_local_reply(&kept, "x", 1), QUEUE_FULL);
  gate_open(&busy);
  EVENTUALLY(multicast_local_reply(&kept, "x", 1) == MULTICAST_OK);
  EVENTUALLY(peer_stats(&here).late == 1);
  EVENTUALLY(ask(&here, &t, "q", "", short_ns) == MULTICAST_ERROR_TIMEOUT);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

TEST(question_without_room_is_refused) { expect_no_room(MULTICAST_OVERFLOW_REFUSE); }
TEST(question_without_room_waits_no_longer_than_its_time) {
  expect_no_room(MULTICAST_OVERFLOW_BLOCK);
}

/* Fills the ring of a peer with questions. The answering peer is busy and does not read the
 * questions. */
static void fill_with_questions(const peer *p, const char *name) {
  static char payload[1001];
  told t = {0};
  memset(payload, 'x', sizeof payload - 1);
  while (ask(p, &t, name, payload, 0) == MULTICAST_ERROR_TIMEOUT) {
  }
  while (ask(p, &t, name, "", 0) == MULTICAST_ERROR_TIMEOUT) {
  }
}

/* Starts three peers. The peer `stuck` does not read until the gate `busy` opens, so the ring of
 * the peer `first` soon fills up. After that, publications of `first` wait for room for up to
 * 20 s. */
static void start_without_room(broker *b, peer *first, peer *second, peer *stuck,
                               responder *of_second) {
  multicast_local_question *unused = calloc(1, sizeof *unused);
  broker_start(b, NULL);
  peer_connect_with(first, b->port, &OPTIONS(.ring_bytes = 1 << 16, .block_ns = 20000000000u,
                                             .overflow = MULTICAST_OVERFLOW_BLOCK));
  peer_connect_with(second, b->port, NULL);
  peer_connect_with(stuck, b->port, NULL);
  peer_meet(first, 2);
  CHECK_OK(multicast_local_answer(&stuck->transport, "s", keep_question, unused, free));
  peer_answer(second, "q", of_second);
  peer_observe(stuck, "busy", DELEGATE(wait_busily, NULL));
  CHECK_OK(peer_publish(second, "busy", 1, NULL, 0));
  EVENTUALLY(peer_stats(stuck).received == 1);
}

THREAD(reply_without_room, late_reply *r) {
  STORE(r->result, multicast_local_reply(&r->question, "x", 1));
}

TEST(who_has_gone_while_there_was_no_room_is_not_asked_nor_told) {
  broker b;
  SCOPED peer here, there, stuck;
  late_reply r = {{0, 0, 0}, NULL, 1};
  responder a = {"a", 0, 0};
  asking waits = {&here, 1, {0}, 0};
  told t = {0};
  start_without_room(&b, &here, &there, &stuck, &a);
  CHECK_OK(multicast_local_answer(&here.transport, "k", keep_question, &r.question, NULL));
  EVENTUALLY(ask(&there, &t, "k", "", 0) == MULTICAST_ERROR_TIMEOUT);
  EVENTUALLY(LOAD(r.question.transport) != 0);
  fill_with_questions(&here, "s");
  pthread_t replies = start_thread(reply_without_room, &r);
  pthread_t asks = start_asking(&waits);
  pause_ms(A_WHILE_MS);
  peer_release(&there);
  EVENTUALLY(peer_stats(&here).peers == 1);
  gate_open(&busy);
  join_thread(replies);
  join_thread(asks);
  CHECK_ERROR(r.result, NOT_FOUND);
  CHECK_ERROR(waits.result, NOT_FOUND);
  peer_release(&here);
  peer_release(&stuck);
  broker_delete(&b);
}

TEST(release_ends_the_wait_of_a_question_for_room) {
  broker b;
  SCOPED peer here, there, stuck;
  asking waits = {&here, 1, {0}, 0};
  responder a = {"a", 0, 0};
  start_without_room(&b, &here, &there, &stuck, &a);
  fill_with_questions(&here, "s");
  pthread_t asks = start_asking(&waits);
  pause_ms(A_WHILE_MS);
  peer_release(&here);
  join_thread(asks);
  CHECK_ERROR(waits.result, INVALID_HANDLE);
  gate_open(&busy);
  peer_release(&there);
  peer_release(&stuck);
  broker_delete(&b);
}

static gate telling = GATE_INIT;

static bool wait_when_told(void *context, multicast_status status, int32_t pid, const char *peer,
                           const void *payload, size_t size) {
  STORE(*(int *)context, 1);
  gate_wait(&telling);
  return true;
}

THREAD(stay_in_question, asking *a) {
  a->result = multicast_local_ask(&a->p->transport, "q", 1, NULL, 0, ten_seconds, wait_when_told,
                                  &a->is_done);
}

THREAD(publish_without_room, asking *a) { a->result = peer_publish(a->p, "busy", 1, NULL, 0); }

/* The transport is released while a publication waits for room. The transport's topics may be freed
 * before the publication continues, but a question that is waiting keeps the rest of the transport
 * in memory. */
TEST(release_ends_the_wait_of_a_publication_for_room) {
  broker b;
  SCOPED peer here, there, stuck;
  asking stays = {&here, 1, {0}, 0}, waits = stays;
  responder a = {"a", 0, 0};
  start_without_room(&b, &here, &there, &stuck, &a);
  pthread_t asks = start_thread(stay_in_question, &stays);
  EVENTUALLY(LOAD(stays.is_done) == 1);
  fill_with_questions(&here, "s");
  pthread_t publishes = start_thread(publish_without_room, &waits);
  pause_ms(A_WHILE_MS);
  here.transport.release(here.transport.context);
  join_thread(publishes);
  CHECK_ERROR(waits.result, STATE);
  gate_open(&telling);
  join_thread(asks);
  gate_open(&busy);
  peer_release(&here);
  peer_release(&there);
  peer_release(&stuck);
  broker_delete(&b);
}

/* The transport's thread is running an observer, and therefore has not noticed the kill. */
TEST(peer_that_was_killed_and_held_up_the_ring_is_not_asked) {
  silent *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  broker b;
  SCOPED peer here, there;
  told t = {0};
  CHECK(s != MAP_FAILED);
  broker_prepare(&b, NULL);
  fflush(NULL);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) run_silent(b.port, b.folder, s);
  peer_connect_with(&here, b.port, &OPTIONS(.ring_bytes = 1 << 16, .block_ns = 20000000000u,
                                            .overflow = MULTICAST_OVERFLOW_BLOCK));
  peer_connect_to(&there, &b);
  peer_meet(&here, 2);
  EVENTUALLY(ask(&here, &t, "q", "x", ten_seconds) == MULTICAST_OK);
  peer_observe(&here, "busy", DELEGATE(wait_busily, NULL));
  CHECK_OK(peer_publish(&there, "busy", 1, NULL, 0));
  EVENTUALLY(peer_stats(&here).received == 1);
  CHECK_EQ(kill(child, SIGSTOP), 0);
  fill_with_questions(&here, "q");
  CHECK_EQ(kill(child, SIGKILL), 0);
  CHECK_EQ(waitpid(child, NULL, 0), child);
  CHECK_ERROR(ask(&here, &t, "q", "", MULTICAST_FOREVER), NOT_FOUND);
  gate_open(&busy);
  peer_release(&here);
  peer_release(&there);
  broker_delete(&b);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

TEST_OF_BROKER(answers_to_peers_that_have_not_asked_are_refused_or_late, NULL) {
  SCOPED peer here, there;
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  multicast_local_question question = {(uint64_t)(uintptr_t)here.transport.context, 1000, 1};
  CHECK_ERROR(multicast_local_reply(&question, "x", 1), NOT_FOUND);
  peer_meet(&here, 1);
  question.peer = 1; /* a peer that has asked no question */
  CHECK_OK(multicast_local_reply(&question, "x", 1));
  EVENTUALLY(peer_stats(&there).late == 1);
  /* The stranger is a peer that has not sent anything yet. */
  peer_release(&there);
  EVENTUALLY(peer_stats(&here).peers == 0);
  stranger s;
  stranger_connect(&s, b);
  for (question.peer = 2; question.peer < 20; ++question.peer)
    CHECK_ERROR(multicast_local_reply(&question, "x", 1), NOT_FOUND);
  stranger_end(&s);
  peer_release(&here);
}
