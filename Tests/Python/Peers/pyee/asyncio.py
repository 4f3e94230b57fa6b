"""pyee's emitter for asyncio over multicast."""

import asyncio

from multicast import DelegateErrors

from . import EventEmitter


class AsyncIOEventEmitter(EventEmitter):
    def __init__(self, loop):
        super().__init__()
        self._loop, self._running = loop, set()

    def _call(self, event, args, kwargs):
        task = self._loop.create_task(self._events[event].invoke_async(*args, **kwargs))
        self._running.add(task)
        task.add_done_callback(self._done)

    def _done(self, task):
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, DelegateErrors):
            self.emit("error", error.exceptions[0])

    @property
    def complete(self):
        return not self._running

    def cancel(self):
        for task in list(self._running):
            task.cancel()

    async def wait_for_complete(self):
        await asyncio.gather(*self._running)
