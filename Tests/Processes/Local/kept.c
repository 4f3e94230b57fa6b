/* Tests retained values, which are delivered to observers that register later. */

#include "groups.h"

#include <sys/wait.h>
#include <unistd.h>

enum { RING = 1 << 16 };

static bool keeps_even(void *context, const char *name, uint32_t event) {
  return event % 2 == 0 && name[0] == 'k';
}

static transport_options keeping(void) {
  return OPTIONS(.retains = keeps_even, .ring_bytes = RING);
}

static void text_publish(peer *p, uint32_t event, const char *text) {
  CHECK_OK(peer_publish(p, "kept", event, text, strlen(text)));
}

/* Records notifications as "event:payload ". */
typedef struct log {
  pthread_mutex_t mutex;
  char text[1000];
} log;

FUNCTION(write_log, log *l) {
  pthread_mutex_lock(&l->mutex);
  size_t end = strlen(l->text);
  snprintf(l->text + end, sizeof l->text - end, "%u:%.*s ", event, (int)size,
           (const char *)payload);
  pthread_mutex_unlock(&l->mutex);
}

static const log no_log = {PTHREAD_MUTEX_INITIALIZER, ""};

static void read_log(log *l, char *text) {
  pthread_mutex_lock(&l->mutex);
  strcpy(text, l->text);
  pthread_mutex_unlock(&l->mutex);
}

static size_t log_length(log *l) {
  char text[sizeof l->text];
  read_log(l, text);
  return strlen(text);
}

static void expect_log(log *l, const char *text) {
  char found[sizeof l->text];
  EVENTUALLY(log_length(l) >= strlen(text));
  pause_ms(A_WHILE_MS);
  read_log(l, found);
  CHECK_TEXT(found, text);
}

TEST_OF_BROKER(who_comes_late_gets_the_last_value_of_each_event_once, NULL) {
  SCOPED peer here, there;
  const transport_options options = keeping();
  log l = no_log;
  peer_connect_with(&here, b->port, &options);
  text_publish(&here, 2, "old");
  text_publish(&here, 4, "four");
  text_publish(&here, 1, "not kept");
  text_publish(&here, 2, "new");
  peer_connect_to(&there, b);
  peer_observe(&there, "kept", DELEGATE(write_log, &l));
  text_publish(&here, 2, "newer");
  text_publish(&here, 1, "one");
  expect_log(&l, "4:four 2:new 2:newer 1:one ");
  /* After all observers have been removed, the next observer receives the values again. */
  pthread_mutex_lock(&l.mutex);
  l.text[0] = '\0';
  pthread_mutex_unlock(&l.mutex);
  CHECK_OK(multicast_broadcaster_unregister_all(there.broadcaster, "kept") == 1 ? MULTICAST_OK : 1);
  there.transport.unsubscribe(there.transport.context, "kept");
  peer_flush(&there);
  text_publish(&here, 1, "nobody");
  peer_observe(&there, "kept", DELEGATE(write_log, &l));
  expect_log(&l, "4:four 2:newer ");
}

TEST_OF_BROKER(values_are_of_their_publisher_and_end_with_it, NULL) {
  SCOPED peer first, second, there;
  const transport_options options = keeping();
  log l = no_log, later = no_log;
  peer_connect_with(&first, b->port, &options);
  peer_connect_with(&second, b->port, &options);
  text_publish(&first, 2, "a");
  text_publish(&second, 2, "a");
  peer_connect_to(&there, b);
  peer_observe(&there, "kept", DELEGATE(write_log, &l));
  expect_log(&l, "2:a 2:a ");
  peer_release(&first);
  EVENTUALLY(LOAD(there.gone) == 1);
  CHECK_EQ(multicast_broadcaster_unregister_all(there.broadcaster, "kept"), 1);
  there.transport.unsubscribe(there.transport.context, "kept");
  peer_observe(&there, "kept", DELEGATE(write_log, &later));
  expect_log(&later, "2:a ");
}

TEST_OF_BROKER(first_observer_in_the_publishing_process_gets_the_value, NULL) {
  SCOPED peer here;
  const transport_options options = keeping();
  log l = no_log;
  peer_connect_with(&here, b->port, &options);
  CHECK_OK(multicast_broadcaster_attach(here.broadcaster, &here.transport));
  CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "kept", 2, "old", 3), 0);
  CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "kept", 2, "new", 3), 0);
  CHECK_OK(multicast_broadcaster_register(here.broadcaster, "kept", DELEGATE(write_log, &l), NULL,
                                          NULL));
  CHECK_TEXT(l.text, "2:new "); /* the value has arrived before the registration returned */
  CHECK_EQ(multicast_broadcaster_notify(here.broadcaster, "kept", 2, "newer", 5), 1);
  CHECK_TEXT(l.text, "2:new 2:newer ");
  CHECK_OK(multicast_broadcaster_destroy(here.broadcaster));
  EVENTUALLY(LOAD(here.releases) == 1);
  here.broadcaster.id = 0;
}

TEST_OF_BROKER(more_than_half_a_ring_is_not_kept_of_a_name, NULL) {
  static char payload[RING / 4];
  SCOPED peer here, there;
  const transport_options options = keeping();
  record *r = record_create();
  peer_connect_with(&here, b->port, &options);
  CHECK_OK(peer_publish(&here, "kept", 2, payload, sizeof payload));
  CHECK_ERROR(peer_publish(&here, "kept", 4, payload, sizeof payload), LIMIT);
  CHECK_OK(peer_publish(&here, "kept", 2, payload, sizeof payload)); /* replaces the first value */
  CHECK_OK(peer_publish(&here, "k", 4, payload, sizeof payload));
  CHECK_OK(peer_publish(&here, "kept", 4, payload, 1000));
  CHECK_EQ(peer_stats(&here).refused, 1);
  peer_connect_to(&there, b);
  peer_observe(&there, "kept", recorder(r));
  record_wait(r, 2);
}

FUNCTION(wait_for_gate, gate *g) { gate_wait(g); }

/* The ring is full because a slow peer has not read it, so a retained value for another peer waits
 * for room. Later publications arrive after the value. */
TEST_OF_BROKER(value_waits_for_room, NULL) {
  static char payload[1000];
  SCOPED peer here, there, slow;
  const transport_options options = keeping();
  gate g = GATE_INIT;
  log l = no_log;
  peer_connect_with(&here, b->port, &options);
  text_publish(&here, 2, "value");
  peer_connect_to(&slow, b);
  peer_observe(&slow, "n", DELEGATE(wait_for_gate, &g));
  while (peer_publish(&here, "n", 1, payload, sizeof payload) == MULTICAST_OK) {
  }
  while (peer_publish(&here, "n", 1, NULL, 0) == MULTICAST_OK) {
  }
  peer_connect_to(&there, b);
  CHECK_OK(multicast_broadcaster_register(there.broadcaster, "kept", DELEGATE(write_log, &l), NULL,
                                          NULL));
  CHECK_OK(there.transport.subscribe(there.transport.context, "kept"));
  pause_ms(A_WHILE_MS);
  CHECK_EQ(log_length(&l), 0);
  CHECK_ERROR(multicast_local_flush(&there.transport, 1000000), TIMEOUT);
  gate_open(&g);
  peer_flush(&there);
  text_publish(&here, 1, "next");
  expect_log(&l, "2:value 1:next ");
}

/* Two other peers leave. This peer removes an observer while the end of the first peer is being
 * reported, and adds the observer again while the end of the second peer is being reported. */
typedef struct leaver {
  peer p;
  gate first_is_gone, may_go_on;
  int gone;
  log l;
} leaver;

static leaver of_two;

static void observe_again(void *context, multicast_local_state state, int32_t pid,
                          const char *text) {
  leaver *v = &of_two;
  if (state == MULTICAST_LOCAL_CONNECTED) ADD(v->p.connected, 1);
  if (state != MULTICAST_LOCAL_GONE) return;
  if (ADD(v->gone, 1) == 1) {
    gate_open(&v->first_is_gone);
    gate_wait(&v->may_go_on);
  } else {
    CHECK_OK(multicast_broadcaster_register(v->p.broadcaster, "kept", DELEGATE(write_log, &v->l),
                                            NULL, NULL));
    CHECK_OK(v->p.transport.subscribe(v->p.transport.context, "kept"));
  }
}

TEST_OF_BROKER(observer_that_comes_while_names_are_told_gets_the_value_once, NULL) {
  SCOPED peer here, first, second;
  leaver *v = &of_two;
  const transport_options keeps = keeping();
  *v = (leaver){.first_is_gone = GATE_INIT, .may_go_on = GATE_INIT, .l = no_log};
  peer_connect_with(&here, b->port, &keeps);
  text_publish(&here, 2, "value");
  transport_options options = peer_options(&v->p, b->port);
  options.changed = observe_again;
  peer_connect(&v->p, &options);
  peer_observe(&v->p, "kept", DELEGATE(write_log, &v->l));
  expect_log(&v->l, "2:value ");
  peer_connect_to(&first, b);
  peer_connect_to(&second, b);
  peer_meet(&v->p, 3);
  peer_release(&first);
  gate_wait(&v->first_is_gone);
  CHECK_EQ(multicast_broadcaster_unregister_all(v->p.broadcaster, "kept"), 1);
  v->p.transport.unsubscribe(v->p.transport.context, "kept");
  peer_release(&second);
  gate_open(&v->may_go_on);
  expect_log(&v->l, "2:value 2:value ");
  peer_release(&v->p);
}

/* ---- Forks ----------------------------------------------------------------------------------- */

static bool fork_when_asked(void *context, const char *name, uint32_t event) {
  STORE(((peer *)context)->code, fork());
  return true;
}

TEST_OF_BROKER(child_that_returns_from_retains_does_not_publish, NULL) {
  SCOPED peer p;
  int end = -1;
  peer_connect_with(&p, b->port, &OPTIONS(.retains = fork_when_asked));
  const multicast_status status = peer_publish(&p, "n", 1, "x", 1);
  if (LOAD(p.code) == 0) _exit(status == MULTICAST_ERROR_STATE ? 0 : 1);
  CHECK_OK(status);
  CHECK_EQ(waitpid(p.code, &end, 0), p.code);
  CHECK_EQ(end, 0);
}

static gate entered = GATE_INIT, may_leave = GATE_INIT;

static bool stay_in_retains(void *context, const char *name, uint32_t event) {
  gate_open(&entered);
  gate_wait(&may_leave);
  return false;
}

static void *notify(void *broadcaster) {
  multicast_broadcaster_notify(*(multicast_broadcaster *)broadcaster, "n", 1, "x", 1);
  return NULL;
}

static void *detach(void *broadcaster) {
  multicast_broadcaster_attach(*(multicast_broadcaster *)broadcaster, NULL);
  return NULL;
}

/* A thread detaches the transport, and waits for another thread's publication. In a child, which
 * has neither thread, fork() itself releases the transport. */
TEST_OF_BROKER(child_ends_although_a_thread_was_detaching, NULL) {
  peer p;
  int end = -1;
  peer_connect_with(&p, b->port, &OPTIONS(.retains = stay_in_retains));
  CHECK_OK(multicast_broadcaster_attach(p.broadcaster, &p.transport));
  pthread_t notifies = start_thread(notify, &p.broadcaster);
  gate_wait(&entered);
  pthread_t detaches = start_thread(detach, &p.broadcaster);
  pause_ms(A_WHILE_MS);
  const pid_t child = fork();
  if (child == 0) _exit(multicast_broadcaster_destroy(p.broadcaster) == MULTICAST_OK ? 0 : 1);
  EVENTUALLY(waitpid(child, &end, WNOHANG) == child);
  CHECK_EQ(end, 0);
  gate_open(&may_leave);
  join_thread(notifies);
  join_thread(detaches);
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}
