/* A busy process forks at random moments, and its children call every function. */

#include "../Interface/harness.h"
#include "functions.h"

#include <time.h>

enum { THREADS = 4, FORKS = 300 };

/* The seed of the random numbers: the value of the environment variable SEED, or the time if SEED
 * is not set. */
static uint64_t seed;

static uint64_t random_from(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void choose_seed(const char *test) {
  const char *given = getenv("SEED");
  seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 1000003u;
  if (seed == 0) seed = 1;
  printf("seed %llu; to repeat: SEED=%llu fault_tests --in-process %s\n", (unsigned long long)seed,
         (unsigned long long)seed, test);
  fflush(stdout);
}

/* ---- A busy parent --------------------------------------------------------------------------- */

static bool is_over;

/* All threads use these objects, and remove each other's delegates from them. */
static multicast common;
static multicast_lifetime common_lifetime;
static multicast_queue common_queue, common_worked; /* the second queue has a worker */
static multicast_broadcaster common_broadcaster;
static int common_adds, common_releases;

static void be_called(void *context, uint32_t event, const void *bytes, size_t size) {
  CHECK(context == &common);
  CHECK_EQ(event, 5);
  CHECK_EQ(size, sizeof payload);
  CHECK(memcmp(bytes, payload, size) == 0);
}

static void be_released_there(void *context) {
  CHECK(context == &common);
  ADD(common_releases, 1);
}

static void use_what_is_common(uint64_t *state) {
  multicast_add_options options = ADD_OPTIONS(.release = be_released_there);
  multicast_token token = {0};
  multicast_delegate d = {be_called, &common};
  options.priority = (int32_t)(random_from(state) % 3);
  if (random_from(state) % 3 == 0) options.queue = common_queue;
  if (random_from(state) % 3 == 0) options.queue = common_worked;
  if (random_from(state) % 2 == 0) options.lifetime = common_lifetime;
  ADD(common_adds, 2);
  CHECK_OK(multicast_add(common, d, &options, &token));
  CHECK_OK(multicast_broadcaster_register(common_broadcaster, "name", d, &options, NULL));
  CHECK(multicast_invoke(common, 5, payload, sizeof payload) >= 0);
  CHECK(multicast_broadcaster_notify(common_broadcaster, "name", 5, payload, sizeof payload) >= 0);
  multicast_queue_run(common_queue, 3);
  multicast_token_remove(token);
  multicast_broadcaster_unregister(common_broadcaster, "name", d);
  if (random_from(state) % 8 == 0) CHECK(multicast_remove_all(common) >= 0);
}

static void begin_common(void) {
  common = multicast_create();
  common_lifetime = multicast_lifetime_create();
  common_queue = queue_with(64, MULTICAST_OVERFLOW_DROP_OLDEST);
  common_worked = queue_with(64, MULTICAST_OVERFLOW_REFUSE);
  common_broadcaster = multicast_broadcaster_create(NULL);
  CHECK(multicast_queue_fd(common_queue) >= 0);
  CHECK_OK(multicast_queue_start(common_worked));
}

static void end_common(void) {
  CHECK_OK(multicast_lifetime_end(common_lifetime));
  CHECK_OK(multicast_queue_destroy(common_queue));
  CHECK_OK(multicast_queue_destroy(common_worked));
  CHECK_OK(multicast_broadcaster_destroy(common_broadcaster));
  CHECK_OK(multicast_destroy(common));
}

static void *be_busy(void *number) {
  uint64_t state = seed + (uint64_t)(intptr_t)number * 7919u;
  while (!LOAD(is_over)) {
    const function *f = &functions[random_from(&state) % (uint64_t)function_count];
    world w;
    world_begin(&w);
    CHECK_EQ(f->call(&w), 0);
    unmake_all(&w);
    world_end(&w);
    use_what_is_common(&state);
  }
  return NULL;
}

/* ---- The children of the busy parent --------------------------------------------------------- */

static bool is_child;

static void use_at_exit(void) {
  if (!is_child) return;
  use_every_function();
  end_common();
}

static void be_a_child(void) {
  uint64_t state = seed;
  is_child = true;
  use_what_is_common(&state);
  CHECK_OK(multicast_queue_start(common_worked)); /* the parent's worker does not exist here */
  use_every_function();
  exit(0);
}

TEST(forks_at_random_moments_have_children_that_do_everything) {
  pthread_t threads[THREADS];
  int end;
  choose_seed("forks_at_random_moments_have_children_that_do_everything");
  uint64_t state = seed;
  begin_common();
  CHECK_EQ(atexit(use_at_exit), 0);
  for (int i = 0; i < THREADS; ++i) threads[i] = start_thread(be_busy, (void *)(intptr_t)i);
  for (int i = 0; i < FORKS; ++i) {
    struct timespec moment = {0, 0};
    moment.tv_nsec = (long)(random_from(&state) % 3000000);
    nanosleep(&moment, NULL);
    pid_t child = begin_child();
    if (child == 0) be_a_child();
    end = end_of_child(child);
    if (end != 0) fprintf(stderr, "in the child of fork %d\n", i);
    CHECK_EQ(end, 0);
  }
  STORE(is_over, true);
  for (int i = 0; i < THREADS; ++i) join_thread(threads[i]);
  end_common();
  CHECK_EQ(common_releases, common_adds);
  CHECK(common_adds > FORKS); /* the threads were busy */
}
