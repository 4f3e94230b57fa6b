/* Measures several ways to send messages between processes on one machine.
 *
 *   benchmark PORT_OF_MQTT PORT_OF_NATS ROUNDS SHARE
 *
 * Each round measures all libraries, one after the other, and prints a line for each. All message
 * counts are divided by SHARE, so that tests can run a short benchmark. */

#include "entrants.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_MAX = 60, RING = 1 << 23 };

/* ---- Subscribers ----------------------------------------------------------------------------- */

/* For each process, the number of messages that have arrived. The array is in shared memory. */
typedef struct counter {
  _Alignas(64) int count;
} counter;
static counter *counters;

/* Called for each arriving message. Checks that each message arrives once and in order. */
static void take(client *c, const void *payload, size_t size) {
  int *count = &counters[c->number].count, number;
  if (size != c->size) fail("a message of another size");
  memcpy(&number, payload, sizeof number);
  if (number != *count) fail("a message that is not the next one");
  __atomic_store_n(count, number + 1, __ATOMIC_RELEASE);
}

static void answer(client *c, const void *payload, size_t size) {
  char back[SIZE] = "";
  take(c, payload, size);
  memcpy(back, &counters[c->number].count, sizeof(int));
  c->publish(c, "back", back);
}

/* Returns the number of messages that have arrived at every process. */
static int least(const client *c) {
  int result = __atomic_load_n(&counters[0].count, __ATOMIC_ACQUIRE);
  for (int i = 1; i < c->subscribers; ++i) {
    const int count = __atomic_load_n(&counters[i].count, __ATOMIC_ACQUIRE);
    if (count < result) result = count;
  }
  return result;
}

/* Ends this process if a child has failed. The child has printed the reason. */
static void end_with_child(int signal) {
  (void)signal;
  _exit(1);
}

static pid_t fork_child(void) {
  fflush(stdout);
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_DFL);
  }
  return child;
}

static _Noreturn void be_subscriber(client c, const entrant *e, int ready) {
  c.name = "there";
  c.arrived = c.publishes_many ? take : answer;
  c.subscribers = 1;
  e->who->create(&c);
  if (write(ready, "x", 1) != 1) fail("write");
  for (;;) pause();
}

/* Starts all subscribers, and returns when they have subscribed. */
static void start_subscribers(client *c, const entrant *e, pid_t *children) {
  int pipes[2];
  char ready;
  if (pipe(pipes) != 0) fail("pipe");
  memset(counters, 0, SUBSCRIBERS_MAX * sizeof *counters);
  signal(SIGCHLD, end_with_child);
  for (c->number = 0; c->number < c->subscribers; ++c->number) {
    children[c->number] = fork_child();
    if (children[c->number] == 0) be_subscriber(*c, e, pipes[1]);
  }
  c->number = 0;
  for (int i = 0; i < c->subscribers; ++i)
    if (read(pipes[0], &ready, 1) != 1) fail("read");
}

/* ---- Measurements ---------------------------------------------------------------------------- */

/* Measures the time in seconds from the first message until all processes have received the last
 * message. */
static double measure_rate(client *c, int count, int window) {
  static char payload[LARGE_SIZE];
  const double begin = now();
  for (int i = 0; i < count; ++i) {
    memcpy(payload, &i, sizeof i);
    c->publish(c, "there", payload);
    while (window > 0 && i - least(c) > window) usleep(50);
  }
  if (c->flush != NULL) c->flush(c);
  while (least(c) < count) usleep(50);
  return now() - begin;
}

typedef struct figure {
  int subscribers;
  bool is_latency, is_large;
} figure;

static const figure figures[] = {{1, true, false},
                                 {1, false, false},
                                 {4, false, false},
                                 {SUBSCRIBERS_MAX, false, false},
                                 {1, false, true}};

static int at_least_one(int count) { return count > 0 ? count : 1; }

static void measure(const entrant *e, client c, const figure *f, int share) {
  const int messages = at_least_one((f->is_large ? e->large_messages : e->messages) / share),
            count = at_least_one(messages / f->subscribers);
  pid_t children[SUBSCRIBERS_MAX];
  alarm(SECONDS_MAX);
  c.size = f->is_large ? LARGE_SIZE : SIZE;
  c.subscribers = f->subscribers;
  c.publishes_many = !f->is_latency;
  if (c.port == 0) c.port = getpid(); /* if there is no server, the port makes names unique */
  if (e->prepare != NULL) e->prepare(&c);
  start_subscribers(&c, e, children);
  c.name = "back";
  c.arrived = be_answered;
  e->who->create(&c);
  if (f->is_latency) {
    measure_latency(&c, at_least_one(PINGS / share));
  } else {
    const double took = measure_rate(&c, count, f->is_large ? e->large_window : e->window);
    if (f->is_large) printf(" 1 MB: %6.2f GB/s", count * (LARGE_SIZE / 1e9) / took);
    else printf(" to %d: %9.0f messages/s;", c.subscribers, count / took);
  }
  signal(SIGCHLD, SIG_DFL);
  for (int i = 0; i < c.subscribers; ++i) kill(children[i], SIGKILL);
}

/* Measures in a separate process, so that all connections are closed when that process ends. */
static void measure_in_child(const entrant *e, const client *c, const figure *f, int share) {
  int status = 0;
  const pid_t child = fork_child();
  if (child == 0) {
    measure(e, *c, f, share);
    fflush(stdout);
    _exit(0);
  }
  if (waitpid(child, &status, 0) != child) fail("waitpid");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) fail("some messages have not arrived");
  if (status != 0) fail("not measured");
}

/* Measures how long it takes to copy payloads into a ring. Publishing cannot be faster than
 * copying. */
static void measure_memcpy(int share) {
  static char from[LARGE_SIZE], ring[RING];
  const int count = at_least_one(8000 / share);
  memset(ring, 1, sizeof ring);
  memset(from, 1, sizeof from);
  const double begin = now();
  for (int i = 0; i < count; ++i) {
    memcpy(ring + (size_t)i % (RING / LARGE_SIZE) * LARGE_SIZE, from, LARGE_SIZE);
    __asm__ volatile("" ::: "memory");
  }
  printf("%-18s 1 MB: %6.2f GB/s\n", "memcpy", count * (LARGE_SIZE / 1e9) / (now() - begin));
}

int main(int argc, char **argv) {
  if (argc != 5) fail("usage: benchmark PORT_OF_MQTT PORT_OF_NATS ROUNDS SHARE");
  const int rounds = atoi(argv[3]), share = atoi(argv[4]);
  const entrant by_mqtt = {.who = &mqtt_benchmark.ours, .messages = 40000, .large_messages = 100,
                           .window = mqtt_benchmark.window, .large_window = 8};
  const entrant by_nats = {.who = &nats_benchmark.ours, .messages = 400000, .large_messages = 200,
                           .large_window = 8};
  const entrant *const entrants[] = {&by_local, &by_sockets, &by_zeromq, &by_mqtt, &by_nats};
  const int ports[] = {0, 0, 0, atoi(argv[1]), atoi(argv[2])};
  const size_t size = SUBSCRIBERS_MAX * sizeof *counters;
  counters = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (counters == MAP_FAILED) fail("mmap");
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < sizeof entrants / sizeof *entrants; ++i) {
      const client c = {.port = ports[i]};
      printf("%-18s", entrants[i]->who->label);
      for (size_t f = 0; f < sizeof figures / sizeof *figures; ++f)
        measure_in_child(entrants[i], &c, &figures[f], share);
      printf("\n");
    }
    measure_memcpy(share);
  }
  return 0;
}
