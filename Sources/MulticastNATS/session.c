/* The thread of a client. It has the only event loop of its connection: connects, subscribes, sends
 * and receives. libnats hands over what has come on a thread of its own, here to a list; this
 * thread delivers it. No lock of a client is held while libnats is called, with two exceptions that
 * say so: libnats calls write_changed() under a lock of its own. */

#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <nats/nats.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  /* What libnats has at once. When a connection ends, nobody knows how much of it was sent. */
  BATCH_COUNT = 1024,
  BATCH_SIZE = 65536,
  /* How many messages are delivered before the connection is looked at again. */
  DELIVERIES = 256,
  /* How many messages libnats may have read and not handed over, before it reads more. */
  HANDING_MAX = 1024,
  BEHIND_MS = 10,
  COUNTING_MS = 50,
  IDLE_MS = 1000,
  SETTLE_MS = 5000
};
static bool is_stopping(client *c) {
  bool result;
  pthread_mutex_lock(&c->lock);
  result = c->is_stopping;
  pthread_mutex_unlock(&c->lock);
  return result;
}

/* ---- Callers' functions ---------------------------------------------------------------------- */

/* After a function of a caller. If that has forked, this is the child: its only thread is this one,
 * and the client and the connection are the parent's. The thread ends. */
static void end_in_child(unsigned forks) {
  if (process_forks() != forks) pthread_exit(NULL);
}

/* While the thread is away, a release of the transport does not wait for it. False: that has been
 * called already, and no function of a caller may be called any more. */
static bool go_away(client *c) {
  bool may_go;
  pthread_mutex_lock(&c->lock);
  may_go = c->is_away = !c->is_stopping;
  pthread_mutex_unlock(&c->lock);
  return may_go;
}

static void come_back(client *c) {
  pthread_mutex_lock(&c->lock);
  c->is_away = false;
  pthread_mutex_unlock(&c->lock);
}

static void tell(client *c, multicast_nats_state state, natsStatus code, const char *reason) {
  const unsigned forks = process_forks();
  if (c->options.changed == NULL || !go_away(c)) return;
  c->options.changed(c->options.context, state, (int32_t)code, reason);
  end_in_child(forks);
  come_back(c);
}

/* ---- What arrives ---------------------------------------------------------------------------- */

/* What an arrival takes of `receive_bytes`. */
static uint64_t cost_of(const arrival *a) { return sizeof *a + a->size + strlen(a->name) + 1; }

static arrival *create_arrival(const char *name, size_t name_size, uint32_t event,
                               const void *payload, size_t size) {
  size_t whole = sizeof(arrival) + size + name_size + 1;
  size_t rounded = (whole + _Alignof(arrival) - 1) / _Alignof(arrival) * _Alignof(arrival);
  arrival *a = aligned_alloc(_Alignof(arrival), rounded);
  if (a == NULL) return NULL;
  a->next = NULL;
  a->size = size;
  a->event = event;
  if (size > 0) memcpy(a->payload, payload, size);
  a->name = memcpy(a->payload + size, name, name_size + 1);
  return a;
}

/* On a thread of libnats, in the order of arrival. */
static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                       void *closure) {
  client *c = closure;
  char name[NAME_MAX_SIZE + 1];
  uint32_t event = 0;
  size_t size = (size_t)natsMsg_GetDataLength(message);
  size_t name_size = coding_read(&subject_coding, natsMsg_GetSubject(message),
                                 c->options.subject_prefix, name, &event);
  bool is_ours = name_size > 0 && size <= c->options.max_payload;
  arrival *a =
      is_ours ? create_arrival(name, name_size, event, natsMsg_GetData(message), size) : NULL;
  (void)connection, (void)subscription;
  natsMsg_Destroy(message);
  pthread_mutex_lock(&c->lock);
  ++c->stats.received;
  if (!is_ours) {
    ++c->stats.ignored;
  } else if (a == NULL || c->is_stopping) {
    ++c->stats.lost;
    free(a);
  } else {
    c->arrived_bytes += cost_of(a);
    *(c->first_arrival == NULL ? &c->first_arrival : &c->last_arrival->next) = a;
    c->last_arrival = a;
    client_wake(c);
  }
  pthread_mutex_unlock(&c->lock);
}

static void free_arrival(const void *payload, size_t size) {
  (void)size;
  free((void *)(uintptr_t)payload);
}

/* Delivers one, or queues it for the delegate of the inbox. Returns which number to count up. */
static uint64_t *deliver_one(client *c, arrival *a) {
  const unsigned forks = process_forks();
  int64_t result;
  if (c->inbox.id != 0) {
    multicast_invocation how = multicast_invocation_default();
    how.payload = a;
    how.release = free_arrival;
    result = multicast_invoke_with(c->inbox, &how, NULL);
    end_in_child(forks); /* a queue may call a function, too */
    return result < 1 ? &c->stats.lost : NULL;
  }
  result = multicast_broadcaster_deliver(c->options.broadcaster, a->name, a->event,
                                         a->size == 0 ? NULL : a->payload, a->size);
  end_in_child(forks);
  free(a);
  return result < 0 ? &c->stats.lost : &c->stats.delivered;
}

/* Delivers so many at most. */
static void deliver_arrivals(client *c, size_t most) {
  while (most-- > 0) {
    uint64_t *counter, cost;
    bool may_go;
    arrival *a;
    pthread_mutex_lock(&c->lock);
    a = c->first_arrival;
    if (a != NULL) c->first_arrival = a->next;
    may_go = c->is_away = a != NULL && !c->is_stopping;
    pthread_mutex_unlock(&c->lock);
    if (a == NULL) return;
    cost = cost_of(a);
    if (!may_go) {
      free(a);
      continue;
    }
    counter = deliver_one(c, a);
    pthread_mutex_lock(&c->lock);
    c->is_away = false;
    c->arrived_bytes -= cost;
    if (counter != NULL) ++*counter;
    pthread_mutex_unlock(&c->lock);
  }
}

/* Under the lock: this takes the locks of subscriptions, which take none. How many messages libnats
 * has read and not handed over. */
static int count_pending(const client *c) {
  known_name *name;
  int total = 0, count;
  for (name = names_next(&c->names, NULL); name != NULL; name = names_next(&c->names, name)) {
    if (name->subscription != NULL &&
        natsSubscription_GetPending(name->subscription, &count, NULL) == NATS_OK)
      total += count;
  }
  return total;
}

/* Nothing more will come on this connection. Waits until libnats has handed over what has come: it
 * drops that when it closes the connection. */
static void settle(client *c) {
  int tries, pending = 1;
  for (tries = 0; tries < SETTLE_MS && pending > 0 && !is_stopping(c); ++tries) {
    if (tries > 0) poll(NULL, 0, 1);
    pthread_mutex_lock(&c->lock);
    pending = count_pending(c);
    pthread_mutex_unlock(&c->lock);
  }
}

/* ---- What is sent ---------------------------------------------------------------------------- */

/* Takes what is to be sent next, if libnats has sent what it had. */
static publication *take_batch(client *c) {
  publication *first = NULL, *last = NULL;
  size_t size = 0;
  pthread_mutex_lock(&c->lock);
  if (c->stats.sending == 0) first = c->first;
  while (first != NULL && c->first != NULL && c->stats.sending < BATCH_COUNT && size < BATCH_SIZE) {
    last = c->first;
    size += last->subject_size + last->size;
    c->first = last->next;
    --c->stats.waiting;
    ++c->stats.sending;
  }
  if (last != NULL) last->next = NULL;
  pthread_mutex_unlock(&c->lock);
  return first;
}

/* Counts what libnats has written. */
static void end_batch(client *c) {
  if (c->has_ended || natsConnection_Buffered(c->connection) != 0) return;
  pthread_mutex_lock(&c->lock);
  c->stats.sent += c->stats.sending;
  c->stats.sending = 0;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

/* Hands one to libnats. False: it has not taken it. */
static bool hand_over(client *c, const publication *p) {
  const char *payload = p->bytes + p->subject_size + 1;
  natsStatus status;
  if (c->has_ended) return false;
  status = natsConnection_Publish(c->connection, p->bytes, payload, (int)p->size);
  if (status == NATS_OK) return true;
  if (status != NATS_MAX_PAYLOAD && !c->has_ended) {
    /* It may have taken a part of it. */
    c->has_ended = true;
    c->end_reason = natsStatus_GetText(status);
  }
  return false;
}

static void send_publications(client *c) {
  publication *p, *next;
  uint64_t last = 0, too_large = 0;
  for (p = take_batch(c); p != NULL; p = next) {
    next = p->next;
    last = p->ticket;
    if (!hand_over(c, p) && !c->has_ended) ++too_large;
    free(p);
  }
  if (last == 0) return;
  pthread_mutex_lock(&c->lock);
  c->handed = last;
  c->stats.sending -= too_large;
  c->stats.dropped += too_large;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  if (!c->has_ended) natsConnection_ProcessWriteEvent(c->connection);
  end_batch(c);
  if (too_large > 0)
    tell(c, MULTICAST_NATS_PUBLICATION_REFUSED, NATS_MAX_PAYLOAD,
         "the payload is larger than the server takes");
}

/* ---- Subscriptions --------------------------------------------------------------------------- */

/* On a thread of libnats, after the last message. */
static void on_complete(void *closure) { client_release_elsewhere(closure); }

static void subscribe(client *c, known_name *name) {
  char subject[ADDRESS_MAX_SIZE];
  natsSubscription *subscription = NULL;
  natsStatus status;
  coding_write_all(&subject_coding, subject, c->options.subject_prefix, name->text);
  status = natsConnection_Subscribe(&subscription, c->connection, subject, on_message, c);
  if (status == NATS_OK) {
    name->subscription = subscription;
    /* This library has a limit of its own. */
    natsSubscription_SetPendingLimits(subscription, -1, -1);
    client_retain(c);
    if (natsSubscription_SetOnCompleteCB(subscription, on_complete, c) != NATS_OK)
      client_release(c);
  } else if (!c->has_ended) {
    /* At the next connection all is said again. */
    c->has_ended = true;
    c->end_reason = natsStatus_GetText(status);
  }
}

static void unsubscribe(natsSubscription *subscription) {
  if (subscription == NULL) return;
  natsSubscription_Unsubscribe(subscription);
  natsSubscription_Destroy(subscription);
}

/* Tells the server what has changed. It is not waited for: the server works in order. */
static void send_subscriptions(client *c) {
  while (!c->has_ended) {
    natsSubscription *cancelled = NULL;
    bool is_wanted = false;
    known_name *name;
    pthread_mutex_lock(&c->lock);
    name = names_take_change(&c->names);
    if (name == NULL) {
      if (c->told != c->names.changes) pthread_cond_broadcast(&c->changed);
      c->told = c->names.changes;
    } else {
      is_wanted = name->is_wanted;
      cancelled = is_wanted ? NULL : name->subscription;
      if (!is_wanted) names_remove(&c->names, name);
    }
    pthread_mutex_unlock(&c->lock);
    if (name == NULL) return;
    /* Only this thread removes names. */
    if (is_wanted && name->subscription == NULL) subscribe(c, name);
    unsubscribe(cancelled);
  }
}

/* ---- A connection ---------------------------------------------------------------------------- */

static natsStatus on_attach(void **attached, void *loop, natsConnection *connection,
                            natsSock socket) {
  client *c = loop;
  (void)connection;
  *attached = c;
  c->socket = socket;
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  return NATS_OK;
}

static natsStatus on_detach(void *attached) {
  client *c = attached;
  c->has_ended = true;
  c->socket = -1;
  return NATS_OK;
}

static natsStatus read_changed(void *attached, bool is_added) {
  (void)attached, (void)is_added;
  return NATS_OK;
}

/* On any thread that uses the connection. */
static natsStatus write_changed(void *attached, bool is_added) {
  client *c = attached;
  pthread_mutex_lock(&c->lock);
  c->has_to_write = is_added;
  if (is_added) client_wake(c);
  pthread_mutex_unlock(&c->lock);
  return NATS_OK;
}

/* On a thread of libnats: the server has refused something, and the connection goes on. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                     void *closure) {
  client *c = closure;
  const char *text = nats_GetLastError(NULL);
  int kind = REFUSED_PUBLICATION;
  (void)connection, (void)subscription;
  if (status != NATS_NOT_PERMITTED) return;
  if (text == NULL || text[0] == '\0') text = natsStatus_GetText(status);
  if (strcasestr(text, "for subscription to") != NULL) kind = REFUSED_SUBSCRIPTION;
  pthread_mutex_lock(&c->lock);
  if (kind == REFUSED_PUBLICATION) ++c->stats.rejected;
  snprintf(c->refusals[kind], REASON_SIZE, "%s", text);
  client_wake(c);
  pthread_mutex_unlock(&c->lock);
}

/* On a thread of libnats, as the last call for a connection. */
static void on_closed(natsConnection *connection, void *closure) {
  (void)connection;
  client_release_elsewhere(closure);
}

int session_set_callbacks(client *c) {
  natsStatus status =
      natsOptions_SetEventLoop(c->how, c, on_attach, read_changed, write_changed, on_detach);
  if (status == NATS_OK) status = natsOptions_SetErrorHandler(c->how, on_error, c);
  if (status == NATS_OK) status = natsOptions_SetClosedCB(c->how, on_closed, c);
  return (int)status;
}

/* Whether libnats holds so many messages that it is to pause reading. It drops those of cancelled
 * names, and never hands them over: so what it holds is counted again now and then. */
static bool is_behind(client *c) {
  uint64_t read_count = 0, now = now_ns();
  bool result;
  natsConnection_GetStats(c->connection, c->counts);
  natsStatistics_GetCounts(c->counts, &read_count, NULL, NULL, NULL, NULL);
  pthread_mutex_lock(&c->lock);
  result = c->stats.received - c->handed_before + HANDING_MAX < read_count;
  if (result && now - c->counted_at > COUNTING_MS * ns_of_millisecond) {
    c->counted_at = now;
    c->handed_before = c->stats.received + (uint64_t)count_pending(c) - read_count;
  }
  pthread_mutex_unlock(&c->lock);
  return result;
}

/* Waits for the socket or for work, and lets libnats write and read. */
static void wait_for_work(client *c) {
  struct pollfd watched[2] = {{c->wakeup, POLLIN, 0}, {c->socket, POLLIN | POLLRDHUP, 0}};
  const short is_ending = POLLRDHUP | POLLHUP | POLLERR;
  bool has_work, is_slow = is_behind(c), is_full;
  int wait_ms = is_slow ? BEHIND_MS : IDLE_MS;
  uint64_t ignored;
  char byte;
  pthread_mutex_lock(&c->lock);
  is_full = is_slow || c->arrived_bytes > c->options.receive_bytes;
  if (is_full) watched[1].events = POLLRDHUP;
  if (c->has_to_write) watched[1].events |= POLLOUT;
  has_work = c->is_stopping || c->first_arrival != NULL || c->names.first_change != NULL ||
             (c->first != NULL && c->stats.sending == 0) || c->refusals[0][0] != '\0' ||
             c->refusals[1][0] != '\0';
  c->is_asleep = !has_work;
  pthread_mutex_unlock(&c->lock);
  if (poll(watched, 2, has_work ? 0 : wait_ms) < 0) watched[0].revents = watched[1].revents = 0;
  pthread_mutex_lock(&c->lock);
  c->is_asleep = false;
  pthread_mutex_unlock(&c->lock);
  if ((watched[0].revents & POLLIN) != 0 && read(c->wakeup, &ignored, sizeof ignored) < 0) return;
  if ((watched[1].revents & POLLOUT) != 0) {
    natsConnection_ProcessWriteEvent(c->connection);
    end_batch(c);
  }
  if (is_full) c->heard_at = now_ns(); /* nobody knows whether it is silent */
  if (c->has_ended || (watched[1].revents & (POLLIN | is_ending)) == 0) return;
  if ((watched[1].revents & is_ending) != 0) {
    ssize_t received = recv(c->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR)) settle(c);
  }
  c->heard_at = now_ns();
  natsConnection_ProcessReadEvent(c->connection);
}

/* Asks a server that is silent whether it is there; ends the connection if it does not answer. */
static void check_silence(client *c) {
  uint64_t now = now_ns(), interval = c->options.ping_interval_s * ns_of_second;
  if (c->has_ended || now - c->heard_at < interval || now - c->asked_at < interval) return;
  if (c->asked_at > c->heard_at) {
    c->has_ended = true;
    c->end_reason = "the server does not answer";
    return;
  }
  c->asked_at = now;
  /* This is how libnats sends a PING. Nobody reads the answer within this millisecond. */
  natsConnection_FlushTimeout(c->connection, 1);
}

/* What libnats says about its last error on this thread, without the place in its source. */
static const char *reason_of(natsStatus status) {
  const char *text = nats_GetLastError(NULL), *end;
  if (text == NULL || text[0] == '\0') return natsStatus_GetText(status);
  end = text[0] == '(' ? strstr(text, "): ") : NULL;
  return end == NULL ? text : end + 3;
}

/* Connects to the first server that accepts. NULL: none did, and that was told. */
static natsConnection *begin_connection(client *c) {
  natsConnection *connection = NULL;
  natsStatus status;
  c->has_ended = false;
  c->end_reason = NULL;
  c->socket = -1;
  if (!go_away(c)) return NULL;
  client_retain(c); /* for on_closed() */
  status = natsConnection_Connect(&connection, c->how);
  come_back(c);
  if (status == NATS_OK) return connection;
  client_release(c);
  tell(c, MULTICAST_NATS_REFUSED, status, reason_of(status));
  return NULL;
}

static void begin_session(client *c, natsConnection *connection) {
  char url[REASON_SIZE] = "";
  int64_t largest = natsConnection_GetMaxPayload(connection);
  const char *name;
  known_name *known;
  natsConnection_GetConnectedUrl(connection, url, sizeof url);
  name = strrchr(url, '@'); /* what is before it is secret */
  pthread_mutex_lock(&c->lock);
  c->connection = connection;
  c->handed_before = c->stats.received;
  c->stats.connected = 1;
  c->stats.max_payload = largest > 0 ? (uint64_t)largest : 0;
  ++c->stats.connections;
  for (known = names_next(&c->names, NULL); known != NULL; known = names_next(&c->names, known))
    names_change(&c->names, known);
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  c->connected_at = c->heard_at = now_ns();
  c->asked_at = 0;
  tell(c, MULTICAST_NATS_CONNECTED, NATS_OK, name == NULL ? url : name + 1);
}

/* Closes the connection, if libnats has not. */
static void close_connection(client *c, natsConnection *connection) {
  int tries;
  if (c->end_reason == NULL && !c->has_ended) natsConnection_ProcessWriteEvent(connection);
  if (!natsConnection_IsClosed(connection) && natsConnection_Buffered(connection) == 0)
    natsConnection_Close(connection);
  /* That would wait for what is not written. */
  for (tries = 0; tries < 1000 && !natsConnection_IsClosed(connection); ++tries) {
    shutdown(c->socket, SHUT_RDWR);
    natsConnection_ProcessReadEvent(connection);
  }
}

static void end_session(client *c) {
  natsConnection *connection = c->connection;
  char reason[REASON_SIZE];
  const char *text = NULL;
  known_name *name;
  natsStatus status = natsConnection_GetLastError(connection, &text);
  if (c->end_reason != NULL) text = c->end_reason;
  else if (status == NATS_OK || text == NULL || text[0] == '\0')
    text = "the server has closed the connection";
  snprintf(reason, sizeof reason, "%s", text);
  close_connection(c, connection);
  pthread_mutex_lock(&c->lock);
  c->connection = NULL;
  c->stats.connected = 0;
  c->stats.dropped += c->stats.sending;
  c->stats.sending = 0;
  c->told = c->confirmed_changes = 0;
  c->has_to_write = false;
  pthread_cond_broadcast(&c->changed);
  while (c->flushes > 0) pthread_cond_wait(&c->changed, &c->lock);
  /* Under the lock: the connection is closed, and nobody else uses it. */
  for (name = names_next(&c->names, NULL); name != NULL; name = names_next(&c->names, name)) {
    if (name->subscription != NULL) natsSubscription_Destroy(name->subscription);
    name->subscription = NULL;
  }
  pthread_mutex_unlock(&c->lock);
  natsConnection_Destroy(connection);
  deliver_arrivals(c, SIZE_MAX);
  /* libnats ends a connection with each error that it does not know, and so with this one. */
  if (strcasestr(reason, "maximum subscriptions exceeded") != NULL)
    tell(c, MULTICAST_NATS_SUBSCRIPTION_REFUSED, status, reason);
  tell(c, MULTICAST_NATS_LOST, status, reason);
}

/* Tells what the server has refused meanwhile. */
static void tell_refusals(client *c) {
  static const multicast_nats_state states[REFUSALS] = {MULTICAST_NATS_SUBSCRIPTION_REFUSED,
                                                        MULTICAST_NATS_PUBLICATION_REFUSED};
  int kind;
  for (kind = 0; kind < REFUSALS; ++kind) {
    char text[REASON_SIZE];
    pthread_mutex_lock(&c->lock);
    memcpy(text, c->refusals[kind], sizeof text);
    c->refusals[kind][0] = '\0';
    pthread_mutex_unlock(&c->lock);
    if (text[0] != '\0') tell(c, states[kind], NATS_NOT_PERMITTED, text);
  }
}

/* One connection, to its end. */
static void run_connection(client *c) {
  natsConnection *connection = begin_connection(c);
  if (connection == NULL) return;
  begin_session(c, connection);
  while (!c->has_ended && !is_stopping(c)) {
    send_subscriptions(c);
    send_publications(c);
    if (c->has_ended) break;
    wait_for_work(c);
    check_silence(c); /* at once: an observer may take long */
    deliver_arrivals(c, DELIVERIES);
    tell_refusals(c);
  }
  end_session(c);
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Waits before another try, and up to a quarter less: clients that were disconnected at once do not
 * come back at once. */
static void back_off(client *c, unsigned failures) {
  uint64_t delay = c->options.reconnect_min_ns, most = c->options.reconnect_max_ns, random = 0;
  struct timespec until;
  while (failures-- > 0 && delay < most) delay *= 2;
  if (delay > most) delay = most;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) == (ssize_t)sizeof random && delay >= 4)
    delay -= random % (delay / 4);
  delay += now_ns();
  until.tv_sec = (time_t)(delay / ns_of_second);
  until.tv_nsec = (long)(delay % ns_of_second);
  pthread_mutex_lock(&c->lock);
  while (!c->is_stopping &&
         pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT) {
  }
  pthread_mutex_unlock(&c->lock);
}

void *session_thread(void *argument) {
  client *c = argument;
  arrival *a;
  unsigned failures = 0;
  while (!is_stopping(c)) {
    c->connected_at = 0;
    run_connection(c);
    /* One that is lost soon after it was accepted counts as refused. */
    if (c->connected_at != 0 && now_ns() - c->connected_at > ns_of_second) failures = 0;
    back_off(c, failures);
    if (failures < 64) ++failures;
  }
  pthread_mutex_lock(&c->lock);
  while ((a = c->first_arrival) != NULL) {
    c->first_arrival = a->next;
    free(a);
  }
  c->is_done = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  nats_ReleaseThreadMemory();
  client_release(c);
  return NULL;
}
