"""Removals while other threads invoke: what they promise, and that they never hang."""

import threading
import time

import pytest

from conftest import made
from multicast import Lifetime, Multicast, Queue


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
    """Threads add, remove, pause, invoke and destroy: nothing hangs, raises or crashes."""
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
