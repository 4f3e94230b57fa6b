/* The thread of a client. It alone calls libmosquitto, so nothing there is shared by threads:
 * connects, subscribes, sends, receives and delivers. Functions of callers are called without the
 * lock, and never inside a callback of libmosquitto, which holds locks of its own. */

#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  FIRST_BROKER_REASON = 0x80, /* of MQTT 5's reason codes; libmosquitto's own numbers are below */
  UNSUPPORTED_VERSION = 0x84,
  UNSUPPORTED_VERSION_OF_3 = 1
};
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
  may_go = !c->is_stopping;
  c->is_away = may_go;
  pthread_mutex_unlock(&c->lock);
  return may_go;
}

static void come_back(client *c) {
  pthread_mutex_lock(&c->lock);
  c->is_away = false;
  pthread_mutex_unlock(&c->lock);
}

static void tell(client *c, multicast_mqtt_state state, int32_t code, const char *reason) {
  const unsigned forks = process_forks();
  if (c->options.changed == NULL || !go_away(c)) return;
  c->options.changed(c->options.context, state, code, reason);
  end_in_child(forks);
  come_back(c);
}

/* ---- Packets in batches ---------------------------------------------------------------------- */

/* While packets are held back, the system sends full segments only, and the rest at the end. A
 * segment for each packet would take most of the time of a message. */
static void hold_back(client *c, bool is_held) {
  int value = is_held;
  if (c->is_held == is_held) return;
  c->is_held = is_held;
  setsockopt(mosquitto_socket(c->mosquitto), IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

/* Whether the system has received more than was read. */
static bool has_more(const client *c) {
  int unread = 0;
  return ioctl(mosquitto_socket(c->mosquitto), FIONREAD, &unread) == 0 && unread > 0;
}

/* ---- What arrives ---------------------------------------------------------------------------- */

static void count(client *c, uint64_t *counter) {
  pthread_mutex_lock(&c->lock);
  ++*counter;
  pthread_mutex_unlock(&c->lock);
}

/* Whether there is an observer. The broker may keep a subscription of an earlier session: it is
 * taken back. */
static bool is_wanted(client *c, const char *text) {
  known_name *entry;
  bool is_wanted;
  pthread_mutex_lock(&c->lock);
  entry = names_find(&c->names, text);
  is_wanted = entry != NULL && entry->is_wanted;
  if (entry == NULL && c->has_session && c->strangers < SUBSCRIBING_MAX) {
    entry = names_add(&c->names, text);
    if (entry != NULL) {
      ++c->strangers;
      entry->state = SUBSCRIPTION_MADE;
      names_change(&c->names, entry);
    }
  }
  pthread_mutex_unlock(&c->lock);
  return is_wanted;
}

static void on_message(struct mosquitto *mosquitto, void *object,
                       const struct mosquitto_message *message, const mosquitto_property *all) {
  client *c = object;
  const unsigned char *payload = message->payload;
  size_t size = (size_t)message->payloadlen;
  char name[NAME_MAX_SIZE + 1];
  message_kind kind = message_read(payload, size);
  uint32_t event;
  arrival *a;
  (void)mosquitto, (void)all;
  count(c, &c->stats.received);
  /* Each message is answered with a packet. */
  if (c->options.qos > 0 && !c->is_held && has_more(c)) hold_back(c, true);
  if (kind == MESSAGE_OURS) {
    if (memcmp(payload + HEADER_SIZE - SENDER_SIZE, c->sender, SENDER_SIZE) == 0) {
      count(c, &c->stats.echoes);
      return;
    }
    payload += HEADER_SIZE;
    size -= HEADER_SIZE;
  }
  if (kind == MESSAGE_UNKNOWN || size > c->options.max_payload ||
      (message->retain && (c->options.flags & MULTICAST_MQTT_NO_RETAINED) != 0) ||
      coding_read(&topic_coding, message->topic, c->options.topic_prefix, name, &event) == 0 ||
      !is_wanted(c, name)) {
    count(c, &c->stats.ignored);
    return;
  }
  a = aligned_alloc(_Alignof(arrival), (sizeof *a + size + _Alignof(arrival) - 1) /
                                           _Alignof(arrival) * _Alignof(arrival));
  if (a == NULL) {
    count(c, &c->stats.lost);
    return;
  }
  a->next = NULL;
  a->event = event;
  a->size = size;
  memcpy(a->name, name, sizeof name);
  if (size > 0) memcpy(a->payload, payload, size);
  if (c->first_arrival == NULL) {
    c->first_arrival = a;
  } else {
    c->last_arrival->next = a;
  }
  c->last_arrival = a;
  c->arrived += size;
}

static void free_arrival(const void *payload, size_t size) {
  (void)size;
  free((void *)(uintptr_t)payload);
}

/* Delivers what has arrived, or queues it for the delegate of the inbox. */
static void deliver_arrivals(client *c) {
  const unsigned forks = process_forks();
  int64_t result;
  arrival *a;
  c->arrived = 0;
  while ((a = c->first_arrival) != NULL) {
    c->first_arrival = a->next;
    if (!go_away(c)) {
      free(a);
      continue;
    }
    if (c->inbox.id != 0) {
      multicast_invocation how = multicast_invocation_default();
      how.payload = a;
      how.release = free_arrival;
      result = multicast_invoke_with(c->inbox, &how, NULL);
      end_in_child(forks); /* a queue may call a function, too */
      if (result < 1) count(c, &c->stats.lost);
    } else {
      result = multicast_broadcaster_deliver(c->options.broadcaster, a->name, a->event,
                                             a->size == 0 ? NULL : a->payload, a->size);
      end_in_child(forks);
      count(c, result < 0 ? &c->stats.lost : &c->stats.delivered);
      free(a);
    }
    come_back(c);
  }
}

/* ---- What is sent ---------------------------------------------------------------------------- */

/* Under the lock. Forgets one that libmosquitto has; whether it was there. */
static bool remove_sending(client *c, uint64_t ticket) {
  int i = 0;
  while (i < c->sending_count && c->sending[i].ticket != ticket) ++i;
  if (i == c->sending_count) return false;
  --c->sending_count;
  memmove(&c->sending[i], &c->sending[i + 1],
          (size_t)(c->sending_count - i) * sizeof c->sending[0]);
  pthread_cond_broadcast(&c->changed);
  return true;
}

static void on_publish(struct mosquitto *mosquitto, void *object, int id, int reason,
                       const mosquitto_property *all) {
  client *c = object;
  bool is_refused = reason >= FIRST_BROKER_REASON;
  int i;
  (void)mosquitto, (void)all;
  pthread_mutex_lock(&c->lock);
  for (i = 0; i < c->sending_count && c->sending[i].id != id; ++i) {
  }
  if (i < c->sending_count && remove_sending(c, c->sending[i].ticket)) {
    ++*(is_refused ? &c->stats.rejected : &c->stats.sent);
    if (is_refused) c->refusal = reason;
  }
  pthread_mutex_unlock(&c->lock);
}

/* Whether libmosquitto has the packet although the connection has ended meanwhile. */
static bool is_end_of_connection(int result) {
  return result == MOSQ_ERR_NO_CONN || result == MOSQ_ERR_CONN_LOST || result == MOSQ_ERR_ERRNO ||
         result == MOSQ_ERR_TLS;
}

/* Hands one publication to libmosquitto, which sends it at once. */
static void send_publication(client *c, publication *p) {
  sending *slot = &c->sending[c->sending_count - 1];
  const char *message = p->bytes + p->topic_size + 1;
  int qos = (int)c->options.qos;
  int result = mosquitto_publish(c->mosquitto, &slot->id, p->bytes, (int)p->size, message, qos,
                                 p->is_retained);
  if (result == MOSQ_ERR_SUCCESS) {
    publication_free(p);
    return;
  }
  pthread_mutex_lock(&c->lock);
  if (is_end_of_connection(result) || result == MOSQ_ERR_NOMEM) {
    c->has_ended = true;
    c->end_code = result;
    if (qos == 0 && result != MOSQ_ERR_NOMEM && remove_sending(c, p->ticket)) {
      /* It was not sent as a whole. */
      p->next = c->first;
      c->first = p;
      if (c->last == NULL) c->last = p;
      ++c->stats.waiting;
      p = NULL;
    } else if (result == MOSQ_ERR_NOMEM && remove_sending(c, p->ticket)) {
      ++c->stats.dropped;
    }
  } else if (remove_sending(c, p->ticket)) {
    ++c->stats.rejected;
    pthread_mutex_unlock(&c->lock);
    tell(c, MULTICAST_MQTT_PUBLICATION_REFUSED, -1, mosquitto_strerror(result));
    pthread_mutex_lock(&c->lock);
  }
  pthread_mutex_unlock(&c->lock);
  if (p != NULL) publication_free(p);
}

/* Takes the first publication out of the outbox, for libmosquitto; NULL: none may be sent now. */
static publication *take_publication(client *c, bool *is_last) {
  publication *p = NULL;
  pthread_mutex_lock(&c->lock);
  if (c->first != NULL && c->sending_count < SENDING_MAX) {
    p = c->first;
    c->first = p->next;
    if (c->first == NULL) c->last = NULL;
    --c->stats.waiting;
    c->sending[c->sending_count].ticket = p->ticket;
    c->sending[c->sending_count].id = -1;
    ++c->sending_count;
    *is_last = c->first == NULL || c->sending_count == SENDING_MAX;
  }
  pthread_mutex_unlock(&c->lock);
  return p;
}

/* Sends what may be sent, up to a limit: then it is time to read. */
static void send_publications(client *c) {
  bool is_last = false;
  int count;
  for (count = 0; count < AT_ONCE_MAX; ++count) {
    publication *p;
    if (c->has_ended || mosquitto_want_write(c->mosquitto)) break;
    p = take_publication(c, &is_last);
    if (p == NULL) break;
    if (!is_last) hold_back(c, true);
    send_publication(c, p);
  }
  hold_back(c, false);
}

/* ---- Subscriptions --------------------------------------------------------------------------- */

static void on_subscribe(struct mosquitto *mosquitto, void *object, int id, int granted_count,
                         const int *granted, const mosquitto_property *all) {
  client *c = object;
  int i;
  (void)mosquitto, (void)all;
  pthread_mutex_lock(&c->lock);
  for (i = 0; i < c->subscribing_count && c->subscribing[i].id != id; ++i) {
  }
  if (i < c->subscribing_count) {
    known_name *entry = c->subscribing[i].name;
    bool is_refused = granted_count != 1 || granted[0] >= FIRST_BROKER_REASON;
    c->subscribing[i] = c->subscribing[--c->subscribing_count];
    if (entry != NULL) {
      entry->state = is_refused ? SUBSCRIPTION_REFUSED : SUBSCRIPTION_MADE;
      --c->unanswered;
      if (is_refused && c->refused_name[0] == '\0') {
        c->subscription_refusal = granted_count == 1 ? granted[0] : -1;
        snprintf(c->refused_name, sizeof c->refused_name, "%s", entry->text);
      }
      pthread_cond_broadcast(&c->changed);
    }
  }
  pthread_mutex_unlock(&c->lock);
}

/* Under the lock. */
static void forget_name(client *c, known_name *entry) {
  int i;
  for (i = 0; i < c->subscribing_count; ++i) {
    if (c->subscribing[i].name == entry) c->subscribing[i].name = NULL;
  }
  if (entry->state == SUBSCRIPTION_SENT) --c->unanswered;
  names_remove(&c->names, entry);
}

/* Tells the broker what has changed. It is not waited for: the broker answers in order. */
static void send_subscriptions(client *c) {
  char topic[ADDRESS_MAX_SIZE];
  bool has_retained = (c->options.flags & MULTICAST_MQTT_NO_RETAINED) == 0;
  int options = MQTT_SUB_OPT_NO_LOCAL |
                (has_retained ? MQTT_SUB_OPT_SEND_RETAIN_NEW : MQTT_SUB_OPT_SEND_RETAIN_NEVER);
  while (!c->has_ended && !mosquitto_want_write(c->mosquitto) &&
         c->subscribing_count < SUBSCRIBING_MAX) {
    int id = -1, result = MOSQ_ERR_SUCCESS;
    bool is_subscription = false, is_cancellation = false;
    known_name *entry;
    pthread_mutex_lock(&c->lock);
    entry = names_take_change(&c->names);
    if (entry != NULL) {
      bool is_known = entry->state == SUBSCRIPTION_SENT ||
                      entry->state == SUBSCRIPTION_MADE;
      coding_write_all(&topic_coding, topic, c->options.topic_prefix, entry->text);
      is_subscription = entry->is_wanted && !is_known;
      is_cancellation = !entry->is_wanted && is_known;
      if (is_subscription) {
        entry->state = SUBSCRIPTION_SENT;
        ++c->unanswered;
      }
      if (!entry->is_wanted) forget_name(c, entry);
      pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    if (entry == NULL) {
      c->strangers = 0;
      return;
    }
    if (is_subscription) {
      result = mosquitto_subscribe_v5(c->mosquitto, &id, topic, (int)c->options.qos,
                                      c->protocol == MQTT_PROTOCOL_V5 ? options : 0, NULL);
      c->subscribing[c->subscribing_count].name = entry;
      c->subscribing[c->subscribing_count++].id = id;
    } else if (is_cancellation) {
      result = mosquitto_unsubscribe(c->mosquitto, NULL, topic);
    }
    if (result != MOSQ_ERR_SUCCESS) {
      /* At the next connection all is said again. */
      c->has_ended = true;
      c->end_code = result;
    }
  }
}

/* A connection has begun: all names are subscribed anew. The broker forgets those that went
 * meanwhile, unless it has kept the session. */
static void begin_subscriptions(client *c) {
  known_name *name;
  pthread_mutex_lock(&c->lock);
  c->subscribing_count = 0;
  c->strangers = 0;
  c->unanswered = 0;
  for (name = names_next(&c->names, NULL); name != NULL; name = names_next(&c->names, name)) {
    bool is_kept = c->has_session && !name->is_wanted;
    name->state = is_kept ? SUBSCRIPTION_MADE : SUBSCRIPTION_NONE;
    names_change(&c->names, name);
  }
  pthread_mutex_unlock(&c->lock);
}

/* ---- A connection ---------------------------------------------------------------------------- */

static void on_connect(struct mosquitto *mosquitto, void *object, int answer, int flags,
                       const mosquitto_property *all) {
  client *c = object;
  (void)mosquitto, (void)all;
  c->has_answer = true;
  c->answer = answer;
  c->has_session = answer == 0 && (flags & 1) != 0;
}

static void on_disconnect(struct mosquitto *mosquitto, void *object, int reason,
                          const mosquitto_property *all) {
  client *c = object;
  (void)mosquitto, (void)all;
  if (c->has_ended) return; /* the broker's reason comes first */
  c->has_ended = true;
  c->end_code = reason;
}

static void on_log(struct mosquitto *mosquitto, void *object, int level, const char *text) {
  client *c = object;
  (void)mosquitto;
  /* The first one is closest to the cause. */
  if (level == MOSQ_LOG_ERR && c->reason[0] == '\0')
    snprintf(c->reason, sizeof c->reason, "%s", text);
}

void session_set_callbacks(client *c) {
  mosquitto_connect_v5_callback_set(c->mosquitto, on_connect);
  mosquitto_disconnect_v5_callback_set(c->mosquitto, on_disconnect);
  mosquitto_publish_v5_callback_set(c->mosquitto, on_publish);
  mosquitto_subscribe_v5_callback_set(c->mosquitto, on_subscribe);
  mosquitto_message_v5_callback_set(c->mosquitto, on_message);
  mosquitto_log_callback_set(c->mosquitto, on_log);
}

/* Reads what has come, up to a limit: then it is delivered. */
static void read_packets(client *c) {
  int count, most = c->is_connected ? AT_ONCE_MAX : 1;
  for (count = 0; count < most; ++count) {
    int result = mosquitto_loop_read(c->mosquitto, 1);
    if (result != MOSQ_ERR_SUCCESS && !c->has_ended) {
      c->has_ended = true;
      c->end_code = result;
    }
    if (c->has_ended || c->arrived >= ARRIVED_MAX || !has_more(c)) break;
  }
  hold_back(c, false);
}

/* Waits for the socket, for work, or for the time. */
static void wait_for_work(client *c, uint64_t deadline) {
  struct pollfd watched[2];
  uint64_t now = now_ns();
  int socket = mosquitto_socket(c->mosquitto), timeout = 1000;
  uint64_t ignored;
  bool is_idle, may_send;
  if (deadline <= now) timeout = 0;
  else if (deadline - now < ns_of_second) timeout = (int)((deadline - now) / ns_of_millisecond) + 1;
  watched[0].fd = c->wakeup;
  watched[0].events = POLLIN;
  watched[1].fd = socket; /* -1 is left out */
  watched[1].events = (short)(POLLIN | (mosquitto_want_write(c->mosquitto) ? POLLOUT : 0));
  watched[1].revents = 0;
  pthread_mutex_lock(&c->lock);
  may_send = c->is_connected && watched[1].events == POLLIN;
  c->may_publish = may_send && c->sending_count < SENDING_MAX;
  is_idle = !c->is_stopping && !(c->may_publish && c->first != NULL) &&
            !(may_send && c->names.first_change != NULL && c->subscribing_count < SUBSCRIBING_MAX);
  c->is_asleep = is_idle;
  pthread_mutex_unlock(&c->lock);
  if (poll(watched, 2, is_idle ? timeout : 0) < 0) watched[0].revents = watched[1].revents = 0;
  pthread_mutex_lock(&c->lock);
  c->is_asleep = false;
  pthread_mutex_unlock(&c->lock);
  if ((watched[0].revents & POLLIN) != 0 && read(c->wakeup, &ignored, sizeof ignored) < 0) return;
  if (socket < 0) return;
  if ((watched[1].revents & POLLOUT) != 0) mosquitto_loop_write(c->mosquitto, 1);
  if (!c->has_ended && (watched[1].revents & (POLLIN | POLLERR | POLLHUP)) != 0) read_packets(c);
  if (mosquitto_socket(c->mosquitto) < 0 && !c->has_ended) {
    c->has_ended = true;
    c->end_code = MOSQ_ERR_CONN_LOST;
  }
}

/* Starts a connection: waits for the system to look up the host and to connect. Whether it has. */
static bool begin_connection(client *c) {
  mosquitto_property *properties = NULL;
  int result = MOSQ_ERR_SUCCESS, error, socket;
  c->has_answer = c->has_ended = c->has_session = c->is_held = false;
  c->reason[0] = '\0';
  mosquitto_int_option(c->mosquitto, MOSQ_OPT_PROTOCOL_VERSION, c->protocol);
  if (c->protocol == MQTT_PROTOCOL_V5) {
    result = mosquitto_property_add_int32(&properties, MQTT_PROP_MAXIMUM_PACKET_SIZE,
                                          c->options.max_payload + 1024);
    if (result == MOSQ_ERR_SUCCESS && c->options.session_expiry_s > 0)
      result = mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL,
                                            c->options.session_expiry_s);
  }
  if (!go_away(c)) result = MOSQ_ERR_NO_CONN;
  errno = 0;
  if (result == MOSQ_ERR_SUCCESS)
    result = mosquitto_connect_bind_v5(c->mosquitto, c->options.host, (int)c->options.port,
                                       (int)c->options.keep_alive_s, NULL, properties);
  error = errno;
  come_back(c);
  mosquitto_property_free_all(&properties);
  socket = mosquitto_socket(c->mosquitto);
  if (result == MOSQ_ERR_SUCCESS && socket >= 0) {
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    return true;
  }
  if (c->reason[0] == '\0') {
    const char *text = result == MOSQ_ERR_EAI     ? gai_strerror(error)
                       : result == MOSQ_ERR_ERRNO ? strerror(error)
                                                  : mosquitto_strerror(result);
    snprintf(c->reason, sizeof c->reason, "%s", text);
  }
  tell(c, MULTICAST_MQTT_REFUSED, -1, c->reason);
  return false;
}

/* Tells why a connection that has begun was refused. Whether another version may do. */
static bool was_refused(client *c) {
  char reason[REASON_SIZE];
  bool is_other_version;
  if (c->has_answer) {
    bool is_of_3 = c->protocol != MQTT_PROTOCOL_V5;
    is_other_version = c->answer == UNSUPPORTED_VERSION || c->answer == UNSUPPORTED_VERSION_OF_3;
    tell(c, MULTICAST_MQTT_REFUSED, c->answer,
         is_of_3 ? mosquitto_connack_string(c->answer) : mosquitto_reason_string(c->answer));
    return is_other_version;
  }
  is_other_version = c->reason[0] == '\0';
  snprintf(reason, sizeof reason, "%s",
           is_other_version ? "the broker has closed the connection without an answer" : c->reason);
  tell(c, MULTICAST_MQTT_REFUSED, -1, reason);
  return is_other_version;
}

static void begin_session(client *c) {
  const char *version = c->protocol == MQTT_PROTOCOL_V5 ? "MQTT 5" : "MQTT 3.1.1";
  begin_subscriptions(c);
  pthread_mutex_lock(&c->lock);
  c->is_connected = true;
  c->stats.protocol = (uint32_t)c->protocol;
  ++c->stats.connections;
  pthread_mutex_unlock(&c->lock);
  c->connected_at = now_ns();
  tell(c, MULTICAST_MQTT_CONNECTED, 0, version);
}

static void end_session(client *c) {
  bool is_of_broker = c->end_code >= FIRST_BROKER_REASON;
  const char *reason = is_of_broker           ? mosquitto_reason_string(c->end_code)
                       : c->reason[0] != '\0' ? c->reason
                                              : mosquitto_strerror(c->end_code);
  pthread_mutex_lock(&c->lock);
  c->is_connected = false;
  c->stats.protocol = 0;
  if (c->options.qos == 0) {
    /* They were not written; libmosquitto forgets them. */
    c->stats.dropped += (uint64_t)c->sending_count;
    c->sending_count = 0;
  }
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  tell(c, MULTICAST_MQTT_LOST, is_of_broker ? c->end_code : -1, reason);
}

/* Tells what the broker has refused meanwhile. */
static void tell_refusals(client *c) {
  if (c->refusal != 0) {
    int refusal = c->refusal;
    c->refusal = 0;
    tell(c, MULTICAST_MQTT_PUBLICATION_REFUSED, refusal, mosquitto_reason_string(refusal));
  }
  if (c->refused_name[0] != '\0') {
    char reason[REASON_SIZE + NAME_MAX_SIZE];
    int refusal = c->subscription_refusal;
    snprintf(reason, sizeof reason, "%s: %s", c->refused_name,
             refusal > FIRST_BROKER_REASON ? mosquitto_reason_string(refusal) : "refused");
    c->refused_name[0] = '\0';
    tell(c, MULTICAST_MQTT_SUBSCRIPTION_REFUSED, refusal, reason);
  }
}

static bool is_stopping(client *c) {
  bool is_stopping;
  pthread_mutex_lock(&c->lock);
  is_stopping = c->is_stopping;
  pthread_mutex_unlock(&c->lock);
  return is_stopping;
}

/* libmosquitto closes a socket when it finds its end. */
static void close_connection(client *c) {
  int code = c->end_code, tries;
  for (tries = 0; tries < 1000 && mosquitto_socket(c->mosquitto) >= 0; ++tries) {
    shutdown(mosquitto_socket(c->mosquitto), SHUT_RDWR);
    mosquitto_loop_read(c->mosquitto, 1);
  }
  c->end_code = code;
  deliver_arrivals(c);
}

/* One connection, to its end. Whether another version may do. */
static bool run_connection(client *c) {
  uint64_t deadline, checked = now_ns();
  bool has_begun = false;
  if (!begin_connection(c)) return false;
  deadline = checked + c->options.connect_timeout_ns;
  while (!c->has_ended && !is_stopping(c)) {
    wait_for_work(c, has_begun ? UINT64_MAX : deadline);
    if (!has_begun && c->has_answer && c->answer == 0) {
      has_begun = true;
      begin_session(c);
    }
    deliver_arrivals(c);
    if (has_begun) {
      tell_refusals(c);
      send_subscriptions(c);
      send_publications(c);
    } else if (now_ns() >= deadline && !c->has_ended) {
      snprintf(c->reason, sizeof c->reason, "the broker has not answered in time");
      shutdown(mosquitto_socket(c->mosquitto), SHUT_RDWR);
      c->has_ended = true;
    }
    if (!c->has_ended && now_ns() - checked >= ns_of_second) {
      checked = now_ns();
      mosquitto_loop_misc(c->mosquitto);
    }
  }
  if (!c->has_ended) return false;
  close_connection(c);
  if (has_begun) end_session(c);
  return !has_begun && was_refused(c);
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Waits before another try, and up to a quarter less: clients that were disconnected at once do not
 * come back at once. */
static void back_off(client *c, unsigned failures) {
  uint64_t delay = c->options.reconnect_min_ns, deadline, random = 0;
  while (failures-- > 0 && delay < c->options.reconnect_max_ns) delay *= 2;
  if (delay > c->options.reconnect_max_ns) delay = c->options.reconnect_max_ns;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) == (ssize_t)sizeof random && delay >= 4)
    delay -= random % (delay / 4);
  deadline = now_ns() + delay;
  while (!is_stopping(c) && now_ns() < deadline) wait_for_work(c, deadline);
}

/* Says goodbye. A session that only this client can continue ends with it. */
static void disconnect(client *c) {
  mosquitto_property *properties = NULL;
  if (mosquitto_socket(c->mosquitto) < 0) return;
  if (c->protocol == MQTT_PROTOCOL_V5 && c->options.session_expiry_s > 0 &&
      c->options.client_id == NULL &&
      mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, 0) !=
          MOSQ_ERR_SUCCESS)
    return;
  mosquitto_disconnect_v5(c->mosquitto, 0, properties);
  mosquitto_property_free_all(&properties);
}

void *session_thread(void *argument) {
  client *c = argument;
  unsigned failures = 0;
  c->protocol = c->options.protocol == 4 ? MQTT_PROTOCOL_V311 : MQTT_PROTOCOL_V5;
  while (!is_stopping(c)) {
    bool is_other_version;
    c->connected_at = 0;
    is_other_version = run_connection(c) && c->options.protocol == 0;
    if (is_stopping(c)) break;
    if (is_other_version) {
      bool was_newest = c->protocol == MQTT_PROTOCOL_V5;
      c->protocol = was_newest ? MQTT_PROTOCOL_V311 : MQTT_PROTOCOL_V5;
      if (was_newest) continue;
    }
    /* One that is refused soon after it was accepted counts as refused: so two clients with one
     * identifier do not take it from each other without a pause. */
    if (c->connected_at != 0 && now_ns() - c->connected_at > ns_of_second) failures = 0;
    back_off(c, failures);
    if (failures < 64) ++failures;
  }
  disconnect(c);
  mosquitto_destroy(c->mosquitto);
  while (c->first_arrival != NULL) {
    arrival *a = c->first_arrival;
    c->first_arrival = a->next;
    free(a);
  }
  pthread_mutex_lock(&c->lock);
  c->is_done = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  client_release(c);
  return NULL;
}
