/* SPDX-License-Identifier: MIT
 *
 * libmulticast for C++17: signals with typed arguments, on top of multicast.h. It is header-only;
 * link the C library. The namespace is `mcast`, because `multicast` is a type of the C header.
 *
 *     mcast::signal<void(int, std::string_view)> changed;
 *     mcast::scoped_registration r = changed.add([](int id, std::string_view name) { ... });
 *     changed(1, "Ada");
 *
 * The rules of multicast.h for order, threads, removal and reentry hold here too.
 *
 * The parts, in multicast/, in the order of use; each can be included alone:
 *
 *     signal.hpp        signal<void(...)>; signal/ has the members that all signals have
 *     results.hpp       signal<R(...)>, whose delegates return something
 *     result_range.hpp  its results one by one: signal<R(...)>::results()
 *     registration.hpp  registration, scoped_registration, current()
 *     connection.hpp    connection, scoped_connection: names of other libraries
 *     options.hpp       options, on(), under(), priority(), label(), once, latest, unique,
 *                       at_front, no_replay
 *     policies.hpp      policies of a signal: reentry, a label, replay, changes of the listeners
 *     queue.hpp         queue, with post() and post_and_wait()
 *     lifetime.hpp      lifetime
 *     observer.hpp      observer, a base class of objects with delegates
 *     tracked.hpp       tracked(), to_weak()
 *     pause.hpp         scoped_pause
 *     handle.hpp        handle() of lifetimes, queues and registrations
 *     listener_flag.hpp listener_flag: are there listeners?
 *     connectable.hpp   connectable, a view of a signal
 *     reports.hpp       dump()
 *     statistics.hpp    call_statistics, of a registration
 *     removal.hpp       removal: how many were removed, and whether calls of them still run
 *     times.hpp         times(): a callable that is called so many times at most
 *     call_range.hpp    call_range: the calls of an invocation one by one, for combine()
 *     error.hpp         error, set_exception_handler(), last_error()
 *
 * Not included here, because they need more of the standard library, which takes time to compile:
 *
 *     groups.hpp        groups
 *     watch.hpp         watch, notified of calls and of how long they take
 *     slot.hpp          slot: a name of other libraries, of std::function
 *     next.hpp          next(): the next invocation, for threads and coroutines
 *     spy.hpp           spy: what a signal was invoked with, for tests
 *     dispatcher.hpp    dispatcher: a signal for each key
 *
 * They need no <functional> and no <memory>: programs that use std::ref(), std::shared_ptr, or a
 * signal<R &(...)>, whose results are kept as std::reference_wrapper, include those themselves.
 *
 * The names of mcast::detail are private, and so are the files of multicast/detail/.
 *
 * Errors       A function that fails throws mcast::error or, if out of memory, std::bad_alloc.
 *              Removals return their status instead, so that the caller can check for
 *              MULTICAST_PENDING and other results.
 * Exceptions   Delegates may throw. The other delegates are still called; see signal::invoke() and
 *              set_exception_handler(). A thread may end inside a delegate, by pthread_exit() or by
 *              cancellation. glibc destroys the objects of the delegate then, and those of the
 *              functions that have invoked. As without the library, a `noexcept` function among
 *              them ends the program.
 * Without them With -fno-exceptions a function that fails returns what means nothing: an empty
 *              registration, 0, an empty optional, or the negative status where it counts.
 *              last_error() then has the status. RTTI is not used.
 * Objects      A delegate may destroy the signal, lifetime or queue that is calling it. As with any
 *              object, no other thread may use it while it is destroyed or moved.
 * exit         Destructors remove and wait. Those that exit() calls on the main thread do not wait
 *              for calls on other threads: so a program with static signals ends, although one of
 *              its threads never returns from a delegate. See `exit` in multicast.h.
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
