"""libmulticast from Python: ctypes, threads and asyncio. Argument: the path of libmulticast.so."""

import asyncio
import ctypes
import linecache
import select
import sys
import threading
from ctypes import POINTER, byref, c_bool, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64
from ctypes import c_char_p, c_void_p, sizeof

# ---- Declarations from multicast.h ---------------------------------------------------------------

OK, INVALID_HANDLE, INVALID_ARGUMENT, NOT_FOUND, TIMEOUT = 0, -10, -20, -30, -70
OVERFLOW_DROP_OLDEST = 1


def handle(name):
    """A type for each kind, so that ctypes refuses a handle of another kind."""
    return type(name, (ctypes.Structure,), {"_fields_": [("id", c_uint64)]})


Multicast, Token = handle("Multicast"), handle("Token")
Lifetime, Queue = handle("Lifetime"), handle("Queue")
Function = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_void_p, c_size_t)
Release = ctypes.CFUNCTYPE(None, c_void_p)


class Delegate(ctypes.Structure):
    _fields_ = [("function", Function), ("context", c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("priority", c_int32),
                ("reserved", c_uint32), ("events", c_uint64), ("lifetime", Lifetime),
                ("queue", Queue), ("release", Release), ("lock", c_void_p), ("unlock", c_void_p)]


class QueueOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("capacity", c_size_t),
                ("overflow", c_uint32), ("reserved", c_uint32), ("thread_name", c_char_p),
                ("stack_size", c_size_t)]


class Stats(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32)] + [
        (name, c_uint64) for name in ("pending", "queued", "delivered", "refused", "dropped",
                                      "cancelled", "coalesced", "highest")]


# CDLL, not PyDLL: CDLL releases the interpreter's lock during a call, so that a removal can wait
# for a delegate that needs the lock on another thread.
library = ctypes.CDLL(sys.argv[1])


def declare(name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


multicast_version = declare("multicast_version", c_uint32)
status_name = declare("multicast_status_name", c_char_p, c_int64)
create = declare("multicast_create", Multicast)
destroy = declare("multicast_destroy", c_int, Multicast)
is_valid = declare("multicast_is_valid", c_bool, Multicast)
add = declare("multicast_add", c_int, Multicast, Delegate, POINTER(Options), POINTER(Token))
remove = declare("multicast_remove", c_int, Multicast, Delegate)
remove_every = declare("multicast_remove_every", c_int, Multicast, Delegate)
create_error = declare("multicast_create_error", c_int)
count = declare("multicast_count", c_int64, Multicast)
invoke = declare("multicast_invoke", c_int64, Multicast, c_uint32, c_void_p, c_size_t)
token_remove = declare("multicast_token_remove", c_int, Token)
token_is_live = declare("multicast_token_is_live", c_bool, Token)
lifetime_create = declare("multicast_lifetime_create", Lifetime)
lifetime_end = declare("multicast_lifetime_end", c_int, Lifetime)
lifetime_count = declare("multicast_lifetime_count", c_int64, Lifetime)
queue_create = declare("multicast_queue_create", Queue, POINTER(QueueOptions))
queue_destroy = declare("multicast_queue_destroy", c_int, Queue)
queue_fd = declare("multicast_queue_fd", c_int, Queue)
queue_run = declare("multicast_queue_run", c_int64, Queue, c_size_t)
queue_wait = declare("multicast_queue_wait", c_int64, Queue, c_uint64)
queue_start = declare("multicast_queue_start", c_int, Queue)
queue_get_stats = declare("multicast_queue_get_stats", c_int, Queue, POINTER(Stats))

# ---- Checks and delegates ------------------------------------------------------------------------

checks = failures = 0


def check(actual, expected):
    global checks, failures
    checks += 1
    if actual != expected:
        failures += 1
        caller = sys._getframe(1)
        file, line = caller.f_code.co_filename, caller.f_lineno
        source = linecache.getline(file, line).strip()
        print(f"{file}:{line}: {source}: {actual!r} is not {expected!r}")


calls, released = [], []


# Global names: a callback that nothing in Python refers to is collected, and calling it crashes.
# For the same reason contexts are numbers here, not addresses of objects.
@Function
def listen(context, event, payload, size):
    calls.append((context, event, ctypes.string_at(payload, size) if size else b""))


@Release
def release(context):
    released.append(context)


def taken():
    """Returns the calls since it was last called."""
    result = calls[:]
    calls.clear()
    return result


def options(**fields):
    return Options(struct_size=sizeof(Options), **fields)


def queue_options(**fields):
    return QueueOptions(struct_size=sizeof(QueueOptions), **fields)


def readable(fd):
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return poll.poll(0) == [(fd, select.POLLIN)]


first, second = Delegate(listen, 1), Delegate(listen, 2)

# ---- The tests -----------------------------------------------------------------------------------


def test_delegates():
    m = create()
    check(is_valid(m), True)
    check(add(m, first, None, None), OK)
    check(add(m, second, None, None), OK)
    check(invoke(m, 7, b"hel\0lo", 6), 2)
    check(taken(), [(1, 7, b"hel\0lo"), (2, 7, b"hel\0lo")])
    check(invoke(m, 0xFFFFFFFF, None, 0), 2)
    check(taken(), [(1, 0xFFFFFFFF, b""), (2, 0xFFFFFFFF, b"")])

    check(remove(m, first), OK)
    check(remove(m, first), NOT_FOUND)
    check(invoke(m, 8, b"x", 1), 1)
    check(taken(), [(2, 8, b"x")])
    check(add(m, first, None, None), OK)
    check(add(m, first, None, None), OK)
    check(remove_every(m, first), OK)  # both
    check(remove_every(m, first), NOT_FOUND)

    lifetime = lifetime_create()
    check(add(m, first, options(lifetime=lifetime), None), OK)
    check(lifetime_count(lifetime), 1)
    check(invoke(m, 9, None, 0), 2)
    check(taken(), [(2, 9, b""), (1, 9, b"")])
    check(lifetime_end(lifetime), OK)
    check(lifetime_end(lifetime), INVALID_HANDLE)
    check(count(m), 1)

    token = Token()
    check(add(m, first, options(priority=1, release=release), token), OK)
    check(invoke(m, 10, None, 0), 2)
    check(taken(), [(1, 10, b""), (2, 10, b"")])
    check(released, [])
    check(token_remove(token), OK)
    check(token_remove(token), INVALID_HANDLE)
    check(token_is_live(token), False)
    check(released, [1])
    check(destroy(m), OK)
    check(is_valid(m), False)
    check(invoke(m, 0, None, 0), INVALID_HANDLE)


def test_queue():
    m, queue = create(), queue_create(None)
    fd = queue_fd(queue)
    check(add(m, first, options(queue=queue), None), OK)
    check(readable(fd), False)
    check(queue_wait(queue, 0), TIMEOUT)
    payload = ctypes.create_string_buffer(b"later")
    check(invoke(m, 3, payload, 5), 1)
    payload.value = b"XXXXX"  # the queue has its own copy
    check(taken(), [])
    check(readable(fd), True)
    stats = Stats(struct_size=sizeof(Stats))
    check(queue_get_stats(queue, byref(stats)), OK)
    check((stats.pending, stats.queued, stats.delivered, stats.highest), (1, 1, 0, 1))
    check(queue_run(queue, 0), 1)
    check(taken(), [(1, 3, b"later")])
    check(readable(fd), False)
    check(queue_get_stats(queue, byref(stats)), OK)
    check((stats.pending, stats.queued, stats.delivered), (0, 1, 1))
    check(queue_get_stats(queue, Stats(struct_size=1)), INVALID_ARGUMENT)
    check(queue_destroy(queue), OK)
    check(count(m), 0)
    check(destroy(m), OK)


def test_queue_options():
    m, queue = create(), queue_create(queue_options(capacity=1, overflow=OVERFLOW_DROP_OLDEST))
    check(create_error(), OK)
    check(add(m, first, options(queue=queue), None), OK)
    check(invoke(m, 5, b"old", 3), 1)
    check(invoke(m, 6, b"new", 3), 1)
    check(queue_run(queue, 0), 1)
    check(taken(), [(1, 6, b"new")])
    check(queue_destroy(queue), OK)
    check(destroy(m), OK)


def test_bad_calls():
    m, forged = create(), Multicast(0xDEADBEEFDEADBEEF)
    check(add(Multicast(0), first, None, None), INVALID_HANDLE)
    check(invoke(forged, 0, None, 0), INVALID_HANDLE)
    check(destroy(Multicast(lifetime_create().id)), INVALID_HANDLE)
    check(remove(m, first), NOT_FOUND)
    check(invoke(m, 0, None, 5), INVALID_ARGUMENT)
    check(add(m, Delegate(Function(), 0), None, None), INVALID_ARGUMENT)
    check(add(m, first, Options(struct_size=1), None), INVALID_ARGUMENT)
    check(queue_fd(Queue(0)), -1)
    check(queue_create(QueueOptions(struct_size=1)).id, 0)
    check(create_error(), INVALID_ARGUMENT)
    check(status_name(OK), b"MULTICAST_OK")
    check(status_name(NOT_FOUND), b"MULTICAST_ERROR_NOT_FOUND")
    check(status_name(12345), b"MULTICAST_UNKNOWN_STATUS")
    check(destroy(m), OK)


def test_removal_waits_for_another_thread():
    m, inside, go, done = create(), threading.Event(), threading.Event(), []

    @Function
    def wait(context, event, payload, size):
        inside.set()
        go.wait()
        done.append(True)

    check(add(m, Delegate(wait, 0), None, None), OK)
    thread = threading.Thread(target=invoke, args=(m, 0, None, 0))
    thread.start()
    inside.wait()
    threading.Timer(0.05, go.set).start()
    check(remove(m, Delegate(wait, 0)), OK)
    check(done, [True])
    thread.join()
    check(destroy(m), OK)


def test_thread_of_the_queue():
    m, called, names, threads = create(), threading.Event(), [], []
    queue = queue_create(queue_options(thread_name=b"python-queue", stack_size=1 << 20))

    @Function
    def note(context, event, payload, size):  # ctypes registers the queue's thread with Python
        with open("/proc/thread-self/comm") as comm:
            names.append(comm.read().strip())
        threads.append(threading.current_thread())
        called.set()

    check(add(m, Delegate(note, 0), options(queue=queue), None), OK)
    check(queue_start(queue), OK)
    check(invoke(m, 0, None, 0), 1)
    check(called.wait(60), True)
    check(names, ["python-queue"])
    check(threading.main_thread() in threads, False)
    check(queue_destroy(queue), OK)
    check(destroy(m), OK)


async def test_asyncio():
    m, queue, numbers, each = create(), queue_create(None), [], 250
    loop, all_here = asyncio.get_running_loop(), asyncio.Event()

    @Function
    def collect(context, event, payload, size):
        numbers.append((event, int(ctypes.string_at(payload, size)), threading.get_ident()))
        if len(numbers) == 2 * each:
            all_here.set()

    def invoke_often(event):
        texts = [str(number).encode() for number in range(each)]
        return sum(invoke(m, event, text, len(text)) for text in texts)

    check(add(m, Delegate(collect, 0), options(queue=queue), None), OK)
    loop.add_reader(queue_fd(queue), queue_run, queue, 0)
    threads = [asyncio.to_thread(invoke_often, event) for event in (0, 1)]
    check(await asyncio.gather(*threads), [each, each])
    await asyncio.wait_for(all_here.wait(), 60)
    loop.remove_reader(queue_fd(queue))  # before the queue closes the descriptor
    for event in (0, 1):
        check([n for e, n, _ in numbers if e == event], list(range(each)))
    check({thread for _, _, thread in numbers}, {threading.get_ident()})
    check(queue_destroy(queue), OK)
    check(destroy(m), OK)


check(multicast_version() >> 16, 1)
test_delegates()
test_queue()
test_queue_options()
test_bad_calls()
test_removal_waits_for_another_thread()
test_thread_of_the_queue()
asyncio.run(test_asyncio())
if failures:
    sys.exit(f"python: {failures} of {checks} checks failed")
print(f"python: {checks} checks passed")
