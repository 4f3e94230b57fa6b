/* The layout of every struct that callers fill or pass is part of the ABI. */

#include <assert.h>
#include <stddef.h>

#include "multicast.h"

#if defined(__cplusplus)
#define STATIC_ASSERT(condition) static_assert(condition, #condition)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define STATIC_ASSERT(condition) _Static_assert(condition, #condition)
#else
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define STATIC_ASSERT(condition) typedef char JOIN(assertion_, __LINE__)[(condition) ? 1 : -1]
#endif
#define SIZE(type, size) STATIC_ASSERT(sizeof(type) == (size))
#define FIELD(type, field, offset) STATIC_ASSERT(offsetof(type, field) == (offset))

SIZE(multicast, 8);
FIELD(multicast, id, 0);
SIZE(multicast_token, 8);
FIELD(multicast_token, id, 0);
SIZE(multicast_lifetime, 8);
FIELD(multicast_lifetime, id, 0);
SIZE(multicast_queue, 8);
FIELD(multicast_queue, id, 0);
SIZE(multicast_broadcaster, 8);
FIELD(multicast_broadcaster, id, 0);
SIZE(multicast_status, 4);
SIZE(multicast_overflow, 4);

SIZE(multicast_delegate, 16);
FIELD(multicast_delegate, function, 0);
FIELD(multicast_delegate, context, 8);

SIZE(multicast_add_options, 72);
FIELD(multicast_add_options, struct_size, 0);
FIELD(multicast_add_options, flags, 4);
FIELD(multicast_add_options, priority, 8);
FIELD(multicast_add_options, reserved, 12);
FIELD(multicast_add_options, events, 16);
FIELD(multicast_add_options, lifetime, 24);
FIELD(multicast_add_options, queue, 32);
FIELD(multicast_add_options, release, 40);
FIELD(multicast_add_options, lock, 48);
FIELD(multicast_add_options, unlock, 56);
FIELD(multicast_add_options, label, 64);

SIZE(multicast_allocator, 32);
FIELD(multicast_allocator, struct_size, 0);
FIELD(multicast_allocator, flags, 4);
FIELD(multicast_allocator, context, 8);
FIELD(multicast_allocator, allocate, 16);
FIELD(multicast_allocator, deallocate, 24);

SIZE(multicast_queue_options, 56);
FIELD(multicast_queue_options, struct_size, 0);
FIELD(multicast_queue_options, flags, 4);
FIELD(multicast_queue_options, capacity, 8);
FIELD(multicast_queue_options, overflow, 16);
FIELD(multicast_queue_options, reserved, 20);
FIELD(multicast_queue_options, thread_name, 24);
FIELD(multicast_queue_options, stack_size, 32);
FIELD(multicast_queue_options, wake, 40);
FIELD(multicast_queue_options, wake_context, 48);

SIZE(multicast_registration, 88);
FIELD(multicast_registration, struct_size, 0);
FIELD(multicast_registration, flags, 4);
FIELD(multicast_registration, token, 8);
FIELD(multicast_registration, target, 16);
FIELD(multicast_registration, delegate, 24);
FIELD(multicast_registration, strong, 40);
FIELD(multicast_registration, priority, 48);
FIELD(multicast_registration, is_paused, 52);
FIELD(multicast_registration, reserved, 53);
FIELD(multicast_registration, events, 56);
FIELD(multicast_registration, lifetime, 64);
FIELD(multicast_registration, queue, 72);
FIELD(multicast_registration, label, 80);

SIZE(multicast_queue_stats, 72);
FIELD(multicast_queue_stats, struct_size, 0);
FIELD(multicast_queue_stats, flags, 4);
FIELD(multicast_queue_stats, pending, 8);
FIELD(multicast_queue_stats, queued, 16);
FIELD(multicast_queue_stats, delivered, 24);
FIELD(multicast_queue_stats, refused, 32);
FIELD(multicast_queue_stats, dropped, 40);
FIELD(multicast_queue_stats, retracted, 48);
FIELD(multicast_queue_stats, coalesced, 56);
FIELD(multicast_queue_stats, highest, 64);

SIZE(multicast_broadcaster_options, 16);
FIELD(multicast_broadcaster_options, struct_size, 0);
FIELD(multicast_broadcaster_options, flags, 4);
FIELD(multicast_broadcaster_options, queue, 8);

SIZE(multicast_invocation, 56);
FIELD(multicast_invocation, struct_size, 0);
FIELD(multicast_invocation, flags, 4);
FIELD(multicast_invocation, event, 8);
FIELD(multicast_invocation, reserved, 12);
FIELD(multicast_invocation, payload, 16);
FIELD(multicast_invocation, size, 24);
FIELD(multicast_invocation, copy, 32);
FIELD(multicast_invocation, release, 40);
FIELD(multicast_invocation, timeout_ns, 48);

SIZE(multicast_transport, 48);
FIELD(multicast_transport, struct_size, 0);
FIELD(multicast_transport, flags, 4);
FIELD(multicast_transport, context, 8);
FIELD(multicast_transport, publish, 16);
FIELD(multicast_transport, subscribe, 24);
FIELD(multicast_transport, unsubscribe, 32);
FIELD(multicast_transport, release, 40);

SIZE(multicast_outcome, 48);
FIELD(multicast_outcome, struct_size, 0);
FIELD(multicast_outcome, flags, 4);
FIELD(multicast_outcome, called, 8);
FIELD(multicast_outcome, queued, 16);
FIELD(multicast_outcome, refused, 24);
FIELD(multicast_outcome, finished, 32);
FIELD(multicast_outcome, unfinished, 40);

SIZE(multicast_watch, 48);
FIELD(multicast_watch, struct_size, 0);
FIELD(multicast_watch, reserved, 4);
FIELD(multicast_watch, context, 8);
FIELD(multicast_watch, slow_ns, 16);
FIELD(multicast_watch, slow, 24);
FIELD(multicast_watch, stuck, 32);
FIELD(multicast_watch, called, 40);

SIZE(multicast_token_stats, 48);
FIELD(multicast_token_stats, struct_size, 0);
FIELD(multicast_token_stats, reserved, 4);
FIELD(multicast_token_stats, calls, 8);
FIELD(multicast_token_stats, total_ns, 16);
FIELD(multicast_token_stats, longest_ns, 24);
FIELD(multicast_token_stats, queued, 32);
FIELD(multicast_token_stats, dropped, 40);

SIZE(multicast_reentry, 4);
SIZE(multicast_create_options, 72);
FIELD(multicast_create_options, struct_size, 0);
FIELD(multicast_create_options, reentry, 4);
FIELD(multicast_create_options, label, 8);
FIELD(multicast_create_options, replay, 16);
FIELD(multicast_create_options, flags, 20);
FIELD(multicast_create_options, context, 24);
FIELD(multicast_create_options, interest, 32);
FIELD(multicast_create_options, release, 40);
FIELD(multicast_create_options, lock_context, 48);
FIELD(multicast_create_options, unlock_context, 56);
FIELD(multicast_create_options, release_context, 64);

/* These types are not enums, so -fshort-enums does not change them. */
STATIC_ASSERT((multicast_status)-1 < 0);
STATIC_ASSERT((multicast_overflow)-1 > 0);
STATIC_ASSERT((multicast_overflow)-1 == UINT32_MAX);
STATIC_ASSERT(MULTICAST_FOREVER == UINT64_MAX);

STATIC_ASSERT(MULTICAST_OK == 0);
STATIC_ASSERT(MULTICAST_PENDING == 1);
STATIC_ASSERT(MULTICAST_ERROR_INVALID_HANDLE == -10);
STATIC_ASSERT(MULTICAST_ERROR_INVALID_ARGUMENT == -20);
STATIC_ASSERT(MULTICAST_ERROR_NOT_FOUND == -30);
STATIC_ASSERT(MULTICAST_ERROR_OUT_OF_MEMORY == -40);
STATIC_ASSERT(MULTICAST_ERROR_LIMIT == -50);
STATIC_ASSERT(MULTICAST_ERROR_QUEUE_FULL == -60);
STATIC_ASSERT(MULTICAST_ERROR_TIMEOUT == -70);
STATIC_ASSERT(MULTICAST_ERROR_STATE == -80);
STATIC_ASSERT(MULTICAST_ERROR_SYSTEM == -90);
STATIC_ASSERT(MULTICAST_ONCE == 1);
STATIC_ASSERT(MULTICAST_UNIQUE == 2);
STATIC_ASSERT(MULTICAST_LATEST == 4);
STATIC_ASSERT(MULTICAST_NO_REPLAY == 8);
STATIC_ASSERT(MULTICAST_WAIT == 1);
STATIC_ASSERT(MULTICAST_VISIT_ONLY == 1);
STATIC_ASSERT(MULTICAST_REENTRY_RECURSE == 0);
STATIC_ASSERT(MULTICAST_REENTRY_REFUSE == 1);
STATIC_ASSERT(MULTICAST_REENTRY_DEFER == 2);
STATIC_ASSERT(MULTICAST_REENTRY_LATEST == 3);
STATIC_ASSERT(MULTICAST_OVERFLOW_REFUSE == 0);
STATIC_ASSERT(MULTICAST_OVERFLOW_DROP_OLDEST == 1);
STATIC_ASSERT(MULTICAST_OVERFLOW_BLOCK == 2);

/* The preprocessor can compare versions. */
#if MULTICAST_VERSION < 0x10000
#error "MULTICAST_VERSION is that of version 1 at least"
#endif

/* Initializers for static storage. */
extern multicast_add_options layout_add_options;
multicast_add_options layout_add_options = MULTICAST_ADD_OPTIONS_INIT;
extern multicast_queue_options layout_queue_options;
multicast_queue_options layout_queue_options = MULTICAST_QUEUE_OPTIONS_INIT;
extern multicast_queue_stats layout_queue_stats;
multicast_queue_stats layout_queue_stats = MULTICAST_QUEUE_STATS_INIT;
extern multicast_broadcaster_options layout_broadcaster_options;
multicast_broadcaster_options layout_broadcaster_options = MULTICAST_BROADCASTER_OPTIONS_INIT;
extern multicast_allocator layout_allocator;
multicast_allocator layout_allocator = MULTICAST_ALLOCATOR_INIT;
extern multicast_invocation layout_invocation;
multicast_invocation layout_invocation = MULTICAST_INVOCATION_INIT;
extern multicast_transport layout_transport;
multicast_transport layout_transport = MULTICAST_TRANSPORT_INIT;
extern multicast_outcome layout_outcome;
multicast_outcome layout_outcome = MULTICAST_OUTCOME_INIT;
extern multicast_watch layout_watch;
multicast_watch layout_watch = MULTICAST_WATCH_INIT;
extern multicast_token_stats layout_token_stats;
multicast_token_stats layout_token_stats = MULTICAST_TOKEN_STATS_INIT;
extern multicast_create_options layout_create_options;
multicast_create_options layout_create_options = MULTICAST_CREATE_OPTIONS_INIT;
extern multicast_registration layout_registration;
multicast_registration layout_registration = MULTICAST_REGISTRATION_INIT;
extern multicast_token layout_token;
multicast_token layout_token = MULTICAST_NONE;

/* The inline functions compile in every language too. */
multicast_add_options layout_uses_options(void);
multicast_add_options layout_uses_options(void) { return multicast_add_options_default(); }
multicast_allocator layout_uses_allocator(void);
multicast_allocator layout_uses_allocator(void) { return multicast_allocator_default(); }
multicast_registration layout_uses_registration(void);
multicast_registration layout_uses_registration(void) { return multicast_registration_default(); }
multicast_queue_options layout_uses_queue_options(void);
multicast_queue_options layout_uses_queue_options(void) {
  return multicast_queue_options_default();
}
multicast_queue_stats layout_uses_queue_stats(void);
multicast_queue_stats layout_uses_queue_stats(void) { return multicast_queue_stats_default(); }
multicast_broadcaster_options layout_uses_broadcaster_options(void);
multicast_broadcaster_options layout_uses_broadcaster_options(void) {
  return multicast_broadcaster_options_default();
}
multicast_invocation layout_uses_invocation(void);
multicast_invocation layout_uses_invocation(void) { return multicast_invocation_default(); }
multicast_transport layout_uses_transport(void);
multicast_transport layout_uses_transport(void) { return multicast_transport_default(); }
multicast_outcome layout_uses_outcome(void);
multicast_outcome layout_uses_outcome(void) { return multicast_outcome_default(); }
multicast_watch layout_uses_watch(void);
multicast_watch layout_uses_watch(void) { return multicast_watch_default(); }
multicast_token_stats layout_uses_token_stats(void);
multicast_token_stats layout_uses_token_stats(void) { return multicast_token_stats_default(); }
multicast_create_options layout_uses_create_options(void);
multicast_create_options layout_uses_create_options(void) {
  return multicast_create_options_default();
}
