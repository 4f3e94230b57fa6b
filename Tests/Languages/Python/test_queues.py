"""Tests queues that are run by the program, by an asyncio loop or by a thread. Also tests
streams."""

import asyncio
import gc
import select
import threading
import time
import weakref

import pytest

import multicast
from conftest import made
from multicast import DelegateErrors, Multicast, MulticastError, Overflow, Queue


class Payload:
    pass


def test_calls_wait_until_the_queue_is_run(shared):
    m, q, got = made(shared), Queue(), []
    m.add(got.append, queue=q)
    m.add(lambda payload: got.append(("direct", payload)))
    assert not select.select([q], [], [], 0)[0]
    sent = Payload()
    assert m.invoke(sent) == 2 and m.invoke(b"bytes") == 2
    assert got == [("direct", sent), ("direct", b"bytes")] and len(q) == 2
    assert select.select([q], [], [], 0)[0] and q.wait(0) == 2
    assert q.run(1) == 1 and q.run() == 1
    assert got[2:] == [sent, b"bytes"] and q.wait(0.01) == 0
    assert q.statistics().delivered == 2


@pytest.mark.parametrize("how", ["run", "clear", "remove", "destroy", "refuse"])
def test_payload_is_released_whatever_becomes_of_the_call(shared, how):
    m, q, sent = made(shared), Queue(capacity=1), Payload()
    token = m.add(lambda payload: None, queue=q)
    if how == "refuse":
        m.invoke(None)
    m.invoke(sent)
    weak = weakref.ref(sent)
    del sent
    assert (weak() is None) == (how == "refuse")
    {"run": q.run, "clear": q.clear, "remove": token.remove, "destroy": q.destroy,
     "refuse": q.run}[how]()
    assert weak() is None


def test_full_queue_refuses_or_drops(shared):
    for overflow, expected in [(Overflow.REFUSE, [0, 1]), (Overflow.DROP_OLDEST, [1, 2])]:
        m, q, got = made(shared), Queue(2, overflow), []
        m.add(got.append, queue=q)
        for number in range(3):
            m.invoke(number)
        q.run()
        assert got == expected


def test_latest_call_takes_the_place_of_older_ones(shared):
    m, q, got = made(shared), Queue(), []
    m.add(got.append, queue=q, latest=True)
    for number in range(3):
        m.invoke(number)
    assert q.run() == 1 and got == [2]


def test_exceptions_of_queued_calls_are_raised_by_run(shared):
    m, q, got = made(shared), Queue(), []
    m.add(lambda _: 1 // 0, queue=q)
    m.add(got.append, queue=q)
    m.invoke(1)
    with pytest.raises(DelegateErrors):
        q.run()
    assert got == [1]


def test_queued_calls_of_a_removed_delegate_are_not_made(shared):
    m, q, got = made(shared), Queue(), []
    token = m.add(got.append, queue=q)
    paused = m.add(lambda _: got.append("paused"), queue=q)
    m.invoke(1)
    paused.pause()
    assert token.remove() is True
    q.run()
    assert got == ["paused"]


def test_destroyed_queue_removes_its_delegates(shared):
    m, got = made(shared), []
    with Queue() as q:
        token = m.add(got.append, queue=q)
        m.invoke(1)
    assert not token.is_valid and m.invoke(2) == 0 and got == []
    for use in (q.run, q.wait, lambda: m.add(print, queue=q)):
        with pytest.raises(MulticastError, match="it was destroyed or has ended"):
            use()
    with pytest.raises(OSError):
        q.fileno()


def test_queue_is_collected(shared):
    m, q = made(shared), Queue()
    handle = q._handle
    m.add(lambda _: None, queue=q).remove()
    del q
    gc.collect()
    assert not multicast._core.is_valid(handle)


# ---- A thread ----------------------------------------------------------------------------------------


def test_thread_makes_calls_and_stops(shared, gate):
    m, q, got = made(shared), Queue().start("worker"), []
    m.add(lambda _: got.append(threading.current_thread().name), queue=q)
    m.add(gate, queue=q)
    m.invoke(1)
    assert gate.entered.wait(10) and got == ["worker"]
    with pytest.raises(TimeoutError):
        q.stop(0.05)
    gate.opened.set()
    with pytest.raises(MulticastError, match="it has no thread"):
        q.stop()
    m.invoke(2)
    time.sleep(0.05)
    assert len(q) == 2
    q.start()
    with pytest.raises(MulticastError, match="it has a loop or a thread already"):
        q.start()
    while len(q):
        time.sleep(0.001)
    assert q.stop() is True and gate.calls == 2


def test_removal_waits_for_a_queued_call(shared, gate, start):
    m, q = made(shared), Queue().start()
    token = m.add(gate, queue=q)
    m.invoke(1)
    assert gate.entered.wait(10)
    for wait in (token.remove, q.destroy):
        with pytest.raises(TimeoutError):
            wait(0.02)
    gate.opened.set()
    assert token.remove() is True


def test_delegate_may_stop_and_destroy_its_queue(shared):
    m, q, results = made(shared), Queue().start(), []
    done = threading.Event()

    def delegate(payload):
        results.append(q.stop())
        results.append(q.destroy())
        done.set()

    m.add(delegate, queue=q)
    m.invoke(1)
    assert done.wait(10) and results == [False, False]


def test_exception_on_the_thread_goes_to_the_hook(monkeypatch):
    seen, done = [], threading.Event()

    def hook(arguments):
        seen.append(arguments.exc_type)
        done.set()

    monkeypatch.setattr(threading, "excepthook", hook)
    m, q = Multicast(), Queue().start()
    m.add(lambda _: 1 // 0, queue=q)
    m.invoke(None)
    assert done.wait(10) and seen == [DelegateErrors]
    q.destroy()


# ---- asyncio -----------------------------------------------------------------------------------------


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 30))


def test_calls_are_made_on_the_loop(shared):
    async def main():
        m, got = made(shared), []
        done = asyncio.Event()

        def delegate(number):
            got.append((number, threading.get_ident()))
            if number == 99:
                done.set()

        with Queue().attach() as q:
            m.add(delegate, queue=q)
            thread = threading.Thread(target=lambda: [m.invoke(one) for one in range(100)])
            thread.start()
            await done.wait()
            thread.join()
        assert got == [(number, threading.get_ident()) for number in range(100)]

    run(main())


def test_coroutines_become_tasks_and_failures_go_to_the_loop(shared):
    async def main():
        m, got, failed = made(shared), [], asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda *_: failed.set())

        async def delegate(payload):
            await asyncio.sleep(0)
            got.append(payload)

        with Queue().attach() as q:
            m.add(delegate, queue=q)
            m.add(lambda _: 1 // 0, queue=q)
            m.invoke("x")
            await failed.wait()
            while not got:
                await asyncio.sleep(0)
        assert got == ["x"]

    run(main())


def test_queue_may_be_destroyed_on_another_thread(shared):
    async def main():
        m, q, got = made(shared), Queue().attach(), []
        m.add(got.append, queue=q)
        await asyncio.to_thread(q.destroy)
        with Queue().attach() as other:  # its descriptor may have the same number
            m.add(got.append, queue=other)
            m.invoke(1)
            while not got:
                await asyncio.sleep(0)

    run(main())


def test_stream_gives_payloads_in_order_from_another_thread(shared):
    async def main():
        m = made(shared)
        stream = m.listen()
        thread = threading.Thread(target=lambda: [m.invoke(one) for one in range(100)])
        thread.start()
        got = []
        async for number in stream:
            got.append(number)
            if number == 99:
                break
        thread.join()
        assert got == list(range(100)) and len(m) == 1
        del stream
        gc.collect()
        assert len(m) == 0

    run(main())


@pytest.mark.parametrize("end", ["close", "destroy", "remove"])
def test_stream_that_waits_ends(shared, end):
    async def main():
        m = made(shared)
        stream = m.listen()
        finish = {"close": stream.close, "destroy": m.destroy, "remove": stream.token.remove}[end]
        timer = threading.Timer(0.05, finish)
        timer.start()
        assert [one async for one in stream] == []
        timer.join()
        assert len(m) == 0

    run(main())


def test_stream_drops_the_oldest(shared):
    async def main():
        m = made(shared)
        async with m.listen(capacity=2) as stream:
            for number in range(5):
                m.invoke(number)
            assert [await stream.__anext__(), await stream.__anext__()] == [3, 4]
            assert stream.dropped == 3
        assert [one async for one in stream] == []

    run(main())




def test_calls_are_made_by_any_loop_that_takes_functions(shared):
    m, pending, got = made(shared), [], []
    q = Queue()
    m.add(got.append, queue=q)
    m(0)
    q.attach(pending.append)
    assert len(pending) == 1  # for the call that is in the queue
    pending.pop()()
    m(1)
    m(2)
    assert got == [0] and len(pending) == 1
    pending.pop()()
    assert got == [0, 1, 2] and not pending
    m(3)
    q.detach()
    pending.pop()()  # the queue has left this loop
    assert got == [0, 1, 2] and q.run() == 1


def test_calls_are_made_on_a_loop_of_trio(shared):
    trio = pytest.importorskip("trio")
    got = []

    async def main():
        m = made(shared)
        with Queue().attach(trio.lowlevel.current_trio_token().run_sync_soon) as q:
            m.add(lambda a: got.append((a, threading.get_ident())), queue=q)
            await trio.to_thread.run_sync(m, 1)
            while not got:
                await trio.sleep(0.001)

    trio.run(main)
    assert got == [(1, threading.get_ident())]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RecursionError, MemoryError])
def test_calls_behind_an_interruption_stay_queued(shared, error):
    def delegate(number):
        if number == 0:
            raise error
        got.append(number)

    m, q, got = made(shared), Queue(), []
    m.add(delegate, queue=q)
    for number in range(4):
        m(number)
    with pytest.raises(error):
        q.run()
    assert len(q) == 3
    assert q.run() == 3 and got == [1, 2, 3]


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, asyncio.CancelledError])
def test_thread_goes_on_after_any_exception(shared, monkeypatch, error):
    def delegate(number):
        if number == 0:
            raise error
        got.append(number)
        done.set()

    m, got, hooked, done = made(shared), [], [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", hooked.append)
    with Queue().start() as q:
        m.add(delegate, queue=q)
        m(0)
        m(1)
        assert done.wait(20)
    assert got == [1] and [one.exc_type for one in hooked] == [error]


def test_queue_whose_thread_cannot_start_has_none(monkeypatch):
    def fail(thread):
        raise RuntimeError("can't start new thread")

    q = Queue()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="can't start"):
            q.start()
    q.start().destroy()


def test_loop_is_woken_for_the_calls_that_are_left(shared):
    m, q, got, turns = made(shared), Queue(), [], []
    m.add(got.append, queue=q)
    q.attach(turns.append)
    for number in range(3):
        m(number)
    first = len(turns)
    assert q.run(2) == 2 and len(turns) == first + 1
    turns[-1]()
    assert got == [0, 1, 2] and len(turns) == first + 1
