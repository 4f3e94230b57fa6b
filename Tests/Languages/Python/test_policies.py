"""Tests reentry, replays, listener reports, pauses, recursion and greenlets."""

import sys
import threading
import weakref

import pytest
from clib import CreateOptions, lib
from conftest import made

from multicast import DelegateErrors, Multicast, MulticastError, Reentry, Status, current_event


@pytest.mark.parametrize("reentry, expected", [
    (Reentry.RECURSE, [1, 2, 20, 10]), (Reentry.DEFER, [1, 10, 2, 20]), (Reentry.LATEST, [1, 10, 2, 20])])
def test_invocation_inside_a_call_of_the_same_multicast(shared, reentry, expected):
    m, got = made(shared, reentry=reentry), []
    m.add(lambda a: got.append(a) or (a == 1 and m(2)))
    m.add(lambda a: got.append(10 * a))
    m(1)
    assert got == expected


def test_refused_reentry_raises(shared):
    m = made(shared, reentry=Reentry.REFUSE)
    m.add(lambda: m())
    with pytest.raises(DelegateErrors) as caught:
        m()
    assert caught.value.exceptions[0].status is Status.STATE


def test_new_delegates_get_the_last_invocations(shared):
    m, got = made(shared, replay=2), []
    for number in range(4):
        m.invoke([number], number, key=number, event=number)
    m.add(lambda a, b, key: got.append((a, b, key, current_event())))
    assert got == [([2], 2, 2, 2), ([3], 3, 3, 3)]
    m.add(got.append, replay=False)
    assert len(got) == 2
    with pytest.raises(DelegateErrors):
        m.add(lambda a: 1 // 0)
    assert len(m) == 2  # a failed add adds nothing


def test_replay_runs_under_no_lock():
    import ctypes

    options = CreateOptions(struct_size=ctypes.sizeof(CreateOptions), replay=1)
    m, done, got = Multicast.from_handle(lib.multicast_create_with(ctypes.byref(options))), \
        threading.Event(), []
    m.invoke(b"last value")

    def elsewhere():
        Multicast().add(print)
        done.set()

    def delegate(payload):
        threading.Thread(target=elsewhere, daemon=True).start()
        got.append((payload, done.wait(10)))

    m.add(delegate)
    assert got == [(b"last value", True)]


def test_listeners_are_told(shared):
    told = []
    m = made(shared, listeners_changed=told.append)
    assert not m.has_listeners
    first, second = m.add(print), m.add(print)
    assert told == [True] and m.has_listeners
    first.remove()
    second.remove()
    assert told == [True, False] and not m.has_listeners


def test_hook_that_is_a_method_is_held_weakly(shared):
    class Window:
        def on_listeners(self, has):
            told.append(has)

    told, window = [], Window()
    m, weak = made(shared, listeners_changed=window.on_listeners), weakref.ref(window)
    token = m.add(print)
    del window
    assert weak() is None
    token.remove()
    assert told == [True]


def test_error_of_a_hook_is_reported(shared, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: seen.append(one.exc_type))
    made(shared, listeners_changed=lambda has: 1 // 0).add(print)
    assert seen[0] is ZeroDivisionError


def test_pause_of_a_whole_multicast(shared):
    m, got = made(shared), []
    m.add(got.append)
    with m.paused():
        with m.paused():
            assert m(1) == 0
        assert m(2) == 0
    assert m(3) == 1 and got == [3]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_endless_recursion_ends_soon(shared, count):
    m, calls = made(shared), []
    for _ in range(count):
        m.add(lambda: calls.append(1) or m())
    with pytest.raises(RecursionError):
        m()
    assert len(calls) <= 256 and m.clear() is True


def test_ring_of_forwarding_ends(shared):
    first, second = made(shared), made(shared)
    first.add(second)
    second.add(first)
    with pytest.raises(RecursionError):
        first("round")


def test_greenlet_beside_one_in_a_delegate_is_refused(shared):
    greenlet = pytest.importorskip("greenlet")
    m, got = made(shared), []

    def delegate(payload):
        got.append(payload)
        if payload == "outer":
            with pytest.raises(RuntimeError, match="another greenlet"):
                greenlet.greenlet(m).switch("inner")
            greenlet.greenlet(got.append).switch("other things")

    m.add(delegate)
    assert m("outer") == 1 and m("after") == 1
    assert got == ["outer", "other things", "after"]
    assert greenlet.greenlet(m).switch("alone") == 1


def test_greenlet_that_leaves_a_delegate_keeps_others_out(shared):
    greenlet = pytest.importorskip("greenlet")
    m, got, main = made(shared), [], greenlet.getcurrent()

    def delegate(payload):
        got.append(payload)
        main.switch()

    m.add(delegate)
    first, second = greenlet.greenlet(m), greenlet.greenlet(m)
    first.switch("first")
    with pytest.raises(RuntimeError, match="another greenlet"):
        second.switch("second")  # its stack is where the stack of the first one was
    first.switch()
    assert got == ["first"]


@pytest.mark.parametrize("replay", [-1, 2**32])
def test_replay_out_of_range_is_refused(replay):
    with pytest.raises(ValueError, match="a replay is from 0"):
        Multicast(replay=replay)


def test_once_counts_only_calls_for_its_sender(shared):
    m, got = made(shared), []
    token = m.add(got.append, once=True, sender="mine")
    m.invoke("other", sender="yours")
    assert token.is_valid
    m.invoke("mine", sender="mine")
    m.invoke("again", sender="mine")
    assert got == ["mine"] and not token.is_valid


def test_once_behind_an_interrupt_is_called_later(shared):
    def interrupt(payload):
        raise KeyboardInterrupt

    m, got = made(shared), []
    first = m.add(interrupt)
    m.add(got.append, once=True)
    with pytest.raises(KeyboardInterrupt):
        m(1)
    first.remove()
    m(2)
    m(3)
    assert got == [2]


def test_latest_with_a_sender_is_refused(shared):
    with pytest.raises(ValueError, match="latest"):
        made(shared).add(print, latest=True, sender="mine")


@pytest.mark.parametrize("error", [ValueError, MemoryError, GeneratorExit])
def test_on_end_is_called_once_whatever_it_raises(monkeypatch, error):
    def on_end():
        calls.append(1)
        raise error

    calls, unraisable = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: unraisable.append(one.exc_type))
    m = Multicast()
    token = m.add(print)
    token.on_end = on_end
    token.remove()
    assert calls == [1] and unraisable == [error]


def test_on_end_may_be_none():
    m = Multicast()
    token = m.add(print)
    token.on_end = None
    assert token.remove()


def test_label_that_was_cut_inside_a_character():
    m = Multicast()
    token = m.add(print, label="x" + "é" * 40)
    assert token.label == "x" + "é" * 31 and "é" in repr(token)


def test_error_after_destroy():
    m = Multicast()
    m.destroy()
    for use in (m, m.invoke, lambda: m.add(print), m.clear):
        with pytest.raises(MulticastError, match="it was destroyed or has ended"):
            use()
    assert len(m) == 0 and m.tokens() == [] and not m.has_listeners
