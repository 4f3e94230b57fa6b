/* Allocations fail at random, one or several in a row, during all kinds of operations. At the end,
 * everything has been released exactly once, and the library uses no more memory than before. */

#include "functions.h"

/* Of every 256 allocations, approximately this many fail. */
static int failing;
static const int rates[] = {4, 32, 100, 200};

static void *allocate_sometimes(void *context, size_t size, size_t alignment) {
  size_t *block = NULL;
  if (LOAD(failing) > 0 && fail_after != -1 && (int)draw(256) < LOAD(failing)) {
    STORE(has_failed, true);
    return NULL;
  }
  if (alignment < 16) alignment = 16;
  if (posix_memalign((void **)&block, alignment, size) != 0) abort();
  memset(block, 0xA5, size);
  ADD(allocated_bytes, (int64_t)size);
  ADD(allocated_blocks, 1);
  return block;
}

static void deallocate(void *context, void *block, size_t size, size_t alignment) {
  memset(block, 0x5A, size);
  ADD(allocated_bytes, -(int64_t)size);
  ADD(allocated_blocks, -1);
  free(block);
}

static void use_allocator_that_fails(void) {
  multicast_allocator allocator = multicast_allocator_default();
  allocator.allocate = allocate_sometimes;
  allocator.deallocate = deallocate;
  CHECK_OK(multicast_set_allocator(&allocator));
}

/* ---- One thread: each function succeeds, or changes nothing ---------------------------------- */

enum { OPERATIONS = 400 };

/* Calls functions in an order that depends only on the seed. The allocations that fail differ from
 * run to run. */
static void operate(uint64_t seed) {
  for (int i = 0; i < OPERATIONS; ++i) {
    uint64_t order = (seed << 32 | (uint64_t)i) * UINT64_C(0x9E3779B97F4A7C15);
    const function *f = &functions[(order >> 40) % (uint64_t)function_count];
    world_state before;
    world w;
    int64_t result;
    world_begin(&w);
    for (int round = 0; round < 2; ++round) {
      before = world_look(&w);
      STORE(failing, rates[draw(4)]);
      fail_after = 0;
      has_failed = false;
      result = f->call(&w);
      fail_after = -1;
      STORE(failing, 0);
      if (result == 0) continue;
      CHECK_ERROR(result, OUT_OF_MEMORY);
      CHECK(has_failed && f->memory != TAKES_NONE);
      world_expect(&w, &before);
    }
    unmake_all(&w);
    world_end(&w);
  }
}

TEST(random_failures_of_allocations_keep_no_memory) {
  enum { SEEDS = 20 };
  int64_t bytes = 0;
  use_allocator_that_fails();
  seed_of_draw = 1;
  for (int sweep = 0; sweep < 2 || bytes != allocated_bytes; ++sweep) {
    CHECK(sweep < 8);
    bytes = allocated_bytes;
    for (uint64_t seed = 1; seed <= SEEDS; ++seed) operate(seed);
  }
}

/* ---- Several threads that change each other's objects ---------------------------------------- */

enum { THREADS = 3, PLACES = 8, STEPS = 1500 };

static struct places {
  uint64_t multicasts[PLACES], tokens[PLACES], queues[PLACES], lifetimes[PLACES];
  multicast_broadcaster names;
} all;
static int owed, released, payloads_owed, payloads_released;

static uint64_t swap(uint64_t *place, uint64_t id) {
  return __atomic_exchange_n(place, id, __ATOMIC_SEQ_CST);
}
static uint64_t any(uint64_t *places) { return LOAD(places[draw(PLACES)]); }

static void be_called(void *context, uint32_t event, const void *bytes, size_t size) {
  if (event % 8 == 0) CHECK_STATUS(multicast_token_remove(multicast_token_current()), 1);
}
static void release_payload(const void *bytes, size_t size) {
  ADD(payloads_released, 1);
}

static void check_result(int64_t result) {
  if (result >= 0 || result == MULTICAST_ERROR_OUT_OF_MEMORY ||
      result == MULTICAST_ERROR_INVALID_HANDLE || result == MULTICAST_ERROR_STATE ||
      result == MULTICAST_ERROR_NOT_FOUND)
    return;
  CHECK_ERROR(result, OUT_OF_MEMORY);
}

static void create_one(uint32_t kind) {
  uint64_t *places, id;
  multicast_queue_options options = multicast_queue_options_default();
  options.capacity = 1 + draw(8);
  options.overflow = draw(2) == 0 ? MULTICAST_OVERFLOW_REFUSE : MULTICAST_OVERFLOW_DROP_OLDEST;
  if (kind == 0) {
    id = multicast_create().id, places = all.multicasts;
  } else if (kind == 1) {
    id = multicast_lifetime_create().id, places = all.lifetimes;
  } else {
    id = multicast_queue_create(&options).id, places = all.queues;
  }
  if (id == 0) CHECK_ERROR(multicast_create_error(), OUT_OF_MEMORY);
  uint64_t old = swap(&places[draw(PLACES)], id);
  if (old == 0) return;
  if (kind == 0) check_result(multicast_destroy((multicast){old}));
  if (kind == 1) check_result(multicast_lifetime_end((multicast_lifetime){old}));
  if (kind == 2) check_result(multicast_queue_destroy((multicast_queue){old}));
}

static void add_one(void) {
  multicast_add_options options = ADD_OPTIONS(.release = count_release);
  multicast_delegate d = {be_called, &released};
  multicast_token token = {0};
  char name[32];
  if (draw(2) == 0) options.lifetime.id = any(all.lifetimes);
  if (draw(2) == 0) options.queue.id = any(all.queues);
  if (draw(4) == 0) options.label = "of a thread";
  if (draw(4) == 0) options.priority = (int32_t)draw(3);
  ADD(owed, 1);
  if (draw(4) == 0) {
    snprintf(name, sizeof name, "a name of some length %u", draw(40));
    check_result(multicast_broadcaster_register(all.names, name, d, &options, &token));
  } else {
    check_result(multicast_add((multicast){any(all.multicasts)}, d, &options, &token));
  }
  if (token.id != 0) swap(&all.tokens[draw(PLACES)], token.id);
}

static void invoke_one(void) {
  static const char bytes[200];
  char name[32];
  snprintf(name, sizeof name, "a name of some length %u", draw(40));
  multicast_invocation how = INVOCATION(.event = draw(64), .payload = bytes,
                                        .size = draw(sizeof bytes));
  if (draw(3) > 0) {
    check_result(multicast_invoke((multicast){any(all.multicasts)}, how.event, bytes, how.size));
    check_result(multicast_broadcaster_notify(all.names, name, how.event, bytes, how.size));
    return;
  }
  how.release = release_payload;
  ADD(payloads_owed, 1);
  check_result(multicast_invoke_with((multicast){any(all.multicasts)}, &how, NULL));
}

static void operate_once(void) {
  multicast_queue q = {any(all.queues)};
  switch (draw(12)) {
    case 0: create_one(draw(3)); break;
    case 1: check_result(multicast_token_remove((multicast_token){any(all.tokens)})); break;
    case 2: check_result(multicast_remove_all((multicast){any(all.multicasts)})); break;
    case 3: check_result(multicast_queue_run(q, 4)); break;
    case 4: check_result(draw(2) == 0 ? multicast_queue_start(q) : multicast_queue_stop(q)); break;
    case 5: check_result(draw(50) == 0 ? multicast_trim() : multicast_queue_clear(q)); break;
    case 6:
    case 7:
    case 8: add_one(); break;
    default: invoke_one();
  }
}

static void *operate_often(void *seed) {
  seed_of_draw = (uint64_t)(uintptr_t)seed;
  for (int i = 0; i < STEPS; ++i) operate_once();
  return NULL;
}

static void run_round(uint64_t round) {
  pthread_t threads[THREADS];
  all.names = multicast_broadcaster_create(NULL);
  CHECK(all.names.id != 0);
  fail_after = 0;
  STORE(failing, rates[round % 4]);
  for (uint64_t i = 0; i < THREADS; ++i)
    threads[i] = start_thread(operate_often, (void *)(uintptr_t)(round * THREADS + i + 1));
  for (uint64_t i = 0; i < THREADS; ++i) join_thread(threads[i]);
  STORE(failing, 0);
  CHECK_OK(multicast_broadcaster_destroy(all.names));
  for (uint64_t i = 0; i < PLACES; ++i) {
    multicast m = {swap(&all.multicasts[i], 0)};
    multicast_lifetime l = {swap(&all.lifetimes[i], 0)};
    multicast_queue q = {swap(&all.queues[i], 0)};
    if (q.id != 0) CHECK_OK(multicast_queue_destroy(q));
    if (m.id != 0) CHECK_OK(multicast_destroy(m));
    if (l.id != 0) CHECK_OK(multicast_lifetime_end(l));
  }
  /* Some workers may still be ending, and may not yet have released their last objects. */
  EVENTUALLY(LOAD(released) == LOAD(owed));
  EVENTUALLY(LOAD(payloads_released) == LOAD(payloads_owed));
}

/* During the first rounds, the library allocates the memory that it keeps for reuse. The thousands
 * of allocations in later rounds must not add to this memory. */
TEST(random_failures_on_several_threads_keep_no_memory) {
  enum { SETTLED = 16, ROUNDS = 48 };
  int64_t blocks = 0;
  use_allocator_that_fails();
  for (uint64_t round = 0; round < ROUNDS; ++round) {
    run_round(round);
    if (round == SETTLED) blocks = allocated_blocks;
  }
  printf("%d registrations, %d payloads; %lld blocks, then %lld\n", owed, payloads_owed,
         (long long)blocks, (long long)allocated_blocks);
  CHECK(allocated_blocks < blocks + 16);
}
