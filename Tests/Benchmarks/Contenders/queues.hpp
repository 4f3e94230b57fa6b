/// All queues that are compared; those of whom the headers were not found are missing.
///
/// A queue is made for a receiver. Any thread may `push`. Then either the same thread calls
/// `run_one`; or `start`, before anything is pushed, and `deliver`, which returns when the receiver
/// has all that it expects: on the calling thread or, where the queue has a thread, on that one.
///
/// Where `is_bounded` is true a push into a full queue waits for room.
#pragma once

#include "condition_queue.hpp"
#include "contenders.hpp"
#include "libmulticast_queue.hpp"
#ifdef HAS_GLIB
#include "glib_queue.hpp"
#endif
#ifdef HAS_QT
#include "qt_queue.hpp"
#endif

#ifdef HAS_GLIB
using glib_queues = contenders<glib_queue_contender>;
#else
using glib_queues = contenders<>;
#endif
#ifdef HAS_QT
using peer_queues = glib_queues::with<qt_queue_contender, condition_queue_contender>;
#else
using peer_queues = glib_queues::with<condition_queue_contender>;
#endif

using polled_queues =
    contenders<libmulticast_queue_contender<shared_library, runner::loop>,
               libmulticast_queue_contender<static_library, runner::loop>,
               libmulticast_queue_contender<shared_library, runner::epoll>>;
using threaded_queues =
    contenders<libmulticast_queue_contender<shared_library, runner::own_thread>>;
