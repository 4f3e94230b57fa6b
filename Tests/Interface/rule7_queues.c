/* Rule 7: queued calls wait, with a copy of their payload, until someone runs the queue. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- What the tests share -------------------------------------------------------------------- */

static multicast_queue default_queue(void) {
  multicast_queue q = multicast_queue_create(NULL);
  CHECK(q.id != 0);
  return q;
}

/* A delegate of one letter, which is its context, writes itself and the number that was its payload
 * into `noted`, "a1 b1 a2"; its event too unless that is 0, "a1@7". */
static char noted[1 << 16];
static size_t noted_length;
static int releases[128];

static void append_note(const char *text) {
  size_t length = strlen(text);
  CHECK(noted_length + length + 2 < sizeof noted);
  if (noted_length > 0) noted[noted_length++] = ' ';
  memcpy(noted + noted_length, text, length + 1);
  noted_length += length;
}

static void note_call(void *context, uint32_t event, const void *payload, size_t size) {
  char text[64];
  int used = snprintf(text, sizeof text, "%c", (char)(intptr_t)context);
  int number = 0;
  if (size >= sizeof number) {
    memcpy(&number, payload, sizeof number);
    used += snprintf(text + used, sizeof text - (size_t)used, "%d", number);
  }
  if (event != 0) snprintf(text + used, sizeof text - (size_t)used, "@%u", (unsigned)event);
  append_note(text);
}

static void count_release_of(void *context) { ADD(releases[(intptr_t)context], 1); }

static multicast_delegate noting(char name) {
  multicast_delegate d;
  d.function = note_call;
  d.context = (void *)(intptr_t)name;
  return d;
}

static int64_t invoke_number(multicast m, int number) {
  return multicast_invoke(m, 0, &number, sizeof number);
}

/* The figures that are not zero, but for `highest`: "pending 1, queued 3, delivered 2". */
static const char *figures(multicast_queue q) {
  static char text[256];
  static const char *const names[] = {"pending", "queued",    "delivered", "refused",
                                      "dropped", "retracted", "coalesced"};
  multicast_queue_stats s = stats_of(q);
  uint64_t values[7];
  int used = 0;
  size_t i;
  memcpy(values, &s.pending, sizeof values);
  text[0] = '\0';
  for (i = 0; i < 7; ++i) {
    if (values[i] != 0)
      used += snprintf(text + used, sizeof text - (size_t)used, "%s%s %llu", used ? ", " : "",
                       names[i], (unsigned long long)values[i]);
  }
  return text;
}

/* A thread that runs a queue once. */
typedef struct runner {
  multicast_queue queue;
  size_t max;
  int64_t result;
  gate returned;
  pthread_t thread;
} runner;

static const gate shut = GATE_INIT;
static const blocker fresh_blocker = BLOCKER_INIT;

static void *run_once(void *argument) {
  runner *r = argument;
  r->result = multicast_queue_run(r->queue, r->max);
  gate_open(&r->returned);
  return NULL;
}

static void run_in_background(runner *r, multicast_queue q, size_t max) {
  r->queue = q;
  r->max = max;
  r->result = INT64_MIN;
  r->returned = shut;
  r->thread = start_thread(run_once, r);
}

static int64_t run_finished(runner *r) {
  join_thread(r->thread);
  return r->result;
}

static int64_t run_elsewhere(multicast_queue q, size_t max) {
  runner r;
  run_in_background(&r, q, max);
  return run_finished(&r);
}

/* A thread that invokes once with a number. */
typedef struct sender {
  multicast target;
  int number;
  int64_t result;
  gate returned;
  pthread_t thread;
} sender;

static void *send_once(void *argument) {
  sender *s = argument;
  s->result = invoke_number(s->target, s->number);
  gate_open(&s->returned);
  return NULL;
}

static void send_in_background(sender *s, multicast m, int number) {
  s->target = m;
  s->number = number;
  s->result = INT64_MIN;
  s->returned = shut;
  s->thread = start_thread(send_once, s);
}

static int64_t send_finished(sender *s) {
  join_thread(s->thread);
  return s->result;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- Creation -------------------------------------------------------------------------------- */

TEST(queue_of_no_options_works) {
  multicast_queue q = multicast_queue_create(NULL);
  multicast m = multicast_create();
  CHECK(q.id != 0);
  CHECK_TEXT(figures(q), "");
  add_queued(m, noting('a'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a1");
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(queue_of_default_options_holds_1024_calls_and_refuses) {
  multicast_queue_options options = multicast_queue_options_default();
  multicast_queue q = multicast_queue_create(&options), of_null = default_queue();
  multicast m = multicast_create(), other = multicast_create();
  int calls = 0, i;
  add_queued(m, counter(&calls), q);
  add_queued(other, counter(&calls), of_null);
  for (i = 0; i < 1030; ++i) {
    CHECK_EQ(invoke_number(m, i), i < 1024);
    CHECK_EQ(invoke_number(other, i), i < 1024);
  }
  CHECK_TEXT(figures(q), "pending 1024, queued 1024, refused 6");
  CHECK_TEXT(figures(of_null), "pending 1024, queued 1024, refused 6");
}

TEST(queue_options_are_read_during_the_call_only) {
  multicast_queue_options options = multicast_queue_options_default();
  multicast_queue q;
  multicast m = multicast_create();
  options.capacity = 2;
  q = multicast_queue_create(&options);
  memset(&options, 0xFF, sizeof options);
  add_queued(m, noting('a'), q);
  CHECK_EQ(invoke_number(m, 1) + invoke_number(m, 2) + invoke_number(m, 3), 2);
}

TEST(queue_options_of_a_bad_struct_size_create_none) {
  multicast_queue_options options = multicast_queue_options_default();
  for (options.struct_size = 0; options.struct_size < sizeof options; ++options.struct_size)
    CHECK_EQ(multicast_queue_create(&options).id, 0);
  options.struct_size = 1025;
  CHECK_EQ(multicast_queue_create(&options).id, 0);
  options.struct_size = UINT32_MAX;
  CHECK_EQ(multicast_queue_create(&options).id, 0);
}

TEST(queue_options_of_a_newer_caller_are_fine_if_the_rest_is_zero) {
  struct {
    multicast_queue_options known;
    uint32_t unknown[20];
  } newer;
  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  newer.known.capacity = 1;
  CHECK(multicast_queue_create(&newer.known).id != 0);
  newer.unknown[0] = 1;
  CHECK_EQ(multicast_queue_create(&newer.known).id, 0);
  newer.unknown[0] = 0;
  newer.unknown[19] = UINT32_C(1) << 31;
  CHECK_EQ(multicast_queue_create(&newer.known).id, 0);
}

TEST(queue_options_of_an_unknown_overflow_create_none) {
  multicast_queue_options options = multicast_queue_options_default();
  static const int bad[] = {3, 4, 256, -1, INT32_MIN, INT32_MAX};
  size_t i;
  for (i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    memcpy(&options.overflow, &bad[i], sizeof bad[i]);
    CHECK_EQ(multicast_queue_create(&options).id, 0);
  }
}

TEST(queue_of_more_than_2_to_the_24_calls_is_none) {
  multicast_queue_options options = multicast_queue_options_default();
  options.capacity = (UINT32_C(1) << 24) + 1;
  CHECK_EQ(multicast_queue_create(&options).id, 0);
  options.capacity = UINT32_MAX;
  CHECK_EQ(multicast_queue_create(&options).id, 0);
}

TEST(queue_of_2_to_the_24_calls_works) {
  multicast_queue q = queue_with(UINT32_C(1) << 24, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a1");
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(queue_takes_64_to_192_bytes_for_each_call_at_once) {
  int64_t before, bytes;
  multicast_queue q;
  use_test_allocator();
  CHECK_OK(multicast_queue_destroy(default_queue()));
  before = allocated_bytes;
  q = queue_with(10000, MULTICAST_OVERFLOW_REFUSE);
  bytes = allocated_bytes - before;
  CHECK(bytes >= 10000 * 64 && bytes <= 10000 * 192 + 256);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(allocated_bytes, before);
}

TEST(queue_handles_differ) {
  multicast_queue q[50];
  int i, j;
  for (i = 0; i < 50; ++i) {
    q[i] = default_queue();
    for (j = 0; j < i; ++j) CHECK(q[j].id != q[i].id);
  }
  CHECK_OK(multicast_queue_destroy(q[20]));
  CHECK(default_queue().id != q[20].id);
}

/* ---- Queueing and running -------------------------------------------------------------------- */

TEST(queue_makes_no_call_before_it_is_run) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_TEXT(noted, "");
  CHECK_TEXT(figures(q), "pending 1, queued 1");
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a1");
  CHECK_TEXT(figures(q), "queued 1, delivered 1");
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_TEXT(noted, "a1");
}

TEST(queue_calls_run_in_the_order_in_which_they_were_queued) {
  multicast_queue q = default_queue();
  multicast m = multicast_create(), other = multicast_create();
  multicast_options urgent = to_queue(q);
  urgent.priority = 5;
  add_queued(m, noting('a'), q);
  add_queued(m, noting('b'), q);
  add_with(m, noting('u'), &urgent);
  add_queued(other, noting('x'), q);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(invoke_number(other, 2), 1);
  CHECK_EQ(invoke_number(m, 3), 3);
  CHECK_EQ(multicast_queue_run(q, 0), 7);
  CHECK_TEXT(noted, "u1 a1 b1 x2 u3 a3 b3");
}

TEST(queue_delegates_and_direct_ones_take_their_turns_in_one_invocation) {
  multicast_queue q = default_queue(), other = default_queue();
  multicast m = multicast_create();
  add(m, noting('a'));
  add_queued(m, noting('q'), q);
  add(m, noting('b'));
  add_queued(m, noting('o'), other);
  add(m, noting('c'));
  CHECK_EQ(invoke_number(m, 1), 5);
  CHECK_TEXT(noted, "a1 b1 c1");
  CHECK_EQ(multicast_queue_run(other, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a1 b1 c1 o1 q1");
}

TEST(queue_passes_the_event_on) {
  static const uint32_t events[] = {0, 1, 63, 64, 4711, UINT32_MAX};
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  size_t i;
  int number = 1;
  add_queued(m, noting('a'), q);
  for (i = 0; i < 6; ++i) multicast_invoke(m, events[i], &number, sizeof number);
  CHECK_EQ(multicast_queue_run(q, 0), 6);
  CHECK_TEXT(noted, "a1 a1@1 a1@63 a1@64 a1@4711 a1@4294967295");
}

TEST(queue_does_not_take_events_that_are_not_wanted) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_options options = to_queue(q);
  options.events = UINT64_C(1) << 3 | UINT64_C(1) << 63;
  add_with(m, noting('a'), &options);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 0);
  CHECK_EQ(multicast_invoke(m, 3, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 62, NULL, 0), 0);
  CHECK_EQ(multicast_invoke(m, 63, NULL, 0), 1);
  CHECK_EQ(multicast_invoke(m, 64, NULL, 0), 1);
  CHECK_TEXT(figures(q), "pending 3, queued 3");
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK_TEXT(noted, "a@3 a@63 a@64");
}

/* What a call got, bytes included. */
typedef struct parcel {
  int calls;
  const void *payload;
  size_t size;
  unsigned char bytes[5000];
} parcel;

static void keep_parcel(void *context, uint32_t event, const void *payload, size_t size) {
  parcel *p = context;
  (void)event;
  ++p->calls;
  p->payload = payload;
  p->size = size;
  CHECK(size <= sizeof p->bytes);
  if (size > 0) memcpy(p->bytes, payload, size);
}

static multicast_delegate keeping(parcel *p) {
  multicast_delegate d;
  d.function = keep_parcel;
  d.context = p;
  return d;
}

static void expect_copy_of(size_t size) {
  static parcel p, direct;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  unsigned char *payload = malloc(size), *original = malloc(size);
  size_t i;
  int before;
  CHECK(payload != NULL && original != NULL);
  for (i = 0; i < size; ++i) original[i] = payload[i] = (unsigned char)(i * 7 + size);
  add_queued(m, keeping(&p), q);
  add(m, keeping(&direct));
  CHECK_EQ(multicast_invoke(m, 0, payload, size), 2);
  CHECK(direct.payload == payload);
  memset(payload, 0xEE, size);
  before = p.calls;
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(p.calls, before + 1);
  CHECK_EQ(p.size, size);
  CHECK(p.payload != payload);
  CHECK_EQ((uintptr_t)p.payload % 16, 0);
  CHECK(memcmp(p.bytes, original, size) == 0);
  free(payload);
  free(original);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_OK(multicast_destroy(m));
}

TEST(queue_copies_a_payload_of_1_byte) { expect_copy_of(1); }
TEST(queue_copies_a_payload_of_16_bytes) { expect_copy_of(16); }
TEST(queue_copies_a_payload_of_32_bytes) { expect_copy_of(32); }
TEST(queue_copies_a_payload_of_33_bytes) { expect_copy_of(33); }
TEST(queue_copies_a_payload_of_4096_bytes) { expect_copy_of(4096); }

TEST(queue_copies_payloads_of_every_size) {
  size_t size;
  for (size = 1; size <= 200; ++size) expect_copy_of(size);
}

TEST(queue_copies_a_payload_that_is_not_aligned) {
  static parcel p;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  unsigned char bytes[128];
  size_t size, i;
  for (i = 0; i < sizeof bytes; ++i) bytes[i] = (unsigned char)i;
  add_queued(m, keeping(&p), q);
  for (size = 1; size < 100; ++size) {
    CHECK_EQ(multicast_invoke(m, 0, bytes + size % 16 + 1, size), 1);
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    CHECK_EQ((uintptr_t)p.payload % 16, 0);
    CHECK(memcmp(p.bytes, bytes + size % 16 + 1, size) == 0);
  }
}

TEST(queue_passes_the_pointer_itself_when_the_size_is_0) {
  static parcel p;
  int object = 5;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, keeping(&p), q);
  CHECK_EQ(multicast_invoke(m, 0, &object, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(p.payload == &object && p.size == 0);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(p.payload == NULL && p.size == 0);
}

TEST(queue_takes_no_size_without_a_payload) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  CHECK_STATUS(multicast_invoke(m, 0, NULL, 1), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_TEXT(figures(q), "");
}

TEST(queue_shares_one_copy_between_all_delegates_of_an_invocation) {
  static parcel p[8];
  static unsigned char payload[4096];
  multicast_queue q, other;
  multicast m;
  int64_t blocks, bytes;
  int i;
  use_test_allocator();
  q = default_queue();
  other = default_queue();
  m = multicast_create();
  for (i = 0; i < 8; ++i) add_queued(m, keeping(&p[i]), i % 2 == 0 ? q : other);
  multicast_invoke(m, 0, payload, 1);
  multicast_queue_run(q, 0);
  multicast_queue_run(other, 0);
  for (i = 0; i < 4096; ++i) payload[i] = (unsigned char)(i * 3);
  blocks = allocated_blocks;
  bytes = allocated_bytes;
  CHECK_EQ(multicast_invoke(m, 0, payload, sizeof payload), 8);
  CHECK_EQ(allocated_blocks, blocks + 1);
  CHECK_EQ(multicast_queue_run(q, 0), 4);
  CHECK(memcmp(p[0].bytes, payload, 4096) == 0 && memcmp(p[6].bytes, payload, 4096) == 0);
  CHECK_EQ(multicast_queue_run(other, 3), 3);
  CHECK_EQ(allocated_blocks, blocks + 1); /* for one call still */
  CHECK_EQ(multicast_queue_run(other, 0), 1);
  CHECK(memcmp(p[7].bytes, payload, 4096) == 0);
  CHECK_EQ(allocated_blocks, blocks);
  CHECK_EQ(allocated_bytes, bytes);
}

TEST(queue_calls_of_up_to_32_bytes_need_no_allocation) {
  multicast_queue q;
  multicast m;
  unsigned char payload[33] = {0};
  int calls = 0, i;
  use_test_allocator();
  q = default_queue();
  m = multicast_create();
  add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, payload, 1), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  fail_after = 0;
  for (i = 0; i < 2000; ++i) {
    CHECK_EQ(multicast_invoke(m, 0, payload, (size_t)i % 33), 1);
    if (i % 100 == 99) CHECK_EQ(multicast_queue_run(q, 0), 100);
  }
  CHECK(!has_failed);
}

typedef struct requeuer {
  multicast target;
  multicast_queue queue;
  int left;       /* how often it queues itself again */
  int made;
  int64_t nested; /* the sum of what runs inside gave */
} requeuer;

static void queue_again_and_compare(void *context, uint32_t event, const void *payload,
                                    size_t size) {
  requeuer *r = context;
  unsigned char seen[64], other[64];
  int i;
  (void)event;
  memcpy(seen, payload, size);
  memset(other, 0xCC, sizeof other);
  if (r->left > 0) {
    --r->left;
    for (i = 0; i < 5; ++i) multicast_invoke(r->target, 0, other, size);
  }
  CHECK(memcmp(payload, seen, size) == 0);
  ++r->made;
}

TEST(queue_payload_stays_as_it_is_while_its_call_queues_more) {
  requeuer r = {{0}, {0}, 3, 0, 0};
  multicast_delegate d;
  unsigned char bytes[64];
  size_t size;
  for (size = 16; size <= 64; size += 16) {
    r.left = 3;
    r.queue = queue_with(2, MULTICAST_OVERFLOW_DROP_OLDEST);
    r.target = multicast_create();
    d.function = queue_again_and_compare;
    d.context = &r;
    add_queued(r.target, d, r.queue);
    memset(bytes, 0x11, sizeof bytes);
    multicast_invoke(r.target, 0, bytes, size);
    while (multicast_queue_run(r.queue, 0) > 0) {
    }
  }
  CHECK(r.made > 10);
}

TEST(queue_run_makes_max_calls_at_most) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int i;
  add_queued(m, noting('a'), q);
  for (i = 1; i <= 6; ++i) invoke_number(m, i);
  CHECK_EQ(multicast_queue_run(q, 1), 1);
  CHECK_TEXT(noted, "a1");
  CHECK_EQ(multicast_queue_run(q, 2), 2);
  CHECK_TEXT(noted, "a1 a2 a3");
  CHECK_EQ(multicast_queue_run(q, 100), 3);
  CHECK_TEXT(noted, "a1 a2 a3 a4 a5 a6");
  CHECK_EQ(multicast_queue_run(q, SIZE_MAX), 0);
  invoke_number(m, 7);
  CHECK_EQ(multicast_queue_run(q, SIZE_MAX), 1);
}

static void queue_itself_again(void *context, uint32_t event, const void *payload, size_t size) {
  requeuer *r = context;
  note_call((void *)(intptr_t)'a', event, payload, size);
  ++r->made;
  if (r->left > 0) {
    --r->left;
    CHECK_EQ(invoke_number(r->target, r->made + 1), 1);
  }
}

static void begin_requeuing(requeuer *r, multicast_function function, int left) {
  multicast_delegate d;
  d.function = function;
  d.context = r;
  r->target = multicast_create();
  r->queue = default_queue();
  r->left = left;
  r->made = 0;
  r->nested = 0;
  add_queued(r->target, d, r->queue);
  CHECK_EQ(invoke_number(r->target, 1), 1);
}

TEST(queue_run_makes_calls_queued_meanwhile_until_max_is_reached) {
  requeuer r;
  begin_requeuing(&r, queue_itself_again, 10);
  CHECK_EQ(multicast_queue_run(r.queue, 5), 5);
  CHECK_TEXT(noted, "a1 a2 a3 a4 a5");
  CHECK_EQ(multicast_queue_run(r.queue, 100), 6);
  CHECK_EQ(multicast_queue_run(r.queue, 100), 0);
}

TEST(queue_run_of_0_makes_as_many_as_waited) {
  requeuer r;
  begin_requeuing(&r, queue_itself_again, 1000000);
  CHECK_EQ(multicast_queue_run(r.queue, 0), 1);
  CHECK_TEXT(noted, "a1");
  CHECK_EQ(invoke_number(r.target, 77), 1);
  CHECK_EQ(multicast_queue_run(r.queue, 0), 2);
  CHECK_TEXT(noted, "a1 a2 a77");
}

static void run_inside(void *context, uint32_t event, const void *payload, size_t size) {
  requeuer *r = context;
  int number;
  memcpy(&number, payload, sizeof number);
  note_call((void *)(intptr_t)'(', event, payload, size);
  if (number % 2 == 1) r->nested += multicast_queue_run(r->queue, 1);
  note_call((void *)(intptr_t)')', event, payload, size);
}

TEST(queue_run_inside_its_own_call_goes_on_with_the_next) {
  requeuer r;
  begin_requeuing(&r, run_inside, 0);
  invoke_number(r.target, 2);
  invoke_number(r.target, 4);
  invoke_number(r.target, 6);
  CHECK_EQ(multicast_queue_run(r.queue, 0), 3); /* 1, 4 and 6; 2 inside */
  CHECK_EQ(r.nested, 1);
  CHECK_TEXT(noted, "(1 (2 )2 )1 (4 )4 (6 )6");
  CHECK_TEXT(figures(r.queue), "queued 4, delivered 4");
  CHECK_EQ(invoke_number(r.target, 8), 1); /* and is in order afterwards */
  CHECK_EQ(run_elsewhere(r.queue, 0), 1);
}

static void run_to_the_limit(void *context, uint32_t event, const void *payload, size_t size) {
  requeuer *r = context;
  int64_t result;
  (void)event;
  (void)payload;
  (void)size;
  ++r->made;
  result = multicast_queue_run(r->queue, 1);
  if (result < 0) r->nested = result;
}

TEST(queue_runs_nested_too_deep_are_limit) {
  requeuer r;
  int i;
  begin_requeuing(&r, run_to_the_limit, 0);
  for (i = 1; i < 600; ++i) CHECK_EQ(invoke_number(r.target, 1), 1);
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1);
  CHECK_STATUS(r.nested, MULTICAST_ERROR_LIMIT);
  CHECK_EQ(r.made, 256);
  CHECK_TEXT(figures(r.queue), "pending 344, queued 600, delivered 256");
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1); /* as deep again */
  CHECK_EQ(r.made, 512);
}

static void invoke_to_the_limit(void *context, uint32_t event, const void *payload,
                                size_t size) {
  requeuer *r = context;
  ++r->made;
  if (r->made == 256) {
    r->nested = multicast_queue_run(r->queue, 0);
  } else {
    CHECK_EQ(multicast_invoke(r->target, event, payload, size), 1);
  }
}

TEST(queue_run_inside_256_invocations_is_limit) {
  requeuer r = {{0}, {0}, 0, 0, 0};
  multicast m = multicast_create();
  multicast_delegate d;
  d.function = invoke_to_the_limit;
  d.context = &r;
  r.queue = default_queue();
  r.target = multicast_create();
  add(r.target, d);
  add_queued(m, noting('a'), r.queue);
  invoke_number(m, 1);
  CHECK_EQ(multicast_invoke(r.target, 0, NULL, 0), 1);
  CHECK_STATUS(r.nested, MULTICAST_ERROR_LIMIT);
  CHECK_EQ(multicast_queue_run(r.queue, 0), 1);
  CHECK_TEXT(noted, "a1");
}

TEST(queue_run_inside_a_call_of_another_queue_makes_its_calls) {
  requeuer r;
  multicast_queue outer = default_queue();
  multicast m = multicast_create(), other = multicast_create();
  multicast_delegate d;
  d.function = run_inside;
  d.context = &r;
  r.queue = default_queue(); /* which it runs */
  r.nested = 0;
  add_queued(m, d, outer);
  add_queued(other, noting('x'), r.queue);
  invoke_number(m, 1);
  invoke_number(m, 2);
  invoke_number(other, 3);
  CHECK_EQ(multicast_queue_run(outer, 0), 2);
  CHECK_EQ(r.nested, 1);
  CHECK_TEXT(noted, "(1 x3 )1 (2 )2");
}

TEST(queue_run_by_a_second_thread_is_state) {
  blocker b = BLOCKER_INIT;
  runner r;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, blocking(&b), q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  run_in_background(&r, q, 1);
  gate_wait(&b.entered);
  CHECK_STATUS(multicast_queue_run(q, 0), MULTICAST_ERROR_STATE);
  CHECK_STATUS(multicast_queue_run(q, 1), MULTICAST_ERROR_STATE);
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&r), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(b.calls, 2);
}

TEST(queue_may_be_run_by_one_thread_after_the_other) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int i;
  add_queued(m, noting('a'), q);
  for (i = 1; i <= 6; ++i) {
    CHECK_EQ(invoke_number(m, i), 1);
    CHECK_EQ(i % 2 == 0 ? multicast_queue_run(q, 0) : run_elsewhere(q, 0), 1);
  }
  CHECK_TEXT(noted, "a1 a2 a3 a4 a5 a6");
}

TEST(queue_run_after_destroy_is_invalid_handle) {
  multicast_queue q = default_queue();
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_STATUS(multicast_queue_run(q, 0), MULTICAST_ERROR_INVALID_HANDLE);
}

static multicast_queue doomed;

static void destroy_doomed(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  CHECK_STATUS(multicast_queue_destroy(doomed), MULTICAST_PENDING);
  CHECK_STATUS(multicast_queue_destroy(doomed), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_run(doomed, 0), MULTICAST_ERROR_INVALID_HANDLE);
}

TEST(queue_destroyed_inside_its_own_call_makes_no_further_one) {
  multicast m = multicast_create();
  multicast_delegate d = noting('d');
  multicast_options options;
  doomed = default_queue();
  d.function = destroy_doomed;
  options = to_queue(doomed);
  options.release = count_release_of;
  add_queued(m, noting('a'), doomed);
  add_with(m, d, &options);
  add_queued(m, noting('b'), doomed);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(multicast_queue_run(doomed, 0), 2);
  CHECK_TEXT(noted, "a1 d1");
  CHECK_EQ(releases['d'], 1);
  CHECK_EQ(multicast_count(m), 0);
}

static void run_then_destroy(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  if (strcmp(noted, "d1") == 0) {
    CHECK_EQ(multicast_queue_run(doomed, 0), 1); /* which destroys it */
  } else {
    CHECK_STATUS(multicast_queue_destroy(doomed), MULTICAST_PENDING);
  }
}

TEST(queue_destroyed_inside_a_nested_run_ends_both) {
  multicast m = multicast_create();
  multicast_delegate d = noting('d');
  int i;
  doomed = default_queue();
  d.function = run_then_destroy;
  add_queued(m, d, doomed);
  for (i = 1; i <= 4; ++i) invoke_number(m, i);
  CHECK_EQ(multicast_queue_run(doomed, 0), 1);
  CHECK_TEXT(noted, "d1 d2");
}

static multicast_queue successor;
static multicast successor_target;

static void destroy_and_create(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  CHECK_STATUS(multicast_queue_destroy(doomed), MULTICAST_PENDING);
  successor = default_queue(); /* perhaps in the same place */
  add_queued(successor_target, noting('s'), successor);
  CHECK_EQ(invoke_number(successor_target, 2), 1);
  CHECK_EQ(invoke_number(successor_target, 3), 1);
  CHECK_EQ(invoke_number(successor_target, 4), 1);
  CHECK_EQ(multicast_queue_run(successor, 1), 1);
  CHECK_EQ(run_elsewhere(successor, 1), 1); /* this thread runs another one */
}

TEST(queue_created_inside_a_call_of_one_just_destroyed_is_another) {
  multicast m = multicast_create();
  multicast_delegate d = noting('d');
  successor_target = multicast_create();
  doomed = default_queue();
  d.function = destroy_and_create;
  add_queued(m, d, doomed);
  invoke_number(m, 1);
  invoke_number(m, 9);
  CHECK_EQ(multicast_queue_run(doomed, 0), 1);
  CHECK_TEXT(noted, "d1 s2 s3");
  CHECK_EQ(run_elsewhere(successor, 0), 1);
  CHECK_TEXT(figures(successor), "queued 3, delivered 3");
}

static void *run_on_a_new_thread(void *argument) {
  runner *r = argument;
  r->result = multicast_queue_run(r->queue, 0);
  return NULL;
}

TEST(queue_run_allocates_nothing_after_the_first_of_a_thread) {
  runner r;
  multicast m;
  int calls = 0;
  unsigned char payload[100] = {0};
  use_test_allocator();
  r.queue = default_queue();
  m = multicast_create();
  add_queued(m, counter(&calls), r.queue);
  CHECK_EQ(multicast_invoke(m, 0, payload, 100), 1);
  fail_after = 0;
  on_another_thread(run_on_a_new_thread, &r);
  CHECK_STATUS(r.result, MULTICAST_ERROR_OUT_OF_MEMORY);
  CHECK_TEXT(figures(r.queue), "pending 1, queued 1");
  fail_after = 0;
  CHECK_EQ(multicast_queue_run(r.queue, 0), 1); /* this thread has invoked before */
  CHECK_EQ(fail_after, 0);
  fail_after = -1;
  CHECK_EQ(multicast_invoke(m, 0, payload, 100), 1);
  on_another_thread(run_on_a_new_thread, &r);
  CHECK_EQ(r.result, 1);
}

static bool visit_all(void *context, const multicast_delegate *delegate) {
  delegate->function(delegate->context, 0, context, sizeof(int));
  return true;
}

TEST(queue_delegates_are_passed_to_visitors_here_and_now) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int number = 5;
  add_queued(m, noting('q'), q);
  add(m, noting('a'));
  CHECK_EQ(multicast_visit(m, visit_all, &number), 2);
  CHECK_TEXT(noted, "q5 a5");
  CHECK_TEXT(figures(q), "");
}

TEST(queue_delegates_are_seen_by_count_list_and_contains) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_delegate out[3];
  multicast_token token = add_queued(m, noting('q'), q);
  add(m, noting('a'));
  CHECK_EQ(multicast_count(m), 2);
  CHECK(multicast_contains(m, noting('q')));
  CHECK_EQ(multicast_list(m, out, 3), 2);
  CHECK(out[0].function == note_call && out[0].context == noting('q').context);
  invoke_number(m, 1);
  CHECK_EQ(multicast_count(m), 2);
  CHECK(multicast_token_is_live(token));
  multicast_queue_run(q, 0);
  CHECK_EQ(multicast_count(m), 2);
  CHECK(multicast_token_is_live(token));
}

TEST(queue_delegates_may_be_added_many_at_once) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_delegate d[3];
  multicast_token tokens[3];
  multicast_options options = to_queue(q);
  d[0] = noting('a');
  d[1] = noting('b');
  d[2] = noting('c');
  CHECK_OK(multicast_add_many(m, d, 3, &options, tokens));
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_OK(multicast_token_remove(tokens[1]));
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_TEXT(noted, "a1 c1");
}

TEST(queue_serves_many_multicasts_and_delegates) {
  enum { MANY = 300 };
  multicast m[MANY];
  multicast_queue q = queue_with(MANY, MULTICAST_OVERFLOW_REFUSE);
  int calls[MANY] = {0}, i;
  for (i = 0; i < MANY; ++i) {
    m[i] = multicast_create();
    add_queued(m[i], counter(&calls[i]), q);
  }
  for (i = 0; i < MANY; ++i) CHECK_EQ(invoke_number(m[i], i), 1);
  CHECK_EQ(multicast_queue_run(q, 0), MANY);
  for (i = 0; i < MANY; ++i) CHECK_EQ(calls[i], 1);
  CHECK_OK(multicast_queue_destroy(q));
  for (i = 0; i < MANY; ++i) CHECK_EQ(multicast_count(m[i]), 0);
}

TEST(queue_call_may_add_remove_invoke_and_destroy_anything) {
  requeuer r;
  multicast m;
  begin_requeuing(&r, queue_itself_again, 50);
  m = r.target;
  CHECK_EQ(multicast_queue_run(r.queue, SIZE_MAX), 51);
  CHECK_OK(multicast_destroy(m));
}

static multicast_token seen_outer, seen_inner, seen_after;
static multicast direct_target;

static void see_inner(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context;
  (void)event;
  (void)payload;
  (void)size;
  seen_inner = multicast_token_current();
}

static void see_current(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context;
  (void)event;
  (void)payload;
  (void)size;
  seen_outer = multicast_token_current();
  multicast_invoke(direct_target, 0, NULL, 0);
  seen_after = multicast_token_current();
}

TEST(queue_call_has_its_token_as_the_current_one) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_delegate outer = {see_current, NULL}, inner = {see_inner, NULL};
  multicast_token token = add_queued(m, outer, q), other;
  direct_target = multicast_create();
  other = add(direct_target, inner);
  multicast_invoke(m, 0, NULL, 0);
  CHECK_EQ(multicast_token_current().id, 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(seen_outer.id, token.id);
  CHECK_EQ(seen_inner.id, other.id);
  CHECK_EQ(seen_after.id, token.id);
  CHECK_EQ(multicast_token_current().id, 0);
}

/* ---- Pauses ---------------------------------------------------------------------------------- */

TEST(queue_takes_no_call_of_a_paused_delegate) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_token token = add_queued(m, noting('a'), q);
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(invoke_number(m, 1), 0);
  CHECK_OK(multicast_token_resume(token));
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a2");
  CHECK_TEXT(figures(q), "queued 1, delivered 1");
}

TEST(queue_makes_calls_that_waited_before_a_pause) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_token token = add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_OK(multicast_token_pause(token));
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_TEXT(noted, "a1 a2");
}

TEST(queue_calls_of_a_paused_delegate_are_taken_back_when_it_is_removed) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_token token = add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  CHECK_OK(multicast_token_pause(token));
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_TEXT(figures(q), "queued 1, retracted 1");
}

/* ---- Overflow -------------------------------------------------------------------------------- */

TEST(queue_that_is_full_refuses_the_newest) {
  multicast_queue q = queue_with(3, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create();
  int i;
  add_queued(m, noting('a'), q);
  for (i = 1; i <= 5; ++i) CHECK_EQ(invoke_number(m, i), i <= 3);
  CHECK_TEXT(figures(q), "pending 3, queued 3, refused 2");
  CHECK_EQ(multicast_queue_run(q, 1), 1);
  CHECK_EQ(invoke_number(m, 6), 1);
  CHECK_EQ(invoke_number(m, 7), 0);
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK_TEXT(noted, "a1 a2 a3 a6");
  CHECK_TEXT(figures(q), "queued 4, delivered 4, refused 3");
}

TEST(queue_that_is_full_leaves_the_other_delegates_of_an_invocation_alone) {
  multicast_queue full = queue_with(1, MULTICAST_OVERFLOW_REFUSE), q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('f'), full);
  add(m, noting('a'));
  add_queued(m, noting('q'), q);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(invoke_number(m, 2), 2);
  CHECK_EQ(multicast_queue_run(full, 0) + multicast_queue_run(q, 0), 3);
  CHECK_TEXT(noted, "a1 a2 f1 q1 q2");
}

TEST(queue_that_is_full_drops_the_oldest) {
  multicast_queue q = queue_with(3, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast m = multicast_create();
  int i;
  add_queued(m, noting('a'), q);
  for (i = 1; i <= 5; ++i) CHECK_EQ(invoke_number(m, i), 1);
  CHECK_TEXT(figures(q), "pending 3, queued 5, dropped 2");
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK_TEXT(noted, "a3 a4 a5");
  CHECK_TEXT(figures(q), "queued 5, delivered 3, dropped 2");
}

TEST(queue_of_one_call_drops_it_for_the_next) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast m = multicast_create();
  unsigned char payload[100];
  static parcel p;
  int i;
  add_queued(m, keeping(&p), q);
  for (i = 1; i <= 100; ++i) {
    memset(payload, i, sizeof payload);
    CHECK_EQ(multicast_invoke(m, 0, payload, (size_t)i), 1);
  }
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(p.size, 100);
  CHECK_EQ(p.bytes[99], 100);
  CHECK_TEXT(figures(q), "queued 100, delivered 1, dropped 99");
}

TEST(queue_drops_calls_of_any_delegate) {
  multicast_queue q = queue_with(2, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  add_queued(m, noting('b'), q);
  add_queued(m, noting('c'), q);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_TEXT(noted, "b1 c1");
}

TEST(queue_counts_the_most_that_ever_waited) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int i;
  add_queued(m, noting('a'), q);
  for (i = 0; i < 5; ++i) invoke_number(m, i);
  CHECK_EQ(stats_of(q).highest, 5);
  multicast_queue_run(q, 3);
  CHECK_EQ(stats_of(q).highest, 5);
  for (i = 0; i < 4; ++i) invoke_number(m, i);
  CHECK_EQ(stats_of(q).highest, 6);
  multicast_queue_run(q, 0);
  CHECK_EQ(stats_of(q).highest, 6);
}

/* A queue of one call that is full and blocks. */
typedef struct narrow {
  multicast_queue queue;
  multicast target;
  multicast_token token;
} narrow;

static void fill_narrow(narrow *n, const multicast_options *more) {
  multicast_options options = more != NULL ? *more : multicast_options_default();
  n->queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  n->target = multicast_create();
  options.queue = n->queue;
  n->token = add_with(n->target, noting('a'), &options);
  CHECK_EQ(invoke_number(n->target, 1), 1);
}

TEST(queue_that_is_full_blocks_who_invokes_until_there_is_room) {
  narrow n;
  sender s;
  fill_narrow(&n, NULL);
  send_in_background(&s, n.target, 2);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  CHECK_TEXT(figures(n.queue), "pending 1, queued 1");
  CHECK_EQ(multicast_queue_run(n.queue, 1), 1);
  CHECK_EQ(send_finished(&s), 1);
  CHECK_EQ(multicast_queue_run(n.queue, 1), 1);
  CHECK_TEXT(noted, "a1 a2");
  CHECK_TEXT(figures(n.queue), "queued 2, delivered 2");
}

TEST(queue_that_blocks_takes_in_all_who_wait_for_room) {
  enum { SENDERS = 8 };
  narrow n;
  sender s[SENDERS];
  int i, made = 0;
  fill_narrow(&n, NULL);
  for (i = 0; i < SENDERS; ++i) send_in_background(&s[i], n.target, 2 + i);
  while (made < SENDERS + 1) {
    CHECK(multicast_queue_wait(n.queue, UINT64_C(20000000000)) > 0);
    made += (int)multicast_queue_run(n.queue, 0);
  }
  for (i = 0; i < SENDERS; ++i) CHECK_EQ(send_finished(&s[i]), 1);
  CHECK_TEXT(figures(n.queue), "queued 9, delivered 9");
}

TEST(queue_makes_room_for_who_is_blocked_as_a_call_begins) {
  /* The call that makes room waits for the blocked one to have been let in. */
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast m = multicast_create(), other = multicast_create();
  blocker b = BLOCKER_INIT;
  runner r;
  sender s;
  add_queued(m, blocking(&b), q);
  add_queued(other, noting('x'), q);
  invoke_number(m, 1);
  send_in_background(&s, other, 2);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  run_in_background(&r, q, 1);
  gate_wait(&b.entered);
  CHECK_EQ(send_finished(&s), 1);
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&r), 1);
  CHECK_TEXT(figures(q), "pending 1, queued 2, delivered 1");
}

typedef enum unblocking {
  BY_TOKEN, BY_NOWAIT, BY_LIFETIME, BY_DESTROY, BY_QUEUE, BY_OTHER_DELEGATE
} unblocking;

static void expect_unblocked(unblocking how) {
  narrow n;
  sender s;
  multicast_options options = multicast_options_default();
  options.release = count_release_of;
  options.lifetime = multicast_lifetime_create();
  fill_narrow(&n, &options);
  if (how == BY_OTHER_DELEGATE) {
    /* The removal of what waits makes room; it is another delegate that is blocked. */
    multicast other = multicast_create();
    add_queued(other, noting('x'), n.queue);
    send_in_background(&s, other, 2);
  } else {
    send_in_background(&s, n.target, 2);
  }
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  switch (how) {
    case BY_OTHER_DELEGATE: /* as next */
    case BY_TOKEN: CHECK_OK(multicast_token_remove(n.token)); break;
    case BY_NOWAIT: CHECK_OK(multicast_token_remove_nowait(n.token)); break;
    case BY_LIFETIME: CHECK_OK(multicast_lifetime_end(options.lifetime)); break;
    case BY_DESTROY: CHECK_OK(multicast_destroy(n.target)); break;
    default: CHECK_OK(multicast_queue_destroy(n.queue)); break;
  }
  CHECK_EQ(send_finished(&s), how == BY_OTHER_DELEGATE);
  CHECK_EQ(releases['a'], 1);
  if (how == BY_QUEUE) return;
  CHECK_EQ(multicast_queue_run(n.queue, 0), how == BY_OTHER_DELEGATE);
  CHECK_TEXT(noted, how == BY_OTHER_DELEGATE ? "x2" : "");
  CHECK_EQ(stats_of(n.queue).retracted, 1);
}

TEST(queue_unblocks_who_invokes_a_delegate_that_is_removed) { expect_unblocked(BY_TOKEN); }
TEST(queue_unblocks_who_invokes_a_delegate_removed_nowait) { expect_unblocked(BY_NOWAIT); }
TEST(queue_unblocks_who_invokes_when_the_lifetime_ends) { expect_unblocked(BY_LIFETIME); }
TEST(queue_unblocks_who_invokes_when_the_multicast_is_destroyed) { expect_unblocked(BY_DESTROY); }
TEST(queue_unblocks_who_invokes_when_it_is_destroyed) { expect_unblocked(BY_QUEUE); }
TEST(queue_unblocks_who_invokes_when_a_removal_makes_room) {
  expect_unblocked(BY_OTHER_DELEGATE);
}

TEST(queue_refuses_instead_of_blocking_the_thread_that_ran_it_last) {
  narrow n;
  fill_narrow(&n, NULL);
  CHECK_EQ(multicast_queue_run(n.queue, 0), 1);
  CHECK_EQ(invoke_number(n.target, 2), 1);
  CHECK_EQ(invoke_number(n.target, 3), 0);
  CHECK_TEXT(figures(n.queue), "pending 1, queued 2, delivered 1, refused 1");
  CHECK_EQ(multicast_queue_run(n.queue, 0), 1);
  CHECK_TEXT(noted, "a1 a2");
}

static void invoke_twice(void *context, uint32_t event, const void *payload, size_t size) {
  requeuer *r = context;
  (void)event;
  (void)payload;
  (void)size;
  if (++r->made == 1)
    r->nested = invoke_number(r->target, 2) * 10 + invoke_number(r->target, 3);
}

TEST(queue_refuses_instead_of_blocking_its_own_call) {
  requeuer r = {{0}, {0}, 0, 0, 0};
  multicast_delegate d;
  r.queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  r.target = multicast_create();
  d.function = invoke_twice;
  d.context = &r;
  add_queued(r.target, d, r.queue);
  CHECK_EQ(invoke_number(r.target, 1), 1);
  CHECK_EQ(run_elsewhere(r.queue, 1), 1); /* a thread that had not run it before */
  CHECK_EQ(r.nested, 10);
  CHECK_TEXT(figures(r.queue), "pending 1, queued 2, delivered 1, refused 1");
}

TEST(queue_refuses_instead_of_blocking_a_call_of_its_worker) {
  requeuer r = {{0}, {0}, 0, 0, 0};
  multicast_delegate d;
  r.queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  r.target = multicast_create();
  d.function = invoke_twice;
  d.context = &r;
  add_queued(r.target, d, r.queue);
  CHECK_OK(multicast_queue_start(r.queue));
  CHECK_EQ(invoke_number(r.target, 1), 1);
  while (stats_of(r.queue).delivered < 2) pause_ms(1);
  CHECK_OK(multicast_queue_stop(r.queue));
  CHECK_EQ(r.nested, 10);
  CHECK_TEXT(figures(r.queue), "queued 2, delivered 2, refused 1");
}

/* A delegate whose call is let go, and then invokes into a full queue that blocks. */
typedef struct blocked_call {
  narrow full;
  gate entered, let_go, returned;
  int64_t result;
  multicast target;
  multicast_token token;
  int releases;
} blocked_call;

static void invoke_into_full(void *context, uint32_t event, const void *payload, size_t size) {
  blocked_call *c = context;
  (void)event;
  (void)payload;
  (void)size;
  gate_open(&c->entered);
  gate_wait(&c->let_go);
  c->result = invoke_number(c->full.target, 2);
  gate_open(&c->returned);
}

static void release_blocked(void *context) { ADD(((blocked_call *)context)->releases, 1); }

static void begin_blocked_call(blocked_call *c) {
  multicast_options options = with_release(release_blocked);
  multicast_delegate d;
  memset(c, 0, sizeof *c);
  c->entered = c->let_go = c->returned = shut;
  fill_narrow(&c->full, NULL);
  CHECK_EQ(multicast_queue_run(c->full.queue, 0), 1); /* this thread is the one that runs it */
  CHECK_EQ(invoke_number(c->full.target, 1), 1);
  d.function = invoke_into_full;
  d.context = c;
  c->target = multicast_create();
  c->token = add_with(c->target, d, &options);
}

/* The consumer has removed the call, and could wait for it only where it did not wait itself. */
static void expect_one_to_have_given_way(blocked_call *c, invoker *i, multicast_status status) {
  if (status == MULTICAST_PENDING) {
    CHECK_EQ(multicast_queue_run(c->full.queue, 1), 1);
    CHECK_EQ(invoke_finished(i), 1);
    CHECK_EQ(c->result, 1);
  } else {
    CHECK_OK(status);
    CHECK_EQ(LOAD(c->releases), 1);
    CHECK_EQ(invoke_finished(i), 1);
    CHECK_EQ(c->result, 0);
    CHECK_EQ(stats_of(c->full.queue).refused, 1);
  }
  CHECK_EQ(LOAD(c->releases), 1);
}

TEST(queue_that_blocks_a_call_which_its_consumer_removes_does_not_hang) {
  blocked_call c;
  invoker i;
  begin_blocked_call(&c);
  invoke_in_background(&i, c.target);
  gate_open(&c.let_go);
  gate_wait(&c.entered);
  CHECK(!gate_opens_within(&c.returned, A_WHILE_MS)); /* most probably it is blocked by now */
  expect_one_to_have_given_way(&c, &i, multicast_token_remove(c.token));
}

static void *let_go_later(void *argument) {
  pause_ms(A_WHILE_MS);
  gate_open(&((blocked_call *)argument)->let_go);
  return NULL;
}

TEST(queue_refuses_a_call_for_which_its_consumer_waits) {
  blocked_call c;
  invoker i;
  pthread_t helper;
  begin_blocked_call(&c);
  invoke_in_background(&i, c.target);
  gate_wait(&c.entered);
  helper = start_thread(let_go_later, &c); /* most probably this thread waits by then */
  expect_one_to_have_given_way(&c, &i, multicast_token_remove(c.token));
  join_thread(helper);
}

static void *remove_blocked(void *argument) {
  blocked_call *c = argument;
  return (void *)(intptr_t)multicast_token_remove(c->token);
}

TEST(queue_that_blocks_a_call_which_another_thread_removes_has_it_wait) {
  blocked_call c;
  invoker i;
  pthread_t remover;
  void *status;
  begin_blocked_call(&c);
  invoke_in_background(&i, c.target);
  gate_open(&c.let_go);
  CHECK(!gate_opens_within(&c.returned, A_WHILE_MS));
  remover = start_thread(remove_blocked, &c);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(c.releases), 0);
  CHECK_EQ(multicast_queue_run(c.full.queue, 1), 1);
  CHECK_EQ(pthread_join(remover, &status), 0);
  CHECK_OK((intptr_t)status);
  CHECK_EQ(LOAD(c.releases), 1);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_EQ(c.result, 1);
}

TEST(queue_that_blocks_an_invocation_holds_up_no_removal_of_its_other_delegates) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  multicast m = multicast_create();
  multicast_token before, after, filler;
  sender s;
  filler = add_queued(m, noting('f'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_OK(multicast_token_pause(filler));
  before = add(m, noting('a'));
  add_queued(m, noting('q'), q);
  after = add(m, noting('b'));
  send_in_background(&s, m, 2);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  CHECK_OK(multicast_token_remove(before));
  CHECK_OK(multicast_token_remove(after));
  CHECK_OK(multicast_token_remove(filler)); /* and this makes room */
  CHECK_EQ(send_finished(&s), 2);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a2 q2");
}

/* Two are blocked, there is room for one, and then the other needs none. */
static void expect_both_unblocked(uint32_t flags, int64_t sum) {
  narrow n;
  sender s[2];
  multicast m = multicast_create();
  multicast_options options;
  int i;
  fill_narrow(&n, NULL);
  options = to_queue(n.queue);
  options.flags = flags;
  add_with(m, noting('x'), &options);
  for (i = 0; i < 2; ++i) send_in_background(&s[i], m, 2);
  for (i = 0; i < 2; ++i) CHECK(!gate_opens_within(&s[i].returned, A_WHILE_MS));
  CHECK_EQ(multicast_queue_run(n.queue, 1), 1);
  CHECK_EQ(send_finished(&s[0]) + send_finished(&s[1]), sum);
  CHECK_EQ(multicast_queue_run(n.queue, 0), 1);
  CHECK_TEXT(noted, "a1 x2");
}

TEST(queue_unblocks_a_latest_call_once_it_can_replace_another) {
  expect_both_unblocked(MULTICAST_LATEST, 2);
}
TEST(queue_unblocks_a_once_call_once_another_waits) { expect_both_unblocked(MULTICAST_ONCE, 1); }

/* ---- Removal takes back what waits ----------------------------------------------------------- */

/* One registration with a queue, and the ways to remove it. */
typedef struct removal removal;
struct removal {
  int64_t (*remove)(removal *);
  multicast_queue queue;
  multicast target;
  multicast_delegate delegate;
  multicast_token token;
  multicast_lifetime lifetime;
  blocker *b;    /* where its call is inside one */
  gate returned;
  int64_t result;
  bool had_left; /* the call had ended when the removal returned */
  pthread_t thread;
};

/* All give MULTICAST_OK, or what is wrong; the counting ones one less than the count. */
static int64_t by_remove(removal *r) { return multicast_remove(r->target, r->delegate); }
static int64_t by_token(removal *r) { return multicast_token_remove(r->token); }
static int64_t by_nowait(removal *r) { return multicast_token_remove_nowait(r->token); }
static int64_t by_within(removal *r) {
  return multicast_token_remove_within(r->token, UINT64_C(20000000000));
}
static int64_t by_within_for_ever(removal *r) {
  return multicast_token_remove_within(r->token, UINT64_MAX);
}
static int64_t by_context(removal *r) {
  return multicast_remove_context(r->target, r->delegate.context) - 1;
}
static int64_t by_place(removal *r) { return multicast_remove_at(r->target, 0); }
static int64_t by_all(removal *r) { return multicast_remove_all(r->target) - 1; }
static int64_t by_many(removal *r) {
  return multicast_remove_many(r->target, &r->delegate, 1) - 1;
}
static int64_t by_destroy(removal *r) { return multicast_destroy(r->target); }
static int64_t by_lifetime(removal *r) { return multicast_lifetime_end(r->lifetime); }
static int64_t by_queue(removal *r) { return multicast_queue_destroy(r->queue); }
static int64_t by_unique(removal *r) {
  multicast_options options = to_queue(r->queue);
  options.flags = MULTICAST_UNIQUE;
  return multicast_add(r->target, r->delegate, &options, &r->token);
}

static void add_removable(removal *r, multicast_delegate d, multicast_queue q,
                          void (*release)(void *)) {
  multicast_options options = to_queue(q);
  r->queue = q;
  r->delegate = d;
  r->target = multicast_create();
  r->lifetime = multicast_lifetime_create();
  r->returned = shut;
  r->result = INT64_MIN;
  r->had_left = false;
  options.lifetime = r->lifetime;
  options.release = release;
  r->token = add_with(r->target, d, &options);
}

static multicast_queue released_from;
static int64_t waiting_at_release = -1;

static void release_and_look(void *context) {
  multicast_queue_stats s = multicast_queue_stats_default();
  count_release_of(context);
  if (multicast_queue_statistics(released_from, &s) == MULTICAST_OK)
    waiting_at_release = (int64_t)s.pending;
}

static void takes_back(int64_t (*remove)(removal *)) {
  removal r;
  multicast other = multicast_create();
  unsigned char large[300] = {0};
  int i, number;
  released_from = default_queue();
  add_removable(&r, noting('a'), released_from, release_and_look);
  add_queued(other, noting('b'), r.queue);
  for (i = 1; i <= 6; ++i) { /* with payloads in place and apart */
    size_t size = i % 3 == 0 ? sizeof large : sizeof number;
    number = i;
    memcpy(large, &number, sizeof number);
    CHECK_EQ(multicast_invoke(r.target, 0, large, size), 1);
    CHECK_EQ(multicast_invoke(other, 0, large, size), 1);
  }
  CHECK_STATUS(remove(&r), MULTICAST_OK);
  CHECK_EQ(releases['a'], 1);
  if (remove == by_queue) {
    CHECK_STATUS(multicast_queue_run(r.queue, 0), MULTICAST_ERROR_INVALID_HANDLE);
    CHECK_TEXT(noted, "");
    CHECK_EQ(multicast_count(other), 0);
    return;
  }
  CHECK_EQ(waiting_at_release, 6); /* those of the other; released after its own were gone */
  CHECK_TEXT(figures(r.queue), "pending 6, queued 12, retracted 6");
  CHECK_EQ(multicast_queue_run(r.queue, 0), 6);
  CHECK_TEXT(noted, "b1 b2 b3 b4 b5 b6");
  CHECK_TEXT(figures(r.queue), "queued 12, delivered 6, retracted 6");
  CHECK_EQ(releases['a'], 1);
  if (remove == by_unique) { /* the one that replaced it is called */
    CHECK_EQ(invoke_number(r.target, 9), 1);
    CHECK_EQ(multicast_queue_run(r.queue, 0), 1);
    CHECK_TEXT(noted, "b1 b2 b3 b4 b5 b6 a9");
  }
}

TEST(queue_calls_are_taken_back_by_remove) { takes_back(by_remove); }
TEST(queue_calls_are_taken_back_by_token_remove) { takes_back(by_token); }
TEST(queue_calls_are_taken_back_by_token_remove_nowait) { takes_back(by_nowait); }
TEST(queue_calls_are_taken_back_by_token_remove_within) { takes_back(by_within); }
TEST(queue_calls_are_taken_back_by_remove_context) { takes_back(by_context); }
TEST(queue_calls_are_taken_back_by_remove_at) { takes_back(by_place); }
TEST(queue_calls_are_taken_back_by_remove_all) { takes_back(by_all); }
TEST(queue_calls_are_taken_back_by_remove_many) { takes_back(by_many); }
TEST(queue_calls_are_taken_back_by_destroy) { takes_back(by_destroy); }
TEST(queue_calls_are_taken_back_by_lifetime_end) { takes_back(by_lifetime); }
TEST(queue_calls_are_taken_back_by_unique) { takes_back(by_unique); }
TEST(queue_calls_are_let_go_by_queue_destroy) { takes_back(by_queue); }

TEST(queue_payloads_of_calls_taken_back_are_let_go) {
  static int64_t (*const ways[])(removal *) = {
      by_remove, by_token, by_nowait, by_within, by_context, by_place,
      by_all,    by_many,  by_destroy, by_lifetime, by_queue, by_unique};
  static unsigned char payload[4096];
  int64_t before = 0;
  size_t way;
  int round, i;
  use_test_allocator();
  for (round = 0; round < 2; ++round) {
    before = allocated_bytes;
    for (way = 0; way < sizeof ways / sizeof ways[0]; ++way) {
      removal r;
      multicast_queue q = default_queue();
      int64_t without;
      add_removable(&r, noting('a'), q, NULL);
      without = allocated_bytes;
      for (i = 0; i < 10; ++i) CHECK_EQ(multicast_invoke(r.target, 0, payload, 4096), 1);
      CHECK(allocated_bytes >= without + 10 * 4096);
      CHECK_OK(ways[way](&r));
      if (round > 0 && ways[way] != by_unique) CHECK(allocated_bytes <= without);
      multicast_destroy(r.target);
      multicast_lifetime_end(r.lifetime);
      multicast_queue_destroy(q);
    }
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST(queue_calls_are_taken_back_out_of_the_middle) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_token a = add_queued(m, noting('a'), q), b = add_queued(m, noting('b'), q);
  add_queued(m, noting('c'), q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_OK(multicast_token_remove(b));
  invoke_number(m, 3);
  CHECK_EQ(multicast_queue_run(q, 2), 2);
  CHECK_OK(multicast_token_remove(a));
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_TEXT(noted, "a1 c1 c2 c3");
  CHECK_TEXT(figures(q), "queued 8, delivered 4, retracted 4");
}

TEST(queue_calls_taken_back_make_room) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create(), other = multicast_create();
  multicast_token token = add_queued(m, noting('a'), q);
  int round;
  add_queued(other, noting('b'), q);
  for (round = 0; round < 50; ++round) {
    CHECK_EQ(invoke_number(m, 1) + invoke_number(other, 2), 2);
    CHECK_EQ(invoke_number(m, 3) + invoke_number(other, 4), 2);
    CHECK_EQ(invoke_number(other, 5), 0);
    CHECK_OK(multicast_token_remove(token));
    CHECK_EQ(invoke_number(other, 6) + invoke_number(other, 7), 2);
    CHECK_EQ(invoke_number(other, 8), 0);
    noted_length = 0;
    CHECK_EQ(multicast_queue_run(q, 0), 4);
    CHECK_TEXT(noted, "b2 b4 b6 b7");
    token = add_queued(m, noting('a'), q);
  }
}

TEST(queue_calls_of_one_of_two_equal_delegates_are_taken_back) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_token first = add_queued(m, noting('a'), q);
  add_queued(m, noting('a'), q);
  CHECK_EQ(invoke_number(m, 1), 2);
  CHECK_OK(multicast_token_remove(first));
  CHECK_TEXT(figures(q), "pending 1, queued 2, retracted 1");
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}

static multicast destroyed_inside;

static void destroy_multicast(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  CHECK_STATUS(multicast_destroy(destroyed_inside), MULTICAST_PENDING);
}

TEST(queue_calls_of_a_multicast_destroyed_by_the_invocation_are_counted_and_taken_back) {
  multicast_queue q = default_queue();
  multicast_delegate d = noting('d');
  d.function = destroy_multicast;
  destroyed_inside = multicast_create();
  add_queued(destroyed_inside, noting('a'), q);
  add(destroyed_inside, d);
  add_queued(destroyed_inside, noting('b'), q);
  CHECK_EQ(invoke_number(destroyed_inside, 1), 2);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_TEXT(noted, "d1");
  CHECK_TEXT(figures(q), "queued 1, retracted 1");
}

static multicast_token removed_inside;
static multicast_status status_inside;

static void remove_other(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  status_inside = multicast_token_remove(removed_inside);
  multicast_token_remove(removed_inside);
}

TEST(queue_calls_of_another_delegate_are_taken_back_inside_a_call) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_delegate d = noting('d');
  multicast_options options = to_queue(q);
  d.function = remove_other;
  options.release = count_release_of;
  status_inside = MULTICAST_ERROR_STATE;
  add_queued(m, d, q);
  removed_inside = add_with(m, noting('a'), &options);
  add_queued(m, noting('b'), q);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_OK(status_inside);
  CHECK_EQ(releases['a'], 1);
  CHECK_TEXT(noted, "d1 b1");
  CHECK_TEXT(figures(q), "queued 3, delivered 2, retracted 1");
}

/* ---- Removal waits for the queued call that runs --------------------------------------------- */

/* A call that a thread runs, and others of the same delegate that wait. */
static void begin_call(removal *r, blocker *b, runner *run, int64_t (*remove)(removal *)) {
  *b = fresh_blocker;
  add_removable(r, blocking(b), default_queue(), release_blocker);
  r->remove = remove;
  r->b = b;
  CHECK_EQ(invoke_number(r->target, 1), 1);
  CHECK_EQ(invoke_number(r->target, 2), 1);
  CHECK_EQ(invoke_number(r->target, 3), 1);
  run_in_background(run, r->queue, 0);
  gate_wait(&b->entered);
}

static void *remove_in_thread(void *argument) {
  removal *r = argument;
  r->result = r->remove(r);
  r->had_left = LOAD(r->b->has_left);
  gate_open(&r->returned);
  return NULL;
}

static void waits_for_queued_call(int64_t (*remove)(removal *)) {
  removal r;
  blocker b;
  runner run;
  begin_call(&r, &b, &run, remove);
  r.thread = start_thread(remove_in_thread, &r);
  EVENTUALLY(!multicast_token_is_live(r.token));
  if (remove != by_queue) EVENTUALLY(stats_of(r.queue).retracted == 2); /* before it has waited */
  CHECK(!gate_opens_within(&r.returned, A_WHILE_MS));
  CHECK_EQ(LOAD(b.releases), 0);
  gate_open(&b.let_go);
  join_thread(r.thread);
  CHECK_STATUS(r.result, MULTICAST_OK);
  CHECK(r.had_left);
  CHECK_EQ(LOAD(b.releases), 1);
  CHECK_EQ(run_finished(&run), 1);
  CHECK_EQ(b.calls, 1);
  if (remove != by_queue)
    CHECK_TEXT(figures(r.queue), "queued 3, delivered 1, retracted 2");
}

TEST(queue_call_that_runs_is_waited_for_by_remove) { waits_for_queued_call(by_remove); }
TEST(queue_call_that_runs_is_waited_for_by_token_remove) { waits_for_queued_call(by_token); }
TEST(queue_call_that_runs_is_waited_for_by_within) { waits_for_queued_call(by_within); }
TEST(queue_call_that_runs_is_waited_for_by_within_for_ever) {
  waits_for_queued_call(by_within_for_ever);
}
TEST(queue_call_that_runs_is_waited_for_by_remove_context) { waits_for_queued_call(by_context); }
TEST(queue_call_that_runs_is_waited_for_by_remove_at) { waits_for_queued_call(by_place); }
TEST(queue_call_that_runs_is_waited_for_by_remove_all) { waits_for_queued_call(by_all); }
TEST(queue_call_that_runs_is_waited_for_by_remove_many) { waits_for_queued_call(by_many); }
TEST(queue_call_that_runs_is_waited_for_by_destroy) { waits_for_queued_call(by_destroy); }
TEST(queue_call_that_runs_is_waited_for_by_lifetime_end) { waits_for_queued_call(by_lifetime); }
TEST(queue_call_that_runs_is_waited_for_by_queue_destroy) { waits_for_queued_call(by_queue); }

TEST(queue_call_that_runs_on_a_worker_is_waited_for) {
  removal r;
  blocker b = BLOCKER_INIT;
  add_removable(&r, blocking(&b), default_queue(), release_blocker);
  r.remove = by_token;
  r.b = &b;
  CHECK_OK(multicast_queue_start(r.queue));
  invoke_number(r.target, 1);
  gate_wait(&b.entered);
  r.thread = start_thread(remove_in_thread, &r);
  CHECK(!gate_opens_within(&r.returned, A_WHILE_MS));
  gate_open(&b.let_go);
  join_thread(r.thread);
  CHECK_OK(r.result);
  CHECK(r.had_left);
  CHECK_EQ(LOAD(b.releases), 1);
}

TEST(queue_call_that_runs_is_not_waited_for_by_nowait) {
  removal r;
  blocker b;
  runner run;
  begin_call(&r, &b, &run, by_nowait);
  CHECK_STATUS(multicast_token_remove_nowait(r.token), MULTICAST_PENDING);
  CHECK_TEXT(figures(r.queue), "queued 3, delivered 1, retracted 2");
  CHECK_EQ(LOAD(b.releases), 0);
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&run), 1);
  CHECK_EQ(LOAD(b.releases), 1);
  CHECK_EQ(b.calls, 1);
}

TEST(queue_call_that_runs_is_not_waited_for_by_unique) {
  removal r;
  blocker b;
  runner run;
  begin_call(&r, &b, &run, by_unique);
  CHECK_OK(by_unique(&r));
  CHECK_EQ(invoke_number(r.target, 4), 1);
  CHECK_TEXT(figures(r.queue), "pending 1, queued 4, delivered 1, retracted 2");
  CHECK_EQ(LOAD(b.releases), 0);
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&run), 2); /* the new one's call, too: as many as waited */
  CHECK_EQ(LOAD(b.releases), 1);
  CHECK_EQ(b.calls, 2);
}

TEST(queue_call_that_runs_longer_than_within_is_timeout) {
  removal r;
  blocker b;
  runner run;
  uint64_t before;
  begin_call(&r, &b, &run, by_within);
  before = now_ns();
  CHECK_STATUS(multicast_token_remove_within(r.token, 20000000), MULTICAST_ERROR_TIMEOUT);
  CHECK(now_ns() - before >= 20000000);
  CHECK_STATUS(multicast_token_remove_within(r.token, 0), MULTICAST_ERROR_TIMEOUT);
  CHECK_TEXT(figures(r.queue), "queued 3, delivered 1, retracted 2");
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&run), 1);
  CHECK_EQ(LOAD(b.releases), 1);
}

TEST(queue_call_of_another_delegate_is_not_waited_for) {
  removal r;
  blocker b;
  runner run;
  multicast_token other;
  begin_call(&r, &b, &run, by_token);
  other = add_queued(r.target, noting('x'), r.queue);
  invoke_number(r.target, 9);
  CHECK_OK(multicast_token_remove(other));
  CHECK(!LOAD(b.has_left));
  gate_open(&b.let_go);
  run_finished(&run);
  CHECK_TEXT(noted, "");
}

static void waits_though_removed_before(int64_t (*remove)(removal *), int64_t expected) {
  removal r;
  blocker b;
  runner run;
  begin_call(&r, &b, &run, remove);
  CHECK_STATUS(multicast_token_remove_nowait(r.token), MULTICAST_PENDING);
  r.thread = start_thread(remove_in_thread, &r);
  CHECK(!gate_opens_within(&r.returned, A_WHILE_MS));
  gate_open(&b.let_go);
  join_thread(r.thread);
  CHECK_STATUS(r.result, expected);
  CHECK(r.had_left);
  run_finished(&run);
  CHECK_EQ(LOAD(b.releases), 1);
}

TEST(queue_call_removed_nowait_is_waited_for_by_remove) {
  waits_though_removed_before(by_remove, MULTICAST_ERROR_NOT_FOUND);
}
TEST(queue_call_removed_nowait_is_waited_for_by_token_remove) {
  waits_though_removed_before(by_token, MULTICAST_ERROR_INVALID_HANDLE);
}
TEST(queue_call_removed_nowait_is_waited_for_by_within) {
  waits_though_removed_before(by_within, MULTICAST_ERROR_INVALID_HANDLE);
}
TEST(queue_call_removed_nowait_is_waited_for_by_remove_context) {
  waits_though_removed_before(by_context, 0 - 1);
}
TEST(queue_call_removed_nowait_is_waited_for_by_remove_all) {
  waits_though_removed_before(by_all, 0 - 1);
}
TEST(queue_call_removed_nowait_is_waited_for_by_remove_many) {
  waits_though_removed_before(by_many, 0 - 1);
}
TEST(queue_call_removed_nowait_is_waited_for_by_destroy) {
  waits_though_removed_before(by_destroy, MULTICAST_OK);
}
TEST(queue_call_removed_nowait_is_waited_for_by_queue_destroy) {
  waits_though_removed_before(by_queue, MULTICAST_OK);
}
TEST(queue_call_removed_nowait_is_waited_for_by_lifetime_end) {
  waits_though_removed_before(by_lifetime, MULTICAST_OK);
}

/* ---- Removal inside the delegate's own queued call ------------------------------------------- */

typedef struct own_removal {
  removal r;
  int64_t result;
  int releases, releases_inside, calls;
} own_removal;

static void remove_itself(void *context, uint32_t event, const void *payload, size_t size) {
  own_removal *o = context;
  (void)event;
  (void)payload;
  (void)size;
  ++o->calls;
  o->result = o->r.remove(&o->r);
  o->releases_inside = o->releases;
}

static void release_itself(void *context) { ++((own_removal *)context)->releases; }

static void removes_itself(int64_t (*remove)(removal *), int64_t expected) {
  own_removal o;
  multicast_delegate d;
  memset(&o, 0, sizeof o);
  d.function = remove_itself;
  d.context = &o;
  add_removable(&o.r, d, default_queue(), release_itself);
  o.r.remove = remove;
  invoke_number(o.r.target, 1);
  invoke_number(o.r.target, 2);
  CHECK_EQ(multicast_queue_run(o.r.queue, 0), 1);
  CHECK_STATUS(o.result, expected);
  CHECK_EQ(o.calls, 1);
  CHECK_EQ(o.releases_inside, 0);
  CHECK_EQ(o.releases, 1);
  if (remove != by_queue)
    CHECK_TEXT(figures(o.r.queue), "queued 2, delivered 1, retracted 1");
}

TEST(queue_call_that_removes_itself_is_pending) { removes_itself(by_remove, MULTICAST_PENDING); }
TEST(queue_call_that_removes_its_token_is_pending) { removes_itself(by_token, MULTICAST_PENDING); }
TEST(queue_call_that_removes_itself_nowait_is_pending) {
  removes_itself(by_nowait, MULTICAST_PENDING);
}
TEST(queue_call_that_removes_itself_within_is_pending) {
  removes_itself(by_within_for_ever, MULTICAST_PENDING);
}
TEST(queue_call_that_removes_its_place_is_pending) { removes_itself(by_place, MULTICAST_PENDING); }
TEST(queue_call_that_destroys_its_multicast_is_pending) {
  removes_itself(by_destroy, MULTICAST_PENDING);
}
TEST(queue_call_that_ends_its_lifetime_is_pending) {
  removes_itself(by_lifetime, MULTICAST_PENDING);
}
TEST(queue_call_that_destroys_its_queue_is_pending) {
  removes_itself(by_queue, MULTICAST_PENDING);
}
TEST(queue_call_that_removes_its_context_counts_it) { removes_itself(by_context, 1 - 1); }
TEST(queue_call_that_removes_all_counts_it) { removes_itself(by_all, 1 - 1); }
TEST(queue_call_that_removes_many_counts_it) { removes_itself(by_many, 1 - 1); }
TEST(queue_call_that_replaces_itself_by_unique_is_released_after) {
  removes_itself(by_unique, MULTICAST_OK);
}

/* Two calls, each on its own thread, each removing the other. */
typedef struct rival {
  multicast target;
  multicast_token token;
  struct rival *other;
  gate entered;
  int64_t result;
  int releases;
} rival;

static void remove_the_other(void *context, uint32_t event, const void *payload, size_t size) {
  rival *r = context;
  (void)event;
  (void)payload;
  (void)size;
  gate_open(&r->entered);
  gate_wait(&r->other->entered);
  r->result = multicast_token_remove(r->other->token);
}

static void release_rival(void *context) { ADD(((rival *)context)->releases, 1); }

TEST(queue_calls_that_remove_each_other_do_not_hang) {
  rival rivals[2];
  multicast_queue queues[2];
  runner runs[2];
  int i;
  memset(rivals, 0, sizeof rivals);
  for (i = 0; i < 2; ++i) {
    multicast_delegate d;
    multicast_options options;
    d.function = remove_the_other;
    d.context = &rivals[i];
    rivals[i].entered = shut;
    rivals[i].other = &rivals[1 - i];
    queues[i] = default_queue();
    options = to_queue(queues[i]);
    options.release = release_rival;
    rivals[i].target = multicast_create();
    rivals[i].token = add_with(rivals[i].target, d, &options);
    CHECK_EQ(invoke_number(rivals[i].target, 1), 1);
  }
  for (i = 0; i < 2; ++i) run_in_background(&runs[i], queues[i], 0);
  for (i = 0; i < 2; ++i) CHECK_EQ(run_finished(&runs[i]), 1);
  CHECK(rivals[0].result == MULTICAST_PENDING || rivals[1].result == MULTICAST_PENDING);
  for (i = 0; i < 2; ++i) {
    CHECK(rivals[i].result == MULTICAST_OK || rivals[i].result == MULTICAST_PENDING);
    CHECK_EQ(LOAD(rivals[i].releases), 1);
  }
}

/* ---- MULTICAST_LATEST ------------------------------------------------------------------------ */

static multicast_token add_flagged(multicast m, multicast_delegate d, multicast_queue q,
                                   uint32_t flags) {
  multicast_options options = to_queue(q);
  options.flags = flags;
  options.release = d.function == note_call ? count_release_of : NULL;
  return add_with(m, d, &options);
}

TEST(queue_keeps_the_newest_call_of_a_latest_delegate_in_the_place_of_the_first) {
  multicast_queue q = default_queue();
  multicast m = multicast_create(), other = multicast_create();
  int number = 4;
  add_flagged(m, noting('a'), q, MULTICAST_LATEST);
  add_queued(other, noting('b'), q);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(invoke_number(other, 1), 1);
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK_EQ(invoke_number(m, 3), 1);
  CHECK_EQ(invoke_number(other, 2), 1);
  CHECK_EQ(multicast_invoke(m, 5, &number, sizeof number), 1);
  CHECK_TEXT(figures(q), "pending 3, queued 6, coalesced 3");
  CHECK_EQ(stats_of(q).highest, 3);
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK_TEXT(noted, "a4@5 b1 b2");
  CHECK_TEXT(figures(q), "queued 6, delivered 3, coalesced 3");
}

TEST(queue_keeps_one_call_of_each_latest_delegate) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_flagged(m, noting('a'), q, MULTICAST_LATEST);
  add_flagged(m, noting('b'), q, MULTICAST_LATEST);
  add_flagged(m, noting('a'), q, MULTICAST_LATEST); /* equal, but another registration */
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(invoke_number(m, 2), 3);
  CHECK_TEXT(figures(q), "pending 3, queued 6, coalesced 3");
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK_TEXT(noted, "a2 b2 a2");
}

static void invoke_itself(void *context, uint32_t event, const void *payload, size_t size) {
  requeuer *r = context;
  note_call((void *)(intptr_t)'a', event, payload, size);
  if (r->left-- > 0) {
    CHECK_EQ(invoke_number(r->target, 10), 1);
    CHECK_EQ(invoke_number(r->target, 11), 1);
    CHECK_TEXT(figures(r->queue), "pending 1, queued 3, delivered 1, coalesced 1");
  }
}

TEST(queue_takes_a_latest_call_again_once_the_one_before_has_begun) {
  requeuer r = {{0}, {0}, 1, 0, 0};
  multicast_delegate d;
  r.queue = default_queue();
  r.target = multicast_create();
  d.function = invoke_itself;
  d.context = &r;
  add_flagged(r.target, d, r.queue, MULTICAST_LATEST);
  invoke_number(r.target, 1);
  CHECK_EQ(multicast_queue_run(r.queue, 0), 1);
  CHECK_EQ(multicast_queue_run(r.queue, 0), 1);
  CHECK_TEXT(noted, "a1 a11");
}

TEST(queue_keeps_the_newest_payload_of_any_size_of_a_latest_delegate) {
  static const size_t sizes[] = {4, 4096, 16, 33, 4096, 0, 32, 4097, 5};
  static unsigned char payload[4097];
  static parcel p;
  multicast_queue q;
  multicast m;
  int64_t before = 0;
  size_t i, last;
  int round;
  use_test_allocator();
  q = default_queue();
  m = multicast_create();
  add_flagged(m, keeping(&p), q, MULTICAST_LATEST);
  for (round = 0; round < 2; ++round) {
    for (last = 0; last < 9; ++last) {
      for (i = 0; i <= last; ++i) {
        memset(payload, (int)(i + 1), sizeof payload);
        CHECK_EQ(multicast_invoke(m, (uint32_t)i, payload, sizes[i]), 1);
      }
      CHECK_EQ(multicast_queue_run(q, 0), 1);
      CHECK_EQ(p.size, sizes[last]);
      if (p.size > 0) CHECK(p.bytes[0] == last + 1 && p.bytes[p.size - 1] == last + 1);
      if (p.size > 0) CHECK_EQ((uintptr_t)p.payload % 16, 0);
    }
    if (round == 0) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

TEST(queue_takes_back_the_call_of_a_latest_delegate) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_token token = add_flagged(m, noting('a'), q, MULTICAST_LATEST);
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(releases['a'], 1);
  CHECK_TEXT(figures(q), "queued 2, retracted 1, coalesced 1");
  CHECK_EQ(multicast_queue_run(q, 0), 0);
}

TEST(queue_that_is_full_takes_the_newest_call_of_a_latest_delegate) {
  multicast_queue q = queue_with(2, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create(), other = multicast_create();
  add_flagged(m, noting('a'), q, MULTICAST_LATEST);
  add_queued(other, noting('b'), q);
  invoke_number(m, 1);
  invoke_number(other, 1);
  CHECK_EQ(invoke_number(other, 2), 0);
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_TEXT(noted, "a2 b1");
  CHECK_TEXT(figures(q), "queued 3, delivered 2, refused 1, coalesced 1");
}

TEST(queue_that_is_full_does_not_block_the_newest_call_of_a_latest_delegate) {
  narrow n;
  multicast_options options = multicast_options_default();
  options.flags = MULTICAST_LATEST;
  fill_narrow(&n, &options);
  CHECK_EQ(invoke_number(n.target, 2), 1);
  CHECK_EQ(multicast_queue_run(n.queue, 0), 1);
  CHECK_TEXT(noted, "a2");
}

TEST(queue_that_is_full_drops_the_call_of_a_latest_delegate_and_takes_the_next) {
  multicast_queue q = queue_with(2, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast m = multicast_create(), other = multicast_create();
  add_flagged(m, noting('a'), q, MULTICAST_LATEST);
  add_queued(other, noting('b'), q);
  invoke_number(m, 1);
  invoke_number(other, 1);
  invoke_number(other, 2); /* drops a1 */
  CHECK_EQ(invoke_number(m, 2), 1); /* drops b1 */
  CHECK_EQ(invoke_number(m, 3), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 2);
  CHECK_TEXT(noted, "b2 a3");
  CHECK_TEXT(figures(q), "queued 5, delivered 2, dropped 2, coalesced 1");
}

TEST(queue_flag_latest_changes_nothing_without_a_queue) {
  multicast m = multicast_create();
  multicast_options options = multicast_options_default();
  options.flags = MULTICAST_LATEST;
  add_with(m, noting('a'), &options);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK_TEXT(noted, "a1 a2");
}

TEST(queue_keeps_the_newest_call_of_a_latest_delegate_while_older_ones_are_run) {
  /* Many times around the ring, so that the place of the first is at every position. */
  multicast_queue q = queue_with(3, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create(), other = multicast_create();
  int i;
  add_flagged(m, noting('a'), q, MULTICAST_LATEST);
  add_queued(other, noting('b'), q);
  for (i = 1; i < 100; ++i) {
    char expected[64];
    noted_length = 0;
    CHECK_EQ(invoke_number(other, i), 1);
    CHECK_EQ(invoke_number(m, i), 1);
    CHECK_EQ(multicast_queue_run(q, 1), 1);
    CHECK_EQ(invoke_number(m, i + 1000), 1);
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    snprintf(expected, sizeof expected, "b%d a%d", i, i + 1000);
    CHECK_TEXT(noted, expected);
  }
}

/* ---- MULTICAST_ONCE -------------------------------------------------------------------------- */

static multicast once_target;
static multicast_token once_token;
static int64_t once_count = -1, once_again = -1;
static bool once_was_live;

static void note_once(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  once_count = multicast_count(once_target);
  once_was_live = multicast_token_is_live(once_token);
  once_again = invoke_number(once_target, 99);
  CHECK_EQ(releases[(intptr_t)context], 0);
}

TEST(queue_calls_a_once_delegate_once_and_it_stays_until_then) {
  multicast_queue q = default_queue();
  multicast_delegate d = noting('a');
  multicast_options options = to_queue(q);
  d.function = note_once;
  options.flags = MULTICAST_ONCE;
  options.release = count_release_of;
  once_target = multicast_create();
  once_token = add_with(once_target, d, &options);
  once_was_live = true;
  CHECK_EQ(invoke_number(once_target, 1), 1);
  CHECK_EQ(invoke_number(once_target, 2), 0);
  CHECK_EQ(multicast_count(once_target), 1);
  CHECK(multicast_contains(once_target, d));
  CHECK(multicast_token_is_live(once_token));
  CHECK_EQ(releases['a'], 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a1");
  CHECK_EQ(once_count, 0);
  CHECK_EQ(once_again, 0);
  CHECK(!once_was_live);
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(invoke_number(once_target, 3), 0);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_TEXT(figures(q), "queued 1, delivered 1");
}

TEST(queue_takes_back_the_call_of_a_once_delegate) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_token token = add_flagged(m, noting('a'), q, MULTICAST_ONCE);
  invoke_number(m, 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_TEXT(figures(q), "queued 1, retracted 1");
}

TEST(queue_takes_a_once_delegate_again_that_was_refused) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  multicast m = multicast_create(), other = multicast_create();
  add_queued(other, noting('x'), q);
  add_flagged(m, noting('a'), q, MULTICAST_ONCE);
  invoke_number(other, 1);
  CHECK_EQ(invoke_number(m, 1), 0);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "x1 a2");
  CHECK_EQ(multicast_count(m), 0);
}

TEST(queue_takes_a_once_delegate_again_whose_call_was_dropped) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast m = multicast_create(), other = multicast_create();
  add_queued(other, noting('x'), q);
  add_flagged(m, noting('a'), q, MULTICAST_ONCE);
  invoke_number(m, 1);
  invoke_number(other, 1);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(releases['a'], 0);
  CHECK_EQ(invoke_number(m, 2), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a2");
  CHECK_EQ(releases['a'], 1);
  CHECK_TEXT(figures(q), "queued 3, delivered 1, dropped 2");
}

TEST(queue_takes_back_the_call_of_a_once_delegate_that_was_visited) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int number = 5;
  add_flagged(m, noting('a'), q, MULTICAST_ONCE);
  invoke_number(m, 1);
  CHECK_EQ(multicast_visit(m, visit_all, &number), 1);
  CHECK_TEXT(noted, "a5");
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK_TEXT(noted, "a5");
  CHECK_TEXT(figures(q), "queued 1, retracted 1");
}

TEST(queue_call_of_a_once_delegate_is_waited_for_though_it_is_removed) {
  removal r;
  blocker b = BLOCKER_INIT;
  runner run;
  multicast_options options;
  r.queue = default_queue();
  options = to_queue(r.queue);
  options.flags = MULTICAST_ONCE;
  options.release = release_blocker;
  r.target = multicast_create();
  r.token = add_with(r.target, blocking(&b), &options);
  r.returned = shut;
  r.remove = by_token;
  r.b = &b;
  invoke_number(r.target, 1);
  run_in_background(&run, r.queue, 0);
  gate_wait(&b.entered);
  CHECK_EQ(multicast_count(r.target), 0);
  r.thread = start_thread(remove_in_thread, &r);
  CHECK(!gate_opens_within(&r.returned, A_WHILE_MS));
  gate_open(&b.let_go);
  join_thread(r.thread);
  CHECK_STATUS(r.result, MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(r.had_left);
  CHECK_EQ(run_finished(&run), 1);
  CHECK_EQ(LOAD(b.releases), 1);
}

/* ---- lock and unlock ------------------------------------------------------------------------- */

typedef struct counted {
  int references;
  int locks, unlocks, calls, releases;
  pthread_t locked_on;
  multicast_token remove_in_call;
} counted;

static void *lock_counted(void *context) {
  counted *c = context;
  ++c->locks;
  c->locked_on = pthread_self();
  return c->references > 0 ? c : NULL;
}

static void unlock_counted(void *strong) { ++((counted *)strong)->unlocks; }
static void release_counted(void *context) { ++((counted *)context)->releases; }

static void call_counted(void *context, uint32_t event, const void *payload, size_t size) {
  counted *c = context;
  (void)event;
  (void)payload;
  (void)size;
  CHECK_EQ(c->locks, c->unlocks + 1);
  ++c->calls;
  if (c->remove_in_call.id != 0)
    CHECK_STATUS(multicast_token_remove(c->remove_in_call), MULTICAST_PENDING);
}

static multicast_token add_counted(counted *c, multicast m, multicast_queue q) {
  multicast_options options = to_queue(q);
  multicast_delegate d;
  memset(c, 0, sizeof *c);
  c->references = 1;
  d.function = call_counted;
  d.context = c;
  options.lock = lock_counted;
  options.unlock = unlock_counted;
  options.release = release_counted;
  return add_with(m, d, &options);
}

static pthread_t runs_on;

static void *run_and_say_where(void *argument) {
  runs_on = pthread_self();
  return run_on_a_new_thread(argument);
}

TEST(queue_locks_contexts_as_calls_run_and_where_they_run) {
  counted c;
  runner r;
  multicast m = multicast_create();
  r.queue = default_queue();
  add_counted(&c, m, r.queue);
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_EQ(c.locks, 0);
  on_another_thread(run_and_say_where, &r);
  CHECK_EQ(r.result, 2);
  CHECK(c.locks == 2 && c.unlocks == 2 && c.calls == 2 && c.releases == 0);
  CHECK(pthread_equal(c.locked_on, runs_on));
}

TEST(queue_takes_back_the_calls_of_a_context_found_dead) {
  counted c;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_counted(&c, m, q);
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  invoke_number(m, 3);
  c.references = 0;
  CHECK_EQ(multicast_queue_run(q, SIZE_MAX), 3);
  CHECK_TEXT(noted, "a1 a2 a3");
  CHECK(c.locks == 1 && c.unlocks == 0 && c.calls == 0 && c.releases == 1);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_TEXT(figures(q), "queued 6, delivered 3, retracted 3");
}

TEST(queue_unlocks_a_context_whose_call_removed_itself) {
  counted c;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_token token = add_counted(&c, m, q);
  c.remove_in_call = token;
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(c.locks == 1 && c.unlocks == 1 && c.calls == 1 && c.releases == 1);
  CHECK_TEXT(figures(q), "queued 2, delivered 1, retracted 1");
}

TEST(queue_does_not_lock_what_was_removed) {
  counted c;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_token token = add_counted(&c, m, q);
  invoke_number(m, 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK(c.locks == 0 && c.unlocks == 0 && c.calls == 0 && c.releases == 1);
}

static multicast_token removed_by_lock;

static void *lock_and_remove(void *context) {
  CHECK_STATUS(multicast_token_remove(removed_by_lock), MULTICAST_PENDING);
  return lock_counted(context);
}

TEST(queue_makes_no_call_that_was_removed_by_its_lock) {
  counted c;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_options options = to_queue(q);
  multicast_delegate d;
  memset(&c, 0, sizeof c);
  c.references = 1;
  d.function = call_counted;
  d.context = &c;
  options.lock = lock_and_remove;
  options.unlock = unlock_counted;
  options.release = release_counted;
  removed_by_lock = add_with(m, d, &options);
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_EQ(multicast_queue_run(q, 0), 0);
  CHECK(c.locks == 1 && c.unlocks == 1 && c.calls == 0 && c.releases == 1);
  CHECK_TEXT(figures(q), "queued 2, retracted 2");
}

TEST(queue_locks_a_once_context_and_calls_it_once) {
  counted c;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_options options = to_queue(q);
  multicast_delegate d;
  memset(&c, 0, sizeof c);
  c.references = 1;
  d.function = call_counted;
  d.context = &c;
  options.lock = lock_counted;
  options.unlock = unlock_counted;
  options.release = release_counted;
  options.flags = MULTICAST_ONCE;
  add_with(m, d, &options);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(invoke_number(m, 2), 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(c.locks == 1 && c.unlocks == 1 && c.calls == 1 && c.releases == 1);
}

/* ---- No lock is held ------------------------------------------------------------------------- */

static multicast_queue used_there;
static multicast used_target;
static int64_t run_there;

/* What would hang if a lock were held, on this thread or on another that needs it. */
static void use_queue_there(void) {
  CHECK_EQ(invoke_number(used_target, 5), 1);
  CHECK(stats_of(used_there).pending > 0);
  CHECK(multicast_queue_wait(used_there, 0) > 0);
  CHECK(multicast_queue_fd(used_there) >= 0);
  run_there = multicast_queue_run(used_there, 0);
}

static void release_and_use(void *context) {
  count_release_of(context);
  use_queue_there();
}

static void *lock_and_use(void *context) {
  use_queue_there();
  return context;
}

static void unlock_and_use(void *strong) {
  (void)strong;
  use_queue_there();
}

static multicast_token add_using(multicast m, multicast_delegate d, bool locks) {
  multicast_options options;
  used_there = default_queue();
  used_target = multicast_create();
  add_queued(used_target, noting('u'), used_there);
  options = to_queue(used_there);
  options.release = release_and_use;
  if (locks) options.lock = lock_and_use;
  if (locks) options.unlock = unlock_and_use;
  return add_with(m, d, &options);
}

TEST(queue_may_be_used_inside_a_release) {
  multicast m = multicast_create();
  multicast_token token = add_using(m, noting('a'), false);
  invoke_number(m, 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(run_there, 1);
  CHECK_TEXT(noted, "u5");
}

static void remove_current(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  CHECK_STATUS(multicast_token_remove(multicast_token_current()), MULTICAST_PENDING);
}

TEST(queue_may_be_used_inside_a_release_of_its_own_call) {
  multicast m = multicast_create();
  multicast_delegate d = noting('a');
  d.function = remove_current;
  add_using(m, d, false);
  invoke_number(m, 1);
  CHECK_EQ(multicast_queue_run(used_there, 0), 1);
  CHECK_EQ(run_there, 1); /* nested in the other run */
  CHECK_TEXT(noted, "a1 u5");
  CHECK_EQ(releases['a'], 1);
}

TEST(queue_may_be_used_inside_lock_and_unlock) {
  multicast m = multicast_create();
  add_using(m, noting('a'), true);
  invoke_number(m, 1);
  CHECK_EQ(multicast_queue_run(used_there, 0), 1);
  CHECK_TEXT(noted, "u5 a1 u5");
}

static void release_and_destroy(void *context) {
  count_release_of(context);
  CHECK(multicast_queue_destroy(used_there) >= 0);
}

TEST(queue_may_be_destroyed_inside_a_release_of_its_own_call) {
  multicast m = multicast_create();
  multicast_delegate d = noting('a');
  multicast_options options;
  used_there = default_queue();
  options = to_queue(used_there);
  options.release = release_and_destroy;
  d.function = remove_current;
  add_with(m, d, &options);
  add_queued(m, noting('b'), used_there);
  invoke_number(m, 1);
  CHECK_EQ(multicast_queue_run(used_there, 0), 1);
  CHECK_TEXT(noted, "a1");
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_count(m), 0);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

TEST(queue_wait_returns_how_many_calls_wait) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  CHECK_EQ(multicast_queue_wait(q, 0), 2);
  CHECK_EQ(multicast_queue_wait(q, 1), 2);
  CHECK_EQ(multicast_queue_wait(q, UINT64_MAX), 2);
  multicast_queue_run(q, 1);
  CHECK_EQ(multicast_queue_wait(q, UINT64_MAX), 1);
}

TEST(queue_wait_of_0_looks_once) {
  multicast_queue q = default_queue();
  CHECK_STATUS(multicast_queue_wait(q, 0), MULTICAST_ERROR_TIMEOUT);
}

TEST(queue_wait_is_timeout_after_its_time) {
  multicast_queue q = default_queue();
  uint64_t before = now_ns();
  CHECK_STATUS(multicast_queue_wait(q, 20000000), MULTICAST_ERROR_TIMEOUT);
  CHECK(now_ns() - before >= 20000000);
}

typedef struct waiter {
  multicast_queue queue;
  uint64_t timeout;
  int64_t result;
  gate returned;
  pthread_t thread;
} waiter;

static void *wait_once(void *argument) {
  waiter *w = argument;
  w->result = multicast_queue_wait(w->queue, w->timeout);
  gate_open(&w->returned);
  return NULL;
}

static void wait_in_background(waiter *w, multicast_queue q, uint64_t timeout) {
  w->queue = q;
  w->timeout = timeout;
  w->returned = shut;
  w->result = INT64_MIN;
  w->thread = start_thread(wait_once, w);
}

TEST(queue_wait_is_woken_by_a_call_from_another_thread) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  waiter w[3];
  int i;
  add_queued(m, noting('a'), q);
  for (i = 0; i < 3; ++i) {
    wait_in_background(&w[i], q, i == 0 ? UINT64_C(20000000000) : UINT64_MAX - (uint64_t)(i - 1));
    CHECK(!gate_opens_within(&w[i].returned, A_WHILE_MS));
  }
  CHECK_EQ(invoke_number(m, 1), 1);
  for (i = 0; i < 3; ++i) {
    join_thread(w[i].thread);
    CHECK_EQ(w[i].result, 1);
  }
}

TEST(queue_wait_is_woken_by_destroy_with_invalid_handle) {
  multicast_queue q = default_queue();
  waiter w[3];
  int i;
  for (i = 0; i < 3; ++i) wait_in_background(&w[i], q, UINT64_MAX);
  CHECK(!gate_opens_within(&w[0].returned, A_WHILE_MS));
  CHECK_OK(multicast_queue_destroy(q));
  (void)default_queue(); /* perhaps in the same place */
  for (i = 0; i < 3; ++i) {
    join_thread(w[i].thread);
    CHECK_STATUS(w[i].result, MULTICAST_ERROR_INVALID_HANDLE);
  }
}

static void wait_inside(void *context, uint32_t event, const void *payload, size_t size) {
  note_call((void *)(intptr_t)'a', event, payload, size);
  once_count = multicast_queue_wait(((requeuer *)context)->queue, 1000000);
}

TEST(queue_wait_inside_a_call_counts_what_waits_still) {
  requeuer r;
  begin_requeuing(&r, wait_inside, 0);
  invoke_number(r.target, 2);
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1);
  CHECK_EQ(once_count, 1);
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1);
  CHECK_STATUS(once_count, MULTICAST_ERROR_TIMEOUT);
}

/* ---- The descriptor -------------------------------------------------------------------------- */

TEST(queue_fd_is_readable_while_calls_wait) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int fd = multicast_queue_fd(q), round;
  CHECK(fd >= 0);
  add_queued(m, noting('a'), q);
  for (round = 0; round < 3; ++round) {
    CHECK(!is_readable(fd));
    invoke_number(m, 1);
    CHECK(is_readable(fd));
    invoke_number(m, 2);
    CHECK(is_readable(fd));
    CHECK_EQ(multicast_queue_run(q, 1), 1);
    CHECK(is_readable(fd));
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    CHECK(!is_readable(fd));
    CHECK_EQ(multicast_queue_fd(q), fd);
  }
}

TEST(queue_fd_asked_for_when_calls_wait_is_readable) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int fd;
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  fd = multicast_queue_fd(q);
  CHECK(is_readable(fd));
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(!is_readable(fd));
}

TEST(queue_fd_is_not_readable_after_all_calls_are_taken_back) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int fd = multicast_queue_fd(q);
  multicast_token a = add_queued(m, noting('a'), q), b = add_queued(m, noting('b'), q);
  invoke_number(m, 1);
  CHECK_OK(multicast_token_remove(a));
  CHECK(is_readable(fd));
  CHECK_OK(multicast_token_remove(b));
  CHECK(!is_readable(fd));
}

TEST(queue_fd_stays_readable_when_calls_are_dropped_or_replaced) {
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast m = multicast_create(), latest = multicast_create();
  int fd = multicast_queue_fd(q), i;
  add_queued(m, noting('a'), q);
  add_flagged(latest, noting('b'), q, MULTICAST_LATEST);
  for (i = 0; i < 20; ++i) {
    CHECK_EQ(invoke_number(i % 4 < 2 ? m : latest, i), 1);
    CHECK(is_readable(fd));
  }
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK(!is_readable(fd));
  multicast_queue_run(q, 0);
  CHECK(!is_readable(fd));
}

static int watched_fd;

static void watch_inside(void *context, uint32_t event, const void *payload, size_t size) {
  requeuer *r = context;
  (void)event;
  (void)payload;
  (void)size;
  CHECK(!is_readable(watched_fd)); /* it waits no more */
  if (r->left-- > 0) {
    CHECK_EQ(invoke_number(r->target, 1), 1);
    CHECK(is_readable(watched_fd));
  }
}

TEST(queue_fd_is_readable_inside_a_call_exactly_while_others_wait) {
  requeuer r;
  begin_requeuing(&r, watch_inside, 3);
  watched_fd = multicast_queue_fd(r.queue);
  CHECK_EQ(multicast_queue_run(r.queue, 10), 4);
  CHECK(!is_readable(watched_fd));
}

TEST(queue_fd_is_not_readable_when_the_last_call_is_found_dead) {
  counted c;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int fd = multicast_queue_fd(q);
  add_counted(&c, m, q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  c.references = 0;
  CHECK_EQ(multicast_queue_run(q, 1), 0);
  CHECK(!is_readable(fd));
}

TEST(queue_fd_is_minus_1_for_what_is_no_queue) {
  multicast_queue q = default_queue(), none = {0}, forged;
  multicast m = multicast_create();
  CHECK_EQ(multicast_queue_fd(none), -1);
  forged.id = m.id;
  CHECK_EQ(multicast_queue_fd(forged), -1);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(multicast_queue_fd(q), -1);
}

TEST(queue_fd_is_closed_by_destroy) {
  multicast_queue q = default_queue(), other = default_queue();
  int fd = multicast_queue_fd(q), kept = multicast_queue_fd(other);
  CHECK(fd >= 0 && kept >= 0 && fd != kept);
  CHECK(fcntl(fd, F_GETFD) >= 0);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
  CHECK(fcntl(kept, F_GETFD) >= 0);
}

TEST(queue_fd_is_not_passed_on_to_other_programs) {
  CHECK((fcntl(multicast_queue_fd(default_queue()), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST(queue_fd_is_minus_1_when_the_system_has_none_left_and_works_later) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  struct rlimit old, few;
  int fd;
  add_queued(m, noting('a'), q);
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  few = old;
  few.rlim_cur = 0;
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  CHECK_EQ(multicast_queue_fd(q), -1);
  CHECK_EQ(invoke_number(m, 1), 1);
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  fd = multicast_queue_fd(q);
  CHECK(fd >= 0);
  CHECK(is_readable(fd));
}

static int lowest_free_descriptor(void) {
  int fd = open("/dev/null", O_RDONLY);
  CHECK(fd >= 0);
  close(fd);
  return fd;
}

TEST(queue_without_a_descriptor_opens_none) {
  int before = lowest_free_descriptor();
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  multicast_queue_wait(q, 0);
  multicast_queue_run(q, 0);
  CHECK_EQ(lowest_free_descriptor(), before);
}

/* ---- A thread of its own --------------------------------------------------------------------- */

/* Counts its calls, and looks where they are made: one at a time, on one thread, not on ours. */
typedef struct observer {
  int calls, inside;
  pthread_t on;
  bool is_elsewhere_too; /* not always on the same thread */
  pthread_t maker;
  bool blocks_signals;
} observer;

static void observe(void *context, uint32_t event, const void *payload, size_t size) {
  observer *o = context;
  sigset_t blocked;
  (void)event;
  (void)payload;
  (void)size;
  CHECK_EQ(ADD(o->inside, 1), 1);
  if (o->calls > 0 && !pthread_equal(o->on, pthread_self())) o->is_elsewhere_too = true;
  o->on = pthread_self();
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
  o->blocks_signals = sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGTERM) == 1 &&
                      sigismember(&blocked, SIGUSR1) == 1 && sigismember(&blocked, SIGCHLD) == 1;
  ADD(o->inside, -1);
  ADD(o->calls, 1);
}

static multicast_delegate observing(observer *o) {
  multicast_delegate d;
  memset(o, 0, sizeof *o);
  o->maker = pthread_self();
  d.function = observe;
  d.context = o;
  return d;
}

TEST(queue_worker_makes_the_calls_on_a_thread_of_its_own) {
  observer o;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int i;
  add_queued(m, observing(&o), q);
  invoke_number(m, 0); /* waits already when it starts */
  CHECK_OK(multicast_queue_start(q));
  for (i = 1; i < 100; ++i) {
    CHECK_EQ(invoke_number(m, i), 1);
    if (i % 10 == 0) EVENTUALLY(LOAD(o.calls) == i + 1); /* it sleeps, and is woken */
  }
  EVENTUALLY(LOAD(o.calls) == 100);
  CHECK_OK(multicast_queue_stop(q));
  CHECK(!pthread_equal(o.on, pthread_self()));
  CHECK(!o.is_elsewhere_too);
  CHECK(o.blocks_signals);
  CHECK_TEXT(figures(q), "queued 100, delivered 100");
}

TEST(queue_worker_makes_calls_in_order) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int i;
  char expected[4096];
  size_t used = 0;
  add_queued(m, noting('a'), q);
  CHECK_OK(multicast_queue_start(q));
  for (i = 1; i <= 200; ++i) {
    CHECK_EQ(invoke_number(m, i), 1);
    used += (size_t)sprintf(expected + used, "%sa%d", i > 1 ? " " : "", i);
  }
  EVENTUALLY(stats_of(q).pending == 0);
  CHECK_OK(multicast_queue_stop(q)); /* and so waits for the last */
  CHECK_TEXT(noted, expected);
}

TEST(queue_worker_lets_nobody_else_run_the_queue) {
  multicast_queue q = default_queue();
  CHECK_OK(multicast_queue_start(q));
  CHECK_STATUS(multicast_queue_run(q, 0), MULTICAST_ERROR_STATE);
  CHECK_STATUS(multicast_queue_run(q, 1), MULTICAST_ERROR_STATE);
  CHECK_OK(multicast_queue_stop(q));
  CHECK_EQ(multicast_queue_run(q, 0), 0);
}

TEST(queue_run_inside_a_call_of_its_worker_goes_on_with_the_next) {
  requeuer r;
  begin_requeuing(&r, run_inside, 0);
  invoke_number(r.target, 2);
  invoke_number(r.target, 4);
  CHECK_OK(multicast_queue_start(r.queue));
  EVENTUALLY(stats_of(r.queue).delivered == 3);
  CHECK_OK(multicast_queue_stop(r.queue));
  CHECK_EQ(r.nested, 1);
  CHECK_TEXT(noted, "(1 (2 )2 )1 (4 )4");
}

TEST(queue_start_twice_is_state) {
  multicast_queue q = default_queue();
  CHECK_OK(multicast_queue_start(q));
  CHECK_STATUS(multicast_queue_start(q), MULTICAST_ERROR_STATE);
  CHECK_OK(multicast_queue_stop(q));
}

TEST(queue_stop_without_start_is_state) {
  multicast_queue q = default_queue();
  CHECK_STATUS(multicast_queue_stop(q), MULTICAST_ERROR_STATE);
  CHECK_OK(multicast_queue_start(q));
  CHECK_OK(multicast_queue_stop(q));
  CHECK_STATUS(multicast_queue_stop(q), MULTICAST_ERROR_STATE);
}

TEST(queue_may_be_started_again_and_again) {
  observer o;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  int i;
  add_queued(m, observing(&o), q);
  for (i = 1; i <= 30; ++i) {
    CHECK_OK(multicast_queue_start(q));
    CHECK_EQ(invoke_number(m, i), 1);
    if (i % 2 == 0) EVENTUALLY(LOAD(o.calls) == i);
    CHECK_OK(multicast_queue_stop(q));
    multicast_queue_run(q, 0); /* where it had not come to it */
    CHECK_EQ(LOAD(o.calls), i);
  }
}

typedef struct stopper {
  multicast_queue queue;
  blocker *b;
  gate returned;
  int64_t result;
  bool had_left;
  pthread_t thread;
} stopper;

static void *stop_once(void *argument) {
  stopper *s = argument;
  s->result = multicast_queue_stop(s->queue);
  s->had_left = LOAD(s->b->has_left);
  gate_open(&s->returned);
  return NULL;
}

TEST(queue_stop_lets_the_call_finish_and_keeps_the_rest) {
  blocker b = BLOCKER_INIT;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  stopper s = {{0}, NULL, GATE_INIT, 0, false, 0};
  s.queue = q;
  s.b = &b;
  add_queued(m, blocking(&b), q);
  invoke_number(m, 1);
  invoke_number(m, 2);
  invoke_number(m, 3);
  CHECK_OK(multicast_queue_start(q));
  gate_wait(&b.entered);
  s.thread = start_thread(stop_once, &s);
  CHECK(!gate_opens_within(&s.returned, A_WHILE_MS));
  EVENTUALLY(multicast_queue_start(q) == MULTICAST_ERROR_STATE); /* it is just stopping */
  gate_open(&b.let_go);
  join_thread(s.thread);
  CHECK_OK(s.result);
  CHECK(s.had_left);
  CHECK_TEXT(figures(q), "pending 2, queued 3, delivered 1");
  CHECK_EQ(invoke_number(m, 4), 1);
  pause_ms(A_WHILE_MS);
  CHECK_TEXT(figures(q), "pending 3, queued 4, delivered 1");
  CHECK_EQ(multicast_queue_run(q, 0), 3);
  CHECK_EQ(b.calls, 4);
}

static void stop_inside(void *context, uint32_t event, const void *payload, size_t size) {
  requeuer *r = context;
  (void)event;
  (void)payload;
  (void)size;
  r->nested = multicast_queue_stop(r->queue);
  ADD(r->made, 1);
}

TEST(queue_stop_inside_its_own_call_is_pending) {
  requeuer r;
  multicast_status status;
  begin_requeuing(&r, stop_inside, 0);
  invoke_number(r.target, 2);
  CHECK_OK(multicast_queue_start(r.queue));
  EVENTUALLY(LOAD(r.made) == 1);
  status = multicast_queue_stop(r.queue); /* waits where it has not ended yet */
  CHECK(status == MULTICAST_OK || status == MULTICAST_ERROR_STATE);
  CHECK_STATUS(r.nested, MULTICAST_PENDING);
  CHECK_TEXT(figures(r.queue), "pending 1, queued 2, delivered 1");
  CHECK_OK(multicast_queue_start(r.queue));
  EVENTUALLY(LOAD(r.made) == 2);
}

static void start_and_stop(void *context, uint32_t event, const void *payload, size_t size) {
  requeuer *r = context;
  (void)event;
  (void)payload;
  (void)size;
  CHECK_OK(multicast_queue_start(r->queue));
  r->nested = multicast_queue_stop(r->queue);
}

TEST(queue_stop_inside_a_call_of_run_waits_for_a_worker_that_makes_none) {
  requeuer r;
  begin_requeuing(&r, start_and_stop, 0);
  CHECK_EQ(multicast_queue_run(r.queue, 1), 1);
  CHECK_STATUS(r.nested, MULTICAST_OK); /* the worker's turn has not come, so it can end */
}

static void stop_of_anothers_call(void *context, uint32_t event, const void *payload,
                                  size_t size) {
  requeuer *r = context;
  (void)event;
  (void)payload;
  (void)size;
  r->nested = multicast_queue_stop(r->queue);
}

TEST(queue_stop_inside_a_call_elsewhere_waits_where_no_cycle_closes) {
  blocker b = BLOCKER_INIT;
  requeuer r = {{0}, {0}, 0, 0, -1};
  multicast m = multicast_create();
  multicast_delegate d;
  invoker i;
  r.queue = default_queue();
  r.target = multicast_create();
  d.function = stop_of_anothers_call;
  d.context = &r;
  add(r.target, d);
  add_queued(m, blocking(&b), r.queue);
  invoke_number(m, 1);
  CHECK_OK(multicast_queue_start(r.queue));
  gate_wait(&b.entered);
  invoke_in_background(&i, r.target);
  pause_ms(A_WHILE_MS);
  gate_open(&b.let_go);
  CHECK_EQ(invoke_finished(&i), 1);
  CHECK_OK(r.nested);
  CHECK(LOAD(b.has_left));
}

/* A call of the worker removes a delegate whose call, on another thread, stops or destroys the
 * queue: each would wait for the other. */
typedef struct standoff {
  multicast_queue queue;
  multicast_token direct_token;
  gate in_worker, in_direct;
  bool destroys;
  int64_t removed, stopped;
  int releases;
} standoff;

static void remove_direct(void *context, uint32_t event, const void *payload, size_t size) {
  standoff *s = context;
  (void)event;
  (void)payload;
  (void)size;
  gate_open(&s->in_worker);
  gate_wait(&s->in_direct);
  s->removed = multicast_token_remove(s->direct_token);
}

static void stop_worker(void *context, uint32_t event, const void *payload, size_t size) {
  standoff *s = context;
  (void)event;
  (void)payload;
  (void)size;
  gate_open(&s->in_direct);
  gate_wait(&s->in_worker);
  s->stopped = s->destroys ? multicast_queue_destroy(s->queue) : multicast_queue_stop(s->queue);
}

static void release_standoff(void *context) { ADD(((standoff *)context)->releases, 1); }

static void expect_no_standoff(bool destroys) {
  standoff s;
  multicast m = multicast_create(), direct = multicast_create();
  multicast_options options = with_release(release_standoff);
  multicast_delegate d;
  memset(&s, 0, sizeof s);
  s.in_worker = s.in_direct = shut;
  s.queue = default_queue();
  s.destroys = destroys;
  d.context = &s;
  d.function = stop_worker;
  s.direct_token = add_with(direct, d, &options);
  d.function = remove_direct;
  options.queue = s.queue;
  add_with(m, d, &options);
  CHECK_OK(multicast_queue_start(s.queue));
  invoke_number(m, 1);
  CHECK_EQ(multicast_invoke(direct, 0, NULL, 0), 1);
  if (!destroys) CHECK_OK(multicast_queue_destroy(s.queue));
  EVENTUALLY(LOAD(s.releases) == 2);
  CHECK(s.stopped == MULTICAST_PENDING || s.removed == MULTICAST_PENDING);
  CHECK(s.stopped == MULTICAST_PENDING || s.stopped == MULTICAST_OK);
  CHECK(s.removed == MULTICAST_PENDING || s.removed == MULTICAST_OK);
}

TEST(queue_stop_and_a_removal_by_its_worker_do_not_hang) { expect_no_standoff(false); }
TEST(queue_destroy_and_a_removal_by_its_worker_do_not_hang) { expect_no_standoff(true); }

TEST(queue_destroyed_while_its_worker_sleeps) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  CHECK_OK(multicast_queue_start(q));
  invoke_number(m, 1);
  EVENTUALLY(stats_of(q).delivered == 1);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_TEXT(noted, "a1");
  CHECK_EQ(multicast_count(m), 0);
}

TEST(queue_destroyed_in_a_call_of_its_worker_ends_it) {
  multicast m = multicast_create();
  multicast_delegate d = noting('d');
  multicast_options options;
  doomed = default_queue();
  d.function = destroy_doomed;
  options = to_queue(doomed);
  options.release = count_release_of;
  add_with(m, d, &options);
  add_queued(m, noting('b'), doomed);
  CHECK_EQ(invoke_number(m, 1), 2);
  CHECK_OK(multicast_queue_start(doomed));
  EVENTUALLY(LOAD(releases['d']) == 1);
  CHECK_TEXT(noted, "d1");
  CHECK_STATUS(multicast_queue_stop(doomed), MULTICAST_ERROR_INVALID_HANDLE);
}

TEST(queue_destroyed_with_calls_waiting_for_its_worker_makes_none) {
  removal r;
  blocker b = BLOCKER_INIT;
  multicast other = multicast_create();
  add_removable(&r, blocking(&b), default_queue(), release_blocker);
  r.remove = by_queue;
  r.b = &b;
  add_queued(other, noting('x'), r.queue);
  CHECK_OK(multicast_queue_start(r.queue));
  invoke_number(r.target, 1);
  invoke_number(other, 2);
  gate_wait(&b.entered);
  r.thread = start_thread(remove_in_thread, &r);
  CHECK(!gate_opens_within(&r.returned, A_WHILE_MS));
  gate_open(&b.let_go);
  join_thread(r.thread);
  CHECK_OK(r.result);
  CHECK(r.had_left);
  pause_ms(A_WHILE_MS);
  CHECK_TEXT(noted, "");
  CHECK_EQ(LOAD(b.releases), 1);
}

static int threads_of_process(void) {
  char line[256];
  int count = -1;
  FILE *status = fopen("/proc/self/status", "r");
  CHECK(status != NULL);
  while (fgets(line, sizeof line, status) != NULL) sscanf(line, "Threads: %d", &count);
  fclose(status);
  return count;
}

TEST(queue_workers_end_and_leave_nothing_behind) {
  enum { WORKERS = 100 };
  int64_t before = 0;
  int i;
  use_test_allocator();
  for (i = 0; i < WORKERS; ++i) {
    multicast_queue q = default_queue();
    CHECK_OK(multicast_queue_start(q));
    if (i % 2 == 0) CHECK_OK(multicast_queue_stop(q));
    CHECK_OK(multicast_queue_destroy(q));
    if (i == 10) before = allocated_bytes;
  }
  EVENTUALLY(threads_of_process() < 10); /* this one, and what a sanitizer has */
  /* Some of them were there at once, perhaps, and each had a record. */
  CHECK(LOAD(allocated_bytes) - before < WORKERS / 2 * 8192);
}

static multicast_queue started_inside;
static int64_t start_result;

static void start_in_a_call(void *context, uint32_t event, const void *payload, size_t size) {
  observer *o = context;
  (void)event;
  (void)payload;
  (void)size;
  ADD(o->inside, 1); /* so that a call of the worker's now is noticed */
  start_result = multicast_queue_start(started_inside);
  pause_ms(A_WHILE_MS);
  ADD(o->inside, -1);
}

TEST(queue_worker_started_inside_a_call_begins_after_it_and_ends_the_run) {
  observer o;
  multicast_delegate d = observing(&o), starting;
  multicast m = multicast_create();
  starting.function = start_in_a_call;
  starting.context = &o;
  started_inside = default_queue();
  add_queued(m, starting, started_inside);
  add_queued(m, d, started_inside);
  add_queued(m, d, started_inside);
  CHECK_EQ(invoke_number(m, 1), 3);
  CHECK_EQ(multicast_queue_run(started_inside, 0), 1);
  CHECK_OK(start_result);
  EVENTUALLY(LOAD(o.calls) == 2);
  CHECK_OK(multicast_queue_stop(started_inside));
  CHECK(!pthread_equal(o.on, pthread_self()));
}

TEST(queue_worker_started_while_another_thread_runs_begins_after_it) {
  removal r;
  blocker b;
  runner run;
  begin_call(&r, &b, &run, by_token);
  CHECK_OK(multicast_queue_start(r.queue));
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(b.calls), 1);
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&run), 1);
  EVENTUALLY(LOAD(b.calls) == 3);
  CHECK_OK(multicast_queue_stop(r.queue));
  CHECK_TEXT(figures(r.queue), "queued 3, delivered 3");
}

TEST(queue_stop_of_a_worker_that_waits_for_its_turn_does_not_wait_for_the_run) {
  removal r;
  blocker b;
  runner run;
  begin_call(&r, &b, &run, by_token);
  CHECK_OK(multicast_queue_start(r.queue));
  CHECK_OK(multicast_queue_stop(r.queue));
  CHECK(!LOAD(b.has_left));
  gate_open(&b.let_go);
  CHECK_EQ(run_finished(&run) + multicast_queue_run(r.queue, 0), 3);
}

TEST(queue_wait_sees_what_a_worker_has_not_come_to) {
  removal r;
  blocker b = BLOCKER_INIT;
  add_removable(&r, blocking(&b), default_queue(), NULL);
  CHECK_OK(multicast_queue_start(r.queue));
  invoke_number(r.target, 1);
  gate_wait(&b.entered);
  CHECK_STATUS(multicast_queue_wait(r.queue, 0), MULTICAST_ERROR_TIMEOUT);
  invoke_number(r.target, 2);
  CHECK_EQ(multicast_queue_wait(r.queue, 0), 1);
  gate_open(&b.let_go);
  CHECK_OK(multicast_queue_destroy(r.queue));
}

static void deny_threads(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {(unsigned short)(sizeof filter / sizeof filter[0]), filter};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void start_without_threads(void *unused) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  (void)unused;
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  deny_threads();
  CHECK_STATUS(multicast_queue_start(q), MULTICAST_ERROR_SYSTEM);
  CHECK_STATUS(multicast_queue_start(q), MULTICAST_ERROR_SYSTEM);
  CHECK_STATUS(multicast_queue_stop(q), MULTICAST_ERROR_STATE);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a1");
  CHECK_OK(multicast_queue_destroy(q));
}

TEST(queue_start_is_system_when_there_is_no_thread_left) {
  in_child(start_without_threads, NULL); /* as a sanitizer needs threads at the end of this one */
}

TEST(queue_start_out_of_memory_leaves_it_without_a_worker) {
  multicast_queue q;
  multicast m;
  multicast_status status;
  int which;
  use_test_allocator();
  q = default_queue();
  m = multicast_create();
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  for (which = 0;; ++which) {
    has_failed = false;
    fail_after = which;
    status = multicast_queue_start(q);
    fail_after = -1;
    if (!has_failed) break;
    CHECK_STATUS(status, MULTICAST_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(multicast_queue_stop(q), MULTICAST_ERROR_STATE);
    CHECK_EQ(multicast_queue_run(q, 0), 1);
    invoke_number(m, 1);
  }
  CHECK(which > 0);
  CHECK_OK(status);
  EVENTUALLY(stats_of(q).pending == 0);
  CHECK_OK(multicast_queue_destroy(q));
}

/* ---- Statistics ------------------------------------------------------------------------------ */

TEST(queue_statistics_of_a_bad_struct_size_are_invalid_argument) {
  multicast_queue q = default_queue();
  multicast_queue_stats s;
  uint32_t size;
  for (size = 0; size < sizeof s; ++size) {
    memset(&s, 0xAB, sizeof s);
    s.struct_size = size;
    CHECK_STATUS(multicast_queue_statistics(q, &s), MULTICAST_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(s.struct_size, size);
    CHECK(s.pending == UINT64_C(0xABABABABABABABAB) && s.highest == s.pending);
  }
  s.struct_size = 1025;
  CHECK_STATUS(multicast_queue_statistics(q, &s), MULTICAST_ERROR_INVALID_ARGUMENT);
  s.struct_size = UINT32_MAX;
  CHECK_STATUS(multicast_queue_statistics(q, &s), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(multicast_queue_statistics(q, NULL), MULTICAST_ERROR_INVALID_ARGUMENT);
}

TEST(queue_statistics_serve_newer_callers_if_the_rest_is_zero) {
  struct {
    multicast_queue_stats known;
    uint64_t unknown[8];
  } newer;
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  CHECK_OK(multicast_queue_statistics(q, &newer.known));
  CHECK_EQ(newer.known.struct_size, sizeof newer);
  CHECK_EQ(newer.known.pending, 1);
  CHECK_EQ(newer.unknown[0], 0);
  memset(&newer.known, 0, sizeof newer.known);
  newer.known.struct_size = sizeof newer;
  newer.unknown[7] = UINT64_C(1) << 63;
  CHECK_STATUS(multicast_queue_statistics(q, &newer.known), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(newer.known.pending, 0);
}

static void look_at_figures(void *context, uint32_t event, const void *payload, size_t size) {
  requeuer *r = context;
  (void)event;
  (void)payload;
  (void)size;
  ++r->made;
  CHECK_TEXT(figures(r->queue), r->made == 1 ? "pending 1, queued 2, delivered 1"
                                             : "queued 2, delivered 2");
}

TEST(queue_statistics_count_the_call_that_runs_as_delivered) {
  requeuer r;
  begin_requeuing(&r, look_at_figures, 0);
  invoke_number(r.target, 2);
  CHECK_EQ(multicast_queue_run(r.queue, 0), 2);
}

TEST(queue_statistics_add_up_at_every_step) {
  multicast_queue q = queue_with(4, MULTICAST_OVERFLOW_DROP_OLDEST);
  multicast m = multicast_create();
  multicast_token token = add_queued(m, noting('a'), q);
  int i;
  add_flagged(m, noting('b'), q, MULTICAST_LATEST);
  for (i = 0; i < 200; ++i) {
    invoke_number(m, i);
    stats_of(q);
    if (i % 3 == 0) multicast_queue_run(q, 1);
    stats_of(q);
    if (i % 7 == 0) {
      CHECK_OK(multicast_token_remove(token));
      stats_of(q);
      token = add_queued(m, noting('a'), q);
    }
    noted_length = 0;
  }
}

/* ---- Against a plain model ------------------------------------------------------------------- */

enum { PLAYERS = 7, LATEST_FROM = 5, WAITING = 200 };

/* What the queue ought to be: an array, oldest first. */
static struct {
  struct { int player, number; } waiting[WAITING];
  int count, capacity;
  bool drops;
  multicast_queue_stats stats;
} model;

static struct { int player, number; } made[WAITING * 4];
static int made_count;
static unsigned seed = 1;

static unsigned any(unsigned below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

static void model_erase(int place) {
  memmove(&model.waiting[place], &model.waiting[place + 1],
          (size_t)(model.count - place - 1) * sizeof model.waiting[0]);
  --model.count;
}

static int64_t model_queue(int player, int number) {
  int i;
  if (player >= LATEST_FROM) {
    for (i = 0; i < model.count; ++i) {
      if (model.waiting[i].player != player) continue;
      model.waiting[i].number = number;
      ++model.stats.queued;
      ++model.stats.coalesced;
      return 1;
    }
  }
  if (model.count == model.capacity) {
    if (!model.drops) {
      ++model.stats.refused;
      return 0;
    }
    model_erase(0);
    ++model.stats.dropped;
  }
  model.waiting[model.count].player = player;
  model.waiting[model.count++].number = number;
  ++model.stats.queued;
  if (model.stats.highest < (uint64_t)model.count) model.stats.highest = (uint64_t)model.count;
  return 1;
}

static void model_retract(int player) {
  int i;
  for (i = model.count - 1; i >= 0; --i) {
    if (model.waiting[i].player != player) continue;
    model_erase(i);
    ++model.stats.retracted;
  }
}

/* The payload is the number, then bytes that follow from it: of 4 to 100 bytes. */
static size_t size_of_number(int number) { return 4 + (size_t)(number * 7 % 97); }

static void note_made(void *context, uint32_t event, const void *payload, size_t size) {
  const unsigned char *bytes = payload;
  int number;
  size_t i;
  (void)event;
  memcpy(&number, payload, sizeof number);
  CHECK_EQ(size, size_of_number(number));
  for (i = 4; i < size; ++i) CHECK_EQ(bytes[i], (unsigned char)((size_t)number + i));
  made[made_count].player = (int)(intptr_t)context;
  made[made_count++].number = number;
}

typedef struct player {
  multicast target;
  multicast_token token;
  multicast_lifetime lifetime;
} player;

static void seat(player *p, int which, multicast_queue q) {
  multicast_options options = to_queue(q);
  multicast_delegate d;
  d.function = note_made;
  d.context = (void *)(intptr_t)which;
  options.flags = which >= LATEST_FROM ? MULTICAST_LATEST : 0;
  p->lifetime = multicast_lifetime_create();
  options.lifetime = p->lifetime;
  p->token = add_with(p->target, d, &options);
}

static void unseat(player *p) {
  switch (any(4)) {
    case 0: CHECK_OK(multicast_token_remove(p->token)); break;
    case 1: CHECK_EQ(multicast_remove_all(p->target), 1); break;
    case 2: break; /* the lifetime does it */
    default:
      CHECK_OK(multicast_destroy(p->target));
      p->target = multicast_create();
  }
  CHECK_OK(multicast_lifetime_end(p->lifetime));
}

static void model_queue_and_compare(player *players, int which, int number) {
  unsigned char payload[128];
  size_t i, size = size_of_number(number);
  memcpy(payload, &number, sizeof number);
  for (i = 4; i < size; ++i) payload[i] = (unsigned char)((size_t)number + i);
  CHECK_EQ(multicast_invoke(players[which].target, 0, payload, size), model_queue(which, number));
}

static void model_run_and_compare(multicast_queue q, int max) {
  int i, expected = max == 0 || max > model.count ? model.count : max;
  made_count = 0;
  CHECK_EQ(multicast_queue_run(q, (size_t)max), expected);
  CHECK_EQ(made_count, expected);
  for (i = 0; i < expected; ++i) {
    CHECK_EQ(made[i].player, model.waiting[0].player);
    CHECK_EQ(made[i].number, model.waiting[0].number);
    model_erase(0);
    ++model.stats.delivered;
  }
}

static void model_compare_stats(multicast_queue q) {
  multicast_queue_stats s = stats_of(q);
  model.stats.struct_size = (uint32_t)sizeof s;
  model.stats.pending = (uint64_t)model.count;
  CHECK(memcmp(&s.pending, &model.stats.pending, 8 * sizeof s.pending) == 0);
  CHECK_STATUS(multicast_queue_wait(q, 0),
               model.count > 0 ? model.count : MULTICAST_ERROR_TIMEOUT);
}

static void play(int capacity, bool drops, int steps) {
  player players[PLAYERS];
  multicast_queue q = queue_with((uint32_t)capacity, drops ? MULTICAST_OVERFLOW_DROP_OLDEST
                                                           : MULTICAST_OVERFLOW_REFUSE);
  int fd = multicast_queue_fd(q), number = 0, i, step;
  memset(&model, 0, sizeof model);
  model.capacity = capacity;
  model.drops = drops;
  for (i = 0; i < PLAYERS; ++i) {
    players[i].target = multicast_create();
    seat(&players[i], i, q);
  }
  for (step = 0; step < steps; ++step) {
    unsigned what = any(20);
    i = (int)any(PLAYERS);
    if (what < 12) {
      model_queue_and_compare(players, i, ++number);
    } else if (what < 15) {
      model_run_and_compare(q, (int)any((unsigned)capacity + 2));
    } else if (what < 19) {
      unseat(&players[i]);
      model_retract(i);
      seat(&players[i], i, q);
    } else {
      while (model.count < capacity && any(50) > 0) /* nearly or quite full, then with gaps */
        model_queue_and_compare(players, (int)any(LATEST_FROM), ++number);
    }
    if (step % 5 == 0) model_compare_stats(q);
    CHECK_EQ(is_readable(fd), model.count > 0);
  }
  model_run_and_compare(q, 0);
  CHECK_OK(multicast_queue_destroy(q));
  for (i = 0; i < PLAYERS; ++i) {
    CHECK_EQ(multicast_count(players[i].target), 0);
    CHECK_OK(multicast_destroy(players[i].target));
  }
}

TEST(queue_of_1_call_agrees_with_a_model) {
  play(1, false, 5000);
  play(1, true, 5000);
}
TEST(queue_of_2_calls_agrees_with_a_model) {
  play(2, false, 5000);
  play(2, true, 5000);
}
TEST(queue_of_3_calls_agrees_with_a_model) {
  play(3, false, 5000);
  play(3, true, 5000);
}
TEST(queue_of_11_calls_agrees_with_a_model) {
  play(11, false, 5000);
  play(11, true, 5000);
}
TEST(queue_of_150_calls_agrees_with_a_model) {
  play(150, false, 5000);
  play(150, true, 5000);
}

TEST(queue_that_loses_every_second_call_and_is_filled_again_keeps_order) {
  enum { CAPACITY = 100, ROUNDS = 300 };
  multicast_queue q = queue_with(CAPACITY, MULTICAST_OVERFLOW_REFUSE);
  int round, i, number = 0;
  player players[2];
  memset(&model, 0, sizeof model);
  model.capacity = CAPACITY;
  for (i = 0; i < 2; ++i) {
    players[i].target = multicast_create();
    seat(&players[i], i, q);
  }
  for (round = 0; round < ROUNDS; ++round) {
    for (i = 0; model.count < CAPACITY; ++i) model_queue_and_compare(players, i % 2, ++number);
    model_queue_and_compare(players, 0, ++number); /* refused */
    unseat(&players[round % 2]);
    model_retract(round % 2);
    seat(&players[round % 2], round % 2, q);
    if (round % 3 == 0) model_run_and_compare(q, 1 + round % 40);
    model_compare_stats(q);
  }
  model_run_and_compare(q, 0);
}

/* ---- Adds that fail -------------------------------------------------------------------------- */

TEST(queue_that_is_gone_keeps_unique_from_removing_the_old_one) {
  multicast_queue q = default_queue(), gone = default_queue();
  multicast m = multicast_create();
  multicast_options options = to_queue(gone);
  multicast_token token = {77};
  CHECK_OK(multicast_queue_destroy(gone));
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  options.flags = MULTICAST_UNIQUE;
  options.release = count_release_of;
  CHECK_STATUS(multicast_add(m, noting('a'), &options, &token), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(token.id, 0);
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_count(m), 1);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}

TEST(queue_that_is_gone_fails_an_add_many_and_releases_each) {
  multicast_queue gone = default_queue();
  multicast m = multicast_create();
  multicast_options options = to_queue(gone);
  multicast_delegate d[2];
  multicast_token tokens[2] = {{7}, {8}};
  d[0] = d[1] = noting('a');
  CHECK_OK(multicast_queue_destroy(gone));
  options.release = count_release_of;
  CHECK_STATUS(multicast_add_many(m, d, 2, &options, tokens), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(tokens[0].id == 0 && tokens[1].id == 0);
  CHECK_EQ(releases['a'], 2);
  CHECK_EQ(multicast_count(m), 0);
}

TEST(queue_and_a_lifetime_that_has_ended_fail_an_add) {
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  multicast_options options = to_queue(q);
  options.lifetime = multicast_lifetime_create();
  options.release = count_release_of;
  CHECK_OK(multicast_lifetime_end(options.lifetime));
  CHECK_STATUS(multicast_add(m, noting('a'), &options, NULL), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(releases['a'], 1);
  CHECK_EQ(multicast_count(m), 0);
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(releases['a'], 1);
}

TEST(queue_and_lifetime_both_refer_to_a_registration_until_one_goes) {
  multicast m = multicast_create();
  int round;
  for (round = 0; round < 2; ++round) {
    multicast_queue q = default_queue();
    multicast_options options = to_queue(q);
    multicast_lifetime lifetime = multicast_lifetime_create();
    options.lifetime = lifetime;
    options.release = count_release_of;
    add_with(m, noting('a'), &options);
    CHECK_EQ(multicast_lifetime_count(lifetime), 1);
    invoke_number(m, 1);
    CHECK_OK(round == 0 ? multicast_queue_destroy(q) : multicast_lifetime_end(lifetime));
    CHECK_EQ(multicast_count(m), 0);
    CHECK_EQ(releases['a'], round + 1);
    if (round == 0) CHECK_EQ(multicast_lifetime_count(lifetime), 0);
    CHECK_OK(round == 1 ? multicast_queue_destroy(q) : multicast_lifetime_end(lifetime));
    CHECK_EQ(releases['a'], round + 1);
  }
}

/* ---- Handles --------------------------------------------------------------------------------- */

static void expect_no_queue(uint64_t id) {
  multicast_queue q;
  multicast m = multicast_create();
  multicast_queue_stats s = multicast_queue_stats_default();
  multicast_options options;
  multicast_broadcaster_options to_all = multicast_broadcaster_options_default();
  multicast_token token = {77};
  q.id = id;
  CHECK_STATUS(multicast_queue_run(q, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_run(q, 1), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_wait(q, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_wait(q, UINT64_MAX), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(multicast_queue_fd(q), -1);
  CHECK_STATUS(multicast_queue_start(q), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_stop(q), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_statistics(q, &s), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(multicast_queue_statistics(q, NULL) < 0);
  CHECK_STATUS(multicast_queue_destroy(q), MULTICAST_ERROR_INVALID_HANDLE);
  if (id != 0) { /* which is none, and fine */
    releases['r'] = 0;
    options = to_queue(q);
    options.release = count_release_of;
    CHECK_STATUS(multicast_add(m, noting('r'), &options, &token), MULTICAST_ERROR_INVALID_HANDLE);
    CHECK_EQ(token.id, 0);
    CHECK_EQ(releases['r'], 1);
    CHECK_EQ(multicast_count(m), 0);
    to_all.queue = q;
    CHECK_EQ(multicast_broadcaster_create(&to_all).id, 0);
  }
  CHECK_OK(multicast_destroy(m));
}

TEST(queue_handle_of_0_is_invalid_before_anything_exists) {
  multicast_queue none = {0};
  multicast_queue_stats s = multicast_queue_stats_default();
  CHECK_EQ(multicast_queue_fd(none), -1);
  CHECK_STATUS(multicast_queue_run(none, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_wait(none, UINT64_MAX), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_start(none), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_stop(none), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_statistics(none, &s), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_queue_destroy(none), MULTICAST_ERROR_INVALID_HANDLE);
}

TEST(queue_handle_of_0_is_invalid) {
  default_queue();
  expect_no_queue(0);
}

TEST(queue_handle_is_invalid_after_destroy_though_its_slot_is_used_again) {
  multicast_queue old = default_queue(), fresh;
  multicast m = multicast_create();
  multicast_token token = add_queued(m, noting('a'), old);
  CHECK_OK(multicast_queue_destroy(old));
  expect_no_queue(old.id);
  CHECK(!multicast_token_is_live(token));
  fresh = default_queue();
  CHECK(fresh.id != old.id);
  add_queued(m, noting('b'), fresh);
  invoke_number(m, 1);
  expect_no_queue(old.id);
  CHECK_EQ(multicast_queue_run(fresh, 0), 1);
  CHECK_TEXT(noted, "b1");
}

TEST(queue_handles_of_another_kind_are_invalid) {
  multicast m = multicast_create();
  multicast_queue q = default_queue();
  multicast_token token = add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  expect_no_queue(m.id);
  expect_no_queue(token.id);
  expect_no_queue(multicast_lifetime_create().id);
  expect_no_queue(multicast_broadcaster_create(NULL).id);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}

TEST(queue_handles_that_are_forged_are_invalid) {
  multicast m = multicast_create();
  multicast_queue gone = default_queue(), q = default_queue();
  uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
  int bit, i;
  CHECK_OK(multicast_queue_destroy(gone)); /* a vacant slot is there, too */
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  expect_no_queue(UINT64_MAX);
  for (bit = 0; bit < 64; ++bit) {
    expect_no_queue(q.id ^ UINT64_C(1) << bit);
    if ((gone.id ^ UINT64_C(1) << bit) != q.id) expect_no_queue(gone.id ^ UINT64_C(1) << bit);
    expect_no_queue(UINT64_C(1) << bit);
  }
  for (i = 0; i < 2000; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    if (random != q.id) expect_no_queue(random);
    if ((random & ~UINT64_C(0xFFF)) + (uint64_t)i != q.id)
      expect_no_queue((random & ~UINT64_C(0xFFF)) + (uint64_t)i);
  }
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a1");
}

/* Every function of the other groups. */
static void expect_nothing_but_a_queue(uint64_t id) {
  multicast m, out_of = multicast_create();
  multicast_token token, out;
  multicast_lifetime lifetime;
  multicast_broadcaster broadcaster;
  multicast_delegate d = noting('r'), listed[1];
  multicast_options options = with_release(count_release_of);
  int number = 1;
  m.id = token.id = lifetime.id = broadcaster.id = id;
  CHECK(!multicast_is_valid(m));
  CHECK(!multicast_contains(m, d));
  CHECK_STATUS(multicast_destroy(m), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_add(m, d, NULL, &out), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_add_many(m, &d, 1, NULL, &out), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_remove(m, d), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_remove_many(m, &d, 1), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_remove_context(m, NULL), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_remove_at(m, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_remove_all(m), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_count(m), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_list(m, listed, 1), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_invoke(m, 0, NULL, 0), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_visit(m, visit_all, &number), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(!multicast_token_is_live(token));
  CHECK_STATUS(multicast_token_remove(token), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_token_remove_nowait(token), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_token_remove_within(token, UINT64_MAX), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_token_pause(token), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_token_resume(token), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_lifetime_count(lifetime), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_lifetime_end(lifetime), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_broadcaster_notify(broadcaster, "x", 0, NULL, 0),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_broadcaster_register(broadcaster, "x", d, NULL, &out),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_broadcaster_unregister(broadcaster, "x", d),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_STATUS(multicast_broadcaster_unregister_all(broadcaster, "x"),
               MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(multicast_broadcaster_multicast(broadcaster, "x").id, 0);
  CHECK_STATUS(multicast_broadcaster_destroy(broadcaster), MULTICAST_ERROR_INVALID_HANDLE);
  releases['r'] = 0;
  options.lifetime = lifetime;
  CHECK_STATUS(multicast_add(out_of, d, &options, NULL), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(releases['r'], 1);
  CHECK_OK(multicast_destroy(out_of));
}

TEST(queue_handles_are_invalid_as_handles_of_another_kind) {
  multicast m = multicast_create();
  multicast_queue q = default_queue();
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  expect_nothing_but_a_queue(q.id);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_OK(multicast_queue_destroy(q));
  expect_nothing_but_a_queue(q.id);
}

TEST(queue_has_nothing_that_a_forged_handle_could_lead_to) {
  /* Whatever the library itself keeps for a queue: of any kind, in any slot. */
  multicast m = multicast_create();
  multicast_queue q = default_queue();
  multicast_token token = add_queued(m, noting('a'), q);
  uint64_t kind, index, id, generation;
  invoke_number(m, 1);
  for (kind = 0; kind < 16; ++kind) {
    for (index = 0; index < 64; ++index) {
      for (generation = 0; generation < 8; ++generation) {
        id = (generation << 30) | kind << 26 | index;
        if (id == 0 || id == q.id || id == m.id || id == token.id) continue;
        expect_nothing_but_a_queue(id);
        expect_no_queue(id);
      }
    }
  }
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a1");
}

/* ---- Out of memory --------------------------------------------------------------------------- */

static void use_queue_where_memory_may_fail(multicast_overflow overflow, uint32_t flags) {
  static unsigned char payload[4096];
  multicast_queue_options options = multicast_queue_options_default();
  multicast_queue q;
  multicast m;
  multicast_options how = with_release(count_release_of);
  multicast_status status;
  int64_t result, expected_queued = 0, expected_refused = 0, i;
  noted_length = 0;
  releases['a'] = 0;
  options.capacity = 4;
  options.overflow = overflow;
  q = multicast_queue_create(&options);
  m = multicast_create();
  if (q.id == 0 || m.id == 0) {
    CHECK(has_failed);
    if (q.id != 0) CHECK_OK(multicast_queue_destroy(q));
    if (m.id != 0) CHECK_OK(multicast_destroy(m));
    return;
  }
  how.queue = q;
  how.flags = flags;
  status = multicast_add(m, noting('a'), &how, NULL);
  if (status != MULTICAST_OK) {
    CHECK_STATUS(status, MULTICAST_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(releases['a'], 1);
    CHECK_EQ(multicast_count(m), 0);
  } else {
    for (i = 0; i < 3; ++i) {
      result = multicast_invoke(m, 0, payload, sizeof payload);
      if (result != MULTICAST_ERROR_OUT_OF_MEMORY) { /* which is the thread's first only */
        CHECK(result == 0 || result == 1);
        if (result == 0 && (flags & MULTICAST_ONCE) == 0) ++expected_refused;
        expected_queued += result;
      }
    }
    CHECK_EQ(stats_of(q).queued, expected_queued);
    if ((flags & MULTICAST_ONCE) == 0) CHECK_EQ(stats_of(q).refused, expected_refused);
    result = multicast_queue_run(q, 2);
    CHECK(result >= 0 || result == MULTICAST_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(stats_of(q).delivered, result < 0 ? 0 : result);
  }
  CHECK_OK(multicast_queue_destroy(q));
  CHECK_EQ(multicast_count(m), 0);
  CHECK_EQ(releases['a'], 1);
  CHECK_OK(multicast_destroy(m));
}

static void *fail_each_allocation_of_a_queue(void *given) {
  const bool is_first = given != NULL;
  static const uint32_t flags[] = {0, MULTICAST_LATEST, MULTICAST_ONCE};
  int mode, which, i;
  for (i = 0; i < 9; ++i) {
    for (mode = 0; mode < 2; ++mode) {
      fail_only_once = mode == 0;
      for (which = 0;; ++which) {
        int64_t before = allocated_bytes;
        CHECK(which < 1000);
        has_failed = false;
        fail_after = which;
        use_queue_where_memory_may_fail((multicast_overflow)(i % 3), flags[i / 3]);
        fail_after = -1;
        if (!is_first) CHECK_EQ(allocated_bytes, before);
        if (!has_failed) break;
      }
      CHECK(which >= 2);
    }
  }
  return NULL;
}

TEST(queue_out_of_memory_at_any_allocation_loses_nothing) {
  use_test_allocator();
  fail_each_allocation_of_a_queue(&noted); /* takes what is kept for later */
  fail_each_allocation_of_a_queue(NULL);
}

TEST(queue_out_of_memory_at_any_allocation_of_a_new_thread) {
  int64_t before;
  use_test_allocator();
  on_another_thread(fail_each_allocation_of_a_queue, &noted);
  before = allocated_bytes;
  on_another_thread(fail_each_allocation_of_a_queue, &noted);
  CHECK_EQ(allocated_bytes, before);
}

TEST(queue_out_of_memory_in_add_many_adds_none_and_releases_all) {
  int mode, which;
  use_test_allocator();
  for (mode = 0; mode < 4; ++mode) {
    fail_only_once = mode % 2 == 0;
    for (which = 0;; ++which) {
      multicast_queue q = default_queue();
      multicast m = multicast_create();
      multicast_options options = to_queue(q);
      multicast_delegate d[20];
      multicast_status status;
      int i;
      int64_t before = allocated_bytes;
      for (i = 0; i < 20; ++i) d[i] = noting('a');
      options.release = count_release_of;
      releases['a'] = 0;
      has_failed = false;
      fail_after = which;
      status = multicast_add_many(m, d, 20, &options, NULL);
      fail_after = -1;
      if (has_failed) {
        CHECK_STATUS(status, MULTICAST_ERROR_OUT_OF_MEMORY);
        CHECK_EQ(releases['a'], 20);
        CHECK_EQ(multicast_count(m), 0);
        if (mode > 1) CHECK_EQ(allocated_bytes, before);
      } else {
        CHECK_OK(status);
        CHECK_EQ(invoke_number(m, 1), 20);
      }
      CHECK_OK(multicast_queue_destroy(q));
      CHECK_EQ(releases['a'], 20);
      CHECK_OK(multicast_destroy(m));
      if (!has_failed) break;
    }
    CHECK(which > 0);
  }
}

TEST(queue_create_out_of_memory_is_the_null_handle_and_works_later) {
  use_test_allocator();
  fail_after = 0;
  fail_only_once = false;
  CHECK_EQ(multicast_queue_create(NULL).id, 0);
  fail_after = -1;
  CHECK(multicast_queue_create(NULL).id != 0);
}

/* A full queue: what cannot be copied is refused, and what waits stays as it is. */
static void refuses_what_cannot_be_copied(multicast_overflow overflow, uint32_t flags) {
  static unsigned char payload[4096];
  multicast_queue q;
  multicast m;
  use_test_allocator();
  q = queue_with(1, overflow);
  m = multicast_create();
  add_flagged(m, noting('a'), q, flags);
  CHECK_EQ(invoke_number(m, 1), 1);
  fail_after = 0;
  CHECK_EQ(multicast_invoke(m, 0, payload, 4096), 0);
  fail_after = -1;
  CHECK_TEXT(figures(q), "pending 1, queued 1, refused 1");
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_TEXT(noted, "a1");
}

TEST(queue_refuses_what_cannot_be_copied) {
  refuses_what_cannot_be_copied(MULTICAST_OVERFLOW_REFUSE, 0);
}
TEST(queue_drops_nothing_for_what_cannot_be_copied) {
  refuses_what_cannot_be_copied(MULTICAST_OVERFLOW_DROP_OLDEST, 0);
}
TEST(queue_does_not_block_for_what_cannot_be_copied) {
  refuses_what_cannot_be_copied(MULTICAST_OVERFLOW_BLOCK, 0);
}
TEST(queue_keeps_the_latest_that_could_be_copied) {
  refuses_what_cannot_be_copied(MULTICAST_OVERFLOW_REFUSE, MULTICAST_LATEST);
}

TEST(queue_counts_each_delegate_for_which_there_was_no_memory) {
  static unsigned char payload[4096];
  multicast_queue q;
  multicast m;
  int i;
  use_test_allocator();
  q = default_queue();
  m = multicast_create();
  for (i = 0; i < 5; ++i) add_queued(m, noting('a'), q);
  add(m, noting('b'));
  fail_only_once = false;
  CHECK_EQ(invoke_number(m, 1), 6);
  CHECK_EQ(multicast_queue_run(q, 0), 5);
  fail_after = 0;
  CHECK_EQ(multicast_invoke(m, 0, payload, 4096), 1);
  fail_after = -1;
  CHECK_TEXT(figures(q), "queued 5, delivered 5, refused 5");
}

static void *allocate_a_little(void *context, size_t size, size_t alignment) {
  void *block = NULL;
  (void)context;
  if (size > (size_t)1 << 24) return NULL;
  return posix_memalign(&block, alignment < 16 ? 16 : alignment, size) == 0 ? block : NULL;
}

static void give_back(void *context, void *block, size_t size, size_t alignment) {
  (void)context;
  (void)size;
  (void)alignment;
  free(block);
}

TEST(queue_of_payloads_larger_than_memory_refuses_them) {
  multicast_allocator allocator = multicast_allocator_default();
  multicast_queue q;
  multicast m;
  int byte = 0, i;
  allocator.allocate = allocate_a_little;
  allocator.deallocate = give_back;
  CHECK_OK(multicast_set_allocator(&allocator));
  q = default_queue();
  m = multicast_create();
  add_queued(m, noting('a'), q);
  for (i = 0; i < 100; ++i) { /* so large that room for more than the payload wraps around */
    CHECK_EQ(multicast_invoke(m, 0, &byte, SIZE_MAX - (size_t)i), 0);
    CHECK_EQ(multicast_invoke(m, 0, &byte, (size_t)PTRDIFF_MAX - (size_t)i), 0);
    CHECK_EQ(multicast_invoke(m, 0, &byte, ((size_t)PTRDIFF_MAX) + 1 + (size_t)i), 0);
  }
  CHECK_TEXT(figures(q), "refused 300");
}

TEST(queue_rounds_of_everything_leak_nothing) {
  static unsigned char payload[4096];
  int64_t before = 0;
  int round, i;
  use_test_allocator();
  for (round = 0; round < 300; ++round) {
    multicast_queue q = queue_with(1 + (uint32_t)round % 20, (multicast_overflow)(round % 2));
    multicast m = multicast_create(), other = multicast_create();
    multicast_token token = add_flagged(m, noting('a'), q, round % 3 == 0 ? MULTICAST_LATEST : 0);
    add_flagged(m, noting('b'), q, round % 5 == 0 ? MULTICAST_ONCE : 0);
    add_queued(other, noting('c'), q);
    noted_length = 0;
    for (i = 0; i < 30; ++i) {
      multicast_invoke(i % 2 == 0 ? m : other, 0, payload, (size_t)((i * 37 + round) % 4097));
      if (i == 20) CHECK_OK(multicast_token_remove(token));
    }
    multicast_queue_run(q, (size_t)(round % 7));
    if (round % 4 == 0) CHECK(multicast_queue_fd(q) >= 0);
    if (round % 2 == 0) CHECK_OK(multicast_queue_destroy(q));
    CHECK_OK(multicast_destroy(m));
    CHECK_OK(multicast_destroy(other));
    if (round % 2 == 1) CHECK_OK(multicast_queue_destroy(q));
    if (round == 100) before = allocated_bytes;
  }
  CHECK_EQ(allocated_bytes, before);
}

/* ---- Which thread it is, and how deep its stack ---------------------------------------------- */

static void *use_queue_on_small_stack(void *argument) {
  requeuer *r = argument;
  unsigned char payload[1000] = {0};
  CHECK_EQ(multicast_invoke(r->target, 0, payload, sizeof payload), 1);
  CHECK_EQ(invoke_number(r->target, 1), 1);
  CHECK_EQ(multicast_queue_run(r->queue, 0), 2);
  CHECK_OK(multicast_queue_start(r->queue));
  CHECK_OK(multicast_queue_stop(r->queue));
  CHECK_OK(multicast_queue_destroy(r->queue));
  return NULL;
}

TEST(queue_operations_fit_a_stack_of_64_kilobytes) {
  pthread_attr_t attributes;
  pthread_t thread;
  requeuer r;
  int calls = 0;
  r.queue = default_queue();
  r.target = multicast_create();
  add_queued(r.target, counter(&calls), r.queue);
  CHECK_EQ(pthread_attr_init(&attributes), 0);
  CHECK_EQ(pthread_attr_setstacksize(&attributes, 65536), 0);
  CHECK_EQ(pthread_create(&thread, &attributes, use_queue_on_small_stack, &r), 0);
  join_thread(thread);
  CHECK_EQ(calls, 2);
}

TEST(queue_starts_no_thread_behind_the_callers_back) {
  int before = threads_of_process();
  multicast_queue q = default_queue();
  multicast m = multicast_create();
  add_queued(m, noting('a'), q);
  invoke_number(m, 1);
  CHECK(multicast_queue_fd(q) >= 0);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(threads_of_process(), before);
}
