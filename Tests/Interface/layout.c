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

SIZE(multicast_options, 64);
FIELD(multicast_options, struct_size, 0);
FIELD(multicast_options, flags, 4);
FIELD(multicast_options, priority, 8);
FIELD(multicast_options, reserved, 12);
FIELD(multicast_options, events, 16);
FIELD(multicast_options, lifetime, 24);
FIELD(multicast_options, queue, 32);
FIELD(multicast_options, release, 40);
FIELD(multicast_options, lock, 48);
FIELD(multicast_options, unlock, 56);

SIZE(multicast_allocator, 32);
FIELD(multicast_allocator, struct_size, 0);
FIELD(multicast_allocator, context, 8);
FIELD(multicast_allocator, allocate, 16);
FIELD(multicast_allocator, deallocate, 24);

SIZE(multicast_queue_options, 12);
FIELD(multicast_queue_options, struct_size, 0);
FIELD(multicast_queue_options, capacity, 4);
FIELD(multicast_queue_options, overflow, 8);

SIZE(multicast_queue_stats, 72);
FIELD(multicast_queue_stats, struct_size, 0);
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
STATIC_ASSERT(MULTICAST_OVERFLOW_REFUSE == 0);
STATIC_ASSERT(MULTICAST_OVERFLOW_DROP_OLDEST == 1);
STATIC_ASSERT(MULTICAST_OVERFLOW_BLOCK == 2);

/* The inline functions compile in every language too. */
multicast_options layout_uses_options(void);
multicast_options layout_uses_options(void) { return multicast_options_default(); }
multicast_allocator layout_uses_allocator(void);
multicast_allocator layout_uses_allocator(void) { return multicast_allocator_default(); }
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
