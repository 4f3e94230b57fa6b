#define _GNU_SOURCE
#include "world.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "actor.h"
#include "atomics.h"
#include "borrowed.h"
#include "carrier.h"
#include "failure.h"
#include "replays.h"
#include "statuses.h"
#include "waker.h"

uint64_t world_multicasts[MULTICAST_COUNT];
uint64_t world_tokens[TOKEN_COUNT];
uint64_t world_lifetimes[LIFETIME_COUNT];
uint64_t world_queues[QUEUE_COUNT];
uint64_t world_broadcasters[BROADCASTER_COUNT];

bool world_is_calm;

bool is_outside_of_calls(void) {
  const actor *a = actor_current();
  return a->calls == 0 && a->releases == 0;
}

bool waits_for_certain(void) { return LOAD(world_is_calm) && is_outside_of_calls(); }

/* ---- Choosing -------------------------------------------------------------------------------- */

/* Returns a forged handle, to test that any number is safe to pass as a handle. It is a random
 * number, or a handle of the wrong kind or with an older generation. A handle with a newer
 * generation could belong to an object that only one thread may use. */
static uint64_t forged(uint64_t handle) {
  switch (random_below(4)) {
    case 0: return random_number();
    case 1: return handle - ((uint64_t)(1 + random_below(3)) << 30);
    case 2: return handle ^ (uint64_t)(1 + random_below(15)) << 26;
    default: return 0;
  }
}

static uint64_t random_of(const uint64_t *handles, uint32_t count) {
  uint64_t handle = LOAD(handles[random_below(count)]);
  return one_in(200) ? forged(handle) : handle;
}

multicast_broadcaster random_broadcaster(void) {
  return (multicast_broadcaster){random_of(world_broadcasters, BROADCASTER_COUNT)};
}

static const char *const names[NAME_COUNT] = {
    "a", "b", "tit", "name", "UpdateTitle", "UpdateBody", "a name of 16 byt", "a name of 17 byte",
    "org.example.a-name-that-is-longer-than-most", "\xff\xfe", "z", "Z"};

const char *random_name(void) { return names[random_below(NAME_COUNT)]; }

const char *name_of(int number) { return names[number]; }

int number_of_name(const char *name) {
  for (int i = 0; i < NAME_COUNT; ++i) {
    if (strcmp(names[i], name) == 0) return i;
  }
  MUST(false, "an unknown name: %s", name);
  return 0;
}

multicast make_multicast(void) {
  multicast_create_options options = MULTICAST_CREATE_OPTIONS_INIT;
  options.reentry = random_below(4);
  options.label = one_in(2) ? "stress" : NULL;
  return one_in(3) ? multicast_create_with(&options) : multicast_create();
}

multicast random_multicast(void) {
  multicast m = {random_of(world_multicasts, MULTICAST_COUNT)};
  if (one_in(8)) return multicast_broadcaster_multicast(random_broadcaster(), random_name());
  return m;
}

multicast_token random_token(void) {
  multicast_token t = {random_of(world_tokens, TOKEN_COUNT)};
  if (one_in(8)) return multicast_token_current();
  return t;
}

multicast_lifetime random_lifetime(void) {
  return (multicast_lifetime){random_of(world_lifetimes, LIFETIME_COUNT)};
}

multicast_queue random_queue(void) {
  return (multicast_queue){random_of(world_queues, QUEUE_COUNT)};
}

/* ---- Create and destroy ---------------------------------------------------------------------- */

multicast_queue make_queue(void) {
  multicast_queue_options options = multicast_queue_options_default();
  waker *w = NULL;
  options.capacity = 1 + random_below(one_in(2) ? 4 : 100);
  options.overflow = (multicast_overflow)random_below(LOAD(world_is_calm) ? 2 : 3);
  if (one_in(2)) options.payload_size = random_below(128);
  if (one_in(2)) w = waker_make(&options);
  multicast_queue q = multicast_queue_create(&options);
  MUST(q.id != 0, "a queue of %zu", options.capacity);
  if (w != NULL) waker_belongs_to(w, q);
  return q;
}

multicast_status destroy_queue(multicast_queue q) {
  multicast_status status = multicast_queue_destroy(q);
  if (status == MULTICAST_OK) queue_is_finished(q);
  return status;
}

static uint64_t make_broadcaster(void) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  MUST(b.id != 0, "a broadcaster");
  return b.id;
}

void world_make(bool is_calm) {
  int i;
  STORE(world_is_calm, is_calm);
  for (i = 0; i < MULTICAST_COUNT; ++i) STORE(world_multicasts[i], make_multicast().id);
  for (i = 0; i < LIFETIME_COUNT; ++i) STORE(world_lifetimes[i], multicast_lifetime_create().id);
  for (i = 0; i < QUEUE_COUNT; ++i) STORE(world_queues[i], make_queue().id);
  for (i = 0; i < BROADCASTER_COUNT; ++i) STORE(world_broadcasters[i], make_broadcaster());
  replays_make();
}

void world_destroy_queues(void) {
  for (int i = 0; i < QUEUE_COUNT; ++i) {
    multicast_queue q = {world_queues[i]};
    doing("multicast_queue_destroy at the end");
    EXPECT(destroy_queue(q), OK | INVALID_HANDLE);
    doing_end();
  }
}

void world_destroy_rest(void) {
  multicast all = {0};
  carriers_check();
  for (int i = 0; i < LIFETIME_COUNT; ++i) {
    multicast_lifetime l = {world_lifetimes[i]};
    doing("multicast_lifetime_end at the end");
    EXPECT(multicast_lifetime_end(l), OK | INVALID_HANDLE);
    doing_end();
  }
  for (int i = 0; i < BROADCASTER_COUNT; ++i) {
    multicast_broadcaster b = {world_broadcasters[i]};
    doing("multicast_broadcaster_destroy at the end");
    EXPECT(multicast_broadcaster_destroy(b), OK | INVALID_HANDLE);
    doing_end();
  }
  for (int i = 0; i < MULTICAST_COUNT; ++i) {
    multicast m = {world_multicasts[i]};
    doing("multicast_destroy at the end");
    EXPECT(multicast_destroy(m), OK | INVALID_HANDLE);
    doing_end();
  }
  doing("replays at the end");
  replays_end();
  doing_end();
  EXPECT(multicast_set_watch(all, NULL), OK); /* frees watches of destroyed multicasts */
  STORE(world_is_calm, true); /* no other thread is left, so none can wait */
  doing("removals without release at the end");
  for (borrowed_take_over(true); actor_current()->borrowed != NULL; borrowed_take_over(true)) {
    borrowed_remove();
  }
  doing_end();
}

/* ---- Warming up ------------------------------------------------------------------------------ */

enum { WARM = 192, WARM_DELEGATES = 200, WARM_THREADS = 96 };

static void ignore(void *context, uint32_t event, const void *payload, size_t size) {}

/* Invokes a multicast, and then waits until all threads have done so. */
static void *invoke_and_wait(void *count) {
  multicast m = multicast_create();
  multicast_delegate d = {ignore, NULL};
  EXPECT(multicast_add(m, d, NULL, NULL), OK);
  MUST(multicast_invoke(m, 0, NULL, 0) == 1, "an invocation");
  ADD(*(int *)count, 1);
  while (LOAD(*(int *)count) < WARM_THREADS) sched_yield();
  EXPECT(multicast_destroy(m), OK);
  return NULL;
}

void world_warm_up(void) {
  static multicast multicasts[WARM];
  multicast_create_options labelled = MULTICAST_CREATE_OPTIONS_INIT;
  static multicast_lifetime lifetimes[WARM];
  static multicast_queue queues[WARM];
  static multicast_broadcaster broadcasters[WARM];
  static multicast_delegate delegates[WARM_DELEGATES];
  pthread_t threads[WARM_THREADS];
  int count = 0;
  multicast_watch counting = MULTICAST_WATCH_INIT;
  multicast all = {0};
  labelled.label = "warm";
  for (int i = 0; i < WARM_DELEGATES; ++i) delegates[i].function = ignore;
  for (int i = 0; i < WARM; ++i) {
    multicast_queue_options options = multicast_queue_options_default();
    options.capacity = 1;
    multicasts[i] = i % 2 == 0 ? multicast_create() : multicast_create_with(&labelled);
    lifetimes[i] = multicast_lifetime_create();
    queues[i] = multicast_queue_create(&options);
    broadcasters[i] = multicast_broadcaster_create(NULL);
    MUST(multicasts[i].id && lifetimes[i].id && queues[i].id && broadcasters[i].id, "handles");
    EXPECT(multicast_add_many(multicasts[i], delegates, WARM_DELEGATES, NULL, NULL), OK);
  }
  for (int i = 0; i < WARM_THREADS; ++i) {
    MUST(pthread_create(&threads[i], NULL, invoke_and_wait, &count) == 0, "a thread");
  }
  for (int i = 0; i < WARM_THREADS; ++i) pthread_join(threads[i], NULL);
  EXPECT(multicast_set_watch(all, &counting), OK);
  for (int i = 0; i < WARM; ++i) {
    EXPECT_COUNT(multicast_invoke(multicasts[i], 0, NULL, 0), OK);
  }
  EXPECT(multicast_set_watch(all, NULL), OK);
  for (int i = 0; i < WARM; ++i) {
    doing_more();
    EXPECT(multicast_destroy(multicasts[i]), OK);
    EXPECT(multicast_lifetime_end(lifetimes[i]), OK);
    EXPECT(multicast_queue_destroy(queues[i]), OK);
    EXPECT(multicast_broadcaster_destroy(broadcasters[i]), OK);
  }
}
