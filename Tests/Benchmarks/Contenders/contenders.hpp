/// The contenders, except those whose headers were not found.
///
/// A contender is a class. A new object of the class has no delegates. `add` returns a token for
/// `remove`, and `invoke` calls all delegates. `remove_delegate` and `contains` exist if the
/// library has such functions.
#pragma once

#include "bare_loop.hpp"
#include "libmulticast.hpp"
#include "libmulticast_cpp.hpp"
#include "list.hpp"
#include "mutex.hpp"
#ifdef HAS_BOOST
#include "boost_signals2.hpp"
#endif
#ifdef HAS_SIGCXX
#include "sigcxx.hpp"
#endif
#ifdef HAS_QT
#include "qt.hpp"
#endif
#ifdef HAS_GLIB
#include "gobject.hpp"
#endif
#ifdef HAS_URCU
#include "urcu.hpp"
#endif
#ifdef HAS_SIGSLOT
#include "sigslot.hpp"
#endif
#ifdef HAS_NANO_SIGNAL_SLOT
#include "nano.hpp"
#endif
#ifdef HAS_EVENTPP
#include "eventpp.hpp"
#endif

using libmulticast_shared = libmulticast_contender<shared_library>;
using libmulticast_static = libmulticast_contender<static_library>;
using libmulticasts = contenders<libmulticast_shared, libmulticast_static>;

using bare_loops = contenders<
    bare_loop_contender<true, 0>, bare_loop_contender<true, 1>, bare_loop_contender<true, 2>,
    bare_loop_contender<true, 3>, bare_loop_contender<false, 0>, bare_loop_contender<false, 1>,
    bare_loop_contender<false, 2>, bare_loop_contender<false, 3>>;

using peers = contenders<
    libmulticast_cpp_contender,  // this contender supports the operations that peers have
    WHEN(HAS_BOOST, boost_signals2_contender, ) WHEN(HAS_SIGCXX, sigcxx_contender, )
    WHEN(HAS_GLIB, gobject_contender, ) WHEN(HAS_QT, qt_contender, )
    WHEN(HAS_URCU, urcu_contender, ) WHEN(HAS_SIGSLOT, sigslot_contender, )
    WHEN(HAS_EVENTPP, eventpp_contender, )
    WHEN(HAS_NANO_SIGNAL_SLOT, nano_signal_slot_contender, ) mutex_contender>;

/// Returns the argument for `run_question`: the names of the contenders that are not thread-safe.
inline std::string not_thread_safe() {
  std::string names;
  auto append = [&](auto each) {
    using contender = typename decltype(each)::contender;
    if (!contender::is_thread_safe) names += (names.empty() ? "" : ";") + contender::name();
  };
  bare_loops::for_each(append);
  peers::for_each(append);
  return names;
}
