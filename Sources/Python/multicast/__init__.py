"""One-to-many delegation: observers, signals and slots, over libmulticast.

A `Multicast` holds any number of callables and calls them all. When a removal has returned True,
the registration has ended: no thread is calling the delegate, and none ever will.
"""

import atexit
import os
import types

if os.environ.get("MULTICAST_LIBRARY"):
    import ctypes

    ctypes.CDLL(os.environ["MULTICAST_LIBRARY"])  # the extension finds it by its soname

from . import _core
from ._callable import accepts, known
from ._errors import DelegateErrors, MulticastError, Status, fail, group
from ._lifetime import Lifetime
from ._multicast import Broadcaster, Multicast, Reentry
from ._queue import Overflow, Queue, Statistics, Stream, on_coroutine, on_wake
from ._signal import Signal, evented
from ._token import Token, current_event, current_token

__all__ = [
    "Broadcaster", "DelegateErrors", "Lifetime", "Multicast", "MulticastError", "Overflow", "Queue",
    "Reentry", "Signal", "Statistics", "Status", "Stream", "Token", "current_event", "current_token",
    "evented", "version",
]


def version() -> str:
    """The version of the loaded library, such as "1.1.0"."""
    number = _core.version(0)
    return f"{number >> 16}.{number >> 8 & 255}.{number & 255}"


_core.setup(Token, types.CoroutineType, fail, group, accepts, known, on_coroutine, on_wake,
            os.urandom(8))
os.register_at_fork(after_in_parent=lambda: _core.after_fork(None),
                    after_in_child=lambda: _core.after_fork(os.urandom(8)))
atexit.register(_core.finish, 0)
for _name in __all__:
    globals()[_name].__module__ = __name__  # help() shows this module name, and pickles refer to it
__version__ = version()
