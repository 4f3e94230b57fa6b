/* With the option `payload_size`, a queue allocates the memory for payloads when it is created. */

#include "allocators.h"
#include "queues.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 256, CALLS = 4, MORE = 8 };

static int allocations, blocks;
static bool fails;
static unsigned char payload[4096];

static void *count_allocation(void *context, size_t size, size_t alignment) {
  if (LOAD(fails)) return NULL;
  ADD(allocations, 1);
  ADD(blocks, 1);
  return allocate_aligned(size, alignment);
}

static void deallocate(void *context, void *block, size_t size, size_t alignment) {
  ADD(blocks, -1);
  free(block);
}

static void count_memory(void) {
  multicast_allocator allocator = MULTICAST_ALLOCATOR_INIT;
  allocator.allocate = count_allocation;
  allocator.deallocate = deallocate;
  CHECK_OK(multicast_set_allocator(&allocator));
}

/* The function of a delegate whose context is the expected payload size. */
static void look(void *context, uint32_t event, const void *given, size_t size) {
  const unsigned char *bytes = given;
  CHECK_EQ(size, *(size_t *)context);
  CHECK_EQ((uintptr_t)bytes % 16, 0);
  for (size_t i = 0; i < size; ++i) CHECK_EQ(bytes[i], (unsigned char)(event + i));
  ADD(calls, 1);
}

static multicast_delegate looking(size_t *size) {
  return DELEGATE(look, size);
}

static int64_t invoke(multicast m, uint32_t event, size_t size) {
  for (size_t i = 0; i < size; ++i) payload[i] = (unsigned char)(event + i);
  return multicast_invoke(m, event, payload, size);
}

static multicast_queue reserving(size_t size) {
  return multicast_queue_create(&QUEUE_OPTIONS(.capacity = CALLS, .payload_size = size));
}

/* A queue, and a multicast with a delegate in it. The queue and the multicast have been used, so
 * that all one-time allocations have been made. */
typedef struct setting {
  multicast m;
  multicast_queue q;
  multicast_token token;
  size_t size;
} setting;

static void set_up(setting *s, size_t reserved) {
  s->q = reserving(reserved);
  s->m = multicast_create();
  s->size = 8;
  s->token = add_queued(s->m, looking(&s->size), s->q);
  CHECK_EQ(invoke(s->m, 1, s->size), 1);
  CHECK_EQ(multicast_queue_run(s->q, 0), 1);
  calls = 0;
  s->size = SIZE;
}

/* ---- The option ------------------------------------------------------------------------------ */

TEST(queue_payload_size_beyond_2_to_the_24_is_invalid_argument) {
  static const size_t wrong[] = {((size_t)1 << 24) + 1, ABOVE_32_BITS(0), SIZE_MAX / 2 + 1,
                                 SIZE_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    CHECK_EQ(reserving(wrong[i]).id, 0);
    CHECK_ERROR(multicast_create_error(), INVALID_ARGUMENT);
  }
  CHECK_OK(multicast_queue_destroy(reserving((size_t)1 << 24)));
}

TEST(queue_payload_size_up_to_32_takes_no_memory) {
  count_memory();
  CHECK_OK(multicast_queue_destroy(reserving(0)));
  int before = allocations;
  CHECK_OK(multicast_queue_destroy(reserving(0)));
  CHECK_EQ(allocations - before, 1);
  CHECK_OK(multicast_queue_destroy(reserving(32)));
  CHECK_EQ(allocations - before, 2);
  CHECK_OK(multicast_queue_destroy(reserving(33)));
  CHECK_EQ(allocations - before, 4);
}

static void *largest;
static size_t largest_size;

static void *note_largest(void *context, size_t size, size_t alignment) {
  void *block = allocate_aligned(size, alignment);
  if (size > largest_size) largest = block, largest_size = size;
  return block;
}

TEST(queue_payload_memory_is_there_from_the_beginning) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
#ifdef __APPLE__
  char residence[1000];
#else
  unsigned char residence[1000];
#endif
  multicast_allocator allocator = MULTICAST_ALLOCATOR_INIT;
  allocator.allocate = note_largest;
  allocator.deallocate = deallocate;
  CHECK_OK(multicast_set_allocator(&allocator));
  CHECK(reserving(16 * page).id != 0);
  CHECK(largest_size >= 16 * page * CALLS && largest_size < sizeof residence * page);
  const uintptr_t begin = ((uintptr_t)largest + page - 1) / page * page;
  const size_t count = ((uintptr_t)largest + largest_size - begin) / page;
  CHECK_EQ(mincore((void *)begin, count * page, residence), 0);
  for (size_t i = 0; i < count; ++i) CHECK_EQ(residence[i] & 1, 1);
}

/* ---- Allocations ----------------------------------------------------------------------------- */

static setting *begin(void) {
  static setting s;
  count_memory();
  set_up(&s, SIZE);
  return &s;
}

#define TEST_OF_SETTING(NAME) TEST_OF(NAME, (setting *s), (begin()))

TEST_OF_SETTING(queue_payloads_in_the_reserve_take_no_allocation) {
  int before = allocations;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < CALLS; ++i) CHECK_EQ(invoke(s->m, (uint32_t)(round + i), SIZE), 1);
    CHECK_EQ(multicast_queue_run(s->q, 0), CALLS);
  }
  s->size = 33;
  CHECK_EQ(invoke(s->m, 5, 33), 1);
  CHECK_EQ(multicast_queue_run(s->q, 0), 1);
  CHECK_EQ(allocations - before, 0);
  CHECK_EQ(calls, 100 * CALLS + 1);
}

TEST_OF_SETTING(queue_payloads_with_options_are_in_the_reserve) {
  CHECK_EQ(invoke(s->m, 0, SIZE), 1); /* now the payload has been written */
  int before = allocations;
  CHECK_EQ(multicast_invoke_with(s->m, &INVOCATION(.payload = payload, .size = SIZE), NULL), 1);
  CHECK_EQ(multicast_queue_run(s->q, 0), 2);
  CHECK_EQ(allocations - before, 0);
}

TEST_OF_SETTING(queue_payloads_that_are_larger_take_an_allocation) {
  int before = allocations;
  s->size = SIZE + 1;
  CHECK_EQ(invoke(s->m, 7, SIZE + 1), 1);
  CHECK_EQ(allocations - before, 1);
  STORE(fails, true);
  CHECK_EQ(invoke(s->m, 7, SIZE + 1), 0); /* the call is refused */
  CHECK_EQ(multicast_queue_run(s->q, 0), 1);
}

/* Each call queues the next call while it is still running and using its own payload, until all
 * memory of the reserve is in use. */
static setting *nested;
static int depth, in_memory;

static void queue_deeper(void *context, uint32_t event, const void *given, size_t size) {
  int before = allocations;
  if (event == (uint32_t)*(int *)context) return;
  CHECK_EQ(multicast_invoke(nested->m, event + 1, payload, size), 1);
  if (allocations != before) ++in_memory;
  ++depth;
  CHECK_EQ(multicast_queue_run(nested->q, 1), 1);
}

static int allocations_for_nested(int levels) {
  static setting s;
  set_up(&s, SIZE);
  CHECK_OK(multicast_token_remove(s.token));
  add_queued(s.m, DELEGATE(queue_deeper, &levels), s.q);
  nested = &s;
  depth = in_memory = 0;
  CHECK_EQ(multicast_invoke(s.m, 1, payload, SIZE), 1);
  CHECK_EQ(multicast_queue_run(s.q, 1), 1);
  CHECK_EQ(depth, levels - 1);
  CHECK_OK(multicast_queue_destroy(s.q));
  CHECK_OK(multicast_destroy(s.m));
  return in_memory;
}

TEST(queue_reserve_is_for_its_capacity_and_8_more) {
  count_memory();
  CHECK_EQ(allocations_for_nested(CALLS + MORE), 0);
  CHECK_EQ(allocations_for_nested(CALLS + MORE + 3), 3);
}

/* ---- Several queues, one of which is destroyed ----------------------------------------------- */

TEST_OF_SETTING(queue_payload_is_in_the_reserve_of_the_first_queue) {
  multicast_queue plain = reserving(0);
  add_queued(s->m, looking(&s->size), plain);
  CHECK_EQ(invoke(s->m, 1, SIZE), 2);
  CHECK_EQ(multicast_queue_run(plain, 0), 1);
  int before = allocations;
  CHECK_EQ(invoke(s->m, 1, SIZE), 2);
  CHECK_EQ(allocations - before, 0);
}

/* The payload is stored in the first queue's reserve. When that queue is destroyed, another queue
 * still holds a call with this payload. */
TEST_OF_SETTING(queue_payload_outlives_the_queue_of_its_reserve) {
  multicast_queue second = reserving(0);
  add_queued(s->m, looking(&s->size), second);
  CHECK_EQ(invoke(s->m, 9, SIZE), 2);
  int before = blocks;
  CHECK_OK(multicast_queue_destroy(s->q));
  CHECK_EQ(before - blocks, 2); /* frees the ring and the details of the registration */
  multicast_queue third = reserving(SIZE); /* may reuse the slot */
  CHECK_EQ(multicast_queue_run(second, 0), 1);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_queue_destroy(second));
  CHECK_OK(multicast_queue_destroy(third));
}

TEST(queue_reserve_is_given_back_with_the_queue) {
  setting s;
  int before = 0;
  count_memory();
  for (int round = 0; round < 5; ++round) {
    set_up(&s, SIZE);
    CHECK_EQ(invoke(s.m, 1, SIZE), 1);
    CHECK_EQ(invoke(s.m, 1, SIZE), 1);
    CHECK_EQ(multicast_queue_run(s.q, 1), 1);
    CHECK_OK(multicast_queue_destroy(s.q));
    CHECK_OK(multicast_destroy(s.m));
    if (round > 0) CHECK_EQ(blocks, before);
    before = blocks;
  }
}

static void destroy_own_queue(void *context, uint32_t event, const void *given, size_t size) {
  setting *s = context;
  CHECK_STATUS(multicast_queue_destroy(s->q), MULTICAST_PENDING);
  CHECK_EQ(memcmp(given, payload, size), 0); /* the payload is unchanged */
  ++calls;
}

TEST_OF_SETTING(queue_payload_outlives_a_queue_that_its_call_destroys) {
  CHECK_OK(multicast_token_remove(s->token));
  int before = blocks;
  add_queued(s->m, DELEGATE(destroy_own_queue, s), s->q);
  CHECK_EQ(invoke(s->m, 3, SIZE), 1);
  CHECK_EQ(multicast_queue_run(s->q, 0), 1);
  CHECK_EQ(calls, 1);
  CHECK_EQ(before - blocks, 2); /* frees the ring and the reserve */
}

/* ---- Threads, fork --------------------------------------------------------------------------- */

enum { THREADS = 3, ROUNDS = 3000 };

THREAD(invoke_many_times, void *argument) {
  static __thread unsigned char own[SIZE];
  setting *s = argument;
  for (int i = 0; i < ROUNDS; ++i) {
    for (int j = 0; j < SIZE; ++j) own[j] = (unsigned char)(i + j);
    CHECK(multicast_invoke(s->m, (uint32_t)i, own, SIZE) >= 0);
  }
}

TEST(queue_reserve_is_used_by_threads_at_once) {
  static setting s;
  pthread_t threads[THREADS];
  multicast_queue_stats stats = MULTICAST_QUEUE_STATS_INIT;
  set_up(&s, SIZE);
  CHECK_OK(multicast_queue_start(s.q));
  for (int i = 0; i < THREADS; ++i) threads[i] = start_thread(invoke_many_times, &s);
  for (int i = 0; i < THREADS; ++i) join_thread(threads[i]);
  CHECK_OK(multicast_queue_stop(s.q));
  CHECK_OK(multicast_queue_get_stats(s.q, &stats));
  CHECK_EQ(stats.queued + stats.refused, THREADS * ROUNDS + 1);
  CHECK_OK(multicast_queue_destroy(s.q));
}

TEST_OF_SETTING(queue_reserve_is_whole_in_the_child_of_a_fork) {
  int before, status = -1;
  for (int i = 0; i < CALLS; ++i) CHECK_EQ(invoke(s->m, 1, SIZE), 1);
  before = allocations;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) { /* the queue was empty in the child */
    for (int i = 0; i < CALLS; ++i) CHECK_EQ(invoke(s->m, 1, SIZE), 1);
    CHECK_EQ(multicast_queue_run(s->q, 0), CALLS);
    CHECK_EQ(allocations - before, 0);
    CHECK_OK(multicast_queue_destroy(s->q));
    _exit(0);
  }
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  CHECK_EQ(multicast_queue_run(s->q, 0), CALLS);
}
