#include "callees.h"

#include <string.h>

#include "calls.h"
#include "expect.h"
#include "values.h"

enum { DEEPEST = 12 };

static int depth;

/* Only the fuzzing thread reads the input, so this function does nothing on a queue's thread. */
void callee_call_on(void) {
  if (!is_fuzzing_thread() || depth >= DEEPEST || any_byte() < 128) return;
  ++depth;
  while (values_are_left() && any_byte() >= 64) call_something();
  --depth;
}

static void do_nothing(void *context, uint32_t event, const void *payload, size_t size) {}

/* If the invocation has a copy or release function, the payload may be NULL although the size is
 * not 0. */
static void read_payload(void *context, uint32_t event, const void *payload, size_t size) {
  const unsigned char *bytes = payload;
  volatile unsigned char sum = 0;
  for (size_t i = 0; bytes != NULL && i < size; ++i) sum = (unsigned char)(sum + bytes[i]);
}

static void do_something(void *context, uint32_t event, const void *payload, size_t size) {
  EXPECT(multicast_token_current().id != 0, "a call without a current token");
  callee_call_on();
}

const multicast_function callee_functions[CALLEES] = {do_nothing, read_payload, do_something};

void callee_release(void *context) {
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

void callee_listeners_changed(void *context, multicast target, bool wanted) {
  EXPECT(context == NULL && target.id != 0, "listeners_changed with the wrong context");
  callee_call_on();
}

/* Returns a status for a transport's function: MULTICAST_OK, or sometimes MULTICAST_ERROR_TIMEOUT.
 * No other error is returned, because multicast_broadcaster_notify_with() would pass it on, and the
 * target would then expect that no observer has been called. */
static multicast_status any_status(void) {
  return is_fuzzing_thread() && any_byte() < 16 ? MULTICAST_ERROR_TIMEOUT : MULTICAST_OK;
}

static void expect_name(void *context, const char *name) {
  size_t size = strlen(name);
  EXPECT(context == (void *)&callee_functions, "a transport with the wrong context");
  EXPECT(size > 0 && size < 256, "a transport with a wrong name");
}

multicast_status callee_publish(void *context, const char *name, uint32_t event,
                                const void *payload, size_t size) {
  expect_name(context, name);
  read_payload(context, event, payload, size);
  callee_call_on();
  return any_status();
}

/* The string is either a name, or a NUL followed by a prefix. */
static void expect_subscribed(void *context, const char *name) {
  if (name[0] != 0) expect_name(context, name);
  else EXPECT(strlen(name + 1) < 255, "a transport with a wrong prefix");
}

multicast_status callee_subscribe(void *context, const char *name) {
  expect_subscribed(context, name);
  callee_call_on();
  return any_status();
}

void callee_unsubscribe(void *context, const char *name) {
  expect_subscribed(context, name);
  callee_call_on();
}

bool callee_visit(void *context, const multicast_delegate *delegate) {
  EXPECT(context == (void *)&callee_functions, "a visit with the wrong context");
  EXPECT(delegate->function != NULL, "a delegate without a function");
  callee_call_on();
  return !is_fuzzing_thread() || any_byte() >= 16;
}

void callee_slow(void *context, multicast_token token, const char *label, uint64_t elapsed_ns) {
  EXPECT(context == (void *)&callee_functions, "a watch with the wrong context");
  EXPECT(label == NULL || strlen(label) < 64, "a label that is too long");
  callee_call_on();
}

static bool is_of_transport(multicast_token token) {
  multicast_registration r = multicast_registration_default();
  int i;
  /* The registration may already have been removed. */
  if (multicast_token_get_registration(token, &r) != MULTICAST_OK) return true;
  for (i = 0; i < CALLEES && callee_functions[i] != r.delegate.function;) ++i;
  return i == CALLEES;
}

void callee_called(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns) {
  EXPECT(context == (void *)&callee_functions, "a watch with the wrong context");
  if (!is_of_transport(token)) EXPECT_EQ(token.id, multicast_token_current().id);
  callee_call_on();
}

void callee_listener_warning(void *context, multicast target, uint64_t count, const char *label,
                    multicast_function function, uint64_t most) {
  EXPECT(context == (void *)&callee_functions, "a watch with the wrong context");
  EXPECT(target.id != 0 && count >= 2, "a warning without listeners");
  EXPECT(label == NULL || strlen(label) < 64, "a label that is too long");
  EXPECT_EQ((label != NULL) + (function != NULL), most != 0);
  EXPECT(most <= count, "a part that is larger than the count");
  callee_call_on();
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
