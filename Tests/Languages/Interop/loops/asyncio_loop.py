"""Runs a queue in an asyncio loop, which the queue wakes in two ways. The argument is the path of
libmulticast.so.

A `wake` function can call loop.call_soon_threadsafe(), which any thread may do, and which works
with every asyncio loop. Alternatively, loop.add_reader() can watch the queue's descriptor, so that
the invoking thread runs no Python code.
"""

import asyncio
import ctypes
import signal
import sys
import threading
from ctypes import POINTER, byref, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p, sizeof

CALLS, BURST, CALLS_AT_A_TIME = 10000, 100, 3
OK, WAIT = 0, 1

Function = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, POINTER(c_uint32), c_size_t)
Wake = ctypes.CFUNCTYPE(None, c_void_p)


class Delegate(ctypes.Structure):
    _fields_ = [("function", Function), ("context", c_void_p)]


class AddOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("priority", c_int32),
                ("reserved", c_uint32), ("events", c_uint64), ("lifetime", c_uint64),
                ("queue", c_uint64), ("release", c_void_p), ("lock", c_void_p),
                ("unlock", c_void_p)]


class QueueOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("capacity", c_size_t),
                ("overflow", c_uint32), ("reserved", c_uint32), ("thread_name", c_void_p),
                ("stack_size", c_size_t), ("wake", Wake), ("wake_context", c_void_p)]


class Invocation(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("event", c_uint32),
                ("reserved", c_uint32), ("payload", POINTER(c_uint32)), ("size", c_size_t),
                ("copy", c_void_p), ("release", c_void_p), ("timeout_ns", c_uint64)]


# Use CDLL instead of PyDLL, because a call must release the interpreter's lock, which `wake` takes.
# Handles are passed as integers, which the C ABIs of x86-64 and AArch64 allow.
lib = ctypes.CDLL(sys.argv[1])
for name, result, *arguments in [
        ("create", c_uint64), ("destroy", c_int32, c_uint64),
        ("add", c_int32, c_uint64, Delegate, POINTER(AddOptions), c_void_p),
        ("invoke_with", c_int64, c_uint64, POINTER(Invocation), c_void_p),
        ("queue_create", c_uint64, POINTER(QueueOptions)), ("queue_fd", ctypes.c_int, c_uint64),
        ("queue_run", c_int64, c_uint64, c_size_t), ("queue_destroy", c_int32, c_uint64)]:
    function = getattr(lib, "multicast_" + name)
    function.restype, function.argtypes = result, arguments


def send(multicast):
    """Runs on the worker's thread. Sends numbers until the queue is destroyed. After each burst,
    waits until all calls have been made, so that the first call of the next burst must wake the
    loop."""
    number = c_uint32(0)
    how = Invocation(struct_size=sizeof(Invocation), payload=ctypes.pointer(number), size=4)
    while lib.multicast_invoke_with(multicast, byref(how), None) == 1:
        number.value += 1
        how.flags = WAIT if number.value % BURST == BURST - 1 else 0


async def receive(title, by_call):
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    thread, arrived = threading.get_ident(), []

    def run():  # on the loop's thread
        if done.is_set():  # this run was scheduled before the queue was destroyed
            return
        assert lib.multicast_queue_run(queue, CALLS_AT_A_TIME) >= 0
        if len(arrived) >= CALLS:
            done.set()

    @Wake  # called on the worker's thread, or on the loop's thread if a run leaves calls in the queue
    def wake(context):
        loop.call_soon_threadsafe(run)

    @Function
    def on_number(context, event, payload, size):
        arrived.append((payload[0], threading.get_ident()))

    queue_options = QueueOptions(struct_size=sizeof(QueueOptions), wake=wake if by_call else Wake())
    queue = lib.multicast_queue_create(byref(queue_options))
    multicast = lib.multicast_create()
    options = AddOptions(struct_size=sizeof(AddOptions), queue=queue)
    assert lib.multicast_add(multicast, Delegate(on_number, None), byref(options), None) == OK
    descriptor = None if by_call else lib.multicast_queue_fd(queue)
    if not by_call:
        loop.add_reader(descriptor, run)
    worker = threading.Thread(target=send, args=(multicast,))
    worker.start()
    await done.wait()

    if not by_call:
        loop.remove_reader(descriptor)  # destroying the queue closes the descriptor
    # The worker is still sending. Destroying the queue waits until a running `wake` has returned.
    # No `wake` begins afterwards, so the loop may be closed, and both callbacks may be
    # garbage-collected.
    assert lib.multicast_queue_destroy(queue) == OK
    return title, worker, multicast, thread, arrived


signal.alarm(60)  # ends a program that hangs
for way in [("asyncio, call_soon_threadsafe", True), ("asyncio, add_reader", False)]:
    title, worker, multicast, thread, arrived = asyncio.run(receive(*way))  # closes the loop
    worker.join()
    assert lib.multicast_destroy(multicast) == OK
    assert arrived[:CALLS] == [(number, thread) for number in range(CALLS)]
    print(f"{title}: {CALLS} calls arrived in order on the loop's thread")
