/* Tokens and lifetimes. */

#include "calls.h"
#include "expect.h"
#include "history.h"
#include "values.h"

static multicast_token any_token(void) {
  multicast_token t = {any_handle()};
  if (any_byte() < 32) t = multicast_token_current();
  return t;
}

static void remove_it(void) {
  multicast_token t = any_token();
  NOTE("multicast_token_remove(%llx)", (long long)t.id);
  EXPECT_STATUS(multicast_token_remove(t), MULTICAST_PENDING, MULTICAST_ERROR_INVALID_HANDLE);
  EXPECT(!multicast_token_is_live(t), "a registration that is removed and live");
}

static void remove_nowait(void) {
  multicast_token t = any_token();
  NOTE("multicast_token_remove_nowait(%llx)", (long long)t.id);
  EXPECT_STATUS(multicast_token_remove_nowait(t), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE);
  EXPECT(!multicast_token_is_live(t), "a registration that is removed and live");
}

static void remove_within(void) {
  multicast_token t = any_token();
  uint64_t timeout = any_byte() < 128 ? any_uint64() : any_byte();
  NOTE("multicast_token_remove_within(%llx, %llx)", (long long)t.id, (long long)timeout);
  EXPECT_STATUS(multicast_token_remove_within(t, timeout), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_TIMEOUT);
}

static void pause_or_resume(void) {
  multicast_token t = any_token();
  NOTE("multicast_token_pause or _resume(%llx)", (long long)t.id);
  if (any_byte() & 1) EXPECT_STATUS(multicast_token_pause(t), MULTICAST_ERROR_INVALID_HANDLE);
  else EXPECT_STATUS(multicast_token_resume(t), MULTICAST_ERROR_INVALID_HANDLE);
}

static void create_lifetime(void) {
  multicast_lifetime l = multicast_lifetime_create();
  NOTE("multicast_lifetime_create() = %llx", (long long)l.id);
  keep_handle(l.id);
}

static void count_lifetime(void) {
  multicast_lifetime l = {any_handle()};
  NOTE("multicast_lifetime_count(%llx)", (long long)l.id);
  EXPECT_COUNT(multicast_lifetime_count(l), MULTICAST_ERROR_INVALID_HANDLE);
}

static void end_lifetime(void) {
  multicast_lifetime l = {any_handle()};
  NOTE("multicast_lifetime_end(%llx)", (long long)l.id);
  EXPECT_STATUS(multicast_lifetime_end(l), MULTICAST_PENDING, MULTICAST_ERROR_INVALID_HANDLE);
  EXPECT_EQ(multicast_lifetime_count(l), MULTICAST_ERROR_INVALID_HANDLE);
}

static const any_call calls[] = {remove_it,       remove_nowait,   remove_within,
                                 pause_or_resume, create_lifetime, count_lifetime,
                                 end_lifetime};
const call_table token_calls = {calls, sizeof calls / sizeof calls[0]};
