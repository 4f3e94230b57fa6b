"""Tests fork, the end of the interpreter, and threads that C code creates. Each test runs a
separate process."""

import os
import subprocess
import sys

import pytest

HEAD = """
import ctypes, gc, os, queue, signal, sys, threading, time
import multicast
from multicast import Broadcaster, Lifetime, Multicast, Queue
shared = {shared}
m = Multicast()
if shared: m.handle
def in_child(body):
    pid = os.fork()
    if pid == 0:
        try:
            body()
            os._exit(0)
        except BaseException as error:
            print("child:", repr(error), flush=True)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""


def program(text, shared, expected="", first=""):
    # Ignore the warning about fork() in a process with threads, because the tests do exactly this.
    source = first + HEAD.format(shared=shared) + text
    ran = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", source],
                         timeout=60, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", expected)


def test_child_uses_everything_while_other_threads_are_busy(shared):
    program("""
stop = threading.Event()
def busy():
    while not stop.is_set():
        token = m.add(lambda _: time.sleep(0.0001))
        m.invoke(1)
        token.remove()
threads = [threading.Thread(target=busy) for _ in range(2)]
for one in threads: one.start()
def child():
    got = []
    token = m.add(got.append)
    assert m.invoke("child") >= 1 and got == ["child"]
    assert token.remove(5) is True and m.clear(5) is True and len(m) == 0
    assert m.destroy(5) is True
for _ in range(30):
    in_child(child)
stop.set()
for one in threads: one.join()
""", shared)


def test_child_inside_a_delegate_goes_on(shared):
    program("""
payload, got = object(), []
m.add(lambda p: in_child(lambda: None))
def fork(p):
    global pid
    pid = os.fork()
m.add(fork)
m.add(lambda p: got.append(p is payload))
assert m.invoke(payload) == 3 and got == [True]
if pid == 0: os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
""", shared)


def test_child_of_a_queues_thread_ends(shared):
    program("""
pids = queue.SimpleQueue()
def fork(p):
    pid = os.fork()
    if pid != 0: pids.put(pid)
with Queue().start() as q:
    m.add(fork, queue=q)
    m(1)
    assert os.waitpid(pids.get(timeout=20), 0)[1] == 0
""", shared)


def test_exception_of_a_signal_handler_in_on_end_arrives(shared):
    program("""
def handler(*_): sys.exit(3)
signal.signal(signal.SIGTERM, handler)
token = m.add(print)
token.on_end = lambda: signal.raise_signal(signal.SIGTERM)
try:
    token.remove()
    for _ in range(1000): time.sleep(0.001)
except SystemExit as end:
    assert end.code == 3
    os._exit(0)
assert False
""", shared)


def test_queues_are_empty_in_the_child_and_payloads_are_freed(shared):
    program("""
q, got = Queue(), []
m.add(got.append, queue=q)
m.invoke([1])
def child():
    assert len(q) == 0 and q.run() == 0
    assert not [one for one in gc.get_objects() if type(one) is multicast._core.Held]
    m.invoke([2])
    assert q.run() == 1 and got == [[2]]
in_child(child)
assert q.run() == 1 and got == [[1]]
""", shared)


def test_replays_stay_in_the_child(shared):
    program("""
from clib import CreateOptions, lib
m = Multicast(replay=1)
if shared: m.handle
how = CreateOptions(struct_size=ctypes.sizeof(CreateOptions), replay=1)
of_c = Multicast.from_handle(lib.multicast_create_with(ctypes.byref(how)))
for one in (m, of_c): one([1])
def child():
    got = []
    for one in (m, of_c): one.add(got.append)
    assert got == [[1], [1]], got
in_child(child)
""", shared)


def test_removal_during_fork_releases_in_the_child(shared):
    program("""
entered, go = threading.Event(), threading.Event()
def delegate(p):
    entered.set()
    go.wait(20)
token = m.add(delegate)
thread = threading.Thread(target=m.invoke, args=(None,))
thread.start()
entered.wait()
token.remove_nowait()
def child():
    assert token.remove(5) is True and not token.is_valid and len(m) == 0
in_child(child)
go.set()
thread.join()
assert token.remove() is True
""", shared)


def test_no_python_code_runs_inside_fork(shared):
    program("""
entered, go = threading.Event(), threading.Event()
def delegate(p):
    entered.set()
    go.wait(20)
token = m.add(delegate)
token.on_end = lambda: order.append("end")
thread = threading.Thread(target=m.invoke, args=(1,))
thread.start()
entered.wait()
token.remove_nowait()  # the child releases it, inside fork()
def child():
    assert order == ["forked", "end"], order
in_child(child)
go.set()
thread.join()
assert order == ["end"]
""", shared, first="""
import os
order = []
os.register_at_fork(after_in_child=lambda: order.append("forked"))
""")


def test_exit_with_everything_alive(shared):
    program("""
q = Queue().start()
life = Lifetime()
b = Broadcaster.default()
m.add(lambda _: time.sleep(0.001), queue=q, lifetime=life)
m.add(lambda _: None)
b.register("x", lambda _: None)
def busy():
    try:
        while True: m.invoke(object())
    except multicast.MulticastError: pass  # destroyed: the interpreter ends
for _ in range(2): threading.Thread(target=busy, daemon=True).start()
import atexit
atexit.register(lambda: print(m.invoke(1) >= 0))
time.sleep(0.05)
""", shared, "True\n")


def test_threads_of_c_call_python_and_outlive_the_interpreter():
    program("""
from clib import lib
# The C library starts a thread for this queue.
q, got, done = Queue(), [], threading.Event()
assert lib.multicast_queue_start(q._handle) == 0
def delegate(p):
    got.append((p, threading.get_ident() != threading.main_thread().ident))
    done.set()
m.add(delegate, queue=q)
m.invoke([1])
assert done.wait(10) and got == [([1], True)]
for _ in range(100): m.invoke([2])
""", True)


@pytest.mark.parametrize("turn", range(3))
def test_exit_while_a_delegate_runs_on_a_thread(turn, shared):
    program("""
entered = threading.Event()
def delegate(p):
    entered.set()
    while True: time.sleep(0.001)
q = Queue().start()
m.add(delegate, queue=q)
m.invoke(1)
entered.wait(10)
print("exits")
""", shared, "exits\n")


def test_child_that_only_exits_leaves_the_parent_alone(shared):
    program("""
q, got = Queue().start(), []
m.add(got.append, queue=q)
m.invoke("before")
while not got: time.sleep(0.001)
child = os.fork()
if child == 0: sys.exit(0)
os.waitpid(child, 0)
m.invoke("after")
while len(got) < 2: time.sleep(0.001)
begin = time.process_time()
time.sleep(0.5)
assert time.process_time() - begin < 0.2 and got == ["before", "after"]
""", shared)


def test_child_starts_its_queues_again(shared):
    program("""
import asyncio
q, other, got = Queue().start(), Queue(), []
m.add(got.append, queue=q)
m.add(got.append, queue=other)
def child():
    descriptors = len(os.listdir("/proc/self/fd"))
    q.start()
    m.invoke("child")
    while not got: time.sleep(0.001)
    assert q.stop() is True
    async def main():
        other.attach()
        while len(got) < 2: await asyncio.sleep(0.001)
    asyncio.run(main())
    assert got == ["child"] * 2 and len(os.listdir("/proc/self/fd")) == descriptors
async def main():
    with other.attach():
        in_child(lambda: None)
        # The loop belongs to the parent, so the child makes its calls on another loop.
        pid = os.fork()
        if pid == 0:
            threading.Thread(target=lambda: (child(), os._exit(0))).start()
            time.sleep(20)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
asyncio.run(main())
""", shared)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing(tmp_path, method):
    # The program must be stored in a file, because the child process imports it.
    path = tmp_path / "program.py"
    path.write_text(f"""
import concurrent.futures, multiprocessing, threading
from multicast import Multicast, MulticastError, Queue, Status
m, q, got = Multicast(), Queue().start(), []
m.add(got.append, queue=q)
def work(number):
    done = threading.Event()
    own, calls = Queue().start(), Multicast()
    calls.add(lambda a: done.set(), queue=own)
    calls(number)
    assert done.wait(10) and own.destroy() is True
    if number == 2:
        calls.destroy()
        calls()
    return number
if __name__ == "__main__":
    m(0)
    context = multiprocessing.get_context({method!r})
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        futures = [pool.submit(work, number) for number in range(4)]
        for number, one in enumerate(futures):
            if number == 2:
                assert one.exception().status is Status.INVALID_HANDLE
            else:
                assert one.result(20) == number
    process = context.Process(target=work, args=(1,))
    process.start()
    process.join()
    assert process.exitcode == 0
    try:
        context.Process(target=work, args=(q,)).start()
    except TypeError:
        assert {method!r} != "fork"
""")
    ran = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", str(path)], timeout=60,
                         capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.skipif(sys.version_info < (3, 13), reason="has no _interpreters")
@pytest.mark.parametrize("kind", ["isolated", "legacy"])
def test_subinterpreter_is_refused(kind):
    refused = f"""
import _interpreters
other = _interpreters.create({kind!r})
print(_interpreters.run_string(other, "import multicast").type.__name__)
_interpreters.destroy(other)
"""
    # Try this before and after the main interpreter imports the module.
    program("""
m.add(print)
""" + refused + """
assert m(b"still here") == 1
""", False, "ImportError\nImportError\nb'still here'\n", first=refused)


def test_dropped_queues_leave_nothing(shared):
    program("""
import asyncio
before = len(os.listdir("/proc/self/fd")), threading.active_count()
for _ in range(50):
    started = Queue().start()
    n = Multicast()
    n.add(print, queue=started)
    del started, n
async def main():
    loop = asyncio.get_running_loop()
    inside = len(os.listdir("/proc/self/fd"))
    for number in range(50):
        q, n = Queue().attach(), Multicast()
        n.add(print, queue=q)
        if number % 2: n("never printed")
        del q, n
        gc.collect()
    await asyncio.sleep(0.01)
    assert len(os.listdir("/proc/self/fd")) == inside
asyncio.run(main())
gc.collect()
end = time.monotonic() + 10
while (len(os.listdir("/proc/self/fd")), threading.active_count()) != before:
    assert time.monotonic() < end, (before, threading.enumerate())
    time.sleep(0.01)
""", shared)


def test_queue_outlives_loops(shared):
    program("""
import asyncio
q, got = Queue(), []
m.add(got.append, queue=q)
async def once():
    q.attach()
    m.invoke(1)
    await asyncio.sleep(0.02)
asyncio.run(once())
m.invoke(2)
asyncio.run(once())
assert got == [1, 2, 1], got
""", shared)


def test_library_of_the_program_is_used(tmp_path):
    import shutil
    from pathlib import Path

    import multicast

    shutil.copy(Path(multicast.__file__).with_name("libmulticast.so.1"), tmp_path / "other.so")
    source = """
import multicast
multicast.Multicast()(1)
print(sorted({line.split()[-1] for line in open("/proc/self/maps") if "other.so" in line
              or "libmulticast" in line}))
"""
    for environment, body in [({"MULTICAST_LIBRARY": str(tmp_path / "other.so")}, source),
                              ({}, f"import ctypes; ctypes.CDLL({str(tmp_path / 'other.so')!r})" + source)]:
        ran = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True,
                             env={**os.environ, **environment})
        assert ran.stdout == f"['{tmp_path / 'other.so'}']\n", ran.stdout + ran.stderr


def test_invocation_that_waits_for_room_lets_other_threads_run():
    """The invocation must not hold a lock that the other thread needs to make room in the queue."""
    program("""
from clib import Delegate, Function, AddOptions, QueueOptions, lib
m.handle
options = QueueOptions(struct_size=ctypes.sizeof(QueueOptions), capacity=1, overflow=2)
queue, got = lib.multicast_queue_create(ctypes.byref(options)), []
function = Function(lambda context, event, payload, size: got.append(event))
how = AddOptions(struct_size=ctypes.sizeof(AddOptions), queue=queue)
assert lib.multicast_add(m.handle, Delegate(function, None), ctypes.byref(how), None) == 0
def run():
    while len(got) < 20:
        lib.multicast_queue_run(queue, 1)
        time.sleep(0.001)
thread = threading.Thread(target=run)
thread.start()
for number in range(20):
    assert m.invoke(b"x", event=number) == 1
thread.join()
assert got == list(range(20))
""", True)
