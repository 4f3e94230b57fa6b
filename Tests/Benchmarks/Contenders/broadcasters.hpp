/// The broadcasters to compare, except those whose headers were not found.
///
/// A new broadcaster has no names. `add` adds an observer under a name. `look_up` returns the entry
/// of a name, which is the same entry each time. `notify` calls the observers of an entry.
#pragma once

#include "libmulticast_broadcaster.hpp"
#include "list.hpp"
#include "map_broadcaster.hpp"
#ifdef HAS_GLIB
#include "gobject_broadcaster.hpp"
#endif

using libmulticast_broadcasters = contenders<libmulticast_broadcaster_contender<shared_library>,
                                             libmulticast_broadcaster_contender<static_library>>;
using peer_broadcasters =
    contenders<WHEN(HAS_GLIB, gobject_broadcaster_contender, ) map_broadcaster_contender>;
