"""Uses multicast to implement the part of psygnal's interface that psygnal's core tests use."""

import functools
import threading
import types
import warnings
from contextlib import contextmanager
from inspect import Parameter, Signature

from multicast import DelegateErrors, Multicast, Queue, Reentry

_compiled = False
_REENTRY = {"immediate": Reentry.RECURSE, "queued": Reentry.DEFER, "latest": Reentry.LATEST}
_queues = {}  # maps each thread to its queue
_emitting = threading.local()


class EmitLoopError(Exception):
    pass


def emit_queued():
    _queues.setdefault(threading.current_thread(), Queue()).run()


@functools.lru_cache(None)
def _setter(name, maxargs, set_one):
    """Returns a function that sets an attribute or an item, and that can be bound to an object as a
    method. Repeated calls with the same arguments return the same function."""
    def assign(target, *args):
        args = args[:maxargs]
        set_one(target, name, args[0] if len(args) == 1 else args)
    return assign


def _set_item(target, name, value):
    target[name] = value


class SignalInstance:
    def __init__(self, types=(), *, instance=None, name=None, reemission="immediate",
                 check_nargs_on_connect=True, check_types_on_connect=False, description=""):
        self.signature = types if isinstance(types, Signature) else Signature([
            Parameter(f"p{i}", Parameter.POSITIONAL_ONLY, annotation=one) for i, one in enumerate(types)])
        self._types = [one.annotation for one in self.signature.parameters.values()]
        self.instance, self._name, self.description = instance, name, description
        self._check, self._label = check_nargs_on_connect, name
        self._multicast = Multicast(name, reentry=_REENTRY[getattr(reemission, "value", reemission)])
        self._paused = []

    def __repr__(self):
        return f"<SignalInstance {self._name}>"

    @property
    def _slots(self):
        return self._multicast.tokens()

    def __len__(self):
        return len(self._multicast)

    def connect(self, slot=None, *, check_nargs=None, check_types=None, unique=False, thread=None,
                priority=0, max_args=None):
        if slot is None:
            return lambda one: self.connect(one, check_nargs=check_nargs, unique=unique, thread=thread,
                                            priority=priority)
        if not callable(slot):
            raise TypeError("not callable")
        if check_nargs if check_nargs is not None else self._check:
            self._check_slot(slot)
        if unique and slot in self._multicast:
            if unique == "raise":
                raise ValueError("Slot already connected")
            return slot
        if thread in ("main", "current"):
            thread = threading.current_thread()
        queue = _queues.setdefault(thread, Queue()) if thread is not None else None
        self._multicast.add(slot, priority=priority, queue=queue)
        return slot

    def _check_slot(self, slot):
        probe = Multicast(arguments=self._types)
        try:
            probe.add(slot, weak=False)
        except TypeError as error:
            only = "Unsupported KEYWORD_ONLY parameters in signature. " if "keywords" in str(error) else ""
            if isinstance(slot, functools.partial):
                only = "prefer using positional args. "
            raise ValueError(f"{only}{error}. Accepted signature: {self.signature}") from None
        if slot is vars:
            warnings.warn("no signature", stacklevel=3)

    def connect_setattr(self, obj, name, maxargs=()):
        getattr(obj, name)
        return self._connect_setter(obj, name, maxargs, setattr)

    def connect_setitem(self, obj, name, maxargs=()):
        if not hasattr(obj, "__setitem__"):
            raise TypeError("does not support __setitem__")
        return self._connect_setter(obj, name, maxargs, _set_item)

    def _connect_setter(self, obj, name, maxargs, set_one):
        if maxargs == ():
            warnings.warn("The default value of maxargs will change", FutureWarning, stacklevel=3)
            maxargs = None
        return self.connect(types.MethodType(_setter(name, maxargs, set_one), obj))

    def disconnect_setattr(self, obj, name, missing_ok=True):
        self._disconnect_setter(obj, name, setattr, missing_ok)

    def disconnect_setitem(self, obj, name, missing_ok=True):
        if not missing_ok and not hasattr(obj, "__setitem__"):
            raise TypeError("does not support __setitem__")
        self._disconnect_setter(obj, name, _set_item, missing_ok)

    def _disconnect_setter(self, obj, name, set_one, missing_ok):
        self.disconnect(types.MethodType(_setter(name, None, set_one), obj), missing_ok)

    def disconnect(self, slot=None, missing_ok=True):
        if slot is None:
            self._multicast.clear()
            return
        try:
            self._multicast.remove(slot)
        except ValueError:
            if not missing_ok:
                raise ValueError("slot is not connected") from None

    def emit(self, *args, check_nargs=False, check_types=False):
        if check_nargs:
            self.signature.bind(*args)
        if check_types and not all(map(isinstance, args, self._types)):
            raise TypeError("types do not match")
        if self._paused:
            self._paused[-1].append(args)
            return
        stack = _emitting.__dict__.setdefault("stack", [])
        stack.append(self)
        first = None
        try:
            self._multicast(*args)
            if threading.current_thread() in _queues:
                emit_queued()
        except DelegateErrors as errors:
            first = errors.exceptions[0]
        finally:
            stack.pop()
        if first is not None:
            raise first if isinstance(first, EmitLoopError) else self._loop_error(first)

    def _loop_error(self, first):
        at = first.__traceback__
        while at.tb_next is not None:
            at = at.tb_next
        error = EmitLoopError(f"While emitting signal 'tests.test_psygnal.{self._label}', an error "
                              f"occurred in {at.tb_frame.f_code.co_filename}")
        error.__cause__ = error.__context__ = first
        return error

    __call__ = emit_fast = emit

    def blocked(self):
        return self._multicast.paused()

    def pause(self):
        self._paused.append([])

    def resume(self, reducer=None, initial=None):
        calls = self._paused.pop()
        if reducer is not None and calls:
            calls = [functools.reduce(reducer, calls) if initial is None
                     else functools.reduce(reducer, calls, initial)]
        for args in calls:
            self.emit(*args)

    @contextmanager
    def paused(self, reducer=None, initial=None):
        self.pause()
        try:
            yield
        finally:
            self.resume(reducer, initial)


class Signal:
    def __init__(self, *types, description="", **options):
        self._options = {"description": description, **options}
        self.description = description
        if types and isinstance(types[0], Signature):
            if len(types) > 1:
                warnings.warn("only the signature is used", stacklevel=2)
            types = types[0]
        self._types = types
        self.signature = SignalInstance(types).signature

    def __set_name__(self, owner, name):
        self._name, self._owner = name, owner

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        key = f"_signal_{self._name}"
        found = instance.__dict__.get(key)
        if found is None:
            found = instance.__dict__[key] = SignalInstance(
                self._types, instance=instance, name=f"{self._owner.__name__}.{self._name}",
                **self._options)
            found._name = self._name
        return found

    @staticmethod
    def current_emitter():
        stack = _emitting.__dict__.get("stack")
        return stack[-1] if stack else None

    @classmethod
    def sender(cls):
        return getattr(cls.current_emitter(), "instance", None)
