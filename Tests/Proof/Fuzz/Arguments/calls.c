#include "calls.h"

#include <pthread.h>
#include <stdio.h>

#include "expect.h"
#include "history.h"
#include "values.h"

void expect_result(const char *file, int line, const char *call, int64_t result, bool is_count,
                   const int *allowed) {
  outcomes o = {{0}, 0};
  NOTE("= %lld", result);
  if (is_count && result >= 0) return;
  for (; *allowed != 0; ++allowed) allow(&o, *allowed);
  allow(&o, 0);
  expect_allowed(file, line, call, result, &o);
}

static pthread_t fuzzing_thread;

void begin_calls(void) { fuzzing_thread = pthread_self(); }

bool is_fuzzing_thread(void) { return pthread_equal(pthread_self(), fuzzing_thread); }

void call_something(void) {
  history_indent();
  any_calls[any_byte() % any_call_count]();
  history_outdent();
}

void destroy_everything(void) {
  for (int i = kept_handles() - 1; i >= 0; --i) {
    uint64_t id = kept_handle(i);
    multicast_queue_destroy((multicast_queue){id});
    multicast_lifetime_end((multicast_lifetime){id});
    multicast_broadcaster_destroy((multicast_broadcaster){id});
    multicast_destroy((multicast){id});
    multicast_token_remove((multicast_token){id}); /* of the default broadcaster */
    EXPECT(!multicast_is_valid((multicast){id}), "a destroyed multicast is valid");
    EXPECT(!multicast_token_is_valid((multicast_token){id}), "a token is live after its removal");
    EXPECT(multicast_queue_wait((multicast_queue){id}, 0) == MULTICAST_ERROR_INVALID_HANDLE,
           "a destroyed queue is valid");
    EXPECT(multicast_lifetime_count((multicast_lifetime){id}) == MULTICAST_ERROR_INVALID_HANDLE,
           "an ended lifetime is valid");
  }
}
