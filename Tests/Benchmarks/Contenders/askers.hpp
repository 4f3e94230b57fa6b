/// The contenders that ask another thread a question, except those whose headers were not found.
///
/// An asker is a class with its own thread. `ask` makes the asker's thread call `answer` and
/// returns the result. Only one other thread calls `ask`.
#pragma once

#include "libmulticast_asker.hpp"
#include "list.hpp"
#include "promise_asker.hpp"
#ifdef HAS_GLIB
#include "glib_asker.hpp"
#endif
#ifdef HAS_QT
#include "qt_asker.hpp"
#endif

using peer_askers =
    contenders<WHEN(HAS_GLIB, glib_asker, ) WHEN(HAS_QT, qt_asker, ) promise_asker>;
using libmulticast_askers =
    contenders<libmulticast_asker<shared_library>, libmulticast_asker<static_library>>;
