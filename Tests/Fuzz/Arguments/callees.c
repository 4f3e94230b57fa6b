#include "callees.h"

#include <string.h>

#include "calls.h"
#include "expect.h"
#include "values.h"

enum { DEEPEST = 12 };

static int depth;

/* Does nothing on the thread of a queue: only the fuzzing thread reads the input. */
void callee_call_on(void) {
  if (!is_fuzzing_thread() || depth >= DEEPEST || any_byte() < 128) return;
  ++depth;
  while (values_are_left() && any_byte() >= 64) call_something();
  --depth;
}

static void do_nothing(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
}

static void read_payload(void *context, uint32_t event, const void *payload, size_t size) {
  const unsigned char *bytes = payload;
  volatile unsigned char sum = 0;
  size_t i;
  (void)context, (void)event;
  for (i = 0; i < size; ++i) sum = (unsigned char)(sum + bytes[i]);
}

static void do_something(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
  EXPECT(multicast_token_current().id != 0, "a call without a current token");
  callee_call_on();
}

const multicast_function callee_functions[CALLEES] = {do_nothing, read_payload, do_something};

void callee_release(void *context) {
  (void)context;
  callee_call_on();
}

void *callee_lock(void *context) {
  callee_call_on();
  return (uintptr_t)context == 3 ? NULL : (void *)((uintptr_t)context + 64);
}

void callee_unlock(void *strong) {
  EXPECT((uintptr_t)strong >= 64 && (uintptr_t)strong < 68, "a pointer that lock has not returned");
  callee_call_on();
}

void callee_wake(void *context) {
  EXPECT(context == (void *)&callee_functions, "a wake with the wrong context");
  callee_call_on();
}

void callee_interest(void *context, multicast target, bool wanted) {
  EXPECT(context == NULL && target.id != 0, "an interest with the wrong context");
  (void)wanted;
  callee_call_on();
}

bool callee_visit(void *context, const multicast_delegate *delegate) {
  EXPECT(context == (void *)&callee_functions, "a visit with the wrong context");
  EXPECT(delegate->function != NULL, "a delegate without a function");
  callee_call_on();
  return !is_fuzzing_thread() || any_byte() >= 16;
}

bool callee_enumerate(void *context, const multicast_registration *registration) {
  EXPECT(context == (void *)&callee_functions, "an enumeration with the wrong context");
  EXPECT(registration->delegate.function != NULL, "a registration without a function");
  EXPECT_EQ(registration->token.id, multicast_token_current().id);
  callee_call_on();
  return !is_fuzzing_thread() || any_byte() >= 16;
}

bool callee_write(void *context, const char *text, size_t size) {
  EXPECT(context == (void *)&callee_functions, "a text with the wrong context");
  EXPECT(memchr(text, '\n', size) == text + size - 1, "not one line");
  callee_call_on();
  return !is_fuzzing_thread() || any_byte() >= 4;
}
