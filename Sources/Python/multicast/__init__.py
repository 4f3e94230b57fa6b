"""One-to-many delegation: observers, signals and slots, over libmulticast.

A `Multicast` holds any number of callables and calls them all. A removal that returns True has
ended the registration: no thread is in a call of it, and none ever will be.
"""

from ._broadcaster import Broadcaster
from ._calls import current_event
from ._errors import DelegateErrors, MulticastError, Status
from ._library import version
from ._lifetime import Lifetime
from ._multicast import Multicast
from ._queue import Overflow, Queue, Statistics
from ._stream import Stream
from ._token import Token, current_token

__all__ = [
    "Broadcaster", "DelegateErrors", "Lifetime", "Multicast", "MulticastError", "Overflow", "Queue",
    "Statistics", "Status", "Stream", "Token", "current_event", "current_token", "version",
]
__version__ = version()
