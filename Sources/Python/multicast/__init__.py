"""One-to-many delegation: observers, signals and slots, over libmulticast.

A `Multicast` holds any number of callables and calls them all. A removal that returns True has
ended the registration: no thread is in a call of it, and none ever will be.
"""

import atexit
import os
import types

if os.environ.get("MULTICAST_LIBRARY"):
    import ctypes

    ctypes.CDLL(os.environ["MULTICAST_LIBRARY"])  # the extension then uses it, by its soname

from . import _core
from ._broadcaster import Broadcaster
from ._callable import accepts, known
from ._errors import DelegateErrors, MulticastError, Status, fail, group
from ._evented import evented
from ._lifetime import Lifetime
from ._multicast import Multicast, Reentry
from ._queue import Overflow, Queue, Statistics, forget_loops, on_coroutine, on_wake
from ._signal import Signal
from ._stream import Stream
from ._token import Token, current_event, current_token

__all__ = [
    "Broadcaster", "DelegateErrors", "Lifetime", "Multicast", "MulticastError", "Overflow", "Queue",
    "Reentry", "Signal", "Statistics", "Status", "Stream", "Token", "current_event", "current_token",
    "evented", "version",
]


def version() -> str:
    """The version of the library that is loaded, such as "1.1.0"."""
    number = _core.version(0)
    return f"{number >> 16}.{number >> 8 & 255}.{number & 255}"


def _mark() -> int:
    return int.from_bytes(os.urandom(8), "little")


def _in_child() -> None:
    forget_loops()
    _core.after_fork(_mark())


_core.setup(Token, types.CoroutineType, fail, group, accepts, known,
            on_coroutine, on_wake, _mark())
os.register_at_fork(after_in_parent=lambda: _core.after_fork(None), after_in_child=_in_child)
atexit.register(_core.finish, 0)
for _name in __all__:
    globals()[_name].__module__ = __name__  # what help() shows, and what pickles refer to
__version__ = version()
