#include <stdlib.h>
#include <string.h>

#include "callbacks.h"
#include "history.h"
#include "memory.h"
#include "operations.h"

/* The options of a caller that was compiled with a later header. */
typedef struct newer_options {
  multicast_add_options known;
  uint64_t unknown[4];
} newer_options;

/* The ways in which options can be invalid, or valid but unusual. */
typedef enum oddity {
  NOTHING_ODD,
  SIZE_ZERO,
  SIZE_TOO_SMALL,
  SIZE_TOO_LARGE,
  UNKNOWN_FLAG,
  RESERVED_FIELD,
  NEWER_CALLER,
  NEWER_CALLER_WITH_MORE,
  LOCK_ALONE,
  UNLOCK_ALONE,
  OLDER_CALLER,
  ODDITIES
} oddity;

enum { SIZE_OF_1_0 = 64 }; /* of multicast_add_options */

/* The fields of a record: a: target; b: flags, release, lock; c: priority, events; d: delegate;
 * e: lifetime; f: queue; g: oddity. */
typedef struct attempt {
  addition add;
  newer_options options;
  bool is_readable;
  outcomes errors;
} attempt;

static int32_t priority_of(uint8_t byte) {
  static const int32_t priorities[] = {0, 1, -1, INT32_MAX, INT32_MIN, 2, 0, 0};
  return priorities[byte % 8];
}

static uint64_t events_of(uint8_t byte) {
  static const uint64_t events[] = {0, 0, 0, 1, 2, 3, UINT64_C(1) << 63, ~UINT64_C(0)};
  return events[byte % 8];
}

static void make_odd(attempt *a, oddity what) {
  multicast_add_options *o = &a->options.known;
  switch (what) {
    case SIZE_ZERO: o->struct_size = 0; break;
    case SIZE_TOO_SMALL: o->struct_size = SIZE_OF_1_0 - 8; break;
    case SIZE_TOO_LARGE: o->struct_size = 1025; break;
    case UNKNOWN_FLAG: o->flags |= 16; break;
    case RESERVED_FIELD: o->reserved = 1; break;
    case NEWER_CALLER_WITH_MORE: a->options.unknown[3] = 1; /* fall through */
    case NEWER_CALLER: o->struct_size = sizeof a->options; break;
    case LOCK_ALONE: o->lock = lock_context; o->unlock = NULL; break;
    case UNLOCK_ALONE: o->unlock = unlock_context; o->lock = NULL; break;
    case OLDER_CALLER: o->struct_size = SIZE_OF_1_0; return;
    default: return;
  }
  a->is_readable = what == NEWER_CALLER || what == LOCK_ALONE || what == UNLOCK_ALONE;
  if (what != NEWER_CALLER) allow(&a->errors, MULTICAST_ERROR_INVALID_ARGUMENT);
}

/* Chooses `lifetime` and `queue`, which are usually NONE. */
static void refer(attempt *a, const record *r) {
  multicast_add_options *o = &a->options.known;
  outcomes unread = {{0}, 0};
  outcomes *errors = a->is_readable ? &a->errors : &unread;
  if (r->e & 1) {
    choice c = choose_lifetime(r->e);
    o->lifetime.id = c.id;
    a->add.like.lifetime = c.is_alive ? c.index : NONE;
    if (c.id != 0) allow_handle_error(errors, &c);
  }
  if (r->f & 1) {
    choice c = choose_queue(r->f);
    o->queue.id = c.id;
    a->add.like.queue = c.is_alive ? c.index : NONE;
    if (c.id != 0) allow_handle_error(errors, &c);
  }
}

static void read_options(attempt *a, const record *r) {
  multicast_add_options *o = &a->options.known;
  registration *like = &a->add.like;
  oddity odd = r->g % 64 < ODDITIES ? (oddity)(r->g % 64) : NOTHING_ODD;
  *o = multicast_add_options_default();
  like->flags = o->flags = r->b & 7;
  like->priority = o->priority = priority_of(r->c);
  like->events = o->events = events_of(r->c >> 3);
  if (r->b & 8) like->release = r->b >> 4 & 1;
  if (like->release != NONE) o->release = release_functions[like->release];
  like->is_locked = (r->b & 0x60) == 0x60;
  if (like->is_locked) o->lock = lock_context, o->unlock = unlock_context;
  make_odd(a, odd);
  refer(a, r);
  if (!a->is_readable) like->release = NONE;
  NOTE("  flags %lld, priority %lld, events %llx, release %lld, lock %lld, l%lld, q%lld, odd %lld",
       o->flags, o->priority, (long long)o->events, like->release, like->is_locked,
       like->lifetime, like->queue, odd);
}

static attempt begin_attempt(void) {
  attempt a = {0};
  a.add.target = a.add.broadcaster = NONE;
  a.add.like.lifetime = a.add.like.queue = a.add.like.release = NONE;
  a.is_readable = true;
  return a;
}

/* Chooses the delegate, which in rare cases lacks a function. */
static void take_delegate(attempt *a, uint8_t byte) {
  int i = a->add.count++;
  a->add.functions[i] = byte == 0xFF ? NONE : byte % FUNCTIONS;
  a->add.contexts[i] = (byte >> 4) % CONTEXTS;
  if (byte == 0xFF) allow(&a->errors, MULTICAST_ERROR_INVALID_ARGUMENT);
  NOTE("  f%lld c%lld", a->add.functions[i], a->add.contexts[i]);
}

/* If the add must fail, the model records the failure before the library is called. If the add may
 * succeed, the model waits for the library's result. */
static void begin_adding(attempt *a) {
  model_enter(CHANGE)->adding = &a->add;
  if (a->errors.count > 0) model_finish_adding(&a->add, true);
}

static void end_adding(attempt *a, multicast_status status, const multicast_token *tokens,
                       int count) {
  NOTE("= %lld", status);
  if (!a->add.is_decided) model_finish_adding(&a->add, status != MULTICAST_OK);
  model_follow_adding(model_top());
  allow_memory_error(&a->errors, model_top());
  if (!a->add.has_failed) allow(&a->errors, MULTICAST_OK);
  EXPECT_ALLOWED(status, &a->errors);
  if (status != MULTICAST_OK && tokens != NULL)
    for (int i = 0; i < count; ++i) EXPECT_EQ(tokens[i].id, 0);
  model_leave();
}

static void add(const record *r, bool has_options) {
  attempt a = begin_attempt();
  choice c = choose_multicast(r->a);
  multicast m = {c.id};
  multicast_token token = {1};
  bool wants_token = !has_options || (r->b & 0x80) == 0;
  NOTE("multicast_add(m%lld, token %lld)", c.index, wants_token);
  take_delegate(&a, r->d);
  allow_handle_error(&a.errors, &c);
  if (has_options) read_options(&a, r);
  a.add.target = c.index;
  a.add.tokens = wants_token ? &token : NULL;
  begin_adding(&a);
  end_adding(&a,
             multicast_add(m, delegate_of(a.add.functions[0], a.add.contexts[0]),
                           has_options ? &a.options.known : NULL, a.add.tokens),
             a.add.tokens, 1);
}

void perform_add(const record *r) { add(r, false); }
void perform_add_with(const record *r) { add(r, true); }

void perform_add_many(const record *r) {
  attempt a = begin_attempt();
  choice c = choose_multicast(r->a);
  multicast m = {c.id};
  multicast_delegate delegates[MANY];
  multicast_token tokens[MANY] = {{1}, {1}, {1}, {1}};
  int count = r->d % (MANY + 1), i;
  bool is_null = r->g == 0xFF && count > 0;
  NOTE("multicast_add_many(m%lld, %lld, is NULL: %lld)", c.index, count, is_null);
  for (i = 0; i < count && !is_null; ++i) {
    take_delegate(&a, (uint8_t)(r->d * (i + 1) + (r->d >> 4) * i));
    delegates[i] = delegate_of(a.add.functions[i], a.add.contexts[i]);
  }
  allow_handle_error(&a.errors, &c);
  read_options(&a, r);
  if (is_null) allow(&a.errors, MULTICAST_ERROR_INVALID_ARGUMENT);
  a.add.target = c.index;
  a.add.tokens = r->b & 0x80 ? NULL : tokens;
  begin_adding(&a);
  end_adding(&a,
             multicast_add_many(m, is_null ? NULL : delegates, (size_t)count, &a.options.known,
                                a.add.tokens),
             a.add.tokens, count);
}

void perform_register(const record *r) {
  attempt a = begin_attempt();
  choice c = choose_broadcaster(r->a);
  name_choice name = choose_name(r->d * 5);
  multicast_broadcaster b = {c.id};
  multicast_token token = {1};
  bool wants_token = (r->b & 0x80) == 0;
  const model_broadcaster *found = c.is_alive ? &model.broadcasters[c.index] : NULL;
  NOTE("multicast_broadcaster_register(b%lld, n%lld, token %lld)", c.index, name.name,
       wants_token);
  take_delegate(&a, r->d);
  allow_handle_error(&a.errors, &c);
  if (name.name == NONE) allow(&a.errors, MULTICAST_ERROR_INVALID_ARGUMENT);
  read_options(&a, r);
  if (found != NULL && name.name != NONE) {
    a.add.broadcaster = c.index;
    a.add.name = name.name;
    a.add.name_text = name.text;
    a.add.target = found->targets[name.name];
    if (a.add.target != NONE && !model.multicasts[a.add.target].is_alive) a.add.target = NONE;
  }
  if (found != NULL && a.options.known.queue.id == 0 && found->queue != NONE) {
    a.add.like.queue = found->queue;
    if (!model.queues[found->queue].is_alive && a.is_readable)
      allow(&a.errors, MULTICAST_ERROR_INVALID_HANDLE);
  }
  a.add.tokens = wants_token ? &token : NULL;
  begin_adding(&a);
  end_adding(&a,
             multicast_broadcaster_register(b, name.text,
                                            delegate_of(a.add.functions[0], a.add.contexts[0]),
                                            &a.options.known, a.add.tokens),
             a.add.tokens, 1);
}
