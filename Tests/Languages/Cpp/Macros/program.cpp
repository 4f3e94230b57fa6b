// Includes every public header after the file that MACROS names, which defines macros of other
// libraries. Each macro expands to MACRO_OF_ANOTHER, so that an error message contains this name if
// a header uses such a macro by mistake.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdexcept>
#include <stdint.h>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus > 201703L
#include <coroutine>
#endif

#include MACROS

#include <multicast.h>
#include <multicast.hpp>
#include <multicast_local.h>
#include <multicast_mqtt.h>
#include <multicast_nats.h>

#include <multicast/dispatcher.hpp>
#include <multicast/groups.hpp>
#include <multicast/next.hpp>
#include <multicast/slot.hpp>
#include <multicast/spy.hpp>
#include <multicast/watch.hpp>

// Uses the headers' macros.
multicast_add_options add_options = MULTICAST_ADD_OPTIONS_INIT;
multicast_queue_options queue_options = MULTICAST_QUEUE_OPTIONS_INIT;
const char *const here = MULTICAST_HERE;

using event = mcast::signal<void(std::string_view, int)>;
void use(event &s, mcast::queue &q) {
  s.add([](std::string_view) {}, mcast::on(q) | mcast::once);
  s("text", 1);
  q.run();
}
