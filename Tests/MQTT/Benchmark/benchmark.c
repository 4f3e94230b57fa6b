/* Messages a second and latency between two processes over one broker: libmulticast-mqtt, and bare
 * libmosquitto with its own thread.
 *
 *   benchmark PORT ROUNDS
 *
 * Each round measures both, one after the other, and prints a line for each. */

#include <multicast_mqtt.h>

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 50000, PINGS = 2000, SIZE = 64, WINDOW = 1000 };

static const char *port_text;
static int qos;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what) {
  fprintf(stderr, "benchmark: %s\n", what);
  exit(1);
}

/* ---- A client of either kind ----------------------------------------------------------------- */

typedef struct client client;
struct client {
  void (*publish)(client *c, const char *name, const void *payload);
  void (*arrived)(client *c, const void *payload);
  const char *subscribed;
  int received; /* messages of the measuring process that have arrived */
  /* libmulticast-mqtt */
  multicast_broadcaster broadcaster;
  multicast_transport transport;
  /* libmosquitto */
  struct mosquitto *mosquitto;
  int is_subscribed;
};

#define LOAD(variable) __atomic_load_n(&(variable), __ATOMIC_SEQ_CST)

static void notified(void *context, uint32_t event, const void *payload, size_t size) {
  client *c = context;
  (void)event, (void)size;
  c->arrived(c, payload);
}

static void publish_ours(client *c, const char *name, const void *payload) {
  while (multicast_broadcaster_notify(c->broadcaster, name, 1, payload, SIZE) < 0) usleep(100);
}

static void create_ours(client *c) {
  multicast_mqtt_options options = multicast_mqtt_options_default();
  c->broadcaster = multicast_broadcaster_create(NULL);
  options.broadcaster = c->broadcaster;
  options.host = "127.0.0.1";
  options.port = (uint32_t)atoi(port_text);
  options.qos = (uint32_t)qos;
  if (multicast_mqtt_connect(&options, &c->transport) != MULTICAST_OK ||
      multicast_broadcaster_attach(c->broadcaster, &c->transport) != MULTICAST_OK)
    fail("connect");
  c->publish = publish_ours;
  if (c->subscribed != NULL) {
    multicast_delegate d = {notified, c};
    multicast_broadcaster_register(c->broadcaster, c->subscribed, d, NULL, NULL);
  }
  /* Something has to be there to wait for. */
  publish_ours(c, "begin", "0123456789012345678901234567890123456789012345678901234567890123");
  if (multicast_mqtt_flush(&c->transport, 10000000000u) != MULTICAST_OK) fail("flush");
}

static void on_message(struct mosquitto *m, void *object,
                       const struct mosquitto_message *message) {
  client *c = object;
  (void)m;
  c->arrived(c, message->payload);
}

static void on_subscribe(struct mosquitto *m, void *object, int id, int count, const int *granted) {
  client *c = object;
  (void)m, (void)id, (void)count, (void)granted;
  __atomic_store_n(&c->is_subscribed, 1, __ATOMIC_SEQ_CST);
}

static void publish_bare(client *c, const char *name, const void *payload) {
  mosquitto_publish(c->mosquitto, NULL, name, SIZE, payload, qos, false);
}

static void create_bare(client *c) {
  mosquitto_lib_init();
  c->mosquitto = mosquitto_new(NULL, true, c);
  mosquitto_int_option(c->mosquitto, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
  mosquitto_int_option(c->mosquitto, MOSQ_OPT_TCP_NODELAY, 1);
  mosquitto_message_callback_set(c->mosquitto, on_message);
  mosquitto_subscribe_callback_set(c->mosquitto, on_subscribe);
  if (mosquitto_connect(c->mosquitto, "127.0.0.1", atoi(port_text), 60) != 0) fail("connect");
  if (mosquitto_loop_start(c->mosquitto) != 0) fail("loop");
  usleep(200000);
  c->publish = publish_bare;
  if (c->subscribed == NULL) return;
  mosquitto_subscribe(c->mosquitto, NULL, c->subscribed, qos);
  while (!LOAD(c->is_subscribed)) usleep(1000);
}

/* ---- What is measured ------------------------------------------------------------------------ */

/* The other process: answers each message, or one in so many, with how many have arrived. */
static int answer_every;
static void answer(client *c, const void *unused) {
  char payload[SIZE] = "";
  (void)unused;
  ++c->received;
  memcpy(payload, &c->received, sizeof c->received);
  if (c->received % answer_every == 0) c->publish(c, "back", payload);
}

static void be_answered(client *c, const void *payload) {
  int received;
  memcpy(&received, payload, sizeof received);
  __atomic_store_n(&c->received, received, __ATOMIC_SEQ_CST);
}

static int compare(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

/* Prints the rate, or else how long a message takes there and back. */
static void measure(const char *label, void (*create)(client *c), bool is_rate) {
  static double times[PINGS];
  int count = is_rate ? MESSAGES : PINGS, pipes[2], ready = 0, i;
  char payload[SIZE] = "";
  client here;
  double begin, took;
  pid_t child;
  memset(&here, 0, sizeof here);
  answer_every = is_rate ? WINDOW / 2 : 1;
  if (pipe(pipes) != 0) fail("pipe");
  child = fork();
  if (child == 0) {
    client there;
    memset(&there, 0, sizeof there);
    there.subscribed = "there";
    there.arrived = answer;
    create(&there);
    if (write(pipes[1], "x", 1) != 1) fail("write");
    pause();
    _exit(0);
  }
  here.subscribed = "back";
  here.arrived = be_answered;
  create(&here);
  if (read(pipes[0], &ready, 1) != 1) fail("read");
  begin = now();
  for (i = 0; i < count; ++i) {
    double sent = now();
    here.publish(&here, "there", payload);
    if (is_rate) {
      /* At most WINDOW on their way: otherwise the broker drops some. */
      while (i - LOAD(here.received) > WINDOW) usleep(50);
    } else {
      while (LOAD(here.received) <= i) sched_yield();
      times[i] = now() - sent;
    }
  }
  while (LOAD(here.received) < count) usleep(50);
  took = now() - begin;
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  if (is_rate) {
    printf(" %9.0f messages/s\n", MESSAGES / took);
  } else {
    qsort(times, PINGS, sizeof *times, compare);
    printf("qos %d %-18s there and back: median %6.1f us, 99th %7.1f us;", qos, label,
           times[PINGS / 2] * 1e6, times[PINGS * 99 / 100] * 1e6);
  }
}

/* In a process of its own, which ends with all that it has connected. */
static void measure_in_child(const char *label, void (*create)(client *c), bool is_rate) {
  int status = 0;
  pid_t child;
  fflush(stdout);
  child = fork();
  if (child == 0) {
    measure(label, create, is_rate);
    fflush(stdout);
    _exit(0);
  }
  if (waitpid(child, &status, 0) != child || status != 0) exit(1);
}

int main(int argc, char **argv) {
  int round;
  if (argc != 3) fail("usage: benchmark PORT ROUNDS");
  port_text = argv[1];
  for (round = 0; round < atoi(argv[2]); ++round) {
    for (qos = 0; qos < 2; ++qos) {
      measure_in_child("libmosquitto", create_bare, false);
      measure_in_child("libmosquitto", create_bare, true);
      measure_in_child("libmulticast-mqtt", create_ours, false);
      measure_in_child("libmulticast-mqtt", create_ours, true);
    }
  }
  return 0;
}
