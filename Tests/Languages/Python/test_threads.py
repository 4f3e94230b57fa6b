"""Tests that removals keep their promises while other threads invoke, and that they never hang."""

import ctypes
import gc
import signal
import threading
import time

import multicast
import pytest
from clib import CreateOptions, Delegate, Function, lib

from conftest import made
from multicast import Lifetime, Multicast, Queue, _core


def remove_by_token(m, token, gate, timeout=None):
    return token.remove(timeout)


def remove_by_callable(m, token, gate, timeout=None):
    return m.remove(gate, timeout)


def remove_all(m, token, gate, timeout=None):
    return m.clear(timeout)


def destroy(m, token, gate, timeout=None):
    return m.destroy(timeout)


def end_lifetime(m, token, gate, timeout=None):
    return token.lifetime.end(timeout)


WAYS = [remove_by_token, remove_by_callable, remove_all, destroy, end_lifetime]


@pytest.mark.parametrize("way", WAYS)
def test_removal_waits_until_the_call_has_returned(shared, way, gate, start):
    m = made(shared)
    token = m.add(gate, lifetime=Lifetime())
    start(m.invoke, None)
    assert gate.entered.wait(10)
    results = []
    remover = start(lambda: results.append(way(m, token, gate)))
    time.sleep(0.05)
    assert not results and remover.is_alive()
    gate.opened.set()
    remover.join(10)
    assert results == [True]


@pytest.mark.parametrize("way", WAYS)
def test_removal_waits_no_longer_than_its_limit(shared, way, gate, start):
    m = made(shared)
    token = m.add(gate, lifetime=Lifetime())
    start(m.invoke, None)
    assert gate.entered.wait(10)
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        way(m, token, gate, 0.05)
    assert 0.04 < time.monotonic() - begin < 5
    assert not token.is_valid


def test_second_removal_waits_too(shared, gate, start):
    m = made(shared)
    token = m.add(gate)
    start(m.invoke, None)
    assert gate.entered.wait(10)
    token.remove_nowait()
    for wait in (token.remove, lambda limit: m.remove(gate, limit)):
        with pytest.raises(TimeoutError):
            wait(0.02)
    gate.opened.set()
    assert token.remove() is True


def test_removal_does_not_wait_for_other_delegates(shared, gate, start):
    m = made(shared)
    m.add(gate)
    other = m.add(lambda _: None)
    start(m.invoke, None)
    assert gate.entered.wait(10)
    assert other.remove(5) is True


def test_threads_that_remove_each_other_do_not_hang(shared, start):
    m, both = made(shared), threading.Barrier(2)
    results = []

    def first(payload):
        both.wait(10)
        results.append(tokens[1].remove())

    def second(payload):
        both.wait(10)
        results.append(tokens[0].remove())

    multicasts = [made(shared) for _ in range(2)]
    tokens = [multicasts[0].add(first), multicasts[1].add(second)]
    threads = [start(one.invoke, None) for one in multicasts]
    for thread in threads:
        thread.join(10)
    assert len(results) == 2 and False in results
    assert m.destroy() is True


def test_removal_by_a_nested_call_is_pending(shared):
    outer, inner, results = made(shared), made(shared), []
    token = outer.add(lambda _: inner.invoke(None))
    inner.add(lambda _: results.append(token.remove()))
    outer.invoke(None)
    assert results == [False] and token.remove() is True


def test_no_call_begins_after_a_removal(shared, start):
    m, done = made(shared), threading.Event()

    def invoke():
        while not done.is_set():
            m.invoke(0)

    for _ in range(3):
        start(invoke)
    end = time.monotonic() + 1
    rounds = 0
    while time.monotonic() < end:
        dead, bad = [False], []

        def delegate(payload, dead=dead, bad=bad):
            for _ in range(20):
                if dead[0]:
                    bad.append(1)

        token = m.add(delegate)
        time.sleep(0)
        assert token.remove(10) is True
        dead[0] = True
        time.sleep(0)
        assert not bad
        rounds += 1
    done.set()
    assert rounds > 2


def test_once_is_called_by_one_of_many_threads(shared, start):
    for _ in range(100):
        m, called, together = made(shared), [], threading.Barrier(3)
        m.add(called.append, once=True)

        def invoke(m=m, together=together):
            together.wait(10)
            m.invoke(1)

        for thread in [start(invoke) for _ in range(3)]:
            thread.join(10)
        assert called == [1]


def test_everything_at_once(shared, start):
    """Several threads add, remove, pause, invoke and destroy. The threads must not hang, crash or
    raise exceptions."""
    end = time.monotonic() + 1
    multicasts = [made(shared) for _ in range(2)]
    queue = Queue().start()

    def work(seed):
        count = 0
        while time.monotonic() < end:
            m = multicasts[(seed + count) % 2]
            lifetime = Lifetime()
            tokens = [m.add(lambda _: None, lifetime=lifetime, priority=count % 3),
                      m.add(lambda _: None, once=True, events=1),
                      m.add(lambda _: None, queue=queue)]
            m.invoke([count], count % 2)
            tokens[0].pause()
            tokens[0].resume()
            assert tokens[1].remove() and lifetime.end() and tokens[2].remove()
            other = made(shared)
            other.add(lambda _: None)
            other.invoke(None)
            count += 1
        assert count > 5

    for thread in [start(work, seed) for seed in range(3)]:
        thread.join(20)
    assert queue.destroy(10) is True


def test_removals_in_c_and_in_python_that_wait_for_each_other(start):
    m, side, both, results = Multicast(), lib.multicast_create(), threading.Barrier(2), {}
    c_token = ctypes.c_uint64()

    def python_delegate(payload):
        both.wait(10)
        results["C"] = lib.multicast_token_remove(c_token.value)

    @Function
    def c_delegate(context, event, payload, size):
        both.wait(10)
        results["Python"] = token.remove()

    token = m.add(python_delegate)
    assert m.handle and lib.multicast_add(side, Delegate(c_delegate, None), None, c_token) == 0
    for thread in [start(m.invoke, 1), start(lib.multicast_invoke, side, 0, None, 0)]:
        thread.join(10)
    # One of the two removals detects the cycle and does not wait, so it returns PENDING or False.
    assert sorted([results["C"] == 1, results["Python"] is False]) == [False, True]


def test_waiting_removals_take_no_processor_time(shared, start):
    count, go = 50, threading.Event()
    started = threading.Barrier(count + 1)

    def slow(payload):
        started.wait(10)
        go.wait(20)

    removers = []
    for _ in range(count):
        m = made(shared)
        token = m.add(lambda payload: slow(payload))
        start(m.invoke, 1)
        removers.append(token.remove)
    started.wait(10)
    for one in removers:
        start(one)
    time.sleep(0.2)
    begin, wall = time.process_time(), time.monotonic()
    time.sleep(1)
    used = (time.process_time() - begin) / (time.monotonic() - wall)
    go.set()
    assert used < 0.2, f"{count} removals that wait take {used:.0%} of a processor"


def test_once_delegates_that_are_called_while_they_are_added_leave_nothing(shared, start):
    m, called, stop = made(shared), [], threading.Event()

    def invoke():
        while not stop.is_set():
            m.invoke(1)

    thread = start(invoke)
    for _ in range(5000):
        m.add(called.append, once=True)
    stop.set()
    thread.join(10)
    m.invoke(1)
    assert len(called) == 5000 and len(m) == 0 and m._held() == []


def test_unique_keeps_one_of_many_that_are_added_at_once(shared, start):
    for _ in range(20):
        m, together = made(shared), threading.Barrier(3)

        def add(m=m, together=together):
            together.wait(10)
            m.add(print, unique=True)

        for thread in [start(add) for _ in range(3)]:
            thread.join(10)
        assert len(m) == 1


# ---- Interrupts ----------------------------------------------------------------------------------


def interrupted(step, count):
    """Sends `count` interrupts while `step` is called repeatedly. Returns the number of interrupts
    that have been raised."""
    sent, raised = [0], 0

    def handler(*_):
        sent[0] += 1
        raise KeyboardInterrupt

    def step_until_sent(before):  # a function, because the end of a loop may be outside of its `try`
        signal.setitimer(signal.ITIMER_REAL, 0.0007)
        while sent[0] == before:
            step()

    old = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(count):
            try:
                step_until_sent(sent[0])
            except KeyboardInterrupt:
                raised += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    return raised


def test_no_interrupt_is_lost_and_nothing_is_left(shared):
    m, queue, queued = made(shared), Queue(), made(shared)
    queue.attach(lambda run: None)  # so that a queued call runs Python code that can be interrupted
    for _ in range(16):
        m.add(lambda payload: None)
        queued.add(lambda payload: None, queue=queue)

    def add():
        m.add(print, once=True).remove()

    def run():
        queued.invoke([1])
        queue.run()

    for step in (lambda: m.invoke(1), run, add):
        assert interrupted(step, 200) == 200
        assert multicast.current_token() is None
    queue.clear()
    m.clear()
    gc.collect()
    assert m._held() == [] and not [one for one in gc.get_objects() if type(one) is _core.Held]


def test_interrupt_ends_a_wait(start, gate):
    m = Multicast()
    token = m.add(gate)
    start(m.invoke, 1)
    assert gate.entered.wait(10)

    def handler(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, handler)
    try:
        for wait in (token.remove, Queue().wait):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            begin = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                wait()
            assert time.monotonic() - begin < 5
    finally:
        signal.signal(signal.SIGALRM, old)


def test_unique_delegate_that_has_ended_already_leaves_newer_ones():
    m = Multicast(replay=1)
    m("replayed")
    m.add(print)
    m.add(print, unique=True, once=True)  # is called and therefore removed before the add returns
    assert len(m) == 0


@pytest.mark.parametrize("how", ["token", "function", "lifetime", "queue", "object"])
def test_removal_lets_c_code_wait_for_python(start, how):
    """The C function listeners_changed is sem_wait(). Only Python code posts the semaphore."""
    libc = ctypes.CDLL(None)
    semaphore = ctypes.create_string_buffer(64)
    assert libc.sem_init(semaphore, 0, 1) == 0  # the first call, for the add, does not wait
    wait = ctypes.cast(libc.sem_wait, ctypes.c_void_p)
    options = CreateOptions(struct_size=ctypes.sizeof(CreateOptions))
    options.others[:2] = ctypes.addressof(semaphore), wait.value
    m = Multicast.from_handle(lib.multicast_create_with(ctypes.byref(options)))
    lifetime, queue, target = Lifetime(), Queue(), Target()
    token = m.add(target.method, lifetime=lifetime, queue=queue if how == "queue" else None)

    def post():
        time.sleep(0.2)
        libc.sem_post(semaphore)

    start(post)
    if how == "object":
        del target
    else:
        {"token": token.remove_nowait, "function": lambda: m.remove(target.method),
         "lifetime": lifetime.end, "queue": queue.destroy}[how]()
    assert not token.is_valid


class Target:
    def method(self, payload):
        pass
