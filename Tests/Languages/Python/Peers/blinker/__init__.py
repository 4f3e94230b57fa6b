"""Uses multicast to implement the part of blinker's interface that blinker's tests use."""

from contextlib import contextmanager

from multicast import DelegateErrors, Multicast

from ._utilities import Symbol

ANY = Symbol("ANY")


class Signal:
    ANY = ANY

    def __init__(self, doc=None):
        if doc:
            self.__doc__ = doc
        self._multicast, self._told = Multicast(), {}
        self._by_receiver = self._by_sender = {}  # not needed by multicast

    receiver_connected = property(lambda self: self._told.setdefault("connected", Signal()))
    receiver_disconnected = property(lambda self: self._told.setdefault("disconnected", Signal()))

    @property
    def receivers(self):
        return {one: one.function for one in self._multicast.tokens()}

    def connect(self, receiver, sender=ANY, weak=True):
        wanted = None if sender is ANY else sender
        if not any(one.sender in (None, wanted) for one in self._multicast.tokens()
                   if one.function == receiver):
            if wanted is None and receiver in self._multicast:
                self._multicast.remove(receiver)
            self._multicast.add(receiver, sender=wanted, weak=weak)
        if "connected" in self._told:
            self.receiver_connected.send(self, receiver=receiver, sender=sender, weak=weak)
        return receiver

    def connect_via(self, sender, weak=False):
        return lambda function: self.connect(function, sender, weak)

    @contextmanager
    def connected_to(self, receiver, sender=ANY):
        self.connect(receiver, sender, weak=False)
        try:
            yield
        finally:
            self.disconnect(receiver)

    def muted(self):
        return self._multicast.paused()

    def disconnect(self, receiver, sender=ANY):
        for one in self._multicast.tokens():
            if one.function == receiver and (sender is ANY or one.sender == sender):
                one.remove()
        if "disconnected" in self._told:
            self.receiver_disconnected.send(self, receiver=receiver, sender=sender)

    def send(self, sender=None, /, **kwargs):
        receivers, results = list(self.receivers_for(sender)), []
        try:
            self._multicast._run((sender,), kwargs, 0, sender, results, False)
            return list(zip(receivers, results))
        except DelegateErrors as errors:
            if "async delegate" in str(errors.exceptions[0]):
                raise RuntimeError("Cannot send to a coroutine function.") from None
            raise errors.exceptions[0]

    async def send_async(self, sender=None, /, *, _sync_wrapper=None, **kwargs):
        receivers = list(self.receivers_for(sender))
        results = await self._multicast.invoke_async(sender, sender=sender, **kwargs)
        return list(zip(receivers, results))

    def has_receivers_for(self, sender):
        return bool(list(self.receivers_for(sender)))

    def receivers_for(self, sender):
        return (one.function for one in self._multicast.tokens() if one.sender is None
                or (sender is not ANY and one.sender == sender))


class NamedSignal(Signal):
    def __init__(self, name, doc=None):
        super().__init__(doc)
        self.name = name

    def __repr__(self):
        return f"<NamedSignal {self.name!r}>"


class Namespace(dict):
    def signal(self, name, doc=None):
        return self.setdefault(name, NamedSignal(name, doc))
