"""What a slot is kept as."""

from multicast import Token as WeakCallback  # noqa: F401
