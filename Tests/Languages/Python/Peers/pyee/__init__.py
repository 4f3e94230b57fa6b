"""Uses multicast to implement the part of pyee's interface that pyee's tests use."""

from collections import OrderedDict, defaultdict

from multicast import Broadcaster, DelegateErrors


class EventEmitter:
    def __init__(self):
        self._broadcaster, self._lock = Broadcaster(), True

    def __reduce__(self):
        return type(self), ()

    @property
    def _events(self):
        return defaultdict(OrderedDict, {
            name: OrderedDict((one, one) for one in self.listeners(name)) for name in self._broadcaster})

    def on(self, event, f=None):
        return self._add(event, f, once=False)

    def once(self, event, f=None):
        return self._add(event, f, once=True)

    def _add(self, event, function, once):
        if function is None:
            return lambda one: self._add(event, one, once)
        if event != "new_listener":
            self.emit("new_listener", event, function)
        self._broadcaster.register(event, function, once=once, weak=False)
        return function

    add_listener = on
    listens_to = on

    def event_names(self):
        return set(self._broadcaster.names())

    def listeners(self, event):
        return [one.function for one in self._broadcaster[event].tokens()]

    def remove_listener(self, event, function):
        self._broadcaster.unregister(event, function)

    def remove_all_listeners(self, event=None):
        self._broadcaster.clear(event)

    def emit(self, event, *args, **kwargs):
        handled = bool(self.listeners(event))
        self._call(event, args, kwargs)
        if not handled and event == "error":
            raise args[0]
        return handled

    def _call(self, event, args, kwargs):
        try:
            self._broadcaster.notify(event, *args, **kwargs)
        except DelegateErrors as errors:
            raise errors.exceptions[0]
