"""Tests adding, invoking and removing on one thread, for private multicasts and for multicasts
whose handles are known to C code."""

import ctypes
import gc
import sys
import weakref

import pytest

import multicast
from clib import Delegate, Function, lib
from conftest import made
from multicast import Broadcaster, DelegateErrors, Multicast, MulticastError, Status


class Listener:
    def __init__(self):
        self.got = []

    def on(self, payload):
        self.got.append(payload)
        return len(self.got)


@pytest.mark.parametrize("payload", [None, b"", b"0123456789abcdef", "text", 7, [1], object()])
def test_payload_arrives_as_it_is(shared, payload):
    m, got = made(shared), []
    m.add(got.append)
    assert m.invoke(payload) == 1
    assert got == [payload] and (type(payload) is bytes or got[0] is payload)


def test_payload_is_not_kept(shared):
    m, payload = made(shared), Listener()
    m.add(lambda payload: None)
    m.invoke(payload)
    weak = weakref.ref(payload)
    del payload
    assert weak() is None


def test_order_is_by_priority_then_by_addition(shared):
    m = made(shared)
    for name, priority in [("c", 0), ("a", 5), ("d", 0), ("b", 5), ("e", -1)]:
        m.add(lambda _, name=name: name, priority=priority)
    assert m.collect(None) == list("abcde")
    assert [one.priority for one in m.tokens()] == [5, 5, 0, 0, -1]


def test_events_select_delegates(shared):
    m = made(shared)
    m.add(lambda _: ("two", multicast.current_event()), events=2)
    m.add(lambda _: ("few", multicast.current_event()), events={1, 63})
    m.add(lambda _: ("all", multicast.current_event()))
    assert m.collect(None, event=2) == [("two", 2), ("all", 2)]
    assert m.collect(None, event=63) == [("few", 63), ("all", 63)]
    assert m.collect(None, event=0) == [("all", 0)]
    assert len(m.collect(None, event=2**32 - 1)) == 3
    assert multicast.current_event() is None
    for events in ([], -1, 64):
        with pytest.raises(ValueError):
            m.add(print, events=events)
    for event in (-1, 2**32):
        with pytest.raises(ValueError):
            m.invoke(None, event=event)


def test_once_is_called_once_also_if_it_invokes(shared):
    m, calls = made(shared), []

    def once(payload):
        calls.append(payload)
        m.invoke("inner")

    token = m.add(once, once=True)
    assert token.is_valid
    assert m.invoke("outer") == 1 and m.invoke("again") == 0
    assert calls == ["outer"] and not token.is_valid and len(m) == 0


def test_unique_replaces_equal_ones(shared):
    m, listener = made(shared), Listener()
    m.add(listener.on)
    m.add(print)
    m.add(listener.on, unique=True)
    assert len(m) == 2 and m.tokens()[1].function == listener.on


def test_same_callable_may_be_added_again_and_remove_takes_all(shared):
    m, listener = made(shared), Listener()
    m.add(listener.on)
    m.add(listener.on, weak=False)
    assert listener.on in m and m.invoke(1) == 2
    assert m.remove(listener.on) is True
    assert listener.on not in m and m.invoke(2) == 0 and listener.got == [1, 1]
    with pytest.raises(ValueError):
        m.remove(listener.on)


def test_bound_methods_are_weak_and_others_strong(shared):
    m, listener = made(shared), Listener()
    token = m.add(listener.on)
    m.add(lambda payload: payload)
    assert m.collect("x") == [1, "x"]
    weak = weakref.ref(listener)
    del listener
    assert weak() is None and not token.is_valid and repr(m) == "<multicast.Multicast of 1>"
    assert m.collect("y") == ["y"] and len(m) == 1


def test_weak_can_be_chosen(shared):
    m, listener = made(shared), Listener()
    m.add(listener.on, weak=False)
    weak = weakref.ref(listener)
    del listener
    assert weak() is not None and m.invoke(None) == 1

    def function(payload):
        return "weak"

    token = m.add(function, weak=True)
    assert function in m and m.collect(None)[1] == "weak"
    assert repr(token) == f"<multicast.Token {function.__qualname__}, valid>"
    del function
    assert repr(token) == "<multicast.Token None, ended>" and len(m) == 1


def test_method_of_an_object_that_cannot_be_held_weakly_is_refused(shared):
    class Slotted:
        __slots__ = ()

        def on(self, payload):
            return "slotted"

    m = made(shared)
    with pytest.raises(TypeError, match="weak=False"):
        m.add(Slotted().on)
    m.add(Slotted().on, weak=False)
    assert m.collect(None) == ["slotted"]


def test_object_that_goes_during_an_invocation_is_not_called(shared):
    m, listener = made(shared), Listener()
    holder = [listener]
    m.add(lambda _: holder.clear())
    m.add(listener.on)
    del listener
    m.invoke(None)
    assert len(m) == 1


def test_token_removes_pauses_and_is_a_context(shared):
    m = made(shared)
    first, second = m.add(lambda _: 1), m.add(lambda _: 2)
    first.pause()
    assert m.collect(None) == [2] and first.is_valid
    first.resume()
    assert m.collect(None) == [1, 2]
    assert second.remove() and second.remove() and not second.is_valid
    second.pause()
    second.resume()
    assert m.collect(None) == [1]
    with m.add(lambda _: 3) as third:
        assert m.collect(None) == [1, 3]
    assert not third.is_valid and m.collect(None) == [1]


def test_changes_during_an_invocation(shared):
    m, called = made(shared), []

    def change(payload):
        called.append("change")
        assert multicast.current_token() is tokens[0]
        assert tokens[1].remove() is True
        tokens[2].pause()
        m.add(lambda _: called.append("new"))
        assert tokens[0].remove() is False  # because this delegate is being called

    tokens = [m.add(change)] + [m.add(lambda _, name=name: called.append(name)) for name in "bcd"]
    assert m.invoke(None) == 2
    assert called == ["change", "d"]
    assert multicast.current_token() is None
    m.invoke(None)
    assert called[2:] == ["d", "new"]


def test_destroy_during_an_invocation_ends_it(shared):
    m, called = made(shared), []
    m.add(lambda _: called.append(m.destroy()))
    m.add(called.append)
    m.invoke(None)
    assert called == [False]
    for use in (lambda: m.invoke(None), lambda: m.add(print)):
        with pytest.raises(MulticastError) as caught:
            use()
        assert caught.value.status == Status.INVALID_HANDLE
        assert str(caught.value) == "it was destroyed or has ended"
    assert m.destroy() is True and len(m) == 0


def test_exceptions_are_collected_and_raised_as_a_group(shared):
    m, called = made(shared), []

    def fail(payload):
        raise payload

    m.add(fail)
    m.add(called.append)
    m.add(lambda _: 1 // 0)
    error = KeyError("k")
    with pytest.raises(DelegateErrors) as caught:
        m.invoke(error)
    assert called == [error]
    first, second = caught.value.exceptions
    assert first is error and isinstance(second, ZeroDivisionError)
    if sys.version_info >= (3, 11):
        assert isinstance(caught.value, ExceptionGroup)  # noqa: F821
        assert type(caught.value.subgroup(KeyError)) is DelegateErrors
    assert multicast.current_token() is None


def test_interruptions_end_an_invocation(shared):
    m, called = made(shared), []

    def interrupt(payload):
        raise KeyboardInterrupt

    m.add(interrupt)
    m.add(called.append)
    with pytest.raises(KeyboardInterrupt):
        m.invoke(None)
    assert not called and multicast.current_token() is None
    assert m.clear() is True  # because no call counts as running


def test_multicast_with_its_own_listener_is_collected(shared):
    class Model:
        def __init__(self):
            self.changed = made(shared)
            self.token = self.changed.add(self.on, weak=False)

        def on(self, payload):
            pass

    model = Model()
    model.changed.invoke(None)
    handle, weak = model.changed._handle, weakref.ref(model)
    del model
    gc.collect()
    assert weak() is None and not lib.multicast_is_valid(handle)


def test_lifetime_ends_its_registrations(shared):
    first, second, got = made(shared), made(shared), []
    with multicast.Lifetime() as plugin:
        tokens = [first.add(got.append, lifetime=plugin), second.add(got.append, lifetime=plugin)]
        second.add(got.append)
        assert len(plugin) == 2
        first.invoke(1)
    assert not plugin.is_valid and not any(one.is_valid for one in tokens)
    assert first.invoke(2) == 0 and second.invoke(3) == 1 and got == [1, 3]
    assert plugin.end() is True
    with pytest.raises(MulticastError):
        first.add(print, lifetime=plugin)
    assert len(first) == 0


def test_c_code_adds_invokes_and_removes():
    m, got = made(True), []

    @Function
    def delegate(context, event, payload, size):
        got.append(("C", event, ctypes.string_at(payload, size)))

    assert lib.multicast_add(m.handle, Delegate(delegate, None), None, None) == 0
    token = m.add(lambda payload: got.append(("Python", payload)), priority=-1)
    assert m.invoke(b"hello", event=7) == 2
    assert got == [("C", 7, b"hello"), ("Python", b"hello")]
    other = Multicast.from_handle(m.handle)
    other.add(lambda payload: got.append(("other", payload)), priority=-2)
    del other
    gc.collect()
    got.clear()
    assert lib.multicast_invoke(m.handle, 0, None, 0) == 3
    assert got == [("C", 0, b""), ("Python", None), ("other", None)]
    assert len(m) == 3 and lib.multicast_token_remove_within(token._id, 0) == 0
    assert not token.is_valid and len(m) == 2 and len(m.tokens()) == 1
    with pytest.raises(MulticastError, match="not the handle of a multicast: 1"):
        Multicast.from_handle(1)


def test_broadcaster_has_multicasts_by_name(shared):
    b, got = made(shared, Broadcaster), []
    assert b.notify("title", "nobody") == 0
    b.register("title", got.append)
    b.register("größe", got.append, priority=3)
    assert b.notify("title", "Aria") == 1 and b.notify("größe", 5) == 1
    assert b["title"] is b["title"] and b["title"].invoke("x") == 1
    assert b.unregister("title", got.append) is True and b.notify("title", "y") == 0
    assert got == ["Aria", 5, "x"]
    for name in ("", "n" * 256, "a\0b"):
        with pytest.raises(ValueError):
            b.notify(name)
    with pytest.raises(ValueError):
        b["title"].destroy()
    kept = b["größe"]
    assert b.destroy() is True
    with pytest.raises(MulticastError):
        kept.invoke(1)


def test_default_broadcaster_is_that_of_the_process():
    b, got = multicast.Broadcaster.default(), []
    assert b is Broadcaster.default() and b.handle == lib.multicast_broadcaster_default()
    with b.register("test", got.append):
        assert b.notify("test", 1) == 1
    assert got == [1] and b.notify("test", 2) == 0
    with pytest.raises(ValueError):
        b.destroy()


def test_what_cannot_be_called_is_not_added():
    for options in ({"queue": 5}, {"lifetime": 5}):
        with pytest.raises(TypeError, match="not a "):
            Multicast().add(print, **options)
    with pytest.raises(TypeError, match="not callable"):
        Multicast().add("no callable")
    for priority in (2**31, -2**31 - 1):
        with pytest.raises(ValueError, match="a priority is from"):
            Multicast().add(print, priority=priority)


def test_names_of_a_broadcaster_are_listed_and_cleared(shared):
    b, got = made(shared, Broadcaster), []
    b.register("first", got.append)
    b.register("second", got.append)
    b["third"].clear()
    assert b.names() == list(b) == ["first", "second"] and "first" in b and "third" not in b
    assert b.clear("first") is True and b.names() == ["second"]
    assert b.clear() is True and not b.names() and b.notify("second", 1) == 0


def test_c_code_may_pass_a_payload_on_but_not_keep_it():
    first, second, got, kept, sent = made(True), made(True), [], [], object()

    @Function
    def delegate(context, event, payload, size):
        kept.append(ctypes.string_at(payload, size))
        lib.multicast_invoke(second._handle, event, kept[-1], size)

    lib.multicast_add(first._handle, Delegate(delegate, None), None, None)
    second.add(lambda payload: got.append(payload))
    first(sent)
    assert got == [sent] and len(kept[0]) == 16
    for payload in (kept[0], kept[0][:8] + bytes(8), bytes(8) + kept[0][8:], bytes(16)):
        lib.multicast_invoke(second._handle, 0, payload, 16)
    assert got[1:] == [kept[0], kept[0][:8] + bytes(8), bytes(8) + kept[0][8:], bytes(16)]

    @Function
    def forge(context, event, payload, size):  # called while a payload with this number exists
        lib.multicast_invoke(second._handle, event, bytes(8) + ctypes.string_at(payload, size)[8:], 16)

    lib.multicast_add(first._handle, Delegate(forge, None), None, None)
    got.clear()
    first(sent)
    assert got[0] is sent and type(got[1]) is bytes


def test_name_that_two_threads_look_up_at_once_keeps_its_observers(shared, monkeypatch):
    b, got, create = made(shared, Broadcaster), [], multicast._core.broadcaster_multicast

    def slow(*args):
        if not got:
            got.append("first")
            b.register("name", got.append)  # imitates another thread
        return create(*args)

    monkeypatch.setattr(multicast._core, "broadcaster_multicast", slow)
    b["name"]
    gc.collect()
    assert b.notify("name", 1) == 1 and got == ["first", 1]
