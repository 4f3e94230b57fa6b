/* Tests the maximum numbers of handles, names and queued calls. The tests need gigabytes of memory
 * and are skipped on machines with less. */

#include "../Interface/harness.h"

#include <unistd.h>

/* the maximum number of handles of one kind */
enum { MOST = 1 << 26 , MOST_CALLS = 1 << 24, MOST_NAMES = 14680064 };

/* Returns whether the given number of gigabytes of memory is available. If that much memory is
 * available, extends the time limit of the test. */
static bool there_are(int gigabytes) {
  long kilobytes = 0;
  char line[128];
  FILE *file = fopen("/proc/meminfo", "r");
  if (file == NULL) return false;
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "MemAvailable: %ld kB", &kilobytes) == 1) break;
  }
  fclose(file);
  alarm(500);
  if (kilobytes >> 20 >= gigabytes) return true;
  printf("%ld MB are available, this takes %d GB\n", kilobytes >> 10, gigabytes);
  return false;
}

static int64_t resident_bytes(void) {
  long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%ld %ld", &pages, &resident) == 2);
  fclose(file);
  return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

/* ---- Handles --------------------------------------------------------------------------------- */

typedef struct kind {
  uint64_t (*create)(void);
  multicast_status (*end)(uint64_t id);
  bool (*is_valid)(uint64_t id);
} kind;

static uint64_t create_multicast(void) { return multicast_create().id; }
static multicast_status end_multicast(uint64_t id) { return multicast_destroy((multicast){id}); }
static bool is_multicast(uint64_t id) { return multicast_is_valid((multicast){id}); }
static const kind multicasts = {create_multicast, end_multicast, is_multicast};

static uint64_t create_lifetime(void) { return multicast_lifetime_create().id; }
static multicast_status end_lifetime(uint64_t id) {
  return multicast_lifetime_end((multicast_lifetime){id});
}
static bool is_lifetime(uint64_t id) {
  return multicast_lifetime_is_valid((multicast_lifetime){id});
}
static const kind lifetimes = {create_lifetime, end_lifetime, is_lifetime};

/* The actual maximum is about 1 % lower than MOST, because the first slabs have fewer slots. */
static void expect_about(int count) { CHECK(count > MOST / 100 * 99 && count <= MOST); }

/* Calls multicast_trim(), and expects that no more than 2 % of the slots' memory, plus 4 MB, is
 * still in use. The test itself uses `of_test` bytes for its handles, which do not count. */
static void expect_memory_back(int64_t before, int64_t peak, int64_t of_test) {
  CHECK(multicast_trim() >= 0);
  int64_t left = resident_bytes() - before - of_test;
  printf("%lld MB, then %lld\n", (long long)(peak - before - of_test) >> 20, (long long)left >> 20);
  CHECK(left < (peak - before - of_test) / 50 + (INT64_C(4) << 20));
}

static void create_all(const kind *k) {
  uint64_t *all, id;
  int count = 0, i;
  if (!there_are(8)) return;
  all = malloc((size_t)MOST * sizeof *all);
  CHECK(all != NULL);
  int64_t before = resident_bytes();
  while ((id = k->create()) != 0) all[count++] = id;
  CHECK_ERROR(multicast_create_error(), LIMIT);
  printf("%d handles, ", count);
  int64_t peak = resident_bytes();
  expect_about(count);
  /* Each destroyed object makes room for a new object with a new handle. */
  for (int round = 0; round < 1000; ++round) {
    i = (int)(((int64_t)round * 7919 * 7919) % count);
    id = all[i];
    CHECK_OK(k->end(id));
    all[i] = k->create();
    CHECK(all[i] != 0 && all[i] != id);
    CHECK(!k->is_valid(id) && k->is_valid(all[i]));
    CHECK_EQ(k->create(), 0);
    CHECK_ERROR(k->end(id), INVALID_HANDLE);
  }
  for (i = 0; i < count; ++i) CHECK_OK(k->end(all[i]));
  expect_memory_back(before, peak, (int64_t)count * 8);
  for (i = 0; i < count; i += 997) CHECK(!k->is_valid(all[i]));
  CHECK(k->create() != 0);
  free(all);
}

TEST(limit_of_multicasts_is_a_status_and_room_comes_back) { create_all(&multicasts); }
TEST(limit_of_lifetimes_is_a_status_and_room_comes_back) { create_all(&lifetimes); }

/* Half of the registrations are in one multicast, and the other half are spread over multicasts of
 * all stripes. A stripe is a group of multicasts that share a pool of slots. */
TEST(limit_of_registrations_is_a_status_and_room_comes_back) {
  enum { AT_ONCE = 4096, OTHERS = 64 };
  static multicast_delegate delegates[AT_ONCE];
  static multicast_token tokens[AT_ONCE];
  multicast all[OTHERS + 1];
  multicast_status status;
  multicast_token token, last = {0};
  int calls = 0, count = 0, i, at = 0;
  if (!there_are(12)) return;
  int64_t before = resident_bytes();
  for (i = 0; i < AT_ONCE; ++i) delegates[i] = counter(&calls);
  for (i = 0; i <= OTHERS; ++i) all[i] = multicast_create();
  while ((status = multicast_add_many(all[at], delegates, AT_ONCE, NULL, tokens)) == MULTICAST_OK) {
    count += AT_ONCE;
    if (count >= MOST / 2) at = 1 + count / AT_ONCE % OTHERS;
  }
  CHECK_ERROR(status, LIMIT);
  /* Each stripe still has some vacant slots, which the other multicasts can use. */
  for (i = 1; i <= OTHERS; ++i) {
    while ((status = multicast_add(all[i], delegates[0], NULL, &token)) == MULTICAST_OK) {
      last = token;
      ++count;
    }
  }
  CHECK_ERROR(status, LIMIT);
  printf("%d registrations, ", count);
  int64_t peak = resident_bytes();
  expect_about(count);
  for (i = 0, calls = 0; i <= OTHERS; ++i) calls += (int)multicast_count(all[i]);
  CHECK_EQ(calls, count);
  CHECK_OK(multicast_token_remove(last));
  CHECK_EQ(multicast_invoke(all[2], 0, NULL, 0), multicast_count(all[2]));
  for (i = 0; i <= OTHERS; ++i) CHECK_OK(multicast_destroy(all[i]));
  expect_memory_back(before, peak, 0);
  CHECK(!multicast_token_is_valid(last));
  all[0] = multicast_create();
  CHECK_OK(multicast_add_many(all[0], delegates, AT_ONCE, NULL, tokens));
  CHECK_EQ(multicast_invoke(all[0], 0, NULL, 0), AT_ONCE);
}

/* ---- Names ----------------------------------------------------------------------------------- */

TEST(limit_of_names_is_a_status_and_those_that_are_there_work) {
  int count = 0, calls = 0;
  char name[16];
  if (!there_are(8)) return;
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  int64_t before = resident_bytes();
  for (;; ++count) {
    snprintf(name, sizeof name, "%x", (unsigned)count);
    if (multicast_broadcaster_multicast(b, name).id == 0) break;
  }
  CHECK_ERROR(multicast_create_error(), LIMIT);
  printf("%d names, ", count);
  int64_t peak = resident_bytes();
  CHECK_EQ(count, MOST_NAMES);
  CHECK_ERROR(multicast_broadcaster_register(b, name, counter(&calls), NULL, NULL), LIMIT);
  CHECK_EQ(multicast_broadcaster_notify(b, name, 0, NULL, 0), 0);
  CHECK_OK(multicast_broadcaster_register(b, "7ffff", counter(&calls), NULL, NULL));
  CHECK_EQ(multicast_broadcaster_notify(b, "7ffff", 0, NULL, 0), 1);
  CHECK_OK(multicast_broadcaster_destroy(b));
  expect_memory_back(before, peak, 0);
}

/* ---- Queued calls ---------------------------------------------------------------------------- */

static multicast filled;

THREAD(invoke_once_more, int64_t *result) {
  STORE(*result, multicast_invoke(filled, 1, NULL, 0));
}

static void fill_queue(multicast_overflow overflow) {
  int64_t before, peak, result = -1;
  int calls = 0;
  pthread_t producer;
  if (!there_are(4)) return;
  before = resident_bytes();
  filled = multicast_create();
  multicast_queue q = queue_with(MOST_CALLS, overflow);
  multicast_token token = add_queued(filled, counter(&calls), q);
  for (int64_t i = 0; i < MOST_CALLS; ++i) CHECK_EQ(multicast_invoke(filled, 0, NULL, 0), 1);
  peak = resident_bytes();
  CHECK_EQ(stats_of(q).pending, MOST_CALLS);
  if (overflow == MULTICAST_OVERFLOW_BLOCK) {
    producer = start_thread(invoke_once_more, &result);
    pause_ms(A_WHILE_MS);
    CHECK_EQ(LOAD(result), -1);
    CHECK_EQ(multicast_queue_run(q, 1), 1);
    join_thread(producer);
    CHECK_EQ(LOAD(result), 1);
  } else {
    CHECK_EQ(multicast_invoke(filled, 0, NULL, 0), overflow == MULTICAST_OVERFLOW_REFUSE ? 0 : 1);
    CHECK_EQ(stats_of(q).dropped, overflow == MULTICAST_OVERFLOW_REFUSE ? 0 : 1);
    CHECK_EQ(multicast_queue_run(q, 1), 1);
    CHECK_EQ(multicast_invoke(filled, 0, NULL, 0), 1);
  }
  CHECK_EQ(stats_of(q).pending, MOST_CALLS);
  if (overflow == MULTICAST_OVERFLOW_BLOCK) { /* the removal cancels all calls */
    CHECK_OK(multicast_token_remove(token));
    CHECK_EQ(stats_of(q).pending, 0);
  } else if (overflow == MULTICAST_OVERFLOW_REFUSE) {
    CHECK_EQ(multicast_queue_clear(q), MOST_CALLS);
    CHECK_EQ(multicast_invoke(filled, 0, NULL, 0), 1);
    CHECK_EQ(multicast_queue_run(q, 0), 1);
  }
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_OK(multicast_destroy(filled));
  expect_memory_back(before, peak, 0);
}

TEST(largest_queue_when_full_refuses_and_can_be_cleared) { fill_queue(MULTICAST_OVERFLOW_REFUSE); }
TEST(largest_queue_when_full_drops_and_can_be_destroyed) {
  fill_queue(MULTICAST_OVERFLOW_DROP_OLDEST);
}
TEST(largest_queue_when_full_blocks_and_a_removal_empties_it) {
  fill_queue(MULTICAST_OVERFLOW_BLOCK);
}
