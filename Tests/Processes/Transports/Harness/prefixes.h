/* Observers of prefixes, for the tests of transports that are told of them. */

#ifndef PREFIXES_H
#define PREFIXES_H

#include "broker.h"

/* Writes what comes as "name=payload ". */
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

/* Expects this text, and nothing more, since the last time. */
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

/* The broadcaster releases the transport that is attached to it. */
static void end(peer *p) {
  CHECK_OK(multicast_broadcaster_destroy(p->broadcaster));
  EVENTUALLY(LOAD(p->releases) == 1);
  p->broadcaster.id = 0;
}

#endif
