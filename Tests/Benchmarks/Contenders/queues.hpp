/// The queues to compare, except those whose headers were not found.
///
/// A queue delivers its messages to one receiver. Any thread may call `push`. If there is only one
/// thread, it calls `run_one` after each push. If there are producers and a consumer, the consumer
/// calls `start` before the first push and then `deliver`, which returns when the receiver has
/// received everything. `deliver` makes the calls on the calling thread, unless the queue has its
/// own thread.
///
/// If `is_bounded` is true, a push into a full queue waits for room.
#pragma once

#include "condition_queue.hpp"
#include "eventfd_queue.hpp"
#include "libmulticast_queue.hpp"
#include "list.hpp"
#include "ring_queue.hpp"
#ifdef HAS_GLIB
#include "glib_queue.hpp"
#endif
#ifdef HAS_QT
#include "qt_queue.hpp"
#endif

using peer_queues =
    contenders<WHEN(HAS_GLIB, glib_queue_contender, ) WHEN(HAS_QT, qt_queue_contender, )
                   condition_queue_contender>;
using polled_queues =
    contenders<libmulticast_queue_contender<shared_library, runner::loop>,
               libmulticast_queue_contender<static_library, runner::loop>,
               libmulticast_queue_contender<shared_library, runner::epoll>>;
using threaded_queues =
    contenders<libmulticast_queue_contender<shared_library, runner::own_thread>>;
/// For small messages only.
using small_queues = contenders<ring_queue_contender>;
/// For one thread only.
using bare_system_calls = contenders<eventfd_queue_contender>;
