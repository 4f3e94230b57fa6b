/* Common code for the tests of prefixes. Not all transports support observers of prefixes. */

#ifndef PREFIXES_H
#define PREFIXES_H

#include "broker.h"

/* Records each notification as "name=payload ". */
typedef struct log {
  pthread_mutex_t mutex;
  char text[1000];
} log;

static const log no_log = {PTHREAD_MUTEX_INITIALIZER, ""};

FUNCTION(write_log, log *l) {
  pthread_mutex_lock(&l->mutex);
  size_t end = strlen(l->text);
  const char *name = multicast_current_name();
  snprintf(l->text + end, sizeof l->text - end, "%s=%.*s ", name == NULL ? "?" : name, (int)size,
           (const char *)payload);
  pthread_mutex_unlock(&l->mutex);
}

static size_t log_length(log *l) {
  pthread_mutex_lock(&l->mutex);
  size_t length = strlen(l->text);
  pthread_mutex_unlock(&l->mutex);
  return length;
}

/* Expects that exactly `text` has been recorded since the last call. */
static void expect_log(log *l, const char *text) {
  EVENTUALLY(log_length(l) >= strlen(text));
  pause_ms(A_WHILE_MS);
  pthread_mutex_lock(&l->mutex);
  CHECK_TEXT(l->text, text);
  l->text[0] = '\0';
  pthread_mutex_unlock(&l->mutex);
}

static void send(peer *p, const char *name, const char *text) {
  CHECK_OK(peer_publish(p, name, 1, text, strlen(text)));
}

static void attach(peer *p) {
  CHECK_OK(multicast_broadcaster_attach(p->broadcaster, &p->transport));
}

static multicast_token observe_prefix(peer *p, const char *prefix, log *l) {
  multicast_token token;
  CHECK_OK(multicast_broadcaster_register_prefix(p->broadcaster, prefix, DELEGATE(write_log, l),
                                                 NULL, &token));
  return token;
}

/* Destroys the broadcaster, which releases the attached transport. */
static void end(peer *p) {
  CHECK_OK(multicast_broadcaster_destroy(p->broadcaster));
  EVENTUALLY(LOAD(p->releases) == 1);
  p->broadcaster.id = 0;
}

/* `to` observes prefixes, and `from` publishes names with and without these prefixes. Each observed
 * notification must arrive once. */
static void publish_to_prefixes(broker *b, peer *from, peer *to) {
  log l = no_log;
  peer_connect_to(from, b);
  peer_connect_to(to, b);
  attach(to);
  multicast_token doors = observe_prefix(to, "door/", &l);
  peer_flush(to);
  send(from, "door/1", "a");
  send(from, "window/1", "b");
  send(from, "door", "c");
  expect_log(&l, "door/1=a ");
  /* An observer of a longer prefix, an observer of all names and an observer of the name itself are
   * each called once. */
  multicast_token first = observe_prefix(to, "door/1", &l);
  multicast_token all = observe_prefix(to, "", &l);
  CHECK_OK(multicast_broadcaster_register(to->broadcaster, "door/1", DELEGATE(write_log, &l),
                                          NULL, NULL));
  peer_flush(to);
  send(from, "door/1", "d");
  send(from, "window/1", "e");
  expect_log(&l, "?=d door/1=d door/1=d door/1=d window/1=e ");
  CHECK_OK(multicast_token_remove(all));
  CHECK_OK(multicast_token_remove(first));
  CHECK_EQ(multicast_broadcaster_unregister_all(to->broadcaster, "door/1"), 1);
  peer_flush(to);
  send(from, "door/1", "f");
  send(from, "window/1", "g");
  expect_log(&l, "door/1=f ");
  CHECK_OK(multicast_token_remove(doors));
  peer_flush(to);
  send(from, "door/1", "h");
  expect_log(&l, "");
}

#endif
