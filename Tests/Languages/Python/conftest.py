"""Functions and fixtures that the tests share."""

import threading

import pytest

from multicast import Multicast


def made(shared, kind=Multicast, **options):
    """Creates a multicast or a broadcaster. If `shared`, C code may know the object's handle, so
    the C library makes the object's calls."""
    one = kind(**options)
    if shared:
        assert one.handle
    return one


class Gate:
    """A delegate whose calls block until the gate is opened."""

    def __init__(self):
        self.entered, self.opened = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self, payload):
        self.calls += 1
        self.entered.set()
        assert self.opened.wait(20)


@pytest.fixture
def start():
    """Starts threads. Each thread must have ended by the end of the test. If a thread raises an
    exception, the test fails."""
    threads, errors = [], []

    def guarded(function, arguments):
        try:
            function(*arguments)
        except BaseException as error:
            errors.append(error)

    def begin(function, *arguments):
        thread = threading.Thread(target=guarded, args=(function, arguments), daemon=True)
        threads.append(thread)
        thread.start()
        return thread

    yield begin
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert not errors


@pytest.fixture
def gate(start):  # depends on `start`, so that the gate is opened before the test waits for threads
    made = Gate()
    yield made
    made.opened.set()


@pytest.fixture(params=[False, True], ids=["private", "shared"])
def shared(request):
    """Whether C code may know the handle. A test must pass in both cases."""
    return request.param
