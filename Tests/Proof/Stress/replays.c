#define _GNU_SOURCE
#include "replays.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "atomics.h"
#include "failure.h"
#include "multicast.h"
#include "operations.h"
#include "sessions.h"
#include "statuses.h"
#include "world.h"

enum { KEPT = 8, MOST_THREADS = 128 };

static uint64_t current; /* the multicast that replays */

/* The payload of an invocation, which consists of the multicast, the sending thread, and the
 * invocation's number. */
typedef struct letter {
  uint64_t target;
  uint64_t thread;
  uint64_t number; /* counted per thread and multicast */
} letter;

/* The last letter that this thread has sent. */
static __thread letter sent;
static uint64_t thread_count;

/* Whether this thread is sending a letter. Until all listeners have received that letter, a wake
 * function must not send another letter. */
static __thread bool is_sending;

/* The next number that a listener expects from a thread, or 0 for any number. */
typedef struct row {
  uint64_t thread, next;
} row;

typedef struct listener {
  row rows[MOST_THREADS];
  uint64_t target;
  int32_t references;
  int32_t calls, most; /* -1: any number of calls */
  bool has_gaps;
} listener;

static uint64_t *next_of(listener *l, uint64_t thread) {
  for (int i = 0; i < MOST_THREADS; ++i) {
    uint64_t none = 0;
    if (LOAD(l->rows[i].thread) == thread || CHANGE(l->rows[i].thread, &none, thread) ||
        none == thread) {
      return &l->rows[i].next;
    }
  }
  return NULL;
}

static void listen_to(void *context, uint32_t event, const void *payload, size_t size) {
  listener *l = context;
  letter got;
  int32_t calls = ADD(l->calls, 1);
  MUST(size >= sizeof got, "a size of %zu", size);
  memcpy(&got, payload, sizeof got);
  MUST(l->target == 0 || got.target == l->target, "a letter of another multicast");
  MUST(l->most < 0 || calls <= l->most, "%d calls of a listener that takes %d", calls, l->most);
  uint64_t *next = next_of(l, got.thread);
  if (next == NULL) return;
  MUST(LOAD(*next) == 0 || LOAD(*next) == got.number ||
           ((l->has_gaps || is_in_child()) && got.number > LOAD(*next)),
       "letter %llu instead of %llu", (unsigned long long)got.number,
       (unsigned long long)LOAD(*next));
  STORE(*next, got.number + 1);
}

static void leave_listener(void *context) {
  listener *l = context;
  if (__atomic_sub_fetch(&l->references, 1, __ATOMIC_ACQ_REL) == 0) free(l);
}

static listener *make_listener(multicast_add_options *options, uint64_t target) {
  listener *l = calloc(1, sizeof *l);
  MUST(l != NULL, "memory");
  l->references = 2;
  l->target = target;
  l->most = -1;
  *options = multicast_add_options_default();
  options->release = leave_listener;
  return l;
}

static multicast_delegate delegate_of(listener *l) {
  return (multicast_delegate){listen_to, l};
}

void replays_make(void) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  options.replay = KEPT;
  options.reentry = random_below(MULTICAST_REENTRY_LATEST); /* LATEST would skip letters */
  STORE(current, multicast_create_with(&options).id);
  MUST(LOAD(current) != 0, "a multicast");
}

OPERATION("multicast_destroy of one that replays", 1) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  options.replay = KEPT;
  multicast old = {SWAP(current, multicast_create_with(&options).id)};
  EXPECT(multicast_destroy(old), OK | PENDING | INVALID_HANDLE);
}

/* Returns whether this thread may invoke. In a calm round, a call must not wait for a replay on
 * another thread. */
static bool may_wait(void) { return !LOAD(world_is_calm) || is_outside_of_calls(); }

void replays_invoke(void) {
  uint32_t count = 1 + random_below(20);
  unsigned char bytes[64] = {0};
  if (is_sending || !may_wait()) return;
  is_sending = true;
  if (sent.thread == 0) sent.thread = ADD(thread_count, 1);
  while (count-- > 0) {
    multicast m = {LOAD(current)};
    if (sent.target != m.id) sent.number = 0;
    sent.target = m.id;
    ++sent.number;
    memcpy(bytes, &sent, sizeof sent);
    int64_t result = multicast_invoke(m, 0, bytes, one_in(2) ? sizeof sent : sizeof bytes);
    /* Inside a replay, the result is MULTICAST_ERROR_STATE if the multicast refuses nested
     * invocations. */
    EXPECT_COUNT(result, OK | INVALID_HANDLE | STATE);
    if (result < 0) --sent.number;
  }
  is_sending = false;
}
OPERATION("multicast_invoke, kept for replays", 20) { replays_invoke(); }

OPERATION("multicast_add with replays", 20) {
  multicast m = {LOAD(current)};
  multicast_add_options options;
  multicast_token token = {0};
  if (!may_wait()) return;
  listener *l = make_listener(&options, m.id);
  if (one_in(4)) options.flags |= MULTICAST_NO_REPLAY;
  if (one_in(2)) options.events = 1;
  if (one_in(8)) options.flags |= MULTICAST_ONCE, l->most = 1;
  if (one_in(4)) options.priority = (int32_t)random_below(3) - 1;
  if (one_in(4)) options.queue = random_queue(), l->has_gaps = true;
  if (one_in(4)) options.lifetime = random_lifetime();
  EXPECT(multicast_add(m, delegate_of(l), &options, &token), OK | INVALID_HANDLE);
  for (uint32_t times = random_below(20); times > 0; --times) {
    if (one_in(4)) replays_invoke(); else sched_yield();
  }
  EXPECT(multicast_token_remove(token), OK | PENDING | INVALID_HANDLE);
  leave_listener(l);
}

/* Adds one last listener, and expects the newest letters to be replayed to it. */
void replays_end(void) {
  multicast m = {LOAD(current)};
  multicast_add_options options;
  listener *l = make_listener(&options, m.id);
  for (int i = 0; i < 2 * KEPT; ++i) replays_invoke();
  EXPECT(multicast_add(m, delegate_of(l), &options, NULL), OK);
  MUST(l->calls == KEPT, "%d replays", l->calls);
  const uint64_t *next = next_of(l, sent.thread);
  MUST(next != NULL && *next == sent.number + 1, "the last letter was not replayed");
  EXPECT(multicast_destroy(m), OK);
  leave_listener(l);
}
