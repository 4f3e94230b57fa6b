"""The class that represents a stored slot."""

import multicast

WeakCallback = multicast.Token
