/* The client's thread, which connects, subscribes, sends, receives and delivers. Only this thread
 * calls libmosquitto. The thread calls the program's functions without the lock, and never inside a
 * callback of libmosquitto, because libmosquitto holds its own locks during callbacks. */

#include "mqtt.h"

#include "../Common/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum {
  PACKET_MORE = 2048, /* a packet without its payload: up to two topics and the header */
  FIRST_BROKER_REASON = 0x80, /* the first reason code of MQTT 5; libmosquitto's own are smaller */
  UNSUPPORTED_VERSION = 0x84,
  UNSUPPORTED_VERSION_OF_3 = 1
};

/* ---- Packets in batches ---------------------------------------------------------------------- */

/* Starts or ends a batch of packets. During a batch the system sends only full TCP segments, and at
 * the end of the batch it sends the rest. Without batches there would be one segment per packet,
 * and sending the segments would take most of the processor time. */
static void hold_back(mqtt_client *c, bool is_held) {
  int value = is_held;
  if (c->is_held == is_held) return;
  c->is_held = is_held;
  setsockopt(mosquitto_socket(c->mosquitto), IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

/* Returns whether the socket has unread data. */
static bool has_more(const mqtt_client *c) {
  int unread = 0;
  return ioctl(mosquitto_socket(c->mosquitto), FIONREAD, &unread) == 0 && unread > 0;
}

/* ---- Observers of arriving messages ---------------------------------------------------------- */

typedef enum { UNKNOWN, UNWANTED, WANTED } interest;

/* Looks up whether a name is wanted. A name in the table `names` is wanted if it has an observer. A
 * name in the table `answered` is wanted if it has an answerer. */
static interest look_up(mqtt_client *c, const names *all, const char *text) {
  const known_name *entry;
  interest found = UNKNOWN;
  pthread_mutex_lock(&c->base.lock);
  entry = names_find(all, text);
  if (entry != NULL) found = entry->is_wanted ? WANTED : UNWANTED;
  pthread_mutex_unlock(&c->base.lock);
  return found;
}

/* Counts a message as ignored because its name has no observers. Also schedules an unsubscription,
 * because the broker may have kept a session that is subscribed to this name. */
static void ignore_stranger(mqtt_client *c, names *all, const char *text) {
  known_name *entry = NULL;
  pthread_mutex_lock(&c->base.lock);
  ++c->base.counts.received;
  ++c->base.counts.ignored;
  if (c->has_session && c->strangers < SUBSCRIBING_MAX && names_find(all, text) == NULL)
    entry = names_add(all, text);
  if (entry != NULL) {
    ++c->strangers;
    entry->state = SUBSCRIPTION_MADE;
    names_change(all, entry);
  }
  pthread_mutex_unlock(&c->base.lock);
}

/* ---- Messages without observers -------------------------------------------------------------- */

/* Messages of a persistent session may arrive before the program has attached the transport and
 * registered observers. The library therefore stores such messages until one second after the first
 * use of the transport. */
static const uint64_t strays_ns = 1000000000;

static void set_time_of_strays(mqtt_client *c) {
  bool is_used;
  pthread_mutex_lock(&c->base.lock);
  is_used = client_changes(&c->base) > 0 || c->base.outbox.tickets > 0;
  pthread_mutex_unlock(&c->base.lock);
  c->strays_until = is_used ? now_ns() + strays_ns : UINT64_MAX;
}

static void keep_stray(mqtt_client *c, names *all, const char *name, uint32_t event, span payload,
                       origin from) {
  const size_t name_bytes = strlen(name) + 1;
  stray *s = malloc(sizeof *s + name_bytes + payload.size);
  if (s == NULL) {
    pthread_mutex_lock(&c->base.lock);
    ++c->base.counts.received;
    ++c->base.counts.lost;
    pthread_mutex_unlock(&c->base.lock);
    return;
  }
  *s = (stray){NULL, all, event, from, payload.size, name_bytes};
  memcpy(s->bytes, name, name_bytes);
  if (payload.size > 0) memcpy(s->bytes + name_bytes, payload.at, payload.size);
  *(c->strays == NULL ? &c->strays : c->last_stray) = s;
  c->last_stray = &s->next;
  c->stray_bytes += sizeof *s + name_bytes + payload.size;
}

/* Delivers a message if its name has an observer now. If the name has no observer and `is_over` is
 * true, counts the message as ignored. Returns whether the message was delivered or ignored. */
static bool settle_stray(mqtt_client *c, const stray *s, bool is_over) {
  const bool has_observer = look_up(c, s->names, s->bytes) == WANTED;
  if (has_observer)
    client_receive(&c->base, s->bytes, s->event, (span){s->bytes + s->name_size, s->size}, s->from);
  else if (is_over)
    ignore_stranger(c, s->names, s->bytes);
  return has_observer || is_over;
}

static void settle_strays(mqtt_client *c) {
  stray **place = &c->strays;
  bool is_over;
  if (c->strays == NULL) return;
  if (c->strays_until == UINT64_MAX) set_time_of_strays(c);
  is_over = now_ns() >= c->strays_until;
  while (*place != NULL) {
    stray *s = *place;
    if (settle_stray(c, s, is_over)) {
      *place = s->next;
      c->stray_bytes -= sizeof *s + s->name_size + s->size;
      free(s);
    } else {
      place = &s->next;
    }
  }
  c->last_stray = place;
}

/* Returns whether the thread does not read, because too many messages wait for their observers. It
 * always reads the answer to a request to connect. */
static bool is_full(const mqtt_client *c) {
  return c->base.is_connected && c->stray_bytes >= STRAYS_MAX;
}

static void free_strays(mqtt_client *c) {
  while (c->strays != NULL) {
    stray *s = c->strays;
    c->strays = s->next;
    free(s);
  }
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Returns the number of the question in the correlation data, or 0 if there is none. */
static uint64_t read_number(const mosquitto_property *all) {
  char text[17] = "";
  const char *at = text;
  void *data = NULL;
  uint16_t size = 0;
  uint64_t number = 0;
  mosquitto_property_read_binary(all, MQTT_PROP_CORRELATION_DATA, &data, &size, false);
  if (data != NULL && size == sizeof text - 1) memcpy(text, data, size);
  free(data);
  return coding_read_id(&at, &number) ? number : 0;
}

/* Returns the origin of a question. The origin's `peer` is 0 if the response topic does not have
 * the form of this library's return addresses. */
static origin read_origin(const mqtt_client *c, const mosquitto_property *all) {
  const size_t size = strlen(c->base.return_address) - ID_SIZE;
  origin from = {0, read_number(all)};
  char *topic = NULL;
  mosquitto_property_read_string(all, MQTT_PROP_RESPONSE_TOPIC, &topic, false);
  if (topic != NULL && strncmp(topic, c->base.return_address, size) == 0) {
    const char *at = topic + size;
    if (!coding_read_id(&at, &from.peer) || *at != '\0') from.peer = 0;
  }
  free(topic);
  return from;
}

/* Processes a notification or a question. */
static void receive(mqtt_client *c, const struct mosquitto_message *message, span payload,
                    const mosquitto_property *all) {
  char name[NAME_MAX_SIZE + 1];
  const char *prefix = c->options.topic_prefix;
  names *known = &c->base.names;
  origin from = {0, 0};
  uint32_t event = 0;
  bool is_ours = coding_read(&topic_coding, message->topic, prefix, name, &event) > 0;
  interest found;
  if (!is_ours) {
    known = &c->base.answered;
    is_ours = coding_read(&question_coding, message->topic, prefix, name, &event) > 0 &&
              !message->retain;
    if (is_ours) from = read_origin(c, all);
  }
  /* Look up the name before delivering the strays. If an observer registers after the look-up, this
   * message is appended to the strays, so that earlier messages are delivered first. */
  found = is_ours ? look_up(c, known, name) : UNKNOWN;
  settle_strays(c);
  if (!is_ours || payload.size > c->base.settings.max_payload ||
      (known == &c->base.answered && from.peer == 0))
    client_receive(&c->base, NULL, event, payload, from);
  else if (found == WANTED)
    client_receive(&c->base, name, event, payload, from);
  else if (found == UNKNOWN && c->has_session && now_ns() < c->strays_until)
    keep_stray(c, known, name, event, payload, from);
  else
    ignore_stranger(c, known, name);
}

static void on_message(struct mosquitto *mosquitto, void *object,
                       const struct mosquitto_message *message, const mosquitto_property *all) {
  mqtt_client *c = object;
  const unsigned char *bytes = message->payload;
  span payload = {bytes, (size_t)message->payloadlen};
  const message_kind kind = message_read(bytes, payload.size);
  (void)mosquitto;
  /* libmosquitto acknowledges each message with a separate packet. If more messages are waiting to
   * be read, hold the acknowledgements back, so that they are sent together. */
  if (c->options.qos > 0 && !c->is_held && has_more(c)) hold_back(c, true);
  if (kind == MESSAGE_OURS) {
    if (memcmp(bytes + HEADER_SIZE - SENDER_SIZE, &c->base.id, SENDER_SIZE) == 0) {
      pthread_mutex_lock(&c->base.lock);
      ++c->base.counts.received;
      ++c->echoes;
      pthread_mutex_unlock(&c->base.lock);
      return;
    }
    payload = (span){bytes + HEADER_SIZE, payload.size - HEADER_SIZE};
  }
  if (kind == MESSAGE_UNKNOWN ||
      (message->retain && (c->options.flags & MULTICAST_MQTT_NO_RETAINED) != 0))
    client_receive(&c->base, NULL, 0, payload, (origin){0, 0});
  else if (strcmp(message->topic, c->base.return_address) == 0)
    carried_answered(&c->base, read_number(all), payload);
  else
    receive(c, message, payload, all);
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* Called under the lock. Removes a publication from the list of publications in flight. Returns
 * false if the publication was not in the list. */
static bool remove_sending(mqtt_client *c, uint64_t ticket) {
  int i = 0;
  while (i < c->sending_count && c->sending[i].ticket != ticket) ++i;
  if (i == c->sending_count) return false;
  --c->sending_count;
  memmove(&c->sending[i], &c->sending[i + 1],
          (size_t)(c->sending_count - i) * sizeof c->sending[0]);
  pthread_cond_broadcast(&c->base.changed);
  return true;
}

static void on_publish(struct mosquitto *mosquitto, void *object, int id, int reason,
                       const mosquitto_property *all) {
  mqtt_client *c = object;
  bool is_refused = reason >= FIRST_BROKER_REASON;
  int i;
  (void)mosquitto, (void)all;
  pthread_mutex_lock(&c->base.lock);
  for (i = 0; i < c->sending_count && c->sending[i].id != id; ++i) {
  }
  if (i < c->sending_count && reason != 0)
    carried_end(&c->base, c->sending[i].question,
                is_refused ? MULTICAST_ERROR_STATE : MULTICAST_ERROR_NOT_FOUND);
  if (i < c->sending_count && remove_sending(c, c->sending[i].ticket)) {
    ++*(is_refused ? &c->base.counts.rejected : &c->base.counts.sent);
    /* The list has room, because refusals are reported before more publications are sent. */
    if (is_refused) c->refusals[c->refusal_count++] = reason;
  }
  pthread_mutex_unlock(&c->base.lock);
}

/* Returns whether an error means that the connection has ended. Although libmosquitto returns such
 * an error, it has accepted the packet. */
static bool is_end_of_connection(int result) {
  return result == MOSQ_ERR_NO_CONN || result == MOSQ_ERR_CONN_LOST || result == MOSQ_ERR_ERRNO ||
         result == MOSQ_ERR_TLS;
}

/* Adds the properties of a question or an answer. Returns an error code of libmosquitto. */
static int add_properties(const mqtt_client *c, const publication *p, mosquitto_property **all) {
  char number[ID_SIZE + 1];
  int result = MOSQ_ERR_SUCCESS;
  if (p->number == 0) return result;
  snprintf(number, sizeof number, "%016" PRIX64, p->number);
  result = mosquitto_property_add_binary(all, MQTT_PROP_CORRELATION_DATA, number, ID_SIZE);
  if (result == MOSQ_ERR_SUCCESS && p->is_question)
    result = mosquitto_property_add_string(all, MQTT_PROP_RESPONSE_TOPIC, c->base.return_address);
  return result;
}

/* Questions use QoS 1, because a broker reports missing subscribers only in an acknowledgement. */
static int qos_of(const mqtt_client *c, const publication *p) {
  return p->is_question ? 1 : (int)c->options.qos;
}

/* Passes a publication to libmosquitto, which sends it immediately. */
static void send_publication(mqtt_client *c, publication *p) {
  sending *slot = &c->sending[c->sending_count - 1];
  const char *message = publication_message(p);
  mosquitto_property *properties = NULL;
  int qos = qos_of(c, p), result = add_properties(c, p, &properties);
  if (result == MOSQ_ERR_SUCCESS)
    result = mosquitto_publish_v5(c->mosquitto, &slot->id, p->bytes, (int)p->size, message, qos,
                                  p->is_retained, properties);
  mosquitto_property_free_all(&properties);
  if (result == MOSQ_ERR_SUCCESS) {
    free(p);
    return;
  }
  pthread_mutex_lock(&c->base.lock);
  if (is_end_of_connection(result) || result == MOSQ_ERR_NOMEM) {
    c->has_ended = true;
    c->end_code = result;
    if (qos == 0 && result != MOSQ_ERR_NOMEM && remove_sending(c, p->ticket)) {
      /* The publication has not been sent completely, so it will be sent again. */
      outbox_put_back(&c->base.outbox, p);
      p = NULL;
    } else if (result == MOSQ_ERR_NOMEM && remove_sending(c, p->ticket)) {
      client_drop_publications(&c->base, p->ticket, 1);
    }
  } else if (remove_sending(c, p->ticket)) {
    ++c->base.counts.rejected;
    if (p->is_question) carried_end(&c->base, p->number, MULTICAST_ERROR_STATE);
    pthread_mutex_unlock(&c->base.lock);
    client_tell(&c->base, MULTICAST_MQTT_PUBLICATION_REFUSED, -1, mosquitto_strerror(result));
    pthread_mutex_lock(&c->base.lock);
  }
  pthread_mutex_unlock(&c->base.lock);
  free(p);
}

/* Moves the first publication of the outbox to the list of publications in flight. Returns NULL if
 * no publication may be sent now. */
static publication *take_publication(mqtt_client *c, bool *is_last) {
  publication *p = NULL;
  pthread_mutex_lock(&c->base.lock);
  if (c->sending_count < SENDING_MAX) p = carried_take(&c->base);
  if (p != NULL) {
    c->sending[c->sending_count].ticket = p->ticket;
    c->sending[c->sending_count].question = p->is_question ? p->number : 0;
    c->sending[c->sending_count].id = -1;
    ++c->sending_count;
    *is_last = c->base.outbox.first == NULL || c->sending_count == SENDING_MAX;
  }
  pthread_mutex_unlock(&c->base.lock);
  return p;
}

/* Sends at most AT_ONCE_MAX publications, so that the thread can read before it sends more. */
static void send_publications(mqtt_client *c) {
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

/* Called under the lock. Removes an acknowledged packet from the list of unacknowledged ones.
 * Returns the name that the packet has subscribed, or NULL. */
static known_name *remove_subscribing(mqtt_client *c, int id) {
  known_name *entry;
  int i = 0;
  while (i < c->subscribing_count && c->subscribing[i].id != id) ++i;
  if (i == c->subscribing_count) return NULL;
  entry = c->subscribing[i].name;
  c->subscribing[i] = c->subscribing[--c->subscribing_count];
  pthread_cond_broadcast(&c->base.changed);
  return entry;
}

static void on_subscribe(struct mosquitto *mosquitto, void *object, int id, int granted_count,
                         const int *granted, const mosquitto_property *all) {
  mqtt_client *c = object;
  bool is_refused = granted_count != 1 || granted[0] >= FIRST_BROKER_REASON;
  known_name *entry;
  (void)mosquitto, (void)all;
  pthread_mutex_lock(&c->base.lock);
  entry = remove_subscribing(c, id);
  if (entry != NULL) {
    entry->state = is_refused ? SUBSCRIPTION_REFUSED : SUBSCRIPTION_MADE;
    if (is_refused) {
      c->refused[c->refused_count].name = entry;
      c->refused[c->refused_count++].code = granted_count == 1 ? granted[0] : -1;
    }
  }
  pthread_mutex_unlock(&c->base.lock);
}

static void on_unsubscribe(struct mosquitto *mosquitto, void *object, int id,
                           const mosquitto_property *all) {
  mqtt_client *c = object;
  (void)mosquitto, (void)all;
  pthread_mutex_lock(&c->base.lock);
  remove_subscribing(c, id);
  pthread_mutex_unlock(&c->base.lock);
}

/* Called under the lock. */
static void forget_name(mqtt_client *c, names *all, known_name *entry) {
  int i;
  for (i = 0; i < c->subscribing_count; ++i) {
    if (c->subscribing[i].name == entry) c->subscribing[i].name = NULL;
  }
  names_remove(all, entry);
}

/* Sends changes of names to the broker. Does not wait for the broker's answers. */
static void send_subscriptions(mqtt_client *c) {
  char topic[ADDRESS_MAX_SIZE];
  const bool has_retained = (c->options.flags & MULTICAST_MQTT_NO_RETAINED) == 0;
  while (!c->has_ended && !mosquitto_want_write(c->mosquitto) &&
         c->subscribing_count < SUBSCRIBING_MAX) {
    int *id = &c->subscribing[c->subscribing_count].id;
    int result = MOSQ_ERR_SUCCESS, options = MQTT_SUB_OPT_NO_LOCAL;
    bool is_subscription = false, is_cancellation = false;
    known_name *entry;
    names *all;
    pthread_mutex_lock(&c->base.lock);
    all = client_changed(&c->base);
    entry = all == NULL ? NULL : names_take_change(all);
    if (entry != NULL) {
      bool is_known = entry->state == SUBSCRIPTION_SENT || entry->state == SUBSCRIPTION_MADE;
      client_write_filter(&c->base, topic, all, entry->text);
      options |= has_retained && all == &c->base.names ? MQTT_SUB_OPT_SEND_RETAIN_NEW
                                                       : MQTT_SUB_OPT_SEND_RETAIN_NEVER;
      is_subscription = entry->is_wanted && !is_known;
      is_cancellation = !entry->is_wanted && is_known;
      if (is_subscription || is_cancellation) {
        c->subscribing[c->subscribing_count].name = is_subscription ? entry : NULL;
        c->subscribing[c->subscribing_count++].change = entry->change;
      }
      if (is_subscription) entry->state = SUBSCRIPTION_SENT;
      if (!entry->is_wanted) forget_name(c, all, entry);
      pthread_cond_broadcast(&c->base.changed);
    }
    pthread_mutex_unlock(&c->base.lock);
    if (entry == NULL) {
      c->strangers = 0;
      return;
    }
    if (is_subscription) {
      result = mosquitto_subscribe_v5(c->mosquitto, id, topic, (int)c->options.qos,
                                      c->protocol == MQTT_PROTOCOL_V5 ? options : 0, NULL);
    } else if (is_cancellation) {
      result = mosquitto_unsubscribe(c->mosquitto, id, topic);
    }
    if (result != MOSQ_ERR_SUCCESS) {
      /* End the connection, because the next connection will send all subscriptions again. */
      c->has_ended = true;
      c->end_code = result;
    }
  }
}

/* Called under the lock. Numbers all changes 0, so that every flush waits for them. */
static void change_all(const mqtt_client *c, names *all) {
  known_name *name;
  for (name = names_next(all, NULL); name != NULL; name = names_next(all, name)) {
    bool is_kept = c->has_session && !name->is_wanted;
    name->state = is_kept ? SUBSCRIPTION_MADE : SUBSCRIPTION_NONE;
    name->change = 0;
    names_change(all, name);
  }
}

/* Called when a connection has been established. Schedules subscriptions to all names. If the
 * broker has kept the session, also schedules unsubscriptions from names without observers. */
static void begin_subscriptions(mqtt_client *c) {
  pthread_mutex_lock(&c->base.lock);
  c->subscribing_count = 0;
  c->strangers = 0;
  change_all(c, &c->base.names);
  change_all(c, &c->base.answered);
  pthread_mutex_unlock(&c->base.lock);
}

/* ---- A connection ---------------------------------------------------------------------------- */

static void on_connect(struct mosquitto *mosquitto, void *object, int answer, int flags,
                       const mosquitto_property *all) {
  mqtt_client *c = object;
  (void)mosquitto, (void)all;
  c->has_answer = true;
  c->answer = answer;
  c->has_session = answer == 0 && (flags & 1) != 0;
}

static void on_disconnect(struct mosquitto *mosquitto, void *object, int reason,
                          const mosquitto_property *all) {
  mqtt_client *c = object;
  (void)mosquitto, (void)all;
  if (c->has_ended) return; /* keep the earlier reason */
  c->has_ended = true;
  c->end_code = reason;
}

static void on_log(struct mosquitto *mosquitto, void *object, int level, const char *text) {
  mqtt_client *c = object;
  (void)mosquitto;
  /* Store only the first error, which is closest to the cause. */
  if (level == MOSQ_LOG_ERR && c->reason[0] == '\0')
    text_copy(c->reason, sizeof c->reason, text);
}

void session_set_callbacks(mqtt_client *c) {
  mosquitto_connect_v5_callback_set(c->mosquitto, on_connect);
  mosquitto_disconnect_v5_callback_set(c->mosquitto, on_disconnect);
  mosquitto_publish_v5_callback_set(c->mosquitto, on_publish);
  mosquitto_subscribe_v5_callback_set(c->mosquitto, on_subscribe);
  mosquitto_unsubscribe_v5_callback_set(c->mosquitto, on_unsubscribe);
  mosquitto_message_v5_callback_set(c->mosquitto, on_message);
  mosquitto_log_callback_set(c->mosquitto, on_log);
}

/* Reads packets up to a limit, so that the thread can deliver messages before it reads more. */
static void read_packets(mqtt_client *c) {
  int count, most = c->base.is_connected ? AT_ONCE_MAX : 1;
  for (count = 0; count < most; ++count) {
    int result = mosquitto_loop_read(c->mosquitto, 1);
    if (result != MOSQ_ERR_SUCCESS && !c->has_ended) {
      c->has_ended = true;
      c->end_code = result;
    }
    if (c->has_ended || c->base.arrived_bytes >= ARRIVED_MAX || is_full(c) || !has_more(c)) break;
  }
  hold_back(c, false);
}

/* Makes TCP acknowledge the next received data without delay. mosquitto first acknowledges a
 * question and then sends the answer, which Nagle's algorithm holds back until TCP has acknowledged
 * the first packet. Without this option, TCP would delay that acknowledgement by about 40 ms. */
static void acknowledge_at_once(const mqtt_client *c) {
  const int value = 1;
  setsockopt(mosquitto_socket(c->mosquitto), IPPROTO_TCP, TCP_QUICKACK, &value, sizeof value);
}

/* Waits until the socket is ready, there is work to do, or the deadline has passed. Then lets
 * libmosquitto write to and read from the socket. */
static void wait_for_work(mqtt_client *c, uint64_t deadline) {
  client *base = &c->base;
  uint64_t now = now_ns();
  int socket = mosquitto_socket(c->mosquitto), timeout = 1000;
  bool has_to_write = mosquitto_want_write(c->mosquitto), may_send, has_work;
  const short reading = is_full(c) ? 0 : POLLIN;
  struct pollfd watched = {socket, (short)(reading | (has_to_write ? POLLOUT : 0)), 0};
  if (c->strays != NULL && c->strays_until < deadline) deadline = c->strays_until;
  if (deadline <= now) timeout = 0;
  else if (deadline - now < ns_of_second) timeout = (int)((deadline - now) / ns_of_millisecond) + 1;
  pthread_mutex_lock(&base->lock);
  may_send = base->is_connected && !has_to_write;
  if (base->inquiries.count > 0) acknowledge_at_once(c);
  base->may_publish = may_send && c->sending_count < SENDING_MAX;
  has_work = base->is_stopping || (base->may_publish && carried_may_send(base)) ||
             (may_send && client_changed(base) != NULL &&
              c->subscribing_count < SUBSCRIBING_MAX);
  client_poll(base, &watched, has_work, timeout);
  if (socket < 0) return;
  if ((watched.revents & POLLOUT) != 0) mosquitto_loop_write(c->mosquitto, 1);
  if (!c->has_ended && (watched.revents & (POLLIN | POLLERR | POLLHUP)) != 0) read_packets(c);
  if (mosquitto_socket(c->mosquitto) < 0 && !c->has_ended) {
    c->has_ended = true;
    c->end_code = MOSQ_ERR_CONN_LOST;
  }
}

/* Looks up the host and connects, which may block. Returns whether the attempt has succeeded. */
static bool begin_connection(mqtt_client *c) {
  mosquitto_property *properties = NULL;
  int result = MOSQ_ERR_SUCCESS, error, socket;
  c->has_answer = c->has_ended = c->has_session = c->is_held = false;
  c->reason[0] = '\0';
  mosquitto_int_option(c->mosquitto, MOSQ_OPT_PROTOCOL_VERSION, c->protocol);
  if (c->protocol == MQTT_PROTOCOL_V5) {
    result = mosquitto_property_add_int32(&properties, MQTT_PROP_MAXIMUM_PACKET_SIZE,
                                          c->base.settings.max_payload + PACKET_MORE);
    if (result == MOSQ_ERR_SUCCESS && c->options.session_expiry_s > 0)
      result = mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL,
                                            c->options.session_expiry_s);
  }
  if (!client_go_away(&c->base)) result = MOSQ_ERR_NO_CONN;
  errno = 0;
  if (result == MOSQ_ERR_SUCCESS)
    result = mosquitto_connect_bind_v5(c->mosquitto, c->options.host, (int)c->options.port,
                                       (int)c->options.keep_alive_s, NULL, properties);
  error = errno;
  client_come_back(&c->base);
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
    text_copy(c->reason, sizeof c->reason, text);
  }
  client_tell(&c->base, MULTICAST_MQTT_REFUSED, -1, c->reason);
  return false;
}

/* Reports why the broker has refused a connection. Returns whether the connection might succeed
 * with another version of MQTT. */
static bool was_refused(mqtt_client *c) {
  char reason[REASON_SIZE];
  bool is_other_version;
  if (c->has_answer) {
    bool is_of_3 = c->protocol != MQTT_PROTOCOL_V5;
    is_other_version = c->answer == UNSUPPORTED_VERSION || c->answer == UNSUPPORTED_VERSION_OF_3;
    client_tell(&c->base, MULTICAST_MQTT_REFUSED, c->answer,
                is_of_3 ? mosquitto_connack_string(c->answer) : mosquitto_reason_string(c->answer));
    return is_other_version;
  }
  is_other_version = c->reason[0] == '\0';
  snprintf(reason, sizeof reason, "%s",
           is_other_version ? "the broker has closed the connection without an answer" : c->reason);
  client_tell(&c->base, MULTICAST_MQTT_REFUSED, -1, reason);
  return is_other_version;
}

static void begin_session(mqtt_client *c) {
  const char *version = c->protocol == MQTT_PROTOCOL_V5 ? "MQTT 5" : "MQTT 3.1.1";
  begin_subscriptions(c);
  set_time_of_strays(c);
  pthread_mutex_lock(&c->base.lock);
  c->base.is_connected = true;
  c->base.has_questions = c->protocol == MQTT_PROTOCOL_V5;
  pthread_cond_broadcast(&c->base.changed);
  c->used_protocol = (uint32_t)c->protocol;
  ++c->base.counts.connections;
  pthread_mutex_unlock(&c->base.lock);
  c->base.connected_at = now_ns();
  client_tell(&c->base, MULTICAST_MQTT_CONNECTED, 0, version);
}

/* Returns why a connection has ended. libmosquitto 2.0 has no text for a keep-alive timeout. */
static const char *end_reason(const mqtt_client *c) {
  if (c->end_code >= FIRST_BROKER_REASON) return mosquitto_reason_string(c->end_code);
  if (c->reason[0] != '\0') return c->reason;
  if (c->end_code == MOSQ_ERR_KEEPALIVE) return "the broker has not answered within the keep-alive";
  return mosquitto_strerror(c->end_code);
}

/* Called under the lock when a connection with QoS 0 has ended. libmosquitto then discards the
 * publications that it has not written, so this function counts them as dropped. Keeps questions,
 * because they are sent with QoS 1. */
static void drop_sending(mqtt_client *c) {
  int i, kept = 0;
  for (i = 0; i < c->sending_count; ++i) {
    if (c->sending[i].question != 0) c->sending[kept++] = c->sending[i];
    else client_drop_publications(&c->base, c->sending[i].ticket, 1);
  }
  c->sending_count = kept;
}

static void end_session(mqtt_client *c) {
  bool is_of_broker = c->end_code >= FIRST_BROKER_REASON;
  pthread_mutex_lock(&c->base.lock);
  c->base.is_connected = false;
  c->used_protocol = 0;
  carried_end_all(&c->base);
  if (c->options.qos == 0) drop_sending(c);
  pthread_cond_broadcast(&c->base.changed);
  pthread_mutex_unlock(&c->base.lock);
  client_tell(&c->base, MULTICAST_MQTT_LOST, is_of_broker ? c->end_code : -1,
              end_reason(c));
}

static void tell_refused_subscription(mqtt_client *c, const char *name, int code) {
  char reason[REASON_SIZE + NAME_MAX_SIZE];
  snprintf(reason, sizeof reason, "%s: %s", name[0] == '\0' ? "answers" : name,
           code > FIRST_BROKER_REASON ? mosquitto_reason_string(code) : "refused");
  client_tell(&c->base, MULTICAST_MQTT_SUBSCRIPTION_REFUSED, code, reason);
}

/* Reports the refusals of the broker. The names in `refused` are still valid, because only
 * send_subscriptions() removes names. */
static void tell_refusals(mqtt_client *c) {
  int i;
  for (i = 0; i < c->refusal_count; ++i)
    client_tell(&c->base, MULTICAST_MQTT_PUBLICATION_REFUSED, c->refusals[i],
                mosquitto_reason_string(c->refusals[i]));
  for (i = 0; i < c->refused_count; ++i)
    tell_refused_subscription(c, c->refused[i].name->text, c->refused[i].code);
  c->refusal_count = c->refused_count = 0;
}

/* Shuts down the socket, and reads until libmosquitto detects the end of the connection and closes
 * the socket. */
static void close_connection(mqtt_client *c) {
  int code = c->end_code, tries;
  for (tries = 0; tries < 1000 && mosquitto_socket(c->mosquitto) >= 0; ++tries) {
    shutdown(mosquitto_socket(c->mosquitto), SHUT_RDWR);
    mosquitto_loop_read(c->mosquitto, 1);
  }
  c->end_code = code;
  client_deliver(&c->base, SIZE_MAX);
  tell_refusals(c);
}

/* Keeps the connection alive. libmosquitto pings the broker, but ends the connection if it does not
 * read the answer. While the thread does not read, it therefore sends an unsubscription instead,
 * which has no effect because the prefix alone is never subscribed. */
static void keep_alive(mqtt_client *c) {
  const bool is_reading = !is_full(c);
  const uint64_t now = now_ns(), pause_s = is_reading ? 1 : c->options.keep_alive_s / 5;
  if (now - c->kept_alive_at < pause_s * ns_of_second) return;
  c->kept_alive_at = now;
  if (is_reading) mosquitto_loop_misc(c->mosquitto);
  else mosquitto_unsubscribe(c->mosquitto, NULL, c->options.topic_prefix);
}

/* Runs one connection until it ends. Returns whether the connection has failed and might succeed
 * with another version of MQTT. */
static bool run_connection(mqtt_client *c) {
  const uint64_t deadline = now_ns() + c->base.settings.connect_timeout_ns;
  bool has_begun = false;
  c->kept_alive_at = now_ns();
  if (!begin_connection(c)) return false;
  while (!c->has_ended && !client_is_stopping(&c->base)) {
    wait_for_work(c, has_begun ? UINT64_MAX : deadline);
    if (!has_begun && c->has_answer && c->answer == 0) {
      has_begun = true;
      begin_session(c);
    }
    settle_strays(c);
    client_deliver(&c->base, SIZE_MAX);
    if (has_begun) {
      tell_refusals(c);
      send_subscriptions(c);
      send_publications(c);
    } else if (now_ns() >= deadline && !c->has_ended) {
      snprintf(c->reason, sizeof c->reason, "the broker has not answered in time");
      shutdown(mosquitto_socket(c->mosquitto), SHUT_RDWR);
      c->has_ended = true;
    }
    if (!c->has_ended) keep_alive(c);
  }
  if (!c->has_ended) return false;
  close_connection(c);
  if (has_begun) end_session(c);
  return !has_begun && was_refused(c);
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Disconnects. A later client that continues the session will use a different return address, so
 * this function unsubscribes from the current address. If the program has not set a client id, no
 * other client can continue the session, so this function also ends the session. A lock is not
 * needed, because the client is stopping and its names no longer change. */
static void disconnect(mqtt_client *c) {
  mosquitto_property *properties = NULL;
  if (mosquitto_socket(c->mosquitto) < 0) return;
  if (names_find(&c->base.answered, "") != NULL)
    mosquitto_unsubscribe(c->mosquitto, NULL, c->base.return_address);
  if (c->protocol == MQTT_PROTOCOL_V5 && c->options.session_expiry_s > 0 &&
      c->options.client_id == NULL &&
      mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, 0) !=
          MOSQ_ERR_SUCCESS)
    return;
  mosquitto_disconnect_v5(c->mosquitto, 0, properties);
  mosquitto_property_free_all(&properties);
}

bool session_run(client *base) {
  mqtt_client *c = (mqtt_client *)base;
  bool is_other_version, was_newest;
  if (c->protocol == 0)
    c->protocol = c->options.protocol == 4 ? MQTT_PROTOCOL_V311 : MQTT_PROTOCOL_V5;
  is_other_version = run_connection(c) && c->options.protocol == 0;
  if (!is_other_version || client_is_stopping(&c->base)) return false;
  was_newest = c->protocol == MQTT_PROTOCOL_V5;
  c->protocol = was_newest ? MQTT_PROTOCOL_V311 : MQTT_PROTOCOL_V5;
  return was_newest;
}

void session_end(client *base) {
  mqtt_client *c = (mqtt_client *)base;
  disconnect(c);
  free_strays(c);
  mosquitto_destroy(c->mosquitto);
  c->mosquitto = NULL;
}
