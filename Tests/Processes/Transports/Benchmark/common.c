/* The common code of the transports' benchmarks. */

#include "measure.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void fail(const char *what) {
  fprintf(stderr, "benchmark: %s\n", what);
  _exit(1);
}

/* ---- Clients of our libraries ---------------------------------------------------------------- */

static void notified(void *context, uint32_t event, const void *payload, size_t size) {
  client *c = context;
  (void)event;
  c->arrived(c, payload, size);
}

static void publish_ours(client *c, const char *name, const void *payload) {
  int64_t result;
  while ((result = multicast_broadcaster_notify(c->broadcaster, name, 1, payload, c->size)) ==
         MULTICAST_ERROR_QUEUE_FULL)
    usleep(100);
  if (result < 0) fail("notify");
}

multicast_broadcaster begin_ours(client *c) {
  c->broadcaster = multicast_broadcaster_create(NULL);
  c->publish = publish_ours;
  return c->broadcaster;
}

void attach_ours(client *c, const multicast_transport *transport) {
  const multicast_delegate d = {notified, c};
  if (multicast_broadcaster_attach(c->broadcaster, transport) != MULTICAST_OK ||
      multicast_broadcaster_register(c->broadcaster, c->name, d, NULL, NULL) != MULTICAST_OK)
    fail("attach");
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* The other process's last answer. Only the measuring process uses this variable. */
static int received;

void be_answered(client *c, const void *payload, size_t size) {
  int count;
  (void)c;
  if (size != SIZE) fail("an answer of another size");
  memcpy(&count, payload, sizeof count);
  __atomic_store_n(&received, count, __ATOMIC_SEQ_CST);
}

int received_now(void) { return __atomic_load_n(&received, __ATOMIC_SEQ_CST); }

static int compare(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

/* Measures how long it takes to send a message to the other process and receive the answer. */
void measure_latency(client *c, int pings) {
  static double times[PINGS];
  char payload[SIZE] = "";
  for (int i = 0; i < pings; ++i) {
    const double begin = now();
    memcpy(payload, &i, sizeof i);
    c->publish(c, "there", payload);
    while (received_now() <= i) sched_yield();
    times[i] = now() - begin;
  }
  qsort(times, (size_t)pings, sizeof *times, compare);
  printf(" there and back: median %6.1f us, 99th %7.1f us;", times[pings / 2] * 1e6,
         times[pings * 99 / 100] * 1e6);
}

