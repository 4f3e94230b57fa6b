// SPDX-License-Identifier: MIT
//
// libmulticast as a C++20 module. `import multicast;` provides the same as including multicast.hpp
// and all headers in multicast/, except for macros and for the names of multicast.h that these
// headers do not use. A file that imports the module may also include the headers.
module;

#include <functional>
#include <memory>

#include "multicast.hpp"
#include "multicast/dispatcher.hpp"
#include "multicast/groups.hpp"
#include "multicast/next.hpp"
#include "multicast/slot.hpp"
#include "multicast/spy.hpp"
#include "multicast/watch.hpp"

export module multicast;

export namespace mcast {

using mcast::at_back;
using mcast::at_front;
using mcast::basic_options;
using mcast::call_range;
using mcast::call_statistics;
using mcast::connectable;
using mcast::connection;
using mcast::current;
using mcast::dispatcher;
using mcast::dump;
using mcast::error;
using mcast::exception_handler;
using mcast::groups;
using mcast::listener_flag;
using mcast::listeners_changed_function;
using mcast::label;
using mcast::latest;
using mcast::lifetime;
using mcast::lifetime_reference;
using mcast::next;
using mcast::next_invocation;
using mcast::no_replay;
using mcast::nothing;
using mcast::observer;
using mcast::on;
using mcast::once;
using mcast::operator|;
using mcast::options;
using mcast::overflow;
using mcast::policies;
using mcast::priority;
using mcast::queue;
using mcast::queue_reference;
using mcast::reentry;
using mcast::registration;
using mcast::removal;
using mcast::replay;
using mcast::result_range;
using mcast::scoped_connection;
using mcast::scoped_pause;
using mcast::scoped_registration;
using mcast::set_exception_handler;
using mcast::signal;
using mcast::slot;
using mcast::spied_call;
using mcast::spy;
using mcast::step;
using mcast::times;
using mcast::to_weak;
using mcast::tracked;
using mcast::under;
using mcast::unique;
using mcast::watch;
using mcast::watch_options;
#if !MULTICAST_HPP_EXCEPTIONS
using mcast::last_error;
#endif

}  // namespace mcast

// The types and constants of multicast.h that appear as parameters and results of these classes.
export {
  using ::multicast;
  using ::multicast_add_options;
  using ::multicast_lifetime;
  using ::multicast_outcome;
  using ::multicast_overflow;
  using ::multicast_queue;
  using ::multicast_queue_options;
  using ::multicast_queue_stats;
  using ::multicast_registration;
  using ::multicast_status;
  using ::multicast_token;

  using ::MULTICAST_ERROR_INVALID_ARGUMENT;
  using ::MULTICAST_ERROR_INVALID_HANDLE;
  using ::MULTICAST_ERROR_LIMIT;
  using ::MULTICAST_ERROR_NOT_FOUND;
  using ::MULTICAST_ERROR_OUT_OF_MEMORY;
  using ::MULTICAST_ERROR_QUEUE_FULL;
  using ::MULTICAST_ERROR_STATE;
  using ::MULTICAST_ERROR_SYSTEM;
  using ::MULTICAST_ERROR_TIMEOUT;
  using ::MULTICAST_OK;
  using ::MULTICAST_OVERFLOW_BLOCK;
  using ::MULTICAST_OVERFLOW_DROP_OLDEST;
  using ::MULTICAST_OVERFLOW_REFUSE;
  using ::MULTICAST_PENDING;
}
