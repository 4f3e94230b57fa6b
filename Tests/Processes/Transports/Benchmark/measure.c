/* Measures the rate and the latency of messages between two processes through one server. Compares
 * one of our libraries with the plain client library on which it is based.
 *
 *   benchmark PORT ROUNDS
 *
 * Each round measures both libraries, one after the other, and prints a line for each. */

#include "measure.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_MAX = 60 };

/* ---- The two processes ----------------------------------------------------------------------- */

/* The other process checks that each message arrives once and in order. After every `answer_every`
 * messages, the process answers with the total number of messages that have arrived. */
static int received_there, answer_every;

static void answer(client *c, const void *payload, size_t size) {
  char back[SIZE] = "";
  int number;
  if (size != SIZE) fail("a message of another size");
  memcpy(&number, payload, sizeof number);
  if (number != received_there) fail("a message that is not the next one");
  ++received_there;
  memcpy(back, &received_there, sizeof received_there);
  if (received_there % answer_every == 0) c->publish(c, "back", back);
}

/* Ends this process if the child has failed. The child has printed the reason. */
static void end_with_child(int signal) {
  (void)signal;
  _exit(1);
}

/* Starts the other process, and returns when that process has subscribed. */
static pid_t start_other(client there, const contender *who) {
  int pipes[2];
  char ready;
  if (pipe(pipes) != 0) fail("pipe");
  signal(SIGCHLD, end_with_child);
  pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_DFL);
    there.name = "there";
    there.arrived = answer;
    who->create(&there);
    if (write(pipes[1], "x", 1) != 1) fail("write");
    for (;;) pause();
  }
  if (read(pipes[0], &ready, 1) != 1) fail("read");
  return child;
}

static void end_other(pid_t child) {
  signal(SIGCHLD, SIG_DFL);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

/* ---- Measurements ---------------------------------------------------------------------------- */

/* Measures the time from the first message until the other process has received the last
 * message. */
static void measure_rate(client *c, int count, int window) {
  char payload[SIZE] = "";
  const double begin = now();
  for (int i = 0; i < count; ++i) {
    memcpy(payload, &i, sizeof i);
    c->publish(c, "there", payload);
    while (window > 0 && i - received_now() > window) usleep(50);
  }
  if (c->flush != NULL) c->flush(c);
  while (received_now() < count) usleep(50);
  double took = now() - begin;
  if (received_now() != count) fail("more messages than were sent");
  printf(" %9.0f messages/s\n", count / took);
}

static void measure(const contender *who, client here, bool is_rate) {
  const int messages = the_benchmark.messages, window = the_benchmark.window;
  alarm(SECONDS_MAX);
  answer_every = !is_rate ? 1 : window > 0 ? window / 2 : messages;
  pid_t child = start_other(here, who);
  here.name = "back";
  here.arrived = be_answered;
  here.publishes_many = is_rate;
  who->create(&here);
  if (is_rate) measure_rate(&here, messages, window);
  else measure_latency(&here, PINGS);
  end_other(child);
}

/* Measures in a separate process, so that all connections are closed when that process ends. */
static void measure_in_child(const contender *who, const client *c, bool is_rate) {
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    measure(who, *c, is_rate);
    fflush(stdout);
    _exit(0);
  }
  if (waitpid(child, &status, 0) != child) fail("waitpid");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) fail("some messages have not arrived");
  if (status != 0) fail("not measured");
}

static void measure_contender(const contender *who, const client *c) {
  const char *kind = the_benchmark.kinds[c->kind];
  printf("%s%s%-18s", kind, kind[0] == '\0' ? "" : " ", who->label);
  measure_in_child(who, c, false);
  measure_in_child(who, c, true);
}

int main(int argc, char **argv) {
  if (argc != 3) fail("usage: benchmark PORT ROUNDS");
  client c = {.port = atoi(argv[1]), .size = SIZE};
  int rounds = atoi(argv[2]);
  for (int round = 0; round < rounds; ++round) {
    for (c.kind = 0; the_benchmark.kinds[c.kind] != NULL; ++c.kind) {
      measure_contender(&the_benchmark.bare, &c);
      measure_contender(&the_benchmark.ours, &c);
    }
  }
  return 0;
}
