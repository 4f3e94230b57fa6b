"""What a slot is kept as."""

import multicast

WeakCallback = multicast.Token
