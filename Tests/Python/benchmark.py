#!/usr/bin/env python3
"""Invoking 1, 16 and 256 functions and bound methods: this module beside pyee, blinker, psygnal and
PyDispatcher, and a bare loop. Prints nanoseconds for one invocation, the best of several rounds.
Needs these packages of PyPI and the wheel. Also: one call to C and one from C, by ctypes and cffi."""

import argparse
import ctypes
import sys
import time

import blinker
import cffi
import psygnal
import pydispatch.dispatcher
import pyee

import multicast

COUNTS = (1, 16, 256)
ROUNDS = 7


class Listener:
    def on(self, payload):
        pass

    def on_keyword(self, sender, payload=None):
        pass


class Emitter:
    changed = psygnal.Signal(object)


def best(function, repetitions):
    least = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(repetitions):
            function()
        least = min(least, (time.perf_counter_ns() - begin) / repetitions)
    return least


def contenders(methods, keyword_methods, weakly):
    """Each contender with a function that invokes all of them."""
    payload = object()
    direct = multicast.Multicast()
    library = multicast.Multicast(shared=True)
    for one in methods:
        direct.add(one, weak=weakly)
        library.add(one, weak=weakly)
    emitter = pyee.EventEmitter()
    for one in methods:
        emitter.on("changed", one)
    signal = blinker.Signal()
    for one in methods:
        signal.connect(one, weak=weakly)
    typed = Emitter()
    for one in methods:
        typed.changed.connect(one)
    for one in keyword_methods:
        pydispatch.dispatcher.connect(one, signal=emitter, weak=weakly)
    return {
        "bare loop": lambda: [one(payload) for one in methods],
        "multicast": lambda: direct.invoke(payload),
        "multicast, shared": lambda: library.invoke(payload),
        "pyee": lambda: emitter.emit("changed", payload),
        "blinker": lambda: signal.send(payload),
        "psygnal": lambda: typed.changed.emit(payload),
        "PyDispatcher": lambda: pydispatch.dispatcher.send(emitter, None, payload=payload),
    }, (emitter, signal, typed)


def boundary():
    """One call to C, and one call to C that calls back."""
    lib = multicast._library.lib
    found, kept = {}, multicast.Multicast(shared=True)
    ffi = cffi.FFI()
    ffi.cdef("uint32_t multicast_version(void); typedef bool (*visitor)(void *, const void *);"
             "int64_t multicast_visit(uint64_t, visitor, void *);")
    other = ffi.dlopen(lib._name)
    kept.add(print)
    visit = lib.multicast_visit
    visitor = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: True)
    visit.argtypes = [ctypes.c_uint64, type(visitor), ctypes.c_void_p]
    visit.restype = ctypes.c_int64
    cffi_visitor = ffi.callback("visitor", lambda *_: True)
    handle = kept.handle
    found["ctypes, a call"] = best(lib.multicast_version, 20000)
    found["cffi, a call"] = best(other.multicast_version, 20000)
    found["ctypes, a call and a callback"] = best(lambda: visit(handle, visitor, None), 20000)
    found["cffi, a call and a callback"] = best(
        lambda: other.multicast_visit(handle, cffi_visitor, ffi.NULL), 20000)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only whether everything runs")
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}")
    slower = []
    for kind, weakly in (("functions", False), ("bound methods, weakly", True)):
        for count in COUNTS:
            listeners = [Listener() for _ in range(count)]
            methods = [one.on for one in listeners]
            keywords = [one.on_keyword for one in listeners]
            if not weakly:
                methods = [lambda payload: None for _ in range(count)]
                keywords = [lambda sender, payload=None: None for _ in range(count)]
            made, _kept = contenders(methods, keywords, weakly)
            repetitions = 1 if options.quick else max(20, 60000 // (count + 3))
            times = {name: best(invoke, repetitions) for name, invoke in made.items()}
            print(f"{count} {kind}: " + ", ".join(f"{name} {ns:.0f}" for name, ns in times.items()))
            slower += [f"{name}, {count} {kind}" for name, ns in times.items()
                       if not name.startswith(("bare", "multicast")) and ns < times["multicast"]]
    if not options.quick:
        print(", ".join(f"{name} {ns:.0f}" for name, ns in boundary().items()))
        print("faster than multicast: " + ("; ".join(slower) or "none"))


if __name__ == "__main__":
    main()
