/* SPDX-License-Identifier: MIT
 *
 * libmulticast for C++17: signals with typed arguments, on top of multicast.h. It is header-only,
 * but programs must link the C library. The namespace is `mcast`, because `multicast` is a type of
 * the C header.
 *
 *     mcast::signal<void(int, std::string_view)> changed;
 *     mcast::scoped_registration r = changed.add([](int id, std::string_view name) { ... });
 *     changed(1, "Ada");
 *
 * The rules of multicast.h for order, threads, removal and reentry also apply here.
 *
 * Each header in multicast/ can also be included alone. This list begins with the headers that most
 * programs need:
 *
 *     signal.hpp        signal<void(...)>; the members that all signals share are in signal/
 *     results.hpp       signal<R(...)>, whose delegates return results
 *     result_range.hpp  signal<R(...)>::results(), which returns the results one by one
 *     registration.hpp  registration, scoped_registration, current()
 *     connection.hpp    connection, scoped_connection: the names that other libraries use
 *     options.hpp       options, on(), under(), priority(), label(), once, latest, unique,
 *                       at_front, no_replay
 *     policies.hpp      policies of a signal: reentry, a label, replay, a notification about
 *                       listeners
 *     queue.hpp         queue, with post() and post_and_wait()
 *     lifetime.hpp      lifetime
 *     observer.hpp      observer, a base class for objects whose methods are delegates
 *     tracked.hpp       tracked(), to_weak()
 *     pause.hpp         scoped_pause
 *     handle.hpp        handle() of lifetimes, queues and registrations
 *     listener_flag.hpp listener_flag: whether there are listeners
 *     connectable.hpp   connectable, a view of a signal
 *     reports.hpp       dump()
 *     statistics.hpp    call_statistics of a registration
 *     removal.hpp       removal: how many delegates were removed, and whether any of their calls
 *                       are still running
 *     times.hpp         times(): a callable with a limited number of calls
 *     call_range.hpp    call_range: the calls of an invocation one at a time, for combine()
 *     error.hpp         error, set_exception_handler(), last_error()
 *
 * multicast.hpp does not include these headers, because they need larger parts of the standard
 * library, which take time to compile:
 *
 *     groups.hpp        groups
 *     watch.hpp         watch: reports calls and how long they take
 *     slot.hpp          slot: another name for std::function, which other libraries use
 *     next.hpp          next(): waits for the next invocation, in a thread or a coroutine
 *     spy.hpp           spy: records the arguments of invocations, for tests
 *     dispatcher.hpp    dispatcher: a signal for each key
 *
 * multicast.hpp does not include <functional> or <memory> either. A program must include them if it
 * uses std::ref(), std::shared_ptr, or a signal<R &(...)>, which stores its results as
 * std::reference_wrapper.
 *
 * The names in mcast::detail and the files in multicast/detail/ are private.
 *
 * Errors       A function that fails throws mcast::error or, if it is out of memory,
 *              std::bad_alloc. Removals return their status instead, so that the caller can check
 *              for MULTICAST_PENDING and other results.
 * Exceptions   Delegates may throw. The other delegates are still called; see signal::invoke() and
 *              set_exception_handler(). A thread may exit inside a delegate, through pthread_exit()
 *              or cancellation. glibc then destroys the local objects of the delegate and of its
 *              callers. If this unwinding reaches a `noexcept` function, the program ends, as it
 *              would without the library.
 *              With -fno-exceptions, a function that fails returns an empty registration, 0, an
 *              empty optional, or a negative status if its result is a count. last_error() then
 *              returns the status. The headers do not use RTTI.
 * Objects      A delegate may destroy its own signal, lifetime or queue during a call. As with any
 *              object, no other thread may use one of them while it is being destroyed or moved.
 * exit         Destructors remove delegates and wait for their calls. But when exit() runs a
 *              destructor on the main thread, the destructor does not wait for calls on other
 *              threads. Therefore a program with static signals can exit even if one of its threads
 *              never returns from a delegate. See "exit" in multicast.h.
 */

#ifndef MULTICAST_HPP
#define MULTICAST_HPP

#include "multicast.h"
#include "multicast/call_range.hpp"
#include "multicast/connectable.hpp"
#include "multicast/connection.hpp"
#include "multicast/error.hpp"
#include "multicast/handle.hpp"
#include "multicast/listener_flag.hpp"
#include "multicast/lifetime.hpp"
#include "multicast/observer.hpp"
#include "multicast/options.hpp"
#include "multicast/pause.hpp"
#include "multicast/policies.hpp"
#include "multicast/queue.hpp"
#include "multicast/registration.hpp"
#include "multicast/removal.hpp"
#include "multicast/reports.hpp"
#include "multicast/result_range.hpp"
#include "multicast/results.hpp"
#include "multicast/signal.hpp"
#include "multicast/statistics.hpp"
#include "multicast/times.hpp"
#include "multicast/tracked.hpp"

#endif
