/* SPDX-License-Identifier: MIT
 *
 * 12_machines: one program in one process, or in several, on several machines.
 *
 * A station measures the temperature. A display shows it, and an alarm rings when it freezes. They
 * know a name, "temperature", and each other not at all.
 *
 *   12_machines                     all of them, in one process
 *   12_machines observe HOST PORT   the display and the alarm; ends when the station closes
 *   12_machines notify HOST PORT    the station
 *
 * With a HOST and a PORT, which are those of an MQTT broker, the broadcaster gets a transport. That
 * is all that is different: multicast_broadcaster_attach(), and waiting for the broker at the begin
 * and at the end.
 *
 * Observers print the text in expected/12_machines.txt, in one process and in two.
 */

#include <multicast_mqtt.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(const char *what, multicast_status status) {
  if (status >= 0) return;
  fprintf(stderr, "12_machines: %s: %s\n", what, multicast_status_message(status));
  exit(EXIT_FAILURE);
}

/* ---- The names, and what goes with them ------------------------------------------------------ */

static const char temperature[] = "temperature";
enum { MEASURED = 1, CLOSED = 2 }; /* Events. The payload of the first one is a text. */

/* Payloads come from other programs: they may be anything. */
static bool read_temperature(const void *payload, size_t size, int *degrees) {
  char text[16];
  char *end;
  if (size == 0 || size >= sizeof text) return false;
  memcpy(text, payload, size);
  text[size] = '\0';
  *degrees = (int)strtol(text, &end, 10);
  return *end == '\0';
}

/* ---- Observers ------------------------------------------------------------------------------- */

static void display_notified(void *context, uint32_t event, const void *payload, size_t size) {
  bool *is_closed = context;
  int degrees;
  if (event == MEASURED && read_temperature(payload, size, &degrees)) {
    printf("display: %d degrees\n", degrees);
  } else if (event == CLOSED) {
    puts("display: the station is closed");
    *is_closed = true;
  }
}

static void alarm_notified(void *context, uint32_t event, const void *payload, size_t size) {
  int degrees;
  (void)context;
  if (event == MEASURED && read_temperature(payload, size, &degrees) && degrees < 0)
    puts("alarm: it freezes");
}

static void observe(multicast_broadcaster broadcaster, bool *is_closed) {
  multicast_delegate display = {display_notified, is_closed}, alarm = {alarm_notified, NULL};
  must("register", multicast_broadcaster_register(broadcaster, temperature, display, NULL, NULL));
  must("register", multicast_broadcaster_register(broadcaster, temperature, alarm, NULL, NULL));
}

/* ---- The station ----------------------------------------------------------------------------- */

static void measure(multicast_broadcaster broadcaster) {
  static const char *const measured[] = {"3", "1", "-2"};
  size_t i;
  for (i = 0; i < sizeof measured / sizeof *measured; ++i) {
    int64_t result = multicast_broadcaster_notify(broadcaster, temperature, MEASURED, measured[i],
                                                  strlen(measured[i]));
    must("notify", result < 0 ? (multicast_status)result : MULTICAST_OK);
  }
  multicast_broadcaster_notify(broadcaster, temperature, CLOSED, NULL, 0);
}

/* ---- The broker ------------------------------------------------------------------------------ */

static void connection_changed(void *context, multicast_mqtt_state state, int32_t code,
                               const char *reason) {
  (void)context, (void)code;
  if (state != MULTICAST_MQTT_CONNECTED) fprintf(stderr, "12_machines: %s\n", reason);
}

static multicast_transport attach(multicast_broadcaster broadcaster, multicast_queue loop,
                                  const char *host, int port) {
  multicast_mqtt_options options = multicast_mqtt_options_default();
  multicast_transport transport;
  options.broadcaster = broadcaster;
  options.host = host;
  options.port = (uint32_t)port;
  options.qos = 1;
  options.queue = loop; /* Observers run on the main thread. */
  options.changed = connection_changed;
  must("connect", multicast_mqtt_connect(&options, &transport));
  must("attach", multicast_broadcaster_attach(broadcaster, &transport));
  return transport;
}

/* ---- Main program ---------------------------------------------------------------------------- */

int main(int argc, char **argv) {
  const uint64_t ten_seconds = 10000000000u;
  multicast_queue loop = multicast_queue_create(NULL);
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  bool is_alone = argc == 1, is_closed = false;
  bool observes = is_alone || strcmp(argv[1], "observe") == 0;
  bool notifies = is_alone || strcmp(argv[1], "notify") == 0;
  multicast_transport transport;
  if (broadcaster.id == 0 || loop.id == 0) must("create", multicast_create_error());
  if (!is_alone && (argc != 4 || (!observes && !notifies))) {
    fputs("Usage: 12_machines [observe|notify HOST PORT]\n", stderr);
    return EXIT_FAILURE;
  }

  if (!is_alone) transport = attach(broadcaster, loop, argv[2], atoi(argv[3]));
  if (observes) observe(broadcaster, &is_closed);
  if (!is_alone && observes) {
    /* The station may begin when the broker knows the names. */
    must("the broker", multicast_mqtt_flush(&transport, ten_seconds));
    fputs("12_machines: observing\n", stderr);
  }
  if (notifies) measure(broadcaster);
  if (!is_alone && notifies) must("the broker", multicast_mqtt_flush(&transport, ten_seconds));
  while (observes && !is_closed) {
    if (multicast_queue_wait(loop, MULTICAST_FOREVER) > 0) multicast_queue_run(loop, 0);
  }

  must("destroy", multicast_broadcaster_destroy(broadcaster));
  must("destroy", multicast_queue_destroy(loop));
  if (fflush(stdout) != 0 || ferror(stdout)) {
    perror("12_machines: standard output");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
