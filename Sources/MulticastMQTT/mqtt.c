/* The exported functions and those of the transport: they check arguments and pass work on to the
 * thread. */

#include "client.h"

#include <errno.h>
#include <mosquitto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
  OPTIONS_SIZE = 192, /* of version 1.1 */
  STATS_SIZE = 120,
  CAPACITY_MAX = 1 << 24,
  PAYLOAD_MAX = (1 << 28) - 1024,
  /* With the two of each topic: more than 200 are no topic for libmosquitto and for mosquitto. */
  PREFIX_MAX_SLASHES = 198
};
_Static_assert(sizeof(multicast_mqtt_options) == OPTIONS_SIZE, "the header says so");
_Static_assert(sizeof(multicast_mqtt_stats) == STATS_SIZE, "the header says so");

/* ---- All clients, and fork ------------------------------------------------------------------- */

static client *all_clients;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_ready;

/* libmosquitto counts its users, and stays ready to the end of the process. */
static void start(void) {
  is_ready = process_watch_forks() && mosquitto_lib_init() == MOSQ_ERR_SUCCESS;
}

bool client_is_in_child(const client *c) { return c->fork_count != process_forks(); }

void client_retain(client *c) { __atomic_add_fetch(&c->references, 1, __ATOMIC_RELAXED); }

static void free_texts(multicast_mqtt_options *options);

static void free_client(client *c) {
  publication *p;
  close(c->wakeup);
  /* In the child of a fork they may be half changed. */
  if (!client_is_in_child(c)) {
    while ((p = c->first) != NULL) {
      c->first = p->next;
      publication_free(p);
    }
    names_free(&c->names);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
  }
  if (c->options.release != NULL) c->options.release(c->options.context);
  free_texts(&c->options);
  free(c);
}

void client_release(client *c) {
  if (__atomic_sub_fetch(&c->references, 1, __ATOMIC_ACQ_REL) == 0) free_client(c);
}

static void remove_client(client *c) {
  client **place = &all_clients;
  process_lock();
  while (*place != c) place = &(*place)->next;
  *place = c->next;
  process_unlock();
}

/* The client of a transport, with a reference for the caller; NULL: there is none. */
static client *find_client(const multicast_transport *transport) {
  client *c;
  if (transport == NULL) return NULL;
  process_lock();
  for (c = all_clients; c != NULL && c != transport->context; c = c->next) {
  }
  if (c != NULL) client_retain(c);
  process_unlock();
  return c;
}

void client_wake(client *c) {
  const uint64_t one = 1;
  if (!c->is_asleep) return;
  c->is_asleep = false;
  while (write(c->wakeup, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

/* ---- The transport's functions --------------------------------------------------------------- */

void publication_free(publication *p) { free(p); }

/* Makes the message of a publication; NULL: out of memory. */
static publication *make_publication(const client *c, const char *topic, size_t topic_size,
                                     const void *payload, size_t size) {
  bool has_header = (c->options.flags & MULTICAST_MQTT_PLAIN) == 0 ||
                    message_read(payload, size) != MESSAGE_PLAIN;
  size_t header = has_header ? HEADER_SIZE : 0;
  publication *p = malloc(sizeof *p + topic_size + 1 + header + size);
  unsigned char *message;
  if (p == NULL) return NULL;
  p->next = NULL;
  p->topic_size = topic_size;
  p->size = header + size;
  memcpy(p->bytes, topic, topic_size + 1);
  message = (unsigned char *)p->bytes + topic_size + 1;
  if (has_header) message_write_header(message, c->sender);
  if (size > 0) memcpy(message + header, payload, size);
  return p;
}

/* Under the lock. Whether it was accepted. */
static multicast_status append(client *c, publication *p) {
  if (c->is_stopping) return MULTICAST_ERROR_STATE;
  if ((c->options.flags & MULTICAST_MQTT_REFUSE_OFFLINE) != 0 && !c->is_connected)
    return MULTICAST_ERROR_STATE;
  if (c->stats.waiting >= c->options.capacity) {
    publication *oldest = c->first;
    if (c->options.overflow == MULTICAST_OVERFLOW_REFUSE) return MULTICAST_ERROR_QUEUE_FULL;
    c->first = oldest->next;
    if (c->first == NULL) c->last = NULL;
    publication_free(oldest);
    --c->stats.waiting;
    ++c->stats.dropped;
  }
  p->ticket = ++c->tickets;
  if (c->last == NULL) {
    c->first = p;
  } else {
    c->last->next = p;
  }
  c->last = p;
  ++c->stats.waiting;
  ++c->stats.published;
  /* Else it is sent when another one is acknowledged. */
  if (c->may_publish) client_wake(c);
  return MULTICAST_OK;
}

static multicast_status publish(void *context, const char *protocol, uint32_t event,
                                const void *payload, size_t size) {
  client *c = context;
  multicast_status status = MULTICAST_ERROR_LIMIT;
  char topic[ADDRESS_MAX_SIZE];
  size_t topic_size;
  const unsigned forks = process_forks();
  publication *p = NULL;
  if (client_is_in_child(c)) return MULTICAST_ERROR_STATE;
  topic_size = coding_write(&topic_coding, topic, c->options.topic_prefix, protocol, event);
  if (topic_size == 0 || (payload == NULL && size > 0)) return MULTICAST_ERROR_INVALID_ARGUMENT;
  if (size <= c->options.max_payload) {
    p = make_publication(c, topic, topic_size, payload, size);
    status = MULTICAST_ERROR_OUT_OF_MEMORY;
  }
  if (p != NULL)
    p->is_retained =
        c->options.retains != NULL && c->options.retains(c->options.context, protocol, event);
  if (forks != process_forks()) { /* that has forked */
    free(p);
    return MULTICAST_ERROR_STATE;
  }
  pthread_mutex_lock(&c->lock);
  if (p != NULL) status = append(c, p);
  if (status != MULTICAST_OK) ++c->stats.refused;
  pthread_mutex_unlock(&c->lock);
  if (status != MULTICAST_OK) free(p);
  return status;
}

/* False: out of memory. */
static bool change_name(client *c, const char *protocol, bool is_wanted) {
  bool is_done;
  pthread_mutex_lock(&c->lock);
  is_done = names_want(&c->names, protocol, is_wanted);
  client_wake(c);
  pthread_mutex_unlock(&c->lock);
  return is_done;
}

static multicast_status subscribe(void *context, const char *protocol) {
  client *c = context;
  if (client_is_in_child(c)) return MULTICAST_ERROR_STATE;
  if (name_size(protocol) == 0) return MULTICAST_ERROR_INVALID_ARGUMENT;
  return change_name(c, protocol, true) ? MULTICAST_OK : MULTICAST_ERROR_OUT_OF_MEMORY;
}

static void unsubscribe(void *context, const char *protocol) {
  client *c = context;
  if (!client_is_in_child(c) && name_size(protocol) > 0) change_name(c, protocol, false);
}

/* Ends the thread. Waits for it, unless it is this one, or in a caller's function: that may wait
 * for this thread. Going away needs the lock, so one that is not away will end soon. */
static void stop(client *c) {
  pthread_mutex_lock(&c->lock);
  c->is_stopping = true;
  pthread_cond_broadcast(&c->changed);
  client_wake(c);
  pthread_mutex_unlock(&c->lock);
  /* It may wait for room in the queue. */
  if (c->inbox.id != 0) multicast_destroy(c->inbox);
  pthread_mutex_lock(&c->lock);
  while (!c->is_done && !c->is_away && !pthread_equal(pthread_self(), c->thread))
    pthread_cond_wait(&c->changed, &c->lock);
  pthread_mutex_unlock(&c->lock);
}

/* The thread and other calls are not here: what is left are this reference and the inbox's. */
static void release_in_child(client *c) {
  __atomic_store_n(&c->references, c->inbox.id != 0 ? 2 : 1, __ATOMIC_RELAXED);
  if (c->inbox.id != 0) multicast_destroy(c->inbox);
}

static void release(void *context) {
  client *c = context;
  remove_client(c);
  if (client_is_in_child(c)) {
    release_in_child(c);
  } else {
    stop(c);
  }
  client_release(c);
}

/* ---- The inbox ------------------------------------------------------------------------------- */

static void deliver(void *context, uint32_t event, const void *payload, size_t size) {
  client *c = context;
  const arrival *a = payload;
  const unsigned forks = process_forks();
  int64_t result = multicast_broadcaster_deliver(c->options.broadcaster, a->name, a->event,
                                                 a->size == 0 ? NULL : a->payload, a->size);
  (void)event, (void)size;
  if (forks != process_forks()) return;
  pthread_mutex_lock(&c->lock);
  ++*(result < 0 ? &c->stats.lost : &c->stats.delivered);
  pthread_mutex_unlock(&c->lock);
}

static void release_inbox(void *context) { client_release(context); }

static multicast_status create_inbox(client *c) {
  multicast_delegate delegate = {deliver, c};
  multicast_add_options how = multicast_add_options_default();
  multicast_status status;
  if (c->options.queue.id == 0) return MULTICAST_OK;
  c->inbox = multicast_create();
  if (c->inbox.id == 0) return MULTICAST_ERROR_OUT_OF_MEMORY;
  how.queue = c->options.queue;
  how.release = release_inbox;
  client_retain(c);
  status = multicast_add(c->inbox, delegate, &how, NULL);
  if (status != MULTICAST_OK) multicast_destroy(c->inbox);
  return status;
}

/* ---- Options --------------------------------------------------------------------------------- */

multicast_status multicast_mqtt_options_init(multicast_mqtt_options *options, size_t size) {
  return struct_init(options, size, OPTIONS_SIZE);
}

multicast_status multicast_mqtt_stats_init(multicast_mqtt_stats *stats, size_t size) {
  return struct_init(stats, size, STATS_SIZE);
}

/* Copies what this version knows. False: it cannot be read. */
static bool read_options(multicast_mqtt_options *to, const multicast_mqtt_options *from) {
  const uint32_t flags = MULTICAST_MQTT_TLS | MULTICAST_MQTT_TLS_ANY_HOST |
                         MULTICAST_MQTT_REFUSE_OFFLINE | MULTICAST_MQTT_PLAIN |
                         MULTICAST_MQTT_NO_RETAINED;
  return struct_read(to, from, sizeof *to) && (to->flags & ~flags) == 0;
}

static void set_default(uint32_t *field, uint32_t value) {
  if (*field == 0) *field = value;
}

static void set_default_ns(uint64_t *field, uint64_t value) {
  if (*field == 0) *field = value;
}

static void set_defaults(multicast_mqtt_options *o) {
  if (o->ca_file != NULL || o->ca_path != NULL) o->flags |= MULTICAST_MQTT_TLS;
  if (o->host == NULL) o->host = "localhost";
  if (o->topic_prefix == NULL) o->topic_prefix = "multicast";
  set_default(&o->port, (o->flags & MULTICAST_MQTT_TLS) != 0 ? 8883 : 1883);
  set_default(&o->keep_alive_s, 60);
  set_default(&o->capacity, 1024);
  set_default(&o->max_payload, 16u << 20);
  set_default_ns(&o->reconnect_min_ns, ns_of_second / 10);
  set_default_ns(&o->reconnect_max_ns, 30 * ns_of_second);
  set_default_ns(&o->connect_timeout_ns, 10 * ns_of_second);
}

static bool is_utf8(const char *text) {
  return mosquitto_validate_utf8(text, (int)strlen(text)) == MOSQ_ERR_SUCCESS;
}

static bool is_prefix(const char *prefix) {
  size_t size = strlen(prefix), slashes = 0, i;
  for (i = 0; i < size; ++i) slashes += prefix[i] == '/';
  return size > 0 && size <= PREFIX_MAX_SIZE && slashes <= PREFIX_MAX_SLASHES &&
         prefix[0] != '$' && is_utf8(prefix) &&
         mosquitto_pub_topic_check(prefix) == MOSQ_ERR_SUCCESS;
}

static bool is_id(const char *id) { return id[0] != '\0' && strlen(id) < 65536 && is_utf8(id); }

/* With the defaults in place. */
static bool are_valid(const multicast_mqtt_options *o) {
  const uint64_t forever = (uint64_t)1 << 62;
  return o->host[0] != '\0' && o->port <= 65535 &&
         (o->protocol == 0 || o->protocol == 4 || o->protocol == 5) &&
         is_prefix(o->topic_prefix) && (o->client_id == NULL || is_id(o->client_id)) &&
         (o->password == NULL || o->user != NULL) && (o->user == NULL || is_utf8(o->user)) &&
         (o->cert_file == NULL) == (o->key_file == NULL) &&
         (o->cert_file == NULL || (o->flags & MULTICAST_MQTT_TLS) != 0) && o->qos <= 2 &&
         o->keep_alive_s >= 5 && o->keep_alive_s <= 65535 && o->capacity <= CAPACITY_MAX &&
         (o->overflow == MULTICAST_OVERFLOW_REFUSE ||
          o->overflow == MULTICAST_OVERFLOW_DROP_OLDEST) &&
         o->max_payload <= PAYLOAD_MAX && o->reconnect_min_ns <= o->reconnect_max_ns &&
         o->reconnect_max_ns <= forever && o->connect_timeout_ns <= forever;
}

/* The texts that are copied. */
static const size_t option_texts[] = {
    offsetof(multicast_mqtt_options, host),         offsetof(multicast_mqtt_options, client_id),
    offsetof(multicast_mqtt_options, topic_prefix), offsetof(multicast_mqtt_options, user),
    offsetof(multicast_mqtt_options, password),     offsetof(multicast_mqtt_options, ca_file),
    offsetof(multicast_mqtt_options, ca_path),      offsetof(multicast_mqtt_options, cert_file),
    offsetof(multicast_mqtt_options, key_file),     offsetof(multicast_mqtt_options, key_password)};
enum { TEXTS = sizeof option_texts / sizeof *option_texts };

static bool copy_texts(multicast_mqtt_options *o) { return texts_copy(o, option_texts, TEXTS); }
static void free_texts(multicast_mqtt_options *o) { texts_free(o, option_texts, TEXTS); }

/* ---- Connecting ------------------------------------------------------------------------------ */

/* OpenSSL asks for the password of the key. */
static int give_key_password(char *buffer, int size, int is_writing, void *mosquitto) {
  const client *c = mosquitto_userdata(mosquitto);
  size_t length = strlen(c->options.key_password);
  (void)is_writing;
  if (length >= (size_t)size) return 0;
  memcpy(buffer, c->options.key_password, length + 1);
  return (int)length;
}

static multicast_status use_tls(client *c) {
  const multicast_mqtt_options *o = &c->options;
  const char *path = o->ca_path;
  int result = MOSQ_ERR_SUCCESS;
  if ((o->flags & MULTICAST_MQTT_TLS) == 0) return MULTICAST_OK;
  if (o->ca_file == NULL && path == NULL) {
    /* libmosquitto needs a path nevertheless. */
    path = "/etc/ssl/certs";
    result = mosquitto_int_option(c->mosquitto, MOSQ_OPT_TLS_USE_OS_CERTS, 1);
  }
  if (result == MOSQ_ERR_SUCCESS)
    result = mosquitto_tls_set(c->mosquitto, o->ca_file, path, o->cert_file, o->key_file,
                               o->key_password == NULL ? NULL : give_key_password);
  if (result == MOSQ_ERR_SUCCESS && (o->flags & MULTICAST_MQTT_TLS_ANY_HOST) != 0)
    result = mosquitto_tls_insecure_set(c->mosquitto, true);
  if (result == MOSQ_ERR_SUCCESS) return MULTICAST_OK;
  return result == MOSQ_ERR_NOMEM ? MULTICAST_ERROR_OUT_OF_MEMORY : MULTICAST_ERROR_SYSTEM;
}

static multicast_status create_mosquitto(client *c) {
  const multicast_mqtt_options *o = &c->options;
  struct sigaction kept;
  char id[24];
  const char *used = o->client_id;
  size_t i;
  int result, error;
  if (used == NULL) {
    memcpy(id, "mc-", 4);
    for (i = 0; i < SENDER_SIZE; ++i) snprintf(id + 3 + 2 * i, 3, "%02x", c->sender[i]);
    used = id;
  }
  /* mosquitto_new() has the process ignore SIGPIPE. The thread blocks it: that is enough. */
  sigaction(SIGPIPE, NULL, &kept);
  errno = 0;
  c->mosquitto = mosquitto_new(used, o->session_expiry_s == 0, c);
  error = errno;
  sigaction(SIGPIPE, &kept, NULL);
  if (c->mosquitto == NULL)
    return error == EINVAL ? MULTICAST_ERROR_INVALID_ARGUMENT : MULTICAST_ERROR_OUT_OF_MEMORY;
  session_set_callbacks(c);
  mosquitto_int_option(c->mosquitto, MOSQ_OPT_TCP_NODELAY, 1);
  mosquitto_int_option(c->mosquitto, MOSQ_OPT_SEND_MAXIMUM, SENDING_MAX);
  /* Few messages come twice then after a lost connection. With QoS 2 mosquitto 2.0 exceeds what it
   * is told, and libmosquitto would end the connection. */
  mosquitto_int_option(c->mosquitto, MOSQ_OPT_RECEIVE_MAXIMUM,
                       o->qos == 2 ? 65535 : RECEIVING_MAX);
  if (o->user != NULL) {
    result = mosquitto_username_pw_set(c->mosquitto, o->user, o->password);
    if (result != MOSQ_ERR_SUCCESS)
      return result == MOSQ_ERR_NOMEM ? MULTICAST_ERROR_OUT_OF_MEMORY
                                      : MULTICAST_ERROR_INVALID_ARGUMENT;
  }
  return use_tls(c);
}

static multicast_status start_thread(client *c) {
  int result;
  client_retain(c);
  /* Under the lock, so that the thread finds itself written down. */
  pthread_mutex_lock(&c->lock);
  result = process_start_thread(&c->thread, session_thread, c);
  if (result == 0) pthread_setname_np(c->thread, "multicast-mqtt");
  pthread_mutex_unlock(&c->lock);
  if (result == 0) return MULTICAST_OK;
  client_release(c);
  return result == ENOMEM ? MULTICAST_ERROR_OUT_OF_MEMORY : MULTICAST_ERROR_SYSTEM;
}

/* Makes all that the client needs but its thread. */
static multicast_status prepare(client *c) {
  multicast_status status;
  c->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (c->wakeup < 0 || getrandom(c->sender, SENDER_SIZE, 0) != SENDER_SIZE)
    return MULTICAST_ERROR_SYSTEM;
  status = create_mosquitto(c);
  return status == MULTICAST_OK ? create_inbox(c) : status;
}

/* A client with a lock and nothing else; NULL: out of memory. Its options have no texts then. */
static client *create_client(const multicast_mqtt_options *options) {
  pthread_condattr_t attributes;
  client *c = calloc(1, sizeof *c);
  if (c == NULL) return NULL;
  c->options = *options;
  c->references = 1;
  c->wakeup = -1;
  c->fork_count = process_forks();
  c->stats = multicast_mqtt_stats_default();
  if (!copy_texts(&c->options) || pthread_condattr_init(&attributes) != 0) {
    free_texts(&c->options);
    free(c);
    return NULL;
  }
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&c->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&c->lock, NULL);
  return c;
}

static multicast_status connect_with(multicast_mqtt_options *options, multicast_transport *out) {
  multicast_status status;
  client *c;
  pthread_once(&once, start);
  if (!is_ready) return MULTICAST_ERROR_SYSTEM;
  set_defaults(options);
  if (!are_valid(options)) return MULTICAST_ERROR_INVALID_ARGUMENT;
  if (!multicast_broadcaster_is_valid(options->broadcaster) ||
      (options->queue.id != 0 && !multicast_queue_is_valid(options->queue)))
    return MULTICAST_ERROR_INVALID_HANDLE;
  c = create_client(options);
  if (c == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  status = prepare(c);
  if (status == MULTICAST_OK) {
    /* Before the thread: what it calls may use it. */
    *out = multicast_transport_default();
    out->context = c;
    out->publish = publish;
    out->subscribe = subscribe;
    out->unsubscribe = unsubscribe;
    out->release = release;
    process_lock();
    c->next = all_clients;
    all_clients = c;
    process_unlock();
    status = start_thread(c);
    if (status != MULTICAST_OK) {
      remove_client(c);
      if (c->inbox.id != 0) multicast_destroy(c->inbox);
    }
  }
  if (status != MULTICAST_OK) {
    if (c->mosquitto != NULL) mosquitto_destroy(c->mosquitto);
    c->options.release = NULL; /* the caller of this function calls it */
    client_release(c);
  }
  return status;
}

multicast_status multicast_mqtt_connect(const multicast_mqtt_options *options,
                                        multicast_transport *out) {
  multicast_mqtt_options copy;
  multicast_status status;
  if (out != NULL) memset(out, 0, sizeof *out);
  if (!read_options(&copy, options)) return MULTICAST_ERROR_INVALID_ARGUMENT;
  status = out == NULL ? MULTICAST_ERROR_INVALID_ARGUMENT : connect_with(&copy, out);
  if (status != MULTICAST_OK) {
    if (out != NULL) memset(out, 0, sizeof *out);
    if (copy.release != NULL) copy.release(copy.context);
  }
  return status;
}

/* ---- Waiting and statistics ------------------------------------------------------------------ */

/* Under the lock. Whether all up to a ticket is over: both lists are in order. */
static bool is_flushed(const client *c, uint64_t ticket) {
  return c->names.first_change == NULL && c->unanswered == 0 &&
         (c->sending_count == 0 || c->sending[0].ticket > ticket) &&
         (c->first == NULL || c->first->ticket > ticket);
}

static multicast_status wait_until_flushed(client *c, uint64_t timeout_ns) {
  multicast_status status = MULTICAST_OK;
  uint64_t start = now_ns(), deadline = start + timeout_ns, ticket;
  struct timespec until;
  if (deadline < start || deadline > INT64_MAX) deadline = INT64_MAX;
  until = time_of_ns(deadline);
  if (client_is_in_child(c) || pthread_equal(pthread_self(), c->thread))
    return MULTICAST_ERROR_STATE;
  pthread_mutex_lock(&c->lock);
  ticket = c->tickets;
  while (status == MULTICAST_OK && !is_flushed(c, ticket)) {
    if (c->is_stopping) status = MULTICAST_ERROR_INVALID_HANDLE;
    else if (timeout_ns == 0 ||
             pthread_cond_timedwait(&c->changed, &c->lock, &until) == ETIMEDOUT)
      status = MULTICAST_ERROR_TIMEOUT;
  }
  pthread_mutex_unlock(&c->lock);
  return status;
}

multicast_status multicast_mqtt_flush(const multicast_transport *transport, uint64_t timeout_ns) {
  client *c = find_client(transport);
  multicast_status status;
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  status = wait_until_flushed(c, timeout_ns);
  client_release(c);
  return status;
}

multicast_status multicast_mqtt_get_stats(const multicast_transport *transport,
                                          multicast_mqtt_stats *out) {
  multicast_status status = MULTICAST_ERROR_STATE;
  multicast_mqtt_stats stats;
  client *c = find_client(transport);
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (!client_is_in_child(c)) {
    pthread_mutex_lock(&c->lock);
    stats = c->stats;
    stats.sending = (uint64_t)c->sending_count;
    stats.names = (uint32_t)c->names.wanted;
    pthread_mutex_unlock(&c->lock);
    status = struct_write(out, &stats, sizeof stats) ? MULTICAST_OK
                                                     : MULTICAST_ERROR_INVALID_ARGUMENT;
  }
  client_release(c);
  return status;
}
