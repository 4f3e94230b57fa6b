"""Tests adding, calling and finding callables of any kind, with any arguments."""

import asyncio
import functools
import gc
import weakref
from collections import deque
from unittest import mock

import pytest
from conftest import made

from multicast import Broadcaster, DelegateErrors, Multicast, Reentry


class Listener:
    def __init__(self):
        self.got = []

    def on(self, *args, **kwargs):
        self.got.append((args, kwargs))

    def two(self, first, second):
        self.got.append((first, second))

    def named(self, first, second=2):
        self.got.append((first, second))


def test_any_arguments_arrive(shared):
    m, listener = made(shared), Listener()
    m.add(listener.on)
    assert m(1, "x", key=2) == 1 and m() == 1 and m.invoke(3, other=4, event=5) == 1
    assert listener.got == [((1, "x"), {"key": 2}), ((), {}), ((3,), {"other": 4})]


def test_delegates_that_take_fewer_are_called_with_fewer(shared):
    m, got, listener = made(shared), [], Listener()
    m.add(lambda: got.append("none"))
    m.add(lambda a: got.append(a))
    m.add(lambda a, b="b", *, key="key": got.append((a, b, key)))
    m.add(lambda a, *more, **kwargs: got.append((a, more, kwargs)))
    m.add(listener.two)
    m.add(functools.partial(listener.two, "first"))
    m.add(functools.partial(listener.named, second="second"))
    m.add(functools.partial(lambda a, b: got.append((a, b)), "bound"))
    m(1, 2, 3, other=4)
    assert got == ["none", 1, (1, 2, "key"), (1, (2, 3), {"other": 4}), ("bound", 1)]
    assert listener.got == [(1, 2), ("first", 1), (1, "second")]


def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


def shortened(function):
    @functools.wraps(function)
    def wrapper(first):
        return function(first, "added")
    return wrapper


class Traced:
    @traced
    def on(self, first):
        return first


def test_decorated_functions_take_what_the_inner_ones_take(shared):
    m, one = made(shared), Traced()
    for function in (traced(lambda a: a), one.on, functools.singledispatch(lambda a: a),
                     mock.create_autospec(lambda a: a, return_value=1), shortened(lambda a, b: a)):
        m.add(function)
    assert m.collect(1, 2, other=3) == [1] * 5


def test_any_keyword_is_passed_to_those_who_take_it(shared):
    m, broadcaster, listener = made(shared), made(shared, Broadcaster), Listener()
    names = dict.fromkeys(("self", "name", "args"), 1)
    m.add(lambda *args, **kwargs: (args, kwargs))
    m.add(lambda a=0, self=0, /, *args, name: (a, self, args, name))
    m.add(traced(lambda self=0, /, *args, name: (self, args, name)))
    m.add(listener.two)
    expected = [((2, 3), names), (2, 3, (), 1), (2, (3,), 1), None]
    assert m.collect(2, 3, **names) == expected
    assert asyncio.run(m.invoke_async(2, 3, **names)) == expected
    broadcaster.register("title", lambda **kwargs: listener.got.append(kwargs))
    assert m.invoke(2, 3, **names) == 4 and broadcaster.notify("title", **names) == 1
    assert listener.got == [(2, 3)] * 3 + [names]


def test_delegate_that_needs_more_fails(shared):
    m = made(shared)
    m.add(lambda a, b: None)
    with pytest.raises(DelegateErrors) as caught:
        m(1)
    assert isinstance(caught.value.exceptions[0], TypeError)


def test_declared_arguments_are_checked_when_adding():
    m = Multicast(arguments=(str, int))
    m.add(lambda: None)
    m.add(lambda a, b, c=1: None)
    m.add(print)
    for function in (lambda a, b, c: None, lambda a, *, key: None, Listener.two):
        with pytest.raises(TypeError, match="needs"):
            m.add(function)
    assert len(m) == 3


class Falsy:
    def __init__(self):
        self.calls = 0

    def __bool__(self):
        return False

    def __len__(self):
        return 0

    def __call__(self, payload):
        self.calls += 1


class EqualToAll(Falsy):
    __hash__ = None

    def __eq__(self, other):
        return True


class Incomparable(Falsy):
    __hash__ = None

    def __eq__(self, other):
        raise KeyError("no comparison")


def test_removal_finds_one_callable_and_no_other(shared):
    m, first, second = made(shared), Falsy(), Falsy()
    equal, strange = EqualToAll(), Incomparable()
    for one in (first, second, equal, strange, Incomparable(), print):
        m.add(one)
    m.remove(first)
    m.remove(print)
    m.remove(strange)
    m.invoke(1, 2)
    assert (first.calls, second.calls, equal.calls, strange.calls, len(m)) == (0, 1, 1, 0, 3)
    with pytest.raises(ValueError):
        m.remove(lambda: None)


def test_bound_builtins_are_found(shared):
    m, got = made(shared), []
    m.add(got.append)
    assert got.append in m and [].append not in m
    assert m.remove(got.append) is True and len(m) == 0


def test_builtin_method_can_be_held_weakly(shared):
    m, got = made(shared), set()
    m.add(got.add, weak=True)
    m.add(got.add, weak=True, unique=True)
    assert m(1) == 1 and got == {1} and got.add in m and m.remove(got.add) is True
    m.add(got.add, weak=True)
    weak = weakref.ref(got)
    del got
    assert weak() is None and len(m) == 0
    with pytest.raises(TypeError, match="weak=False"):
        m.add([].append, weak=True)


def test_builtins_that_are_held_weakly_are_called(shared):
    class Items(deque):
        def append(self, item):
            raise AssertionError

        def add_to(self, m):
            m.add(super().append, weak=True)

    m, items = made(shared), Items()
    m.add(len, weak=True)
    m.add(dict.fromkeys, weak=True)
    items.add_to(m)
    assert m.collect("a") == [1, {"a": None}, None] and list(items) == ["a"] and len in m


def test_partial_of_a_method_is_weak(shared):
    m, listener = made(shared), Listener()
    partial = functools.partial(listener.two, 1)
    m.add(partial)
    assert m(2) == 1 and partial in m and functools.partial(listener.two, 1) in m
    assert functools.partial(listener.two, 2) not in m
    weak = weakref.ref(listener)
    del listener, partial
    assert weak() is None and len(m) == 0


def test_decorated_method_is_called_as_it_is(shared):
    wrapt = pytest.importorskip("wrapt")
    trace = []

    @wrapt.decorator
    def traced(wrapped, instance, args, kwargs):
        trace.append("before")
        return wrapped(*args, **kwargs)

    class Window:
        @traced
        def hear(self, payload):
            trace.append(payload)

    window, m = Window(), made(shared)
    m.add(window.hear)
    m.invoke("x")
    assert trace == ["before", "x"] and m.remove(window.hear) is True


def test_delegates_of_one_sender(shared):
    m, got, sender, other = made(shared), [], Listener(), Listener()
    m.add(lambda a: got.append(("all", a)))
    m.add(lambda a: got.append(("one", a)), sender=sender)
    m.add(lambda a: got.append(("text", a)), sender="name")
    assert m.invoke(1, sender=sender) == 2 and m.invoke(2, sender=other) == 1 and m.invoke(3) == 1
    assert m.invoke(4, sender="na" + "me"[:2]) == 2
    assert got == [("all", 1), ("one", 1), ("all", 2), ("all", 3), ("all", 4), ("text", 4)]
    del sender
    assert len(m) == 2


def test_adds_are_told(shared):
    m, told = made(shared), []
    m.on_add = told.append
    token = m.add(print)
    assert told == [token]


def test_coroutine_that_nobody_awaits_is_an_error(shared):
    class Callable:
        async def __call__(self, payload):
            pass

    async def function(payload):
        pass

    m = made(shared)
    m.add(function)
    m.add(Callable())
    with pytest.raises(DelegateErrors) as caught:
        m.invoke(1)
    assert len(caught.value.exceptions) == 2
    assert all("invoke_async" in str(one) for one in caught.value.exceptions)


# ---- Garbage collection --------------------------------------------------------------------------


class Owner:
    """An object that refers to a multicast, which in turn refers to the object."""

    def __init__(self, shared, **options):
        self.m = made(shared, **options)


def strong(owner):
    owner.m.add(lambda: owner)


def method(owner):
    owner.m.add(functools.partial(print, owner), weak=False, once=True)


def sender(owner):
    owner.m.add(print, sender=(owner,))


def queued(owner):
    from multicast import Queue

    owner.queue = Queue()
    owner.m.add(print, queue=owner.queue)
    owner.m(owner)


def end(owner):
    owner.m.add(print).on_end = lambda: owner


def nested(owner):
    other = Multicast()
    owner.m.add(other)
    other.add(owner.m)


@pytest.mark.parametrize("refer", [strong, method, sender, queued, end, nested])
def test_cycle_through_a_multicast_is_collected(shared, refer):
    owner = Owner(shared)
    refer(owner)
    weak, multicast = weakref.ref(owner), weakref.ref(owner.m)
    del owner
    gc.collect()
    assert weak() is None and multicast() is None


def replayed(owner, shared):
    owner.m = made(shared, replay=2)
    owner.m(owner)


def hooked(owner, shared):
    owner.m = made(shared, listeners_changed=lambda has: owner)
    owner.m.add(print)


def deferred(owner, shared):
    owner.m = made(shared, reentry=Reentry.DEFER)
    owner.m.add(lambda a: a is owner and owner.m(None))
    owner.m(owner)


@pytest.mark.parametrize("refer", [replayed, hooked, deferred])
def test_cycle_through_a_policy_is_collected(shared, refer):
    owner = Owner(False)
    refer(owner, shared)
    weak = weakref.ref(owner)
    del owner
    gc.collect()
    assert weak() is None


def test_what_is_in_use_is_not_collected(shared):
    m, got = made(shared), []
    m.add(lambda a: got.append(a) or gc.collect())
    for number in range(20):
        m([number])
    gc.collect()
    assert got == [[number] for number in range(20)] and len(m) == 1
