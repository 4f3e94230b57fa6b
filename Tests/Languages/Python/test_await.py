"""Tests invoke_async, which runs all async delegates of an invocation concurrently, under asyncio, trio
and anyio."""

import asyncio
import gc
import warnings

import pytest
from conftest import made

from multicast import DelegateErrors


def under_asyncio(function):
    return asyncio.run(asyncio.wait_for(function(asyncio.sleep, asyncio.Event), 20))


def under_trio(function):
    trio = pytest.importorskip("trio")
    return trio.run(function, trio.sleep, trio.Event)


def under_anyio(function):
    anyio = pytest.importorskip("anyio")
    return [anyio.run(function, anyio.sleep, anyio.Event, backend=one)
            for one in ("asyncio", "trio")][0]


@pytest.fixture(params=[under_asyncio, under_trio, under_anyio])
def run(request):
    return request.param


def test_all_run_at_once_and_results_are_in_order(shared, run):
    async def main(sleep, event_type):
        m, first, second = made(shared), event_type(), event_type()

        async def one(number, key):
            first.set()
            await second.wait()
            return ("one", number, key)

        async def other(number):
            await first.wait()
            second.set()
            return ("other", number)

        m.add(one)
        m.add(lambda: "sync")
        m.add(other)
        return await m.invoke_async(1, key=2)

    assert run(main) == [("one", 1, 2), "sync", ("other", 1)]


def test_exceptions_come_as_a_group_when_all_have_ended(shared, run):
    async def main(sleep, event_type):
        m, ended = made(shared), []

        async def fail():
            raise KeyError("k")

        async def late():
            await sleep(0.01)
            ended.append(1)

        m.add(fail)
        m.add(late)
        m.add(fail)
        with pytest.raises(DelegateErrors) as caught:
            await m.invoke_async()
        assert [type(one) for one in caught.value.exceptions] == [KeyError, KeyError]
        return ended

    assert run(main) == [1]


def test_failure_of_a_sync_delegate_starts_nothing(shared, run):
    async def main(sleep, event_type):
        m, started = made(shared), []

        async def start():
            started.append(1)

        m.add(start)
        m.add(lambda: 1 // 0)
        with pytest.raises(DelegateErrors):
            await m.invoke_async()
        return started

    assert run(main) == []


def test_cancellation_cancels_all(shared):
    async def main():
        m, cancelled = made(shared), []

        async def wait():
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                cancelled.append(1)
                raise

        m.add(wait)
        m.add(wait)
        task = asyncio.ensure_future(m.invoke_async())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cancelled == [1, 1]

    asyncio.run(main())


def test_cancellation_before_the_beginning_leaves_nothing(shared):
    async def main():
        m = made(shared)

        async def never():
            raise AssertionError

        m.add(never)
        task = asyncio.ensure_future(m.invoke_async())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert warned == []


def test_delegate_that_cancels_itself_leaves_the_others(shared):
    async def main():
        m, ended = made(shared), []

        async def cancel():
            raise asyncio.CancelledError

        async def fail():
            raise KeyError("k")

        async def late():
            await asyncio.sleep(0.01)
            ended.append(1)

        m.add(cancel)
        m.add(late)
        m.add(fail)
        with pytest.raises(asyncio.CancelledError) as caught:
            await m.invoke_async()
        assert ended == [1] and isinstance(caught.value.__cause__.exceptions[0], KeyError)

    asyncio.run(main())
