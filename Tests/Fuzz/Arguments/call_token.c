#include <string.h>

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
  uint64_t timeout = any_timeout();
  NOTE("multicast_token_remove_within(%llx, %llx)", (long long)t.id, (long long)timeout);
  EXPECT_STATUS(multicast_token_remove_within(t, timeout), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_TIMEOUT);
}

static void get(void) {
  multicast_token t = any_token();
  multicast_registration *r = any_output(sizeof *r);
  multicast_status status;
  NOTE("multicast_token_get(%llx)", (long long)t.id);
  status = multicast_token_get(t, r);
  EXPECT_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT);
  if (status == MULTICAST_OK) {
    EXPECT_EQ(r->token.id, t.id);
    EXPECT(r->delegate.function != NULL && r->strong == NULL, "what no registration has");
    EXPECT(r->label == NULL || strlen(r->label) < 64, "a label that is too long");
    EXPECT(multicast_token_is_live(t), "a registration that is read and not live");
    EXPECT_EQ(r->flags & ~(MULTICAST_ONCE | MULTICAST_LATEST), 0);
    keep_handle(r->target.id);
  }
}

static void read_statistics(void) {
  multicast_token t = any_token();
  multicast_token_stats *stats = any_output(sizeof *stats);
  multicast_status status;
  NOTE("multicast_token_statistics(%llx)", (long long)t.id);
  status = multicast_token_statistics(t, stats);
  EXPECT_STATUS(status, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_INVALID_ARGUMENT);
  if (status == MULTICAST_OK) {
    EXPECT_EQ(stats->reserved, 0);
    EXPECT(stats->longest_ns <= stats->total_ns, "one call that took longer than all");
  }
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

static void end_lifetime_within(void) {
  multicast_lifetime l = {any_handle()};
  NOTE("multicast_lifetime_end_within(%llx)", (long long)l.id);
  EXPECT_STATUS(multicast_lifetime_end_within(l, any_timeout()), MULTICAST_PENDING,
                MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_TIMEOUT);
  EXPECT(!multicast_lifetime_is_valid(l), "a lifetime that has ended and is valid");
}

static void ask_ended(void) {
  const uint64_t handle = any_handle();
  NOTE("multicast_ended_within(%llx)", (long long)handle);
  EXPECT_STATUS(multicast_ended_within(handle, any_timeout()), MULTICAST_PENDING,
                MULTICAST_ERROR_STATE, MULTICAST_ERROR_INVALID_HANDLE, MULTICAST_ERROR_TIMEOUT);
}

static const any_call calls[] = {remove_it,       remove_nowait,   remove_within,
                                 pause_or_resume, create_lifetime, count_lifetime,
                                 end_lifetime,    get,             end_lifetime_within,
                                 read_statistics, ask_ended};
const call_table token_calls = {calls, sizeof calls / sizeof calls[0]};
