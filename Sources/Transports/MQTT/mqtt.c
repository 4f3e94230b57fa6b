/* The engine of libmulticast-mqtt. Implements options, the setup of libmosquitto, flushing and
 * statistics. */

#include "mqtt.h"

#define TRANSPORT(name) multicast_mqtt_##name
#include "../Common/exports.h"

#include <errno.h>
#include <inttypes.h>
#include <mosquitto.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum {
  OPTIONS_SIZE = 192, /* in version 1.1 */
  STATS_SIZE = 120,
  PAYLOAD_MAX = (1 << 28) - 1024,
  /* libmosquitto and mosquitto refuse topics with more than 200 slashes, and each topic has two
   * slashes after the prefix. */
  PREFIX_MAX_SLASHES = 198
};
_Static_assert(sizeof(multicast_mqtt_options) == OPTIONS_SIZE, "the header says so");
_Static_assert(sizeof(multicast_mqtt_stats) == STATS_SIZE, "the header says so");

/* libmosquitto counts how often it has been initialized. This library initializes libmosquitto once
 * per process and never cleans it up. */
static bool start(void) { return mosquitto_lib_init() == MOSQ_ERR_SUCCESS; }

/* ---- Options --------------------------------------------------------------------------------- */

static void set_defaults(multicast_mqtt_options *o) {
  if (o->ca_file != NULL || o->ca_path != NULL) o->flags |= MULTICAST_MQTT_TLS;
  if (o->host == NULL) o->host = "localhost";
  if (o->topic_prefix == NULL) o->topic_prefix = "multicast";
  if (o->port == 0) o->port = (o->flags & MULTICAST_MQTT_TLS) != 0 ? 8883 : 1883;
  if (o->keep_alive_s == 0) o->keep_alive_s = 60;
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

/* Called after set_defaults(). */
static bool are_valid(const multicast_mqtt_options *o) {
  return o->host[0] != '\0' && o->port <= 65535 &&
         (o->protocol == 0 || o->protocol == 4 || o->protocol == 5) &&
         is_prefix(o->topic_prefix) && (o->client_id == NULL || is_id(o->client_id)) &&
         (o->password == NULL || o->user != NULL) && (o->user == NULL || is_utf8(o->user)) &&
         (o->cert_file == NULL) == (o->key_file == NULL) &&
         (o->cert_file == NULL || (o->flags & MULTICAST_MQTT_TLS) != 0) && o->qos <= 2 &&
         o->keep_alive_s >= 5 && o->keep_alive_s <= 65535;
}

static bool settle(void *options, settings *s) {
  multicast_mqtt_options *o = options;
  set_defaults(o);
  *s = (settings){SETTINGS_OF_BROKER(o, MULTICAST_MQTT_REFUSE_OFFLINE)};
  return are_valid(o);
}

/* The offsets of the strings in the options that prepare() copies. */
static const size_t option_texts[] = {
    offsetof(multicast_mqtt_options, host),         offsetof(multicast_mqtt_options, client_id),
    offsetof(multicast_mqtt_options, topic_prefix), offsetof(multicast_mqtt_options, user),
    offsetof(multicast_mqtt_options, password),     offsetof(multicast_mqtt_options, ca_file),
    offsetof(multicast_mqtt_options, ca_path),      offsetof(multicast_mqtt_options, cert_file),
    offsetof(multicast_mqtt_options, key_file),     offsetof(multicast_mqtt_options, key_password)};
enum { TEXTS = sizeof option_texts / sizeof *option_texts };

/* ---- The engine ------------------------------------------------------------------------------ */

static size_t write_header(const client *base, unsigned char *header, span payload) {
  const mqtt_client *c = (const mqtt_client *)base;
  bool is_plain = (c->options.flags & MULTICAST_MQTT_PLAIN) != 0;
  if (is_plain && message_read(payload.at, payload.size) == MESSAGE_PLAIN) return 0;
  message_write_header(header, &base->id);
  return HEADER_SIZE;
}

static bool is_retained(const client *base, const char *name, uint32_t event) {
  const multicast_mqtt_options *o = &((const mqtt_client *)base)->options;
  return o->retains != NULL && o->retains(o->context, name, event);
}

/* The topic does not contain the question's number, because add_properties() sends the number as a
 * property. */
static size_t write_return(const client *base, char *topic, origin to) {
  return (size_t)snprintf(topic, ADDRESS_MAX_SIZE, "%s/%%=%016" PRIX64, base->settings.prefix,
                          to.peer);
}

static void free_client(client *base) {
  mqtt_client *c = (mqtt_client *)base;
  /* The child of a fork does not free libmosquitto's data, which may be inconsistent. */
  if (c->mosquitto != NULL && !client_is_in_child(base)) mosquitto_destroy(c->mosquitto);
  texts_free(&c->texts);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* OpenSSL calls this function to get the password of the key. */
static int give_key_password(char *buffer, int size, int is_writing, void *mosquitto) {
  const mqtt_client *c = mosquitto_userdata(mosquitto);
  size_t length = strlen(c->options.key_password);
  (void)is_writing;
  if (length >= (size_t)size) return 0;
  memcpy(buffer, c->options.key_password, length + 1);
  return (int)length;
}

static multicast_status use_tls(mqtt_client *c) {
  const multicast_mqtt_options *o = &c->options;
  const char *path = o->ca_path;
  int result = MOSQ_ERR_SUCCESS;
  if ((o->flags & MULTICAST_MQTT_TLS) == 0) return MULTICAST_OK;
  if (o->ca_file == NULL && path == NULL) {
    /* libmosquitto requires a folder, even if it uses the system's certificates. */
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

static multicast_status create_mosquitto(mqtt_client *c) {
  const multicast_mqtt_options *o = &c->options;
  struct sigaction kept;
  char id[24];
  const char *used = o->client_id;
  int result, error;
  if (used == NULL) {
    snprintf(id, sizeof id, "mc-%016" PRIx64, c->base.id);
    used = id;
  }
  /* mosquitto_new() makes the process ignore SIGPIPE. Restore the previous action, which is safe
   * because the client's thread blocks the signal. */
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
  /* This option limits how many messages the broker repeats after a connection has been lost. With
   * QoS 2 no limit is set, because mosquitto 2.0 would exceed the limit and libmosquitto would then
   * close the connection. */
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

static multicast_status prepare(client *base, const void *options) {
  mqtt_client *c = (mqtt_client *)base;
  c->options = *(const multicast_mqtt_options *)options;
  if (!texts_copy(&c->texts, &c->options, option_texts, TEXTS))
    return MULTICAST_ERROR_OUT_OF_MEMORY;
  base->settings.prefix = c->options.topic_prefix;
  if (getrandom(&base->id, SENDER_SIZE, 0) != SENDER_SIZE) return MULTICAST_ERROR_SYSTEM;
  write_return(base, base->return_address, (origin){base->id, 0});
  return create_mosquitto(c);
}

static const engine transport_engine = {
    ENGINE_OF_BROKER,
    .coding = &topic_coding,
    .thread_name = "multicast-mqtt",
    .options_size = sizeof(multicast_mqtt_options),
    .flags = MULTICAST_MQTT_TLS | MULTICAST_MQTT_TLS_ANY_HOST | MULTICAST_MQTT_REFUSE_OFFLINE |
             MULTICAST_MQTT_PLAIN | MULTICAST_MQTT_NO_RETAINED,
    .size = sizeof(mqtt_client),
    .default_payload = 16u << 20,
    .largest_payload = PAYLOAD_MAX,
    .write_header = write_header,
    .retains = is_retained,
};

/* ---- Waiting and statistics ------------------------------------------------------------------ */

/* Called under the lock. Returns whether all changes of names up to a number have been sent and
 * acknowledged. The lists of changes are in order, so checking the oldest change suffices. */
static bool are_names_told(mqtt_client *c, uint64_t change) {
  const names *changed = client_changed(&c->base);
  int i = 0;
  while (i < c->subscribing_count && c->subscribing[i].change > change) ++i;
  return i == c->subscribing_count && (changed == NULL || changed->first_change->change > change);
}

/* Called under the lock. Returns whether all publications up to a ticket have been sent and
 * acknowledged. The publications in `sending` and in the outbox are in order, so checking the first
 * publication of each list suffices. */
static bool is_flushed(const mqtt_client *c, uint64_t ticket) {
  const publication *first = c->base.outbox.first;
  return (c->sending_count == 0 || c->sending[0].ticket > ticket) &&
         (first == NULL || first->ticket > ticket);
}

static multicast_status wait_until_flushed(client *base, uint64_t deadline) {
  mqtt_client *c = (mqtt_client *)base;
  const uint64_t ticket = base->outbox.tickets, change = client_changes(base);
  while (!is_flushed(c, ticket) || !are_names_told(c, change)) {
    if (base->is_stopping) return MULTICAST_ERROR_INVALID_HANDLE;
    if (!client_wait_until(base, deadline)) return MULTICAST_ERROR_TIMEOUT;
  }
  return MULTICAST_OK;
}

static void fill_stats(const client *base, void *stats) {
  const mqtt_client *c = (const mqtt_client *)base;
  multicast_mqtt_stats *out = stats;
  FILL_STATS_OF_BROKER(base, out);
  out->protocol = c->used_protocol;
  out->sending = (uint64_t)c->sending_count;
  out->echoes = c->echoes;
}
