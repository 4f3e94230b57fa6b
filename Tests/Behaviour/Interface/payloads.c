#include "payloads.h"

#include "linux.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Cargo ----------------------------------------------------------------------------------- */

void release_cargo(const void *payload, size_t size) {
  cargo *c = (cargo *)(uintptr_t)payload;
  CHECK(c != NULL);
  c->size = size;
  c->released_on = pthread_self();
  ADD(c->releases, 1);
}

cargo copies[MOST_COPIES];
int copy_count;

const void *copy_cargo(const void *payload, size_t size) {
  int which = ADD(copy_count, 1) - 1;
  CHECK(which < MOST_COPIES);
  return &copies[which];
}

int refused_copies;

const void *copy_nothing(const void *payload, size_t size) {
  ADD(refused_copies, 1);
  return NULL;
}

multicast_invocation handing_over(cargo *c) {
  return INVOCATION(.payload = c, .size = sizeof *c, .release = release_cargo);
}

multicast_invocation copying(cargo *c) {
  multicast_invocation how = handing_over(c);
  how.copy = copy_cargo;
  return how;
}

int64_t hand_over(multicast m, cargo *c) {
  multicast_invocation how = handing_over(c);
  return multicast_invoke_with(m, &how, NULL);
}

/* ---- Delegates ------------------------------------------------------------------------------- */

FUNCTION(see, seen *s) {
  s->event = event;
  s->payload = payload;
  s->size = size;
  s->releases = payload != NULL && size >= sizeof(cargo) ? ((const cargo *)payload)->releases : 0;
  ADD(s->calls, 1);
}

multicast_delegate seeing(seen *s) {
  memset(s, 0, sizeof *s);
  return (multicast_delegate){see, s};
}

/* ---- Waiting --------------------------------------------------------------------------------- */

multicast_invocation waiting(void) {
  return INVOCATION(.flags = MULTICAST_WAIT);
}

THREAD(invoke_and_wait, waiter *w) {
  STORE(w->number, (long)syscall(SYS_gettid));
  w->result = multicast_invoke_with(w->target, &w->how, &w->out);
  gate_open(&w->returned);
}

void begin_waiting(waiter *w, multicast m, const multicast_invocation *how) {
  w->target = m;
  w->how = how != NULL ? *how : waiting();
  w->how.flags |= MULTICAST_WAIT;
  w->out = multicast_outcome_default();
  w->result = INT64_MIN;
  w->returned = shut;
  w->number = 0;
  w->thread = start_thread(invoke_and_wait, w);
}

/* Returns whether the thread is asleep, according to the system. */
static bool is_asleep(waiter *w) {
  char path[64], line[256] = "";
  FILE *file;
  if (LOAD(w->number) <= 0) return LOAD(w->number) < 0; /* not Linux: the system does not say */
  snprintf(path, sizeof path, "/proc/self/task/%ld/stat", LOAD(w->number));
  file = fopen(path, "r");
  if (file == NULL) return false;
  if (fgets(line, sizeof line, file) == NULL) line[0] = '\0';
  fclose(file);
  const char *end = strrchr(line, ')'); /* the end of the thread's name */
  return end != NULL && strncmp(end, ") S", 3) == 0;
}

void expect_to_be_waiting(waiter *w) {
  EVENTUALLY(is_asleep(w));
  CHECK(!gate_opens_within(&w->returned, A_WHILE_MS));
}

void expect_waited(waiter *w, int64_t result, uint64_t finished, uint64_t unfinished) {
  gate_wait(&w->returned);
  join_thread(w->thread);
  CHECK_STATUS(w->result, result);
  CHECK_EQ(w->out.finished, finished);
  CHECK_EQ(w->out.unfinished, unfinished);
}
