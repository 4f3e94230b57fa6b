/* The benchmark's clients of an MQTT broker. One client uses libmulticast-mqtt, and the other
 * client uses plain libmosquitto with its own thread. Both clients are measured with several QoS
 * levels. */

#include "measure.h"

#include <multicast_mqtt.h>

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <unistd.h>

static void create_ours(client *c) {
  multicast_mqtt_options options = multicast_mqtt_options_default();
  multicast_transport transport;
  options.broadcaster = begin_ours(c);
  options.host = "127.0.0.1";
  options.port = (uint32_t)c->port;
  options.qos = (uint32_t)c->kind;
  if (multicast_mqtt_connect(&options, &transport) != MULTICAST_OK) fail("connect");
  attach_ours(c, &transport);
  if (multicast_mqtt_flush(&transport, 10000000000u) != MULTICAST_OK) fail("flush");
}

/* ---- libmosquitto ---------------------------------------------------------------------------- */

static int is_subscribed;

static void on_connect(struct mosquitto *m, void *object, int code) {
  client *c = object;
  if (code != 0) fail(mosquitto_connack_string(code));
  mosquitto_subscribe(m, NULL, c->name, c->kind);
}

static void on_subscribe(struct mosquitto *m, void *object, int id, int count, const int *granted) {
  (void)m, (void)object, (void)id, (void)count, (void)granted;
  __atomic_store_n(&is_subscribed, 1, __ATOMIC_SEQ_CST);
}

static void on_message(struct mosquitto *m, void *object,
                       const struct mosquitto_message *message) {
  client *c = object;
  (void)m;
  c->arrived(c, message->payload, (size_t)message->payloadlen);
}

static void publish_bare(client *c, const char *name, const void *payload) {
  if (mosquitto_publish(c->connection, NULL, name, (int)c->size, payload, c->kind, false) != 0)
    fail("mosquitto_publish");
}

static void create_bare(client *c) {
  mosquitto_lib_init();
  struct mosquitto *m = mosquitto_new(NULL, true, c);
  mosquitto_int_option(m, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
  mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
  mosquitto_connect_callback_set(m, on_connect);
  mosquitto_subscribe_callback_set(m, on_subscribe);
  mosquitto_message_callback_set(m, on_message);
  c->connection = m;
  c->publish = publish_bare;
  if (mosquitto_connect(m, "127.0.0.1", c->port, 60) != 0) fail("connect");
  if (mosquitto_loop_start(m) != 0) fail("loop");
  while (!__atomic_load_n(&is_subscribed, __ATOMIC_SEQ_CST)) usleep(1000);
}

const benchmark the_benchmark = {
    .bare = {"libmosquitto", create_bare},
    .ours = {"libmulticast-mqtt", create_ours},
    .kinds = {"qos 0", "qos 1", NULL},
    .messages = 50000,
    .window = 1000, /* with a larger window, the broker drops messages */
};
