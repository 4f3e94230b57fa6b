/// All broadcasters that are compared; those of whom the headers were not found are missing.
///
/// A broadcaster is made without names. `add` adds an observer under a name; `look_up` gives what
/// is known by it, the same each time; `notify` calls the observers.
#pragma once

#include "contenders.hpp"
#include "libmulticast_broadcaster.hpp"
#include "map_broadcaster.hpp"
#ifdef HAS_GLIB
#include "gobject_broadcaster.hpp"
#endif

using libmulticast_broadcasters = contenders<libmulticast_broadcaster_contender<shared_library>,
                                             libmulticast_broadcaster_contender<static_library>>;
#ifdef HAS_GLIB
using peer_broadcasters = contenders<gobject_broadcaster_contender, map_broadcaster_contender>;
#else
using peer_broadcasters = contenders<map_broadcaster_contender>;
#endif
