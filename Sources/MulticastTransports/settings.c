#include "process.h"
#include "settings.h"

enum { DEFAULT_CAPACITY = 8192, CAPACITY_MAX = 1 << 24 };

static void set_default(uint64_t *ns, uint64_t value) {
  if (*ns == 0) *ns = value;
}

multicast_status settings_complete(settings *s, uint32_t default_payload,
                                   uint32_t largest_payload) {
  const uint64_t longest = (uint64_t)1 << 62;
  if (s->capacity == 0) s->capacity = DEFAULT_CAPACITY;
  if (s->max_payload == 0) s->max_payload = default_payload;
  set_default(&s->reconnect_min_ns, ns_of_second / 10);
  set_default(&s->reconnect_max_ns, 30 * ns_of_second);
  set_default(&s->connect_timeout_ns, 10 * ns_of_second);
  if (s->capacity > CAPACITY_MAX || s->max_payload > largest_payload ||
      (s->overflow != MULTICAST_OVERFLOW_REFUSE && s->overflow != MULTICAST_OVERFLOW_DROP_OLDEST) ||
      s->reconnect_min_ns > s->reconnect_max_ns || s->reconnect_max_ns > longest ||
      s->connect_timeout_ns > longest)
    return MULTICAST_ERROR_INVALID_ARGUMENT;
  return multicast_broadcaster_is_valid(s->broadcaster) &&
                 (s->queue.id == 0 || multicast_queue_is_valid(s->queue))
             ? MULTICAST_OK
             : MULTICAST_ERROR_INVALID_HANDLE;
}
