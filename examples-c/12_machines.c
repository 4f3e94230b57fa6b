/* SPDX-License-Identifier: MIT
 *
 * 12_machines: one program that runs in several processes without a server, or on several machines.
 *
 * A station measures the temperature. A display shows it, and an alarm rings when it is below zero.
 * All of them know the name "temperature", but they do not know each other.
 *
 *   12_machines            the display and the alarm, which start the station as another process
 *   12_machines observe    the display and the alarm; ends when the station closes
 *   12_machines notify     the station
 *
 *     gcc 12_machines.c -lmulticast-local -lmulticast -o 12_machines && ./12_machines
 *
 * With -DMQTT and -lmulticast-mqtt, the processes may be on several machines. The HOST and PORT of
 * an MQTT broker are then the last arguments. Only attach() differs.
 *
 * Prints the text in expected/12_machines.txt.
 */

#define _POSIX_C_SOURCE 200809L

#ifdef MQTT
#include <multicast_mqtt.h>
#define TRANSPORT(name) multicast_mqtt_##name
enum { REFUSED = MULTICAST_MQTT_REFUSED, ARGUMENTS = 4 };
#else
#include <multicast_local.h>
#define TRANSPORT(name) multicast_local_##name
enum { REFUSED = MULTICAST_LOCAL_REFUSED, ARGUMENTS = 2 };
#endif

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what, const char *why) {
  fprintf(stderr, "12_machines: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, int64_t status) {
  if (status < 0) fail(what, multicast_status_message(status));
}

/* ---- The protocol: a name and its events ----------------------------------------------------- */

static const char temperature[] = "temperature";
enum { MEASURED = 1, CLOSED = 2 }; /* The payload of the first event is a text. */

/* ---- Observers ------------------------------------------------------------------------------- */

static void display_notified(void *context, uint32_t event, const void *payload, size_t size) {
  if (event == MEASURED) printf("display: %.*s degrees\n", (int)size, (const char *)payload);
  if (event != CLOSED) return;
  puts("display: the station is closed");
  *(bool *)context = true;
}

/* Payloads come from other programs, so they may contain anything. */
static void alarm_notified(void *context, uint32_t event, const void *payload, size_t size) {
  char text[16] = "";
  (void)context;
  if (event != MEASURED || size == 0 || size >= sizeof text) return;
  memcpy(text, payload, size);
  if (strtol(text, NULL, 10) < 0) puts("alarm: it freezes");
}

static void observe(multicast_broadcaster broadcaster, bool *is_closed) {
  multicast_delegate display = {display_notified, is_closed}, alarm = {alarm_notified, NULL};
  must("register", multicast_broadcaster_register(broadcaster, temperature, display, NULL, NULL));
  must("register", multicast_broadcaster_register(broadcaster, temperature, alarm, NULL, NULL));
}

/* ---- The station ----------------------------------------------------------------------------- */

static void measure(multicast_broadcaster to) {
  static const char *const measured[] = {"3", "1", "-2"};
  for (size_t i = 0; i < sizeof measured / sizeof *measured; ++i)
    must("notify", multicast_broadcaster_notify(to, temperature, MEASURED, measured[i],
                                                strlen(measured[i])));
  must("notify", multicast_broadcaster_notify(to, temperature, CLOSED, NULL, 0));
}

/* The child of the fork has no transport, so it executes this program again, which creates its own
 * transport. */
static void run_station(const char *program) {
  int status = -1;
  pid_t station = fork();
  if (station == 0) _exit(execlp(program, program, "notify", (char *)NULL));
  if (waitpid(station, &status, 0) < 0 || status != 0) fail("station", "not started, or failed");
}

/* ---- The transport --------------------------------------------------------------------------- */

static void changed(void *context, uint32_t state, int32_t code, const char *reason) {
  (void)context, (void)code;
  if (state == REFUSED) fprintf(stderr, "12_machines: %s\n", reason);
}

static multicast_transport attach(multicast_broadcaster to, multicast_queue loop, char **address) {
  TRANSPORT(options) options = TRANSPORT(options_default)();
  multicast_transport transport;
  options.broadcaster = to;
  options.queue = loop; /* Observers run on the main thread. */
  options.changed = changed;
#ifdef MQTT
  options.host = address[0];
  options.port = (uint32_t)atoi(address[1]);
  options.qos = 1;
#else
  options.group = "12_machines";
  (void)address;
#endif
  must("connect", TRANSPORT(connect)(&options, &transport));
  must("attach", multicast_broadcaster_attach(to, &transport));
  return transport;
}

/* ---- Main program ---------------------------------------------------------------------------- */

int main(int argc, char **argv) {
  const uint64_t ten_seconds = 10000000000u;
  bool is_alone = argc == 1 && ARGUMENTS == 2, is_closed = false;
  bool observes = argc == ARGUMENTS && strcmp(argv[1], "observe") == 0;
  bool notifies = argc == ARGUMENTS && strcmp(argv[1], "notify") == 0;
  multicast_queue loop = multicast_queue_create(NULL);
  multicast_broadcaster broadcaster = multicast_broadcaster_create(NULL);
  if (broadcaster.id == 0 || loop.id == 0) must("create", multicast_create_error());
  if (!is_alone && !observes && !notifies)
    fail("usage", ARGUMENTS > 2 ? "observe|notify HOST PORT" : "[observe|notify]");

  multicast_transport transport = attach(broadcaster, loop, argv + 2);
  if (!notifies) observe(broadcaster, &is_closed);
  must("flush", TRANSPORT(flush)(&transport, ten_seconds)); /* Wait until the names are known. */
  if (observes) fputs("12_machines: observing\n", stderr);
  if (is_alone) run_station(argv[0]);
  if (notifies) {
    measure(broadcaster);
    must("flush", TRANSPORT(flush)(&transport, ten_seconds));
  }
  while (!notifies && !is_closed)
    if (multicast_queue_wait(loop, MULTICAST_FOREVER) > 0) multicast_queue_run(loop, 0);
  must("destroy", multicast_broadcaster_destroy(broadcaster));
  must("destroy", multicast_queue_destroy(loop));
  return fflush(stdout) != 0 || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
