"""fork, the end of the interpreter, threads of C; in processes of their own."""

import os
import subprocess
import sys

import pytest

HEAD = """
import ctypes, gc, os, sys, threading, time
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


def program(text, shared, expected=""):
    # The warning is about fork() with threads, which is what is tested.
    source = HEAD.format(shared=shared) + text
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


def test_queues_are_empty_in_the_child_and_payloads_are_freed(shared):
    program("""
q, got = Queue(), []
m.add(got.append, queue=q)
m.invoke([1])
def child():
    assert len(q) == 0 and q.run() == 0
    m.invoke([2])
    assert q.run() == 1 and got == [[2]]
in_child(child)
assert q.run() == 1 and got == [[1]]
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
# A thread of C: the queue's own.
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
