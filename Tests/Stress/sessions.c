#define _GNU_SOURCE
#include "sessions.h"

#include <sched.h>
#include <stdlib.h>

#include "actor.h"
#include "atomics.h"
#include "context.h"
#include "failure.h"
#include "statuses.h"
#include "world.h"

void ignore_call(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
  failed(__FILE__, __LINE__, "never called", "a delegate that was never added was called");
}

enum { MEMBERS = 6 };

/* The added contexts, retained so that their tokens can be read. */
typedef struct session {
  context *members[MEMBERS];
  uint32_t count;
} session;

/* If `target` is 0, each member is added to a random multicast. */
static void add_members(session *s, multicast target, multicast_lifetime lifetime,
                        multicast_queue queue) {
  for (s->count = 0; s->count < MEMBERS; ++s->count) {
    context *c = context_make();
    multicast m = target.id != 0 ? target : random_multicast();
    context_retain(c);
    c->options.lifetime = lifetime;
    c->options.queue = queue.id != 0 || one_in(2) ? queue : random_queue();
    EXPECT(multicast_add(m, context_delegate(c), &c->options, &c->token), OK | INVALID_HANDLE);
    s->members[s->count] = c;
    STORE(world_tokens[random_below(TOKEN_COUNT)], c->token.id);
  }
}

/* Other threads invoke meanwhile. */
static void let_others_run(void) {
  uint32_t i, times = random_below(20);
  for (i = 0; i < times; ++i) sched_yield();
}

/* No call of a member runs, and none will begin. */
static void members_are_finished(session *s) {
  uint32_t i;
  for (i = 0; i < s->count; ++i) {
    context *c = s->members[i];
    if (c->token.id != 0) token_is_finished(c->token);
    MUST(LOAD(c->calls) == 0, "calls of member %u", i);
  }
}

static void members_are_released(session *s) {
  uint32_t i;
  for (i = 0; i < s->count; ++i) {
    MUST(LOAD(s->members[i]->released) == 1, "releases of member %u: %d", i,
         s->members[i]->released);
  }
}

static void release_members(session *s) {
  while (s->count > 0) context_release(s->members[--s->count]);
}

void session_under_lifetime(void) {
  multicast_lifetime l = multicast_lifetime_create();
  multicast any = {0};
  multicast_queue none = {0};
  multicast_status status;
  session s;
  MUST(l.id != 0, "a lifetime");
  add_members(&s, any, l, none);
  let_others_run();
  status = multicast_lifetime_end(l);
  EXPECT(status, OK | PENDING);
  if (status == MULTICAST_OK) {
    members_are_finished(&s);
    members_are_released(&s);
  }
  release_members(&s);
}

void session_with_queue(void) {
  multicast_queue q = make_queue();
  multicast any = {0};
  multicast_lifetime none = {0};
  multicast_status status;
  bool was_outside = is_outside_of_calls();
  session s;
  multicast_queue old = {SWAP(world_queues[1 + random_below(QUEUE_COUNT - 1)], q.id)};
  EXPECT(multicast_queue_destroy(old), OK | PENDING | INVALID_HANDLE);
  add_members(&s, any, none, q);
  if (one_in(2)) (void)multicast_queue_start(q);
  let_others_run();
  status = multicast_queue_destroy(q);
  EXPECT(status, OK | PENDING | INVALID_HANDLE);
  if (status == MULTICAST_OK && was_outside) members_are_finished(&s);
  release_members(&s);
}

void session_with_multicast(void) {
  multicast m = multicast_create();
  multicast_lifetime none = {0};
  multicast_queue any = {0};
  multicast_status status = MULTICAST_OK;
  bool was_outside = is_outside_of_calls();
  session s;
  multicast old = {SWAP(world_multicasts[random_below(MULTICAST_COUNT)], m.id)};
  MUST(m.id != 0, "a multicast");
  EXPECT(multicast_destroy(old), OK | PENDING | INVALID_HANDLE);
  add_members(&s, m, none, any);
  let_others_run();
  if (one_in(2)) {
    int64_t count = multicast_remove_all(m);
    EXPECT_COUNT(count, OK | INVALID_HANDLE);
    if (count >= 0 && waits_for_certain()) members_are_finished(&s);
  }
  status = multicast_destroy(m);
  EXPECT(status, OK | PENDING | INVALID_HANDLE);
  if (status == MULTICAST_OK && was_outside) members_are_finished(&s);
  release_members(&s);
}
