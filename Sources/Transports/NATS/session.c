/* The client's thread runs the event loop of the connection. The thread connects, subscribes, sends
 * and receives. For each arriving message, libnats calls on_message() on its delivery thread.
 * on_message() appends the message to a list, and the client's thread delivers it. The client's
 * lock must not be held while libnats is called, because libnats calls write_changed() under one of
 * its own locks. Only count_pending() calls libnats under the lock. */

#include "nats.h"

#include "../Common/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
  /* The limits of a batch of publications that is passed to libnats. Batches are limited because,
   * when a connection ends, the client cannot tell how much of the current batch has been sent. */
  BATCH_COUNT = 1024,
  BATCH_SIZE = 65536,
  /* The number of messages that the thread delivers before it polls the connection. libnats reads
   * up to 32 KB each time. If 32 KB contained more messages than the thread delivers, the list of
   * messages could keep growing. */
  DELIVERIES = 1024,
  /* The thread stops reading while libnats has more unprocessed messages than this. */
  HANDING_MAX = 1024,
  BEHIND_MS = 10,
  COUNTING_MS = 50,
  IDLE_MS = 1000,
  SETTLE_MS = 5000
};

/* ---- Receiving ------------------------------------------------------------------------------- */

/* The context of a subscription, which libnats passes to on_message() with each message. */
typedef struct route {
  nats_client *client;
  size_t size;      /* of the subject before the event */
  const char *name; /* stored after the subject; "" for the subscription to answers */
  bool is_of_questions;
  char subject[];
} route;

/* Processes an answer, or the server's report that a question has no receivers. */
static void receive_answer(nats_client *c, const char *subject, natsMsg *message, span payload) {
  origin to = {0, 0};
  if (!subject_read_return(subject, &to) || to.peer != c->base.id) to.number = 0;
  if (natsMsg_IsNoResponders(message)) {
    pthread_mutex_lock(&c->base.lock);
    ++c->base.counts.received;
    carried_end(&c->base, to.number, MULTICAST_ERROR_NOT_FOUND);
    pthread_mutex_unlock(&c->base.lock);
  } else {
    carried_answered(&c->base, to.number, payload);
  }
}

/* Processes a notification or a question. */
static void receive(const route *r, const char *event_text, natsMsg *message, span payload) {
  const char *reply = natsMsg_GetReply(message);
  origin from = {0, 0};
  uint32_t event = 0;
  bool is_ours = coding_read_event(event_text, &event);
  if (is_ours && r->is_of_questions)
    is_ours = reply != NULL && subject_read_return(reply, &from) && from.peer != 0;
  client_receive(&r->client->base, is_ours ? r->name : NULL, event, payload, from);
}

/* Returns whether to deliver a message with this name that has arrived through the subscription to
 * all names. The server sends a message once for each subscription that matches. If the name has
 * its own subscription, only the copy that arrives through that subscription is delivered. */
static bool is_wanted_by_prefix(nats_client *c, const char *text) {
  const known_name *name, *prefix;
  bool result;
  pthread_mutex_lock(&c->base.lock);
  name = names_find(&c->base.names, text);
  prefix = names_next_prefix(&c->base.prefixes, NULL, text);
  while (prefix != NULL && !prefix->is_wanted)
    prefix = names_next_prefix(&c->base.prefixes, prefix, text);
  result = name == NULL ? prefix != NULL
                        : name->subscription == NULL && (name->is_wanted || prefix != NULL);
  pthread_mutex_unlock(&c->base.lock);
  return result;
}

/* Processes a message that has arrived through the subscription to all names. */
static void receive_any(nats_client *c, const char *subject, span payload) {
  char name[NAME_MAX_SIZE + 1];
  uint32_t event = 0;
  bool is_ours =
      coding_read(&subject_coding, subject, c->base.settings.prefix, name, &event) > 0 &&
      is_wanted_by_prefix(c, name);
  client_receive(&c->base, is_ours ? name : NULL, event, payload, (origin){0, 0});
}

/* Called on libnats's delivery thread, in order of arrival. */
static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                       void *closure) {
  const route *r = closure;
  nats_client *c = r->client;
  const char *subject = natsMsg_GetSubject(message);
  span payload = {natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message)};
  const bool is_ours = strncmp(subject, r->subject, r->size) == 0;
  (void)connection, (void)subscription;
  /* Wait until libnats has finished reading. wait_for_work() holds the gate during that time. A
   * relaxed load suffices, because the gate protects no data. At worst, a stale value causes an
   * additional wake-up or locks an uncontended mutex. */
  if (__atomic_load_n(&c->is_reading, __ATOMIC_RELAXED)) {
    pthread_mutex_lock(&c->gate);
    pthread_mutex_unlock(&c->gate);
  }
  if (r->name == NULL) receive_any(c, subject, payload);
  else if (r->name[0] == '\0') receive_answer(c, subject, message, payload);
  else receive(r, is_ours ? subject + r->size : "", message, payload);
  natsMsg_Destroy(message);
}

static int pending_of(natsSubscription *subscription) {
  int count;
  if (subscription == NULL) return 0;
  return natsSubscription_GetPending(subscription, &count, NULL) == NATS_OK ? count : 0;
}

static int count_pending_of(const names *all) {
  known_name *name;
  int total = 0;
  for (name = names_next(all, NULL); name != NULL; name = names_next(all, name))
    total += pending_of(name->subscription);
  return total;
}

/* Called under the lock. Returns the number of messages that libnats has read but not passed to
 * on_message(). To compute this number, libnats locks the subscriptions. This cannot cause a
 * deadlock, because libnats takes no other lock while it holds a subscription's lock. */
static int count_pending(const nats_client *c) {
  return pending_of(c->all) + count_pending_of(&c->base.names) +
         count_pending_of(&c->base.answered);
}

/* Called when the connection has ended. Waits until libnats has passed all messages to
 * on_message(), because libnats drops the remaining messages when it closes the connection. */
static void settle(nats_client *c) {
  int tries, pending = 1;
  for (tries = 0; tries < SETTLE_MS && pending > 0 && !client_is_stopping(&c->base); ++tries) {
    if (tries > 0) poll(NULL, 0, 1);
    pthread_mutex_lock(&c->base.lock);
    pending = count_pending(c);
    pthread_mutex_unlock(&c->base.lock);
  }
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* Called under the lock while no batch is being passed to libnats. At this point, all publications
 * that are no longer in the outbox have been passed to libnats or dropped. */
static void note_handed(nats_client *c) {
  const publication *first = c->base.outbox.first;
  c->handed = first == NULL ? c->base.outbox.tickets : first->ticket - 1;
}

/* Removes the next batch from the outbox, if libnats has sent the previous batch. */
static publication *take_batch(nats_client *c) {
  publication *first = NULL, **place = &first;
  size_t size = 0;
  pthread_mutex_lock(&c->base.lock);
  if (c->base.counts.sending == 0) {
    while (size < BATCH_SIZE && c->base.counts.sending < BATCH_COUNT &&
           (*place = carried_take(&c->base)) != NULL) {
      size += (*place)->address_size + (*place)->size;
      place = &(*place)->next;
      ++c->base.counts.sending;
    }
  }
  if (first == NULL) note_handed(c);
  else c->sending_first = first->ticket;
  pthread_mutex_unlock(&c->base.lock);
  return first;
}

/* Counts the current batch as sent if libnats has written it completely. */
static void end_batch(nats_client *c) {
  if (c->has_ended || natsConnection_Buffered(c->connection) != 0) return;
  pthread_mutex_lock(&c->base.lock);
  c->base.counts.sent += c->base.counts.sending;
  c->base.counts.sending = 0;
  pthread_cond_broadcast(&c->base.changed);
  pthread_mutex_unlock(&c->base.lock);
}

/* Passes a publication to libnats. Returns whether libnats has accepted the publication. */
static bool hand_over(nats_client *c, const publication *p) {
  const char *payload = publication_message(p);
  char reply[ADDRESS_MAX_SIZE];
  natsStatus status;
  if (c->has_ended) return false;
  if (p->is_question) {
    subject_write_return(reply, (origin){c->base.id, p->number});
    status = natsConnection_PublishRequest(c->connection, p->bytes, reply, payload, (int)p->size);
  } else {
    status = natsConnection_Publish(c->connection, p->bytes, payload, (int)p->size);
  }
  if (status == NATS_OK) return true;
  if (status == NATS_MAX_PAYLOAD && p->is_question) {
    pthread_mutex_lock(&c->base.lock);
    carried_end(&c->base, p->number, MULTICAST_ERROR_LIMIT);
    pthread_mutex_unlock(&c->base.lock);
  }
  if (status != NATS_MAX_PAYLOAD && !c->has_ended) {
    /* libnats may have written a part of the message, so the connection can no longer be used. */
    c->has_ended = true;
    c->end_reason = natsStatus_GetText(status);
  }
  return false;
}

static void send_publications(nats_client *c) {
  blocks sent = {NULL, NULL, 0};
  publication *p, *next;
  uint64_t too_large = 0;
  p = take_batch(c);
  if (p == NULL) return;
  for (; p != NULL; p = next) {
    next = p->next;
    if (!hand_over(c, p) && !c->has_ended) ++too_large;
    blocks_give(&sent, p, p->whole);
  }
  pthread_mutex_lock(&c->base.lock);
  blocks_move(&c->base.blocks, &sent);
  note_handed(c);
  c->base.counts.sending -= too_large;
  c->base.counts.dropped += too_large;
  pthread_cond_broadcast(&c->base.changed);
  pthread_mutex_unlock(&c->base.lock);
  if (!c->has_ended) natsConnection_ProcessWriteEvent(c->connection);
  end_batch(c);
  for (; too_large > 0; --too_large)
    client_tell(&c->base, MULTICAST_NATS_PUBLICATION_REFUSED, NATS_MAX_PAYLOAD,
                "the payload is larger than the server takes");
}

/* ---- Subscriptions --------------------------------------------------------------------------- */

/* Returns NULL if there is no memory. */
static route *make_route_of_all(nats_client *c) {
  route *r = calloc(1, sizeof *r + ADDRESS_MAX_SIZE);
  if (r == NULL) return NULL;
  r->client = c;
  snprintf(r->subject, ADDRESS_MAX_SIZE, "%s.*.*", c->base.settings.prefix);
  return r;
}

/* Returns NULL if there is no memory. */
static route *make_route(nats_client *c, const names *all, const char *name) {
  char subject[ADDRESS_MAX_SIZE];
  size_t size = client_write_filter(&c->base, subject, all, name);
  size_t name_offset = size + 1, name_bytes = strlen(name) + 1;
  route *r = malloc(sizeof *r + name_offset + name_bytes);
  if (r == NULL) return NULL;
  r->client = c;
  r->size = size - 1; /* without the wildcard */
  r->is_of_questions = all == &c->base.answered;
  memcpy(r->subject, subject, size + 1);
  r->name = memcpy(r->subject + name_offset, name, name_bytes);
  return r;
}

/* Called on one of libnats's threads, after the last message of a subscription. */
static void on_complete(void *closure) {
  route *r = closure;
  client_release_elsewhere(r->client);
  free(r);
}

/* Subscribes, and takes ownership of the route. Returns NULL if the connection has ended. */
static natsSubscription *subscribe(nats_client *c, route *r) {
  natsSubscription *subscription = NULL;
  natsStatus status = NATS_NO_MEMORY;
  if (r != NULL)
    status = natsConnection_Subscribe(&subscription, c->connection, r->subject, on_message, r);
  /* Remove the limits of libnats, because this library has its own limits. */
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(subscription, -1, -1);
  if (status == NATS_OK) {
    client_retain(&c->base);
    status = natsSubscription_SetOnCompleteCB(subscription, on_complete, r);
    if (status != NATS_OK) client_release(&c->base);
  }
  if (status == NATS_OK) return subscription;
  /* Only this thread reads from the connection, so no message of this subscription has arrived yet,
   * and the route is not in use. */
  if (subscription != NULL) natsSubscription_Destroy(subscription);
  free(r);
  if (c->has_ended) return NULL;
  /* End the connection, because the next connection will send all subscriptions again. */
  c->has_ended = true;
  c->end_reason = natsStatus_GetText(status);
  return NULL;
}

static void unsubscribe(natsSubscription *subscription) {
  if (subscription == NULL) return;
  natsSubscription_Unsubscribe(subscription);
  natsSubscription_Destroy(subscription);
}

static void set_subscription(nats_client *c, void **place, void *subscription) {
  pthread_mutex_lock(&c->base.lock);
  *place = subscription;
  pthread_mutex_unlock(&c->base.lock);
}

/* Subscribes to all names if there is a prefix with observers. There are no subscriptions to
 * prefixes, because a name is a single token of a subject. The subscription to all names stays
 * until the connection ends. Replacing that subscription with subscriptions to single names would
 * lose some messages or deliver them twice, because a client does not know when a subscription
 * takes effect. For the same reason, subscriptions to single names do not change while the
 * subscription to all names exists. */
static void subscribe_all(nats_client *c) {
  bool is_wanted;
  pthread_mutex_lock(&c->base.lock);
  is_wanted = c->base.prefixes.wanted > 0 && c->all == NULL;
  pthread_mutex_unlock(&c->base.lock);
  if (is_wanted) set_subscription(c, &c->all, subscribe(c, make_route_of_all(c)));
}

/* Called under the lock. Returns whether the names of this table have separate subscriptions. */
static bool is_told_alone(const nats_client *c, const names *all) {
  return all == &c->base.answered || (all == &c->base.names && c->all == NULL);
}

/* Sends changes of names to the server. Does not wait for the server, which processes messages in
 * order. */
static void send_subscriptions(nats_client *c) {
  while (!c->has_ended) {
    natsSubscription *cancelled = NULL;
    bool is_wanted = false, is_told = false;
    known_name *name;
    names *all;
    subscribe_all(c);
    pthread_mutex_lock(&c->base.lock);
    all = client_changed(&c->base);
    name = all == NULL ? NULL : names_take_change(all);
    if (name == NULL) {
      if (c->told != client_changes(&c->base)) pthread_cond_broadcast(&c->base.changed);
      c->told = client_changes(&c->base);
    } else {
      is_wanted = name->is_wanted;
      is_told = is_told_alone(c, all);
      cancelled = is_wanted || !is_told ? NULL : name->subscription;
      if (!is_wanted && (is_told || name->subscription == NULL)) names_remove(all, name);
    }
    pthread_mutex_unlock(&c->base.lock);
    if (name == NULL) return;
    /* The name is valid without the lock, because only this thread removes names. */
    if (is_wanted && is_told && name->subscription == NULL)
      set_subscription(c, &name->subscription, subscribe(c, make_route(c, all, name->text)));
    unsubscribe(cancelled);
  }
}

/* ---- A connection ---------------------------------------------------------------------------- */

static natsStatus on_attach(void **attached, void *loop, natsConnection *connection,
                            natsSock socket) {
  nats_client *c = loop;
  (void)connection;
  *attached = c;
  c->socket = socket;
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  return NATS_OK;
}

static natsStatus on_detach(void *attached) {
  nats_client *c = attached;
  c->has_ended = true;
  c->socket = -1;
  return NATS_OK;
}

static natsStatus read_changed(void *attached, bool is_added) {
  (void)attached, (void)is_added;
  return NATS_OK;
}

/* Called on any thread that uses the connection. */
static natsStatus write_changed(void *attached, bool is_added) {
  nats_client *c = attached;
  pthread_mutex_lock(&c->base.lock);
  c->has_to_write = is_added;
  if (is_added) client_wake(&c->base);
  pthread_mutex_unlock(&c->base.lock);
  return NATS_OK;
}

static refusal *make_refusal(multicast_nats_state state, const char *text) {
  const size_t size = strlen(text) + 1;
  refusal *r = malloc(sizeof *r + size);
  if (r == NULL) return NULL;
  *r = (refusal){NULL, state, 1};
  memcpy(r->text, text, size);
  return r;
}

/* Called under the lock. Appends a refusal to the list. If `r` equals the last refusal, the list is
 * full, or `r` is NULL because there was no memory, increments the count of the last refusal
 * instead. */
static void note_refusal(nats_client *c, refusal *r) {
  refusal *last = c->last_refusal;
  if (r == NULL && last == NULL) return;
  if (last != NULL && (r == NULL || c->refusal_count == REFUSALS_MAX ||
                       (last->state == r->state && strcmp(last->text, r->text) == 0))) {
    ++last->count;
    free(r);
    return;
  }
  *(last == NULL ? &c->refusals : &last->next) = r;
  c->last_refusal = r;
  ++c->refusal_count;
}

/* Called on one of libnats's threads when the server has refused an operation without closing the
 * connection. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                     void *closure) {
  nats_client *c = closure;
  const char *text = nats_GetLastError(NULL);
  multicast_nats_state state = MULTICAST_NATS_PUBLICATION_REFUSED;
  refusal *r;
  (void)connection, (void)subscription;
  if (status != NATS_NOT_PERMITTED) return;
  if (text == NULL || text[0] == '\0') text = natsStatus_GetText(status);
  if (strcasestr(text, "for subscription to") != NULL)
    state = MULTICAST_NATS_SUBSCRIPTION_REFUSED;
  r = make_refusal(state, text);
  pthread_mutex_lock(&c->base.lock);
  if (state == MULTICAST_NATS_PUBLICATION_REFUSED) ++c->base.counts.rejected;
  note_refusal(c, r);
  client_wake(&c->base);
  pthread_mutex_unlock(&c->base.lock);
}

/* Called on one of libnats's threads, as the last callback of a connection. */
static void on_closed(natsConnection *connection, void *closure) {
  (void)connection;
  client_release_elsewhere(closure);
}

int session_set_callbacks(nats_client *c) {
  natsStatus status =
      natsOptions_SetEventLoop(c->how, c, on_attach, read_changed, write_changed, on_detach);
  if (status == NATS_OK) status = natsOptions_SetErrorHandler(c->how, on_error, c);
  if (status == NATS_OK) status = natsOptions_SetClosedCB(c->how, on_closed, c);
  return (int)status;
}

/* Returns whether libnats has so many unprocessed messages that the thread should stop reading. The
 * number of unprocessed messages is the number of messages that libnats has read, minus the number
 * of messages that it has passed to on_message(). This difference must be corrected from time to
 * time, because libnats drops the messages of cancelled subscriptions. */
static bool is_behind(nats_client *c) {
  uint64_t read_count = 0, now = now_ns();
  bool result;
  natsConnection_GetStats(c->connection, c->counts);
  natsStatistics_GetCounts(c->counts, &read_count, NULL, NULL, NULL, NULL);
  pthread_mutex_lock(&c->base.lock);
  result = c->base.counts.received - c->handed_before + HANDING_MAX < read_count;
  if (result && now - c->counted_at > COUNTING_MS * ns_of_millisecond) {
    c->counted_at = now;
    c->handed_before = c->base.counts.received + (uint64_t)count_pending(c) - read_count;
  }
  pthread_mutex_unlock(&c->base.lock);
  return result;
}

/* Waits until the socket is ready or there is work to do, and then lets libnats write and read. */
static void wait_for_work(nats_client *c) {
  client *base = &c->base;
  struct pollfd watched = {c->socket, POLLIN | POLLRDHUP, 0};
  const short is_ending = POLLRDHUP | POLLHUP | POLLERR;
  bool has_work, is_slow = is_behind(c), is_full;
  int wait_ms = is_slow ? BEHIND_MS : IDLE_MS;
  char byte;
  pthread_mutex_lock(&base->lock);
  is_full = is_slow || base->arrived_bytes > c->options.receive_bytes;
  if (is_full) watched.events = POLLRDHUP;
  if (c->has_to_write) watched.events |= POLLOUT;
  base->may_publish = base->counts.sending == 0; /* otherwise the socket will wake the thread */
  has_work = base->is_stopping || base->arrivals.first != NULL ||
             client_changed(base) != NULL ||
             (base->may_publish && carried_may_send(base)) || c->refusals != NULL;
  client_poll(base, &watched, has_work, wait_ms);
  if ((watched.revents & POLLOUT) != 0) {
    natsConnection_ProcessWriteEvent(c->connection);
    end_batch(c);
  }
  if (is_full) c->heard_at = now_ns(); /* the server may have sent messages that are not read */
  if (c->has_ended || (watched.revents & (POLLIN | is_ending)) == 0) return;
  if ((watched.revents & is_ending) != 0) {
    ssize_t received = recv(c->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR)) settle(c);
  }
  c->heard_at = now_ns();
  pthread_mutex_lock(&c->gate);
  __atomic_store_n(&c->is_reading, true, __ATOMIC_RELAXED);
  natsConnection_ProcessReadEvent(c->connection);
  __atomic_store_n(&c->is_reading, false, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&c->gate);
}

/* Sends a PING to a silent server, and ends the connection if the server does not answer. */
static void check_silence(nats_client *c) {
  uint64_t now = now_ns(), interval = c->options.ping_interval_s * ns_of_second;
  if (c->has_ended || now - c->heard_at < interval || now - c->asked_at < interval) return;
  if (c->asked_at > c->heard_at) {
    c->has_ended = true;
    c->end_reason = "the server does not answer";
    return;
  }
  /* libnats has no other function that sends a PING. natsConnection_FlushTimeout() also waits for
   * the answer, but no thread reads the answer during the timeout of 1 ms, so the result is a
   * timeout. Any other result means that there was no memory and the PING was not sent. */
  if (natsConnection_FlushTimeout(c->connection, 1) == NATS_TIMEOUT) c->asked_at = now;
}

/* Returns libnats's description of its last error on this thread, without the source location. */
static const char *reason_of(natsStatus status) {
  const char *text = nats_GetLastError(NULL), *end;
  if (text == NULL || text[0] == '\0') return natsStatus_GetText(status);
  end = text[0] == '(' ? strstr(text, "): ") : NULL;
  return end == NULL ? text : end + 3;
}

/* Connects to the first server that accepts the connection. If all servers refuse, reports the
 * refusal and returns NULL. */
static natsConnection *begin_connection(nats_client *c) {
  natsConnection *connection = NULL;
  natsStatus status;
  c->has_ended = false;
  c->end_reason = NULL;
  c->socket = -1;
  if (!client_go_away(&c->base)) return NULL;
  client_retain(&c->base); /* for on_closed() */
  status = natsConnection_Connect(&connection, c->how);
  client_come_back(&c->base);
  if (status == NATS_OK) return connection;
  client_release(&c->base);
  client_tell(&c->base, MULTICAST_NATS_REFUSED, status, reason_of(status));
  return NULL;
}

/* Called under the lock. */
static void change_all(names *all) {
  known_name *name;
  for (name = names_next(all, NULL); name != NULL; name = names_next(all, name))
    names_change(all, name);
}

static void begin_session(nats_client *c, natsConnection *connection) {
  char url[REASON_SIZE] = "";
  int64_t largest = natsConnection_GetMaxPayload(connection);
  const char *name;
  natsConnection_GetConnectedUrl(connection, url, sizeof url);
  name = strrchr(url, '@'); /* skips the credentials */
  pthread_mutex_lock(&c->base.lock);
  c->connection = connection;
  c->handed_before = c->base.counts.received;
  c->base.is_connected = c->base.has_questions = true;
  c->base.largest = largest > 0 ? (uint64_t)largest : 0;
  ++c->base.counts.connections;
  change_all(&c->base.names);
  change_all(&c->base.answered);
  pthread_cond_broadcast(&c->base.changed);
  pthread_mutex_unlock(&c->base.lock);
  c->base.connected_at = c->heard_at = now_ns();
  c->asked_at = 0;
  client_tell(&c->base, MULTICAST_NATS_CONNECTED, NATS_OK, name == NULL ? url : name + 1);
}

/* Closes the connection, unless libnats has closed it already. */
static void close_connection(nats_client *c, natsConnection *connection) {
  int tries;
  if (c->end_reason == NULL && !c->has_ended) natsConnection_ProcessWriteEvent(connection);
  if (!natsConnection_IsClosed(connection) && natsConnection_Buffered(connection) == 0)
    natsConnection_Close(connection);
  /* natsConnection_Close() would block if there were unwritten data. Shutting down the socket
   * instead makes libnats detect the end of the connection and close it. */
  for (tries = 0; tries < 1000 && !natsConnection_IsClosed(connection); ++tries) {
    shutdown(c->socket, SHUT_RDWR);
    natsConnection_ProcessReadEvent(connection);
  }
}

/* Called under the lock. Adds all names with subscriptions to the list `subscribed`, and returns
 * the list. */
static known_name *list_subscribed(const names *all, known_name *subscribed) {
  known_name *name;
  for (name = names_next(all, NULL); name != NULL; name = names_next(all, name)) {
    if (name->subscription == NULL) continue;
    name->next_subscribed = subscribed;
    subscribed = name;
  }
  return subscribed;
}

/* Reports the refusals of the server. */
static void tell_refusals(nats_client *c) {
  refusal *all, *next;
  pthread_mutex_lock(&c->base.lock);
  all = c->refusals;
  c->refusals = c->last_refusal = NULL;
  c->refusal_count = 0;
  pthread_mutex_unlock(&c->base.lock);
  for (; all != NULL; all = next) {
    next = all->next;
    for (; all->count > 0; --all->count)
      client_tell(&c->base, all->state, NATS_NOT_PERMITTED, all->text);
    free(all);
  }
}

/* Called under the lock when a connection has ended, before its last batch is dropped. The server
 * may never have read the earlier publications that it has not confirmed, so no flush may return
 * MULTICAST_OK for them. */
static void note_unconfirmed(nats_client *c) {
  const uint64_t last = c->base.counts.sending > 0 ? c->sending_first - 1 : c->handed;
  flushing *f;
  if (c->confirmed >= last) return;
  c->unsure = last;
  for (f = c->base.flushing; f != NULL; f = f->next) {
    if (c->confirmed < f->ticket) f->has_lost = true;
  }
}

static void end_session(nats_client *c) {
  natsConnection *connection = c->connection;
  char reason[REASON_SIZE];
  const char *text = NULL;
  known_name *name, *subscribed;
  natsStatus status = natsConnection_GetLastError(connection, &text);
  if (c->end_reason != NULL) text = c->end_reason;
  else if (status == NATS_OK || text == NULL || text[0] == '\0')
    text = "the server has closed the connection";
  text_copy(reason, sizeof reason, text);
  close_connection(c, connection);
  pthread_mutex_lock(&c->base.lock);
  c->connection = NULL;
  c->base.is_connected = false;
  note_unconfirmed(c);
  client_drop_publications(&c->base, c->sending_first, c->base.counts.sending);
  c->base.counts.sending = 0;
  c->told = c->confirmed_changes = 0;
  c->has_to_write = false;
  pthread_cond_broadcast(&c->base.changed);
  while (c->flushes > 0) pthread_cond_wait(&c->base.changed, &c->base.lock);
  carried_end_all(&c->base);
  subscribed = list_subscribed(&c->base.names, NULL);
  subscribed = list_subscribed(&c->base.answered, subscribed);
  pthread_mutex_unlock(&c->base.lock);
  /* The names are valid without the lock, because only this thread removes names. */
  for (name = subscribed; name != NULL; name = name->next_subscribed) {
    natsSubscription_Destroy(name->subscription);
    set_subscription(c, &name->subscription, NULL);
  }
  if (c->all != NULL) natsSubscription_Destroy(c->all);
  set_subscription(c, &c->all, NULL);
  natsConnection_Destroy(connection);
  client_deliver(&c->base, SIZE_MAX);
  tell_refusals(c);
  /* libnats does not recognize the following message of the server, so it closes the connection
   * instead of calling on_error(). */
  if (strcasestr(reason, "maximum subscriptions exceeded") != NULL)
    client_tell(&c->base, MULTICAST_NATS_SUBSCRIPTION_REFUSED, status, reason);
  client_tell(&c->base, MULTICAST_NATS_LOST, status, reason);
}

/* Runs one connection until it ends. */
bool session_run(client *base) {
  nats_client *c = (nats_client *)base;
  natsConnection *connection = begin_connection(c);
  if (connection == NULL) return false;
  begin_session(c, connection);
  while (!c->has_ended && !client_is_stopping(&c->base)) {
    send_subscriptions(c);
    send_publications(c);
    if (c->has_ended) break;
    wait_for_work(c);
    check_silence(c); /* before the delivery, because an observer may take long */
    client_deliver(&c->base, DELIVERIES);
    tell_refusals(c);
  }
  end_session(c);
  return false;
}

void session_end(client *base) {
  (void)base;
  nats_ReleaseThreadMemory();
}
