/* Tests peers that have not announced their names to a new member of the group, because their
 * transports' threads are running observers. */

#include "groups.h"
#include "strangers.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t a_while = 50000000, ten_seconds = 10000000000u;

/* The notifications of an observer, in order: "name:event:payload;". */
typedef struct log {
  int count;
  char text[1000];
} log;

typedef struct named_log {
  log *l;
  const char *name;
} named_log;

FUNCTION(write_log, named_log *n) {
  log *l = n->l;
  const size_t used = strlen(l->text);
  snprintf(l->text + used, sizeof l->text - used, "%s:%u:%.*s;", n->name, event, (int)size,
           size == 0 ? "" : (const char *)payload);
  ADD(l->count, 1);
}

/* The peer `asker` notifies an observer of the peer `busy`, and the observer does not return until
 * the gate `may_leave` opens. */
typedef struct stage {
  broker b;
  peer busy, asker;
  gate entered, may_leave;
  log arrived;
  named_log n, k;
} stage;

FUNCTION(wait_for_gate, stage *s) {
  gate_open(&s->entered);
  gate_wait(&s->may_leave);
}

/* Starts the peers. `busy` also observes `n` and `k`. */
static void stage_begin(stage *s) {
  *s = (stage){.entered = GATE_INIT, .may_leave = GATE_INIT};
  s->n = (named_log){&s->arrived, "n"};
  s->k = (named_log){&s->arrived, "k"};
  broker_start(&s->b, NULL);
  peer_connect_to(&s->busy, &s->b);
  peer_observe(&s->busy, "wait", DELEGATE(wait_for_gate, s));
  peer_observe(&s->busy, "n", DELEGATE(write_log, &s->n));
  peer_observe(&s->busy, "k", DELEGATE(write_log, &s->k));
  peer_connect_to(&s->asker, &s->b);
  peer_meet(&s->asker, 1);
}

static void stage_block(stage *s) {
  CHECK_OK(peer_publish(&s->asker, "wait", 1, NULL, 0));
  gate_wait(&s->entered);
}

static void stage_end(stage *s) {
  gate_open(&s->may_leave);
  peer_release(&s->asker);
  peer_release(&s->busy);
  broker_delete(&s->b);
}

static bool retains_k(void *context, const char *protocol, uint32_t event) {
  return protocol[0] == 'k';
}

#define TEST_OF_STAGE(NAME)               \
  static void NAME##_with(stage *s);      \
  TEST(NAME) {                            \
    static stage s;                       \
    stage_begin(&s);                      \
    stage_block(&s);                      \
    NAME##_with(&s);                      \
    stage_end(&s);                        \
  }                                       \
  static void NAME##_with(stage *s)

static void publish_text(peer *p, const char *name, uint32_t event, const char *text) {
  CHECK_OK(peer_publish(p, name, event, text, strlen(text)));
}

TEST_OF_STAGE(what_is_published_for_a_peer_in_an_observer_arrives) {
  SCOPED peer late;
  char expected[200] = "";
  const uint64_t before = time_now();
  peer_connect_to(&late, &s->b);
  /* The transport has connected after a second, without waiting for the observer to return. */
  CHECK(time_now() - before > 900000000 && time_now() - before < 3000000000u);
  CHECK_ERROR(multicast_local_flush(&late.transport, a_while), TIMEOUT);
  for (uint32_t i = 0; i < 10; ++i) {
    publish_text(&late, "n", i, "x");
    publish_text(&late, "other", i, "x"); /* has no observer */
    snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "n:%u:x;", i);
  }
  CHECK_EQ(peer_stats(&late).unwanted, 0);
  CHECK_EQ(s->arrived.count, 0);
  const uint64_t received = peer_stats(&s->busy).received;
  gate_open(&s->may_leave);
  peer_flush(&late);
  EVENTUALLY(LOAD(s->arrived.count) == 10);
  CHECK_TEXT(s->arrived.text, expected);
  CHECK_EQ(peer_stats(&s->busy).received, received + 10);
  /* `late` now knows the names of `busy`, so it no longer writes other names to its ring. */
  publish_text(&late, "other", 1, "x");
  CHECK_EQ(peer_stats(&late).unwanted, 1);
}

FUNCTION(register_again, peer *p) {
  const multicast_transport *t = &p->transport;
  t->unsubscribe(t->context, "again");
  CHECK_OK(t->subscribe(t->context, "again"));
  ADD(p->code, 1);
}

TEST_OF_STAGE(observer_that_registers_again_in_each_call_misses_none) {
  SCOPED peer late;
  const multicast_transport *t = &s->busy.transport;
  CHECK_OK(multicast_broadcaster_register(s->busy.broadcaster, "again",
                                          DELEGATE(register_again, &s->busy), NULL, NULL));
  CHECK_OK(t->subscribe(t->context, "again"));
  STORE(s->busy.code, 0);
  peer_connect_to(&late, &s->b);
  for (uint32_t i = 0; i < 10; ++i) publish_text(&late, "again", i, "x");
  gate_open(&s->may_leave);
  peer_flush(&late);
  EVENTUALLY(LOAD(s->busy.code) == 10);
}

/* The publisher leaves the group before the thread of `busy` has noticed that the publisher
 * joined. */
TEST_OF_STAGE(peer_in_an_observer_gets_what_one_that_has_gone_published) {
  peer late;
  peer_connect_to(&late, &s->b);
  publish_text(&late, "n", 1, "x");
  publish_text(&late, "other", 2, "x");
  publish_text(&late, "k", 3, "x");
  peer_release(&late);
  gate_open(&s->may_leave);
  EVENTUALLY(LOAD(s->arrived.count) == 2);
  EVENTUALLY(LOAD(s->busy.gone) == 1);
  CHECK_TEXT(s->arrived.text, "n:1:x;k:3:x;");
}

TEST_OF_STAGE(ring_that_is_full_for_a_peer_in_an_observer_refuses) {
  static const char payload[1000];
  SCOPED peer late;
  int accepted = 0;
  peer_connect_with(&late, s->b.port, &OPTIONS(.ring_bytes = 1 << 16));
  while (peer_publish(&late, "n", 1, payload, sizeof payload) == MULTICAST_OK) ++accepted;
  CHECK(accepted > 50);
  gate_open(&s->may_leave);
  EVENTUALLY(LOAD(s->arrived.count) == accepted);
  EVENTUALLY(peer_publish(&late, "n", 1, NULL, 0) == MULTICAST_OK);
  EVENTUALLY(LOAD(s->arrived.count) == accepted + 1);
}

/* ---- Last values ----------------------------------------------------------------------------- */

/* Connects a peer that retains values before it joins the group. Returns when the peer has joined
 * but does not know the names of `busy` yet. */
static void connect_with_values(peer *late, const broker *b) {
  CHECK_EQ(chmod(b->folder, 0770), 0);
  peer_begin(late, b->port, &OPTIONS(.retains = retains_k));
  EVENTUALLY(LOAD(late->refused) >= 1);
  publish_text(late, "k", 1, "old");
  publish_text(late, "k", 2, "two");
  publish_text(late, "k", 1, "one");
  CHECK_EQ(chmod(b->folder, 0700), 0);
  EVENTUALLY(LOAD(late->connected) == 1);
}

TEST_OF_STAGE(values_are_given_once_to_a_peer_in_an_observer) {
  SCOPED peer late;
  connect_with_values(&late, &s->b);
  gate_open(&s->may_leave);
  peer_flush(&late);
  EVENTUALLY(LOAD(s->arrived.count) == 2);
  pause_ms(A_WHILE_MS);
  CHECK_TEXT(s->arrived.text, "k:2:two;k:1:one;");
}

TEST_OF_STAGE(values_come_before_what_is_published_later) {
  SCOPED peer late;
  connect_with_values(&late, &s->b);
  publish_text(&late, "k", 3, "three");
  publish_text(&late, "k", 2, "new");
  gate_open(&s->may_leave);
  peer_flush(&late);
  publish_text(&late, "k", 4, "four");
  EVENTUALLY(LOAD(s->arrived.count) == 5);
  pause_ms(A_WHILE_MS);
  CHECK_TEXT(s->arrived.text, "k:2:two;k:1:one;k:3:three;k:2:new;k:4:four;");
}

/* The observer is registered after the peers have learned each other's names. Of the earlier
 * publications, the observer receives only the retained values. */
TEST_OF_STAGE(values_are_given_once_to_an_observer_that_comes_later) {
  SCOPED peer late;
  static named_log later;
  later = (named_log){&s->arrived, "k2"};
  connect_with_values(&late, &s->b);
  publish_text(&late, "k2", 1, "old");
  publish_text(&late, "k2", 1, "new");
  publish_text(&late, "n2", 1, "x");
  gate_open(&s->may_leave);
  peer_flush(&late);
  peer_observe(&s->busy, "k2", DELEGATE(write_log, &later));
  peer_observe(&s->busy, "n2", DELEGATE(write_log, &later));
  EVENTUALLY(LOAD(s->arrived.count) == 3);
  pause_ms(A_WHILE_MS);
  CHECK_TEXT(s->arrived.text, "k:2:two;k:1:one;k2:1:new;");
}

/* An observer that registers a second observer, of the name `k2`, on the transport's thread. */
typedef struct registrar {
  peer *p;
  named_log later;
} registrar;

FUNCTION(observe_k2, registrar *r) {
  CHECK_OK(multicast_broadcaster_register(r->p->broadcaster, "k2", DELEGATE(write_log, &r->later),
                                          NULL, NULL));
  CHECK_OK(r->p->transport.subscribe(r->p->transport.context, "k2"));
}

/* The second observer is registered after the transport has announced its names, but before the
 * transport reads the retained value. */
TEST_OF_STAGE(value_is_given_once_though_its_observer_comes_meanwhile) {
  SCOPED peer late;
  static registrar r;
  r = (registrar){&s->busy, {&s->arrived, "k2"}};
  CHECK_OK(multicast_broadcaster_register(s->busy.broadcaster, "n", DELEGATE(observe_k2, &r), NULL,
                                          NULL));
  peer_connect_with(&late, s->b.port, &OPTIONS(.retains = retains_k));
  publish_text(&late, "n", 1, "x");
  publish_text(&late, "k2", 1, "old");
  publish_text(&late, "k2", 1, "new");
  gate_open(&s->may_leave);
  EVENTUALLY(LOAD(s->arrived.count) == 2);
  peer_flush(&s->busy);
  pause_ms(A_WHILE_MS);
  CHECK_TEXT(s->arrived.text, "n:1:x;k2:1:new;");
}

static bool retains_all(void *context, const char *protocol, uint32_t event) { return true; }

/* Together the values do not fit into the ring, so some of them wait until the peer has read
 * earlier entries. */
TEST_OF_STAGE(values_for_which_there_is_no_room_wait) {
  enum { COUNT = 8, SIZE = 20000 };
  static char large[SIZE];
  SCOPED peer late;
  char name[8];
  int calls = 0;
  for (int i = 0; i < COUNT; ++i) {
    snprintf(name, sizeof name, "v%d", i);
    CHECK_OK(multicast_broadcaster_register(s->busy.broadcaster, name, counter(&calls), NULL,
                                            NULL));
    CHECK_OK(s->busy.transport.subscribe(s->busy.transport.context, name));
  }
  CHECK_EQ(chmod(s->b.folder, 0770), 0);
  peer_begin(&late, s->b.port, &OPTIONS(.retains = retains_all, .ring_bytes = 1 << 16));
  EVENTUALLY(LOAD(late.refused) >= 1);
  for (int i = 0; i < COUNT; ++i) {
    snprintf(name, sizeof name, "v%d", i);
    CHECK_OK(peer_publish(&late, name, 1, large, SIZE));
  }
  CHECK_EQ(chmod(s->b.folder, 0700), 0);
  EVENTUALLY(LOAD(late.connected) == 1);
  gate_open(&s->may_leave);
  peer_flush(&late);
  EVENTUALLY(LOAD(calls) == COUNT);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(calls), COUNT);
}

/* ---- Questions ------------------------------------------------------------------------------- */

typedef struct question {
  peer *p;
  const char *name;
  told t;
  int result;
} question;

THREAD(ask_late, question *q) { q->result = ask(q->p, &q->t, q->name, "x", ten_seconds); }

TEST_OF_STAGE(peer_in_an_observer_is_asked) {
  SCOPED peer late;
  static question answered, unanswered;
  responder r = {"r", 0, 0};
  told t = {0};
  CHECK_OK(transport_answer(&s->busy.transport, "q", respond, &r, NULL));
  peer_connect_to(&late, &s->b);
  CHECK_ERROR(ask(&late, &t, "none", "x", a_while), TIMEOUT);
  CHECK_EQ(t.count, 0);
  answered = (question){.p = &late, .name = "q"};
  unanswered = (question){.p = &late, .name = "none"};
  pthread_t first = start_thread(ask_late, &answered);
  pthread_t second = start_thread(ask_late, &unanswered);
  EVENTUALLY(peer_stats(&late).sent == 3);
  gate_open(&s->may_leave);
  join_thread(first);
  join_thread(second);
  CHECK_OK(answered.result);
  CHECK_EQ(answered.t.count, 1);
  CHECK_TEXT(answered.t.each[0].payload, "r:7:x");
  CHECK(answered.t.each[0].peer[0] != '\0');
  CHECK_ERROR(unanswered.result, NOT_FOUND);
  CHECK_EQ(unanswered.t.count, 0);
  CHECK_ERROR(ask(&late, &t, "none", "x", ten_seconds), NOT_FOUND);
}

/* ---- Flushing -------------------------------------------------------------------------------- */

typedef struct flushing {
  peer *p;
  int result;
} flushing;

THREAD(flush_until_released, flushing *f) {
  f->result = multicast_local_flush(&f->p->transport, MULTICAST_FOREVER);
}

/* The flush must fail, because MULTICAST_OK would mean that the other peer has read everything. */
TEST(flush_of_a_transport_that_is_released_meanwhile_says_so) {
  enum { COUNT = 20 };
  static stage s;
  static peer others[COUNT];
  stage_begin(&s);
  for (int i = 0; i < COUNT; ++i) {
    peer_connect_to(&others[i], &s.b);
    peer_flush(&others[i]);
  }
  stage_block(&s);
  for (int i = 0; i < COUNT; ++i) {
    peer *p = &others[i];
    flushing f = {p, 1};
    publish_text(p, "n", 1, "x");
    pthread_t thread = start_thread(flush_until_released, &f);
    pause_ms(10);
    p->transport.release(p->transport.context);
    join_thread(thread);
    CHECK_ERROR(f.result, INVALID_HANDLE);
    EVENTUALLY(LOAD(p->releases) == 1);
    CHECK_OK(multicast_broadcaster_destroy(p->broadcaster));
  }
  gate_open(&s.may_leave);
  EVENTUALLY(LOAD(s.arrived.count) == COUNT); /* although the publishers have left */
  stage_end(&s);
}

THREAD(flush_a_while, peer *p) {
  CHECK_ERROR(multicast_local_flush(&p->transport, a_while), TIMEOUT);
}

/* Two threads flush at the same time. The flush with the shorter timeout ends first. */
TEST_OF_STAGE(several_may_flush) {
  pthread_t thread = start_thread(flush_a_while, &s->asker);
  publish_text(&s->asker, "n", 1, "x");
  pause_ms(10);
  CHECK_ERROR(multicast_local_flush(&s->asker.transport, 4 * a_while), TIMEOUT);
  join_thread(thread);
}

TEST_OF_BROKER(silent_connections_hold_no_place, NULL) {
  enum { COUNT = 200 };
  static stranger silent[COUNT];
  SCOPED peer here, late;
  int calls = 0;
  message m;
  int file;
  peer_connect_to(&here, b);
  peer_observe(&here, "n", counter(&calls));
  const uint64_t before = time_now();
  for (int i = 0; i < COUNT; ++i) stranger_reach(&silent[i], b);
  peer_connect_to(&late, b);
  peer_flush(&late);
  CHECK(time_now() - before < 4000000000u);
  for (int i = 0; i < 10; ++i) CHECK_OK(peer_publish(&late, "n", 1, "x", 1));
  EVENTUALLY(LOAD(calls) == 10);
  EVENTUALLY(peer_stats(&here).peers == 1);
  for (int i = 0; i < COUNT; ++i) {
    EVENTUALLY(message_receive(silent[i].socket, &m, &file) == RECEIPT_END);
    close(silent[i].socket);
  }
}

/* Silent connections occupy all places of `here` until they time out. Before the timeout, `here`
 * cannot accept the new peer, so the new peer's publications stay in its own ring. */
TEST_OF_BROKER(peer_that_has_no_place_yet_gets_what_is_published_meanwhile, NULL) {
  enum { COUNT = 128 };
  static stranger silent[COUNT];
  SCOPED peer here, late;
  int calls = 0;
  peer_connect_to(&here, b);
  peer_observe(&here, "n", counter(&calls));
  for (int i = 0; i < COUNT; ++i) stranger_reach(&silent[i], b);
  pause_ms(A_WHILE_MS);
  peer_begin(&late, b->port, NULL);
  EVENTUALLY((peer_publish(&late, "n", 1, "x", 1), peer_stats(&late).sent > 0));
  for (int i = 0; i < 9; ++i) CHECK_OK(peer_publish(&late, "n", 1, "x", 1));
  CHECK_EQ(LOAD(calls), 0);
  peer_flush(&late);
  EVENTUALLY(LOAD(calls) == 10);
  for (int i = 0; i < COUNT; ++i) close(silent[i].socket);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static int losses;

static void note_loss(void *context, multicast_local_state state, int32_t pid, const char *text) {
  if (state == MULTICAST_LOCAL_LOST) ADD(losses, 1);
}

/* Imitates a publisher that has dropped all its entries. Also wakes the reader, in case it has
 * stopped polling and is asleep. */
static void drop_all(stranger *s, uint64_t count) {
  board *b = s->own.board;
  const uint64_t head = b->head + 1024, which = ~b->counted & COUNT_BIT;
  b->slots[VICTIM_PLACE].dropped[which] = count;
  __atomic_store_n(&b->oldest, head, __ATOMIC_RELEASE);
  __atomic_store_n(&b->counted, head | which, __ATOMIC_RELEASE);
  __atomic_store_n(&b->head, head, __ATOMIC_SEQ_CST);
  if (LOAD(s->its.board->sleeps) % 2 == 1) message_send(s->socket, MESSAGE_WAKE, 0, 0, NULL, -1);
}

TEST_OF_BROKER(loss_is_told_at_once, NULL) {
  SCOPED peer here;
  stranger s;
  int calls = 0;
  uint64_t dropped = 0;
  transport_options options = peer_options(&here, b->port);
  options.changed = note_loss;
  CHECK_OK(multicast_local_connect(&options, &here.transport));
  peer_observe(&here, "n", counter(&calls));
  stranger_connect(&s, b);
  stranger_greet(&s);
  EVENTUALLY(peer_stats(&here).joined == 1);
  for (int round = 1; round <= 40; ++round) {
    const entry r = entry_for_victim(1, 0);
    stranger_write(&s, &r, "n", 1);
    dropped += 5;
    while (LOAD(calls) < round) continue;
    drop_all(&s, dropped + (uint64_t)round);
    const uint64_t before = time_now();
    EVENTUALLY(LOAD(losses) == round);
    CHECK(time_now() - before < 300000000);
  }
  CHECK_EQ(peer_stats(&here).overwritten, dropped);
  peer_release(&here);
  stranger_end(&s);
}

/* ---- Children of forks ----------------------------------------------------------------------- */

/* A process that joins the group and creates a child that outlives it. */
static void be_parent_of_child(int port, int *child) {
  peer p;
  peer_connect_with(&p, port, &OPTIONS(.name = "parent"));
  peer_observe(&p, "n", counter(&calls));
  const pid_t pid = fork();
  if (pid > 0) STORE(*child, pid);
  for (;;) pause();
}

/* The parent's end must be reported to the other peers, and later peers must not wait for the
 * parent. */
TEST(child_that_lives_on_holds_up_nobody) {
  int *child = mmap(NULL, sizeof *child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  broker b;
  peer here, late;
  CHECK(child != MAP_FAILED);
  broker_prepare(&b, NULL);
  fflush(NULL);
  const pid_t parent = fork();
  CHECK(parent >= 0);
  if (parent == 0) be_parent_of_child(b.port, child);
  peer_connect_to(&here, &b);
  EVENTUALLY(LOAD(*child) != 0);
  EVENTUALLY(peer_stats(&here).peers == 1);
  peer_flush(&here);
  uint64_t before = time_now();
  CHECK_EQ(kill(parent, SIGKILL), 0);
  CHECK_EQ(waitpid(parent, NULL, 0), parent);
  EVENTUALLY(LOAD(here.gone) == 1);
  CHECK(LOAD(here.gone_at) - before < 3000000000u);
  before = time_now();
  peer_connect_to(&late, &b);
  peer_flush(&late);
  CHECK(time_now() - before < 900000000);
  CHECK_EQ(peer_stats(&late).peers, 1);
  CHECK_EQ(kill(LOAD(*child), SIGKILL), 0);
  peer_release(&late);
  peer_release(&here);
  broker_delete(&b);
}
