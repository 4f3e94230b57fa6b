"""Awaiting many at once: under asyncio, trio, and so under anyio."""

import asyncio
import sys
from types import CoroutineType
from typing import Any, Coroutine

from ._errors import group


async def run_all(results: "list[Any]") -> "list[Any]":
    """Replaces each coroutine in the list by its result. Exceptions are raised as one."""
    failures: "dict[int, Exception]" = {}

    async def run(index: int, coroutine: "Coroutine[Any, Any, Any]") -> None:
        try:
            results[index] = await coroutine
        except Exception as error:
            failures[index] = error

    waiting = [run(*one) for one in enumerate(results) if type(one[1]) is CoroutineType]
    if not waiting:
        return results
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # Only trio can be running this coroutine then.
        async with sys.modules["trio"].open_nursery() as nursery:
            for one in waiting:
                nursery.start_soon(lambda one: one, one)
    else:
        tasks = [asyncio.ensure_future(one) for one in waiting]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()  # those that are done do not notice
            await asyncio.gather(*tasks, return_exceptions=True)
    if failures:
        raise group([failures[index] for index in sorted(failures)])
    return results
