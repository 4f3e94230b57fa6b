"""Uses multicast to implement pyee's emitter for asyncio."""

import asyncio

from multicast import DelegateErrors

from . import EventEmitter


class AsyncIOEventEmitter(EventEmitter):
    def __init__(self, loop):
        super().__init__()
        self._loop, self._running = loop, set()

    def _call(self, event, args, kwargs):
        results = []
        try:
            self._broadcaster[event]._run(args, kwargs, 0, None, results, True)
        except DelegateErrors as errors:
            self.emit("error", errors.exceptions[0])
        for one in filter(asyncio.iscoroutine, results):
            task = self._loop.create_task(one)
            self._running.add(task)
            task.add_done_callback(self._done)

    def _done(self, task):
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.emit("error", task.exception())

    @property
    def complete(self):
        return all(one.done() for one in self._running)

    def cancel(self):
        for task in list(self._running):
            task.cancel()

    async def wait_for_complete(self):
        await asyncio.gather(*self._running)
