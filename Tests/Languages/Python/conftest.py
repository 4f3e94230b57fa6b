"""What the tests share."""

import threading

import pytest

from multicast import Multicast


def made(shared, kind=Multicast, **options):
    """A multicast or a broadcaster; `shared`: C code has its handle, and its calls may leave Python."""
    one = kind(**options)
    if shared:
        assert one.handle
    return one


class Gate:
    """A delegate that stays in its call until it is opened."""

    def __init__(self):
        self.entered, self.opened = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self, payload):
        self.calls += 1
        self.entered.set()
        assert self.opened.wait(20)


@pytest.fixture
def start():
    """Starts threads; each ends with the test, and what it has raised fails the test."""
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
def gate(start):  # after `start`: it is opened before the threads are waited for
    made = Gate()
    yield made
    made.opened.set()


@pytest.fixture(params=[False, True], ids=["private", "shared"])
def shared(request):
    """Whether C code has the handle. The rules are the same."""
    return request.param
