/* Tests the options of a queue, including the name and the stack size of its thread. */

#include "linux.h"
#include "notes.h"
#include "queues.h"

#include <unistd.h>

/* ---- Fields ---------------------------------------------------------------------------------- */

static void expect_taken(const multicast_queue_options *options, bool is_valid) {
  multicast_queue q = multicast_queue_create(options);
  CHECK_EQ(q.id != 0, is_valid);
  CHECK_STATUS(multicast_create_error(),
               is_valid ? MULTICAST_OK : MULTICAST_ERROR_INVALID_ARGUMENT);
  if (is_valid) CHECK_OK(multicast_queue_destroy(q));
}

TEST(queue_options_with_flags_or_reserved_bits_are_invalid) {
  for (int bit = 0; bit < 32; ++bit) {
    multicast_queue_options options = QUEUE_OPTIONS(.capacity = 1);
    expect_taken(&options, true);
    options.flags = UINT32_C(1) << bit;
    expect_taken(&options, false);
    options.flags = 0;
    options.reserved = UINT32_C(1) << bit;
    expect_taken(&options, false);
  }
}

TEST(queue_options_with_another_overflow_are_invalid_argument) {
  static const multicast_overflow wrong[] = {3, 4, 0x10000, 0x101,
                                             0x80000000, UINT32_MAX};
  multicast_queue_options options = MULTICAST_QUEUE_OPTIONS_INIT;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    options.overflow = wrong[i];
    expect_taken(&options, false);
  }
}

TEST(queue_options_with_capacity_over_2_to_24_are_invalid) {
  static const size_t wrong[] = {((size_t)1 << 24) + 1, ABOVE_32_BITS(0), ABOVE_32_BITS(1),
                                 SIZE_MAX / 2 + 1, SIZE_MAX};
  multicast_queue_options options = MULTICAST_QUEUE_OPTIONS_INIT;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    options.capacity = wrong[i];
    expect_taken(&options, false);
  }
}

TEST(queue_options_with_a_stack_below_16_kb_are_invalid_argument) {
  static const size_t wrong[] = {1, 4096, 16383};
  multicast_queue_options options = MULTICAST_QUEUE_OPTIONS_INIT;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    options.stack_size = wrong[i];
    expect_taken(&options, false);
  }
  options.stack_size = stack_of(16384);
  expect_taken(&options, true);
}

/* ---- Capacity -------------------------------------------------------------------------------- */

TEST(queue_of_default_options_holds_1024_calls_and_refuses) {
  multicast_queue_options options = multicast_queue_options_default();
  multicast_queue q = multicast_queue_create(&options), of_null = default_queue();
  multicast m = multicast_create(), other = multicast_create();
  add_queued(m, counter(&calls), q);
  add_queued(other, counter(&calls), of_null);
  for (int i = 0; i < 1030; ++i) {
    CHECK_EQ(invoke_number(m, i), i < 1024);
    CHECK_EQ(invoke_number(other, i), i < 1024);
  }
  CHECK_TEXT(figures(q), "pending 1024, queued 1024, refused 6");
  CHECK_TEXT(figures(of_null), "pending 1024, queued 1024, refused 6");
}

TEST(queue_of_2_to_the_24_calls_works) {
  if (sizeof(void *) < 8) { /* such a queue takes 2 GB */
    CHECK_EQ(multicast_queue_create(&QUEUE_OPTIONS(.capacity = (size_t)1 << 24)).id, 0);
    CHECK_ERROR(multicast_create_error(), OUT_OF_MEMORY);
  }
  const uint32_t most = UINT32_C(1) << (sizeof(void *) < 8 ? 22 : 24);
  multicast_queue q = queue_with(most, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_NOTED(multicast_queue_run(q, 0), 1, "a1");
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(queue_takes_64_to_192_bytes_for_each_call_at_once) {
  use_test_allocator();
  CHECK_OK(multicast_queue_destroy(default_queue()));
  int64_t before = allocated_bytes;
  multicast_queue q = queue_with(10000, MULTICAST_OVERFLOW_REFUSE);
  int64_t bytes = allocated_bytes - before;
  CHECK(bytes >= INT64_C(10000) * 64 && bytes <= INT64_C(10000) * 192 + 256);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(allocated_bytes, before);
}

/* ---- The thread ------------------------------------------------------------------------------ */

typedef struct looker {
  gate looked;
  char name[32];
  size_t stack_size;
  bool is_within; /* whether the call runs on a stack of the configured size */
} looker;

FUNCTION(look_at_thread, looker *l) {
#ifdef __linux__
  char path[64];
  FILE *comm;
  pthread_attr_t attributes;
  void *stack = NULL;
  snprintf(path, sizeof path, "/proc/self/task/%ld/comm", syscall(SYS_gettid));
  comm = fopen(path, "r");
  CHECK(comm != NULL);
  CHECK(fgets(l->name, sizeof l->name, comm) != NULL);
  fclose(comm);
  l->name[strcspn(l->name, "\n")] = '\0';
  CHECK_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  CHECK_EQ(pthread_attr_getstack(&attributes, &stack, &l->stack_size), 0);
  pthread_attr_destroy(&attributes);
  l->is_within = (char *)path >= (char *)stack && (char *)path < (char *)stack + l->stack_size;
#endif
  gate_open(&l->looked);
}

static const looker fresh = {GATE_INIT, "", 0, false};

static void look(looker *l, multicast_queue q) {
  needs_kernel("names and stacks of threads");
  multicast m = multicast_create();
  *l = fresh;
  add_queued(m, DELEGATE(look_at_thread, l), q);
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  gate_wait(&l->looked);
  CHECK_OK(multicast_queue_stop(q));
  CHECK_OK(multicast_destroy(m));
}

static multicast_queue queue_named(const char *name) {
  multicast_queue q = multicast_queue_create(&QUEUE_OPTIONS(.thread_name = name));
  CHECK(q.id != 0);
  return q;
}

TEST(queue_thread_has_the_name_of_the_options) {
  needs_linux("names of threads");
  looker l;
  char name[] = "telemetry";
  multicast_queue q = queue_named(name);
  memset(name, 'x', sizeof name - 1); /* the name has been copied */
  look(&l, q);
  CHECK_TEXT(l.name, "telemetry");
  look(&l, q); /* this worker is a new thread */
  CHECK_TEXT(l.name, "telemetry");
}

TEST(queue_thread_has_the_first_15_bytes_of_a_long_name) {
  needs_linux("names of threads");
  looker l;
  look(&l, queue_named("0123456789abcdefghijklmnopqrstuvwxyz"));
  CHECK_TEXT(l.name, "0123456789abcde");
  look(&l, queue_named("0123456789abcde"));
  CHECK_TEXT(l.name, "0123456789abcde");
}

TEST(queue_thread_without_name_has_that_of_thread_that_starts_it) {
  needs_kernel("names of threads");
  looker l;
  CHECK_EQ(prctl(PR_SET_NAME, "the starter", 0, 0, 0), 0);
  look(&l, queue_named(NULL));
  CHECK_TEXT(l.name, "the starter");
}

TEST(queue_thread_name_is_not_that_of_the_thread_that_starts_it) {
  needs_linux("names of threads");
  char name[32] = "";
  looker l;
  CHECK_EQ(prctl(PR_SET_NAME, "the starter", 0, 0, 0), 0);
  look(&l, queue_named("the worker"));
  CHECK_TEXT(l.name, "the worker");
  CHECK_EQ(prctl(PR_GET_NAME, name, 0, 0, 0), 0);
  CHECK_TEXT(name, "the starter");
}

/* The stack may be up to 2 MB larger than configured, because the system and sanitizers may enlarge
 * it. The system's default stack is larger still, so the test would notice if a thread had it. */
TEST(queue_thread_has_the_stack_of_the_options) {
  static const size_t sizes[] = {(size_t)512 * 1024, (size_t)3 * 1024 * 1024};
  multicast_queue_options options = MULTICAST_QUEUE_OPTIONS_INIT;
  for (size_t i = 0; i < 2; ++i) {
    options.stack_size = sizes[i];
    multicast_queue q = multicast_queue_create(&options);
    for (int round = 0; round < 2; ++round) {
      looker l;
      look(&l, q);
      CHECK(l.is_within);
      CHECK(l.stack_size >= sizes[i] && l.stack_size < sizes[i] + (size_t)2 * 1024 * 1024);
    }
  }
}

TEST(queue_thread_without_stack_size_has_default_of_system) {
  needs_kernel("names and stacks of threads");
  pthread_attr_t attributes;
  size_t expected = 0;
  looker l;
  CHECK_EQ(pthread_attr_init(&attributes), 0);
  CHECK_EQ(pthread_getattr_default_np(&attributes), 0);
  CHECK_EQ(pthread_attr_getstacksize(&attributes, &expected), 0);
  pthread_attr_destroy(&attributes);
  look(&l, queue_named(NULL));
  CHECK(l.stack_size >= expected && l.stack_size < expected + (size_t)256 * 1024);
}

#ifndef IS_WITHOUT_THREADS_IN_CHILDREN /* a sanitizer needs a larger stack */
TEST_OF_MULTICAST(queue_thread_works_on_a_stack_of_16_kb) {
  multicast_queue_options options = QUEUE_OPTIONS(.stack_size = stack_of(16384), .capacity = 4);
  multicast_queue q = multicast_queue_create(&options);
  add_queued(m, counter(&calls), q);
  CHECK_OK(multicast_queue_start(q));
  CHECK_EQ(multicast_invoke(m, 0, "0123456789012345678901234567890123456789", 40), 1);
  EVENTUALLY(LOAD(calls) == 1);
  CHECK_OK(multicast_queue_destroy(q));
}
#endif
