/* USDT probes. Each test prints a line for every probe that it should hit, with the expected
 * arguments. check-probes compares these lines with the lines that a debugger prints. */

#include "removals.h"
#include "reports.h"
#include "watches.h"

#include <stdarg.h>

static report text;

/* ---- Expectations ---------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void expect(const char *format, ...) {
  va_list values;
  va_start(values, format);
  fputs("probe: ", stdout);
  vprintf(format, values);
  putchar('\n');
  va_end(values);
}

static unsigned long long address(const void *pointer) { return (uintptr_t)pointer; }

static unsigned long long number(uint64_t value) { return value; }

static void expect_begin(multicast m, unsigned event, const void *payload, size_t size) {
  expect("invoke__begin %llx %x %llx %llx", number(m.id), event, address(payload), number(size));
}

static void expect_end(multicast m, unsigned event, unsigned count) {
  expect("invoke__end %llx %x %x", number(m.id), event, count);
}

/* Expects the probes of one call to count_call(). A 1 stands for the measured time, which must not
 * be 0. */
static void expect_call(multicast_token token, unsigned event, const char *label) {
  unsigned long long function = (uintptr_t)count_call;
  expect("call__begin %llx %x %llx %llx", number(token.id), event, function, address(&calls));
  expect("call__end %llx %x 1 %s", number(token.id), event, label);
}

static void expect_append(multicast_queue q, multicast_token token, unsigned event, unsigned what) {
  expect("queue__append %llx %llx %x %x", number(q.id), number(token.id), event, what);
}

static void expect_run(multicast_queue q, multicast_token token, unsigned event) {
  expect("queue__run %llx %llx %x", number(q.id), number(token.id), event);
}

/* ---- The tests ------------------------------------------------------------------------------- */

static bool stop_at_second(void *context, const multicast_delegate *delegate) {
  return ++*(int *)context < 2;
}

TEST_OF_MULTICAST(probes_are_reached_while_a_watch_is_set) {
  const char payload[] = "payload";
  multicast_queue q = queue_with(1, MULTICAST_OVERFLOW_REFUSE);
  multicast_watch given = multicast_watch_default();
  int visits = 0;
  multicast_add_options options = ADD_OPTIONS(.label = "direct");
  multicast_token direct = add_with(m, counter(&calls), &options);
  options.queue = q;
  options.label = "queued";
  multicast_token queued = add_with(m, counter(&calls), &options);
  CHECK_EQ(multicast_invoke(m, 1, NULL, 0), 2);
  CHECK_EQ(multicast_queue_run(q, 0), 1);

  watch(m, given);
  expect_begin(m, 2, payload, sizeof payload);
  expect_call(direct, 2, "direct");
  expect_append(q, queued, 2, 0);
  expect_end(m, 2, 2);
  CHECK_EQ(multicast_invoke(m, 2, payload, sizeof payload), 2);

  expect_begin(m, 3, NULL, 0);
  expect_call(direct, 3, "direct");
  expect_append(q, queued, 3, 1);
  expect_end(m, 3, 1);
  CHECK_EQ(multicast_invoke(m, 3, NULL, 0), 1);

  expect_run(q, queued, 2);
  expect_call(queued, 2, "queued");
  CHECK_EQ(multicast_queue_run(q, 0), 1);

  expect_begin(m, 0, NULL, 0);
  expect_call(direct, 0, "direct");
  expect_call(queued, 0, "queued");
  expect_end(m, 0, 2);
  CHECK_EQ(multicast_visit(m, visit_all, NULL), 2);

  expect_begin(m, 0, NULL, 0);
  expect_call(direct, 0, "direct");
  expect_call(queued, 0, "queued");
  expect_call(direct, 0, "direct");
  expect_end(m, 0, 0);
  CHECK_EQ(multicast_visit_undo(m, stop_at_second, visit_all, &visits), 0);

  expect_call(direct, 4, "direct");
  CHECK_EQ(multicast_token_invoke(direct, 4, NULL, 0), 1);

  expect_append(q, queued, 5, 0);
  CHECK_EQ(multicast_token_invoke(queued, 5, NULL, 0), 1);

  unwatch(m);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
  CHECK_EQ(multicast_invoke(m, 6, NULL, 0), 2);
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}

static multicast awaited;
static gate entered = GATE_INIT;

static void call_until_awaited(void *context, uint32_t event, const void *payload, size_t size) {
  gate_open(&entered);
  EVENTUALLY(strstr(described(&text, awaited), "waits") != NULL);
}

TEST(probe_of_a_removal_that_waits_is_reached_without_a_watch) {
  invoker i;
  awaited = multicast_create();
  multicast_token token = add(awaited, DELEGATE(call_until_awaited, NULL));
  invoke_in_background(&i, awaited);
  gate_wait(&entered);
  expect("remove__wait %llx", number(token.id));
  CHECK_OK(multicast_token_remove(token));
  CHECK_EQ(invoke_finished(&i), 1);
}
