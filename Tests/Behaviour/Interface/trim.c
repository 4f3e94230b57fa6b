/* multicast_trim() makes vacant slots available to all multicasts and returns the pages of these
 * slots to the system. Even after trimming, no handle is issued a second time. */

#include <unistd.h>

#include "process.h"

enum { MANY = 12 * 1024, SLOT = 64 /* bytes of a multicast's slot */ };

static multicast multicasts[MANY];
static multicast_token tokens[MANY];
static multicast_lifetime lifetimes[MANY];

static void make_many(void) {
  for (int i = 0; i < MANY; ++i) {
    CHECK((multicasts[i] = multicast_create()).id != 0);
    tokens[i] = add(multicasts[i], counter(&calls));
    CHECK((lifetimes[i] = multicast_lifetime_create()).id != 0);
  }
}

static void end_many(void) {
  for (int i = 0; i < MANY; ++i) {
    CHECK_OK(multicast_destroy(multicasts[i]));
    CHECK_OK(multicast_lifetime_end(lifetimes[i]));
  }
}

static void check_stale(const multicast *m, const multicast_token *t, const multicast_lifetime *l) {
  multicast_registration known = MULTICAST_REGISTRATION_INIT;
  for (int i = 0; i < MANY; ++i) {
    CHECK(!multicast_is_valid(m[i]) && !multicast_token_is_valid(t[i]));
    CHECK(!multicast_lifetime_is_valid(l[i]));
    CHECK_ERROR(multicast_invoke(m[i], 0, NULL, 0), INVALID_HANDLE);
    CHECK_ERROR(multicast_destroy(m[i]), INVALID_HANDLE);
    CHECK_ERROR(multicast_token_remove(t[i]), INVALID_HANDLE);
    CHECK_ERROR(multicast_token_pause(t[i]), INVALID_HANDLE);
    CHECK_ERROR(multicast_token_get_registration(t[i], &known), INVALID_HANDLE);
    CHECK_ERROR(multicast_token_invoke(t[i], 0, NULL, 0), INVALID_HANDLE);
    CHECK_ERROR(multicast_lifetime_end(l[i]), INVALID_HANDLE);
  }
}

/* POSIX has no function that returns only some pages of a block to the system. */
static bool trims(void) { return is_posix() ? multicast_trim() == 0 : multicast_trim() > 0; }

TEST(trim_gives_back_the_slots_of_what_is_gone) {
  needs_linux("pages of a block that go back");
  make_many();
  CHECK(multicast_trim() >= 0);
  CHECK_EQ(multicast_trim(), 0); /* there is nothing left to trim */
  end_many();
  int64_t bytes = multicast_trim();
  CHECK(bytes > MANY * SLOT / 2);
  CHECK_EQ(multicast_trim(), 0);
  make_many();
  end_many();
  CHECK(multicast_trim() > bytes / 2); /* the slots have been used again */
}

TEST(trim_leaves_stale_handles_stale) {
  static multicast old_multicasts[MANY];
  static multicast_token old_tokens[MANY];
  static multicast_lifetime old_lifetimes[MANY];
  for (int round = 0; round < 3; ++round) {
    make_many();
    memcpy(old_multicasts, multicasts, sizeof multicasts);
    memcpy(old_tokens, tokens, sizeof tokens);
    memcpy(old_lifetimes, lifetimes, sizeof lifetimes);
    end_many();
    CHECK(trims());
    check_stale(old_multicasts, old_tokens, old_lifetimes);
    make_many();
    check_stale(old_multicasts, old_tokens, old_lifetimes);
    end_many();
  }
}

TEST(trim_changes_nothing_that_is_there) {
  make_many();
  for (int i = 0; i < MANY; ++i) {
    if (i % 5000 == 0) continue;
    CHECK_OK(multicast_destroy(multicasts[i]));
  }
  CHECK(trims());
  for (int i = 0; i < MANY; i += 5000) {
    CHECK_EQ(multicast_invoke(multicasts[i], 0, NULL, 0), 1);
    CHECK_OK(multicast_token_pause(tokens[i]));
    CHECK_EQ(multicast_invoke(multicasts[i], 0, NULL, 0), 0);
    CHECK_OK(multicast_token_remove(tokens[i]));
    CHECK_OK(multicast_destroy(multicasts[i]));
  }
}

static void trim_inside(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK_OK(multicast_destroy(multicasts[MANY - 1]) == MULTICAST_PENDING ? MULTICAST_OK : -1);
  CHECK(trims());
  CHECK(multicast_create().id != 0);
}

/* The destroyed multicast's slot must not be trimmed while an invocation is still using it. */
TEST(trim_inside_a_call_of_what_was_destroyed) {
  for (int i = 0; i < 3; ++i) {
    make_many();
    add(multicasts[MANY - 1], (multicast_delegate){trim_inside, NULL});
    add(multicasts[MANY - 1], counter(&calls));
    for (int k = 0; k < MANY - 1; ++k) CHECK_OK(multicast_destroy(multicasts[k]));
    CHECK_EQ(multicast_invoke(multicasts[MANY - 1], 0, NULL, 0), 2);
    CHECK(!multicast_is_valid(multicasts[MANY - 1]));
    CHECK(multicast_trim() >= 0);
  }
}

static void go_on_in_child(void *unused) {
  make_many();
  end_many();
  CHECK(trims());
}

TEST(trim_before_and_after_a_fork) {
  static multicast old_multicasts[MANY];
  make_many();
  memcpy(old_multicasts, multicasts, sizeof multicasts);
  end_many();
  CHECK(trims());
  in_child(go_on_in_child, NULL);
  go_on_in_child(NULL);
  for (int i = 0; i < MANY; ++i) CHECK(!multicast_is_valid(old_multicasts[i]));
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { AT_ONCE = 400, RECORD = sizeof(void *) == 8 ? 10496 : 8192 };

static multicast common;
static gate let_go;
static int entered;

THREAD(invoke_and_stay, void *unused) {
  CHECK_EQ(multicast_invoke(common, 0, NULL, 0), 1);
  ADD(entered, 1);
  gate_wait(&let_go);
  CHECK_EQ(multicast_invoke(common, 0, NULL, 0), 1);
}

static void burst_of_threads(int *count) {
  pthread_t threads[AT_ONCE];
  let_go = (gate)GATE_INIT;
  STORE(entered, 0);
  for (int i = 0; i < AT_ONCE; ++i) threads[i] = start_thread(invoke_and_stay, NULL);
  EVENTUALLY(LOAD(entered) == AT_ONCE);
  CHECK(multicast_trim() >= 0); /* records in use stay */
  gate_open(&let_go);
  for (int i = 0; i < AT_ONCE; ++i) join_thread(threads[i]);
  CHECK_EQ(LOAD(*count), 2 * AT_ONCE);
  STORE(*count, 0);
}

TEST(trim_gives_back_what_ended_threads_used) {
  needs_linux("pages of a block that go back");
  int count = 0;
  common = multicast_create();
  multicast_token token = add(common, counter(&count));
  for (int round = 0; round < 3; ++round) {
    burst_of_threads(&count);
    CHECK(multicast_trim() >= (int64_t)(AT_ONCE - 128) * RECORD);
    CHECK_EQ(multicast_trim(), 0);
    CHECK_OK(multicast_token_pause(token)); /* pausing reads the thread records */
    CHECK_OK(multicast_token_resume(token));
  }
  CHECK_OK(multicast_token_remove(token));
}

static void burst_in_child(void *count) {
#ifndef IS_WITHOUT_THREADS_IN_CHILDREN
  burst_of_threads(count);
#endif
  CHECK(multicast_trim() >= 0);
  CHECK_EQ(multicast_invoke(common, 0, NULL, 0), 1);
}

TEST(trim_of_threads_before_a_fork) {
  static int count;
  common = multicast_create();
  add(common, counter(&count));
  burst_of_threads(&count);
  CHECK(trims());
  in_child(burst_in_child, &count);
  burst_of_threads(&count);
}

/* ---- Between multicasts ---------------------------------------------------------------------- */

static void fill_and_empty(multicast m, int count) {
  static multicast_delegate delegates[4096];
  for (int i = 0; i < 4096; ++i) delegates[i] = counter(&calls);
  for (int i = 0; i < count; i += 4096) {
    CHECK_OK(multicast_add_many(m, delegates, 4096, NULL, NULL));
  }
  CHECK_EQ(multicast_remove_all(m), count);
}

/* If the caller has set an allocator, trimming returns no memory to the system, but other
 * multicasts can use the slots. */
TEST(trim_lets_other_multicasts_have_the_slots) {
  use_test_allocator();
  multicast a = multicast_create();
  multicast b = multicast_create(); /* in another stripe than the first multicast */
  fill_and_empty(a, 32 * 4096);
  int64_t bytes = allocated_bytes;
  CHECK(bytes > INT64_C(32) * 4096 * 32);
  CHECK_EQ(multicast_trim(), 0);
  CHECK_EQ(allocated_bytes, bytes);
  fill_and_empty(b, 32 * 4096);
  CHECK(allocated_bytes < bytes + bytes / 8);
}

/* If a very large number of slots are vacant, an add collects them without a call to
 * multicast_trim(). */
TEST(slots_of_registrations_go_to_other_multicasts_by_themselves) {
  enum { COUNT = 208 * 1024, STRIPES = 32 };
  use_test_allocator();
  for (int i = 0; i < STRIPES; ++i) {
    multicast m = multicast_create();
    fill_and_empty(m, COUNT);
  }
  CHECK(allocated_bytes < INT64_C(4) * STRIPES * COUNT / 5 * 32);
}

/* ---- The system ------------------------------------------------------------------------------ */

static int64_t resident_bytes(void) {
  needs_kernel("the number of resident pages");
  long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%ld %ld", &pages, &resident) == 2);
  fclose(file);
  return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

/* With other allocators, free() may retain memory, so only the slots' memory returns to the system.
 * QEMU does not return the heap of an armv7 program to the system. */
#if defined(__GLIBC__) && !defined(__arm__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
enum { GOES_BACK = 1 };
#else
enum { GOES_BACK = 0 };
#endif

THREAD(stay, void *unused) {
  ADD(entered, 1);
  gate_wait(&let_go);
}

/* On other processors, the tests run in an emulator, and the measurement would include the memory
 * that the emulator itself uses for threads. */
#if defined(__x86_64__)
enum { IS_MEASURED = GOES_BACK };
#else
enum { IS_MEASURED = 0 };
#endif

/* libc keeps some memory of threads that have ended. The first burst of threads, which does not use
 * the library, makes libc allocate this memory before the measurement. */
TEST(trim_leaves_of_ended_threads_what_libc_keeps) {
  needs_linux("pages of a block that go back");
  enum { COUNT = IS_MEASURED ? 1000 : 100, CONSTANT = 2 << 20, TOUCHED = 4096 };
  static pthread_t threads[COUNT];
  int64_t before = 0, peak = 0;
  int count = 0;
  common = multicast_create();
  add(common, counter(&count));
  for (int round = 0; round < 2; ++round) {
    let_go = (gate)GATE_INIT;
    STORE(entered, 0);
    for (int i = 0; i < COUNT; ++i)
      threads[i] = start_thread(round == 0 ? stay : invoke_and_stay, NULL);
    EVENTUALLY(LOAD(entered) == COUNT);
    peak = resident_bytes() - peak;
    gate_open(&let_go);
    for (int i = 0; i < COUNT; ++i) join_thread(threads[i]);
    CHECK(multicast_trim() >= 0);
    if (round == 0) before = resident_bytes();
  }
  if (!IS_MEASURED) return;
  /* at its peak, the second burst used at least this much more memory than the first */
  CHECK(peak > (int64_t)COUNT * TOUCHED);
  CHECK(resident_bytes() < before + CONSTANT);
}

TEST(trim_returns_the_process_to_the_size_before_a_burst) {
  needs_linux("pages of a block that go back");
  enum { BURST = 200000, CONSTANT = 4 << 20 };
  multicast *all = malloc(BURST * sizeof *all);
  multicast_broadcaster names = multicast_broadcaster_create(NULL);
  int64_t before, peak, slots = (int64_t)BURST * 2 * (SLOT + 32);
  char name[32];
  CHECK(all != NULL);
  memset(all, 0, BURST * sizeof *all);
  before = resident_bytes();
  for (int i = 0; i < BURST; ++i) {
    CHECK((all[i] = multicast_create()).id != 0);
    add(all[i], counter(&calls));
    snprintf(name, sizeof name, "name %d", i);
    CHECK_OK(multicast_broadcaster_register(names, name, counter(&calls), NULL, NULL));
  }
  peak = resident_bytes();
  CHECK(peak - before > slots);
  for (int i = 0; i < BURST; ++i) CHECK_OK(multicast_destroy(all[i]));
  CHECK_OK(multicast_broadcaster_destroy(names));
  CHECK(multicast_trim() > slots / 10 * 9);
  if (GOES_BACK) CHECK(resident_bytes() < before + before / 10 + CONSTANT);
  free(all);
}
