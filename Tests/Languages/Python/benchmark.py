#!/usr/bin/env python3
"""Compares this module with pyee, blinker, psygnal, PyDispatcher and a bare loop. Measures how long
it takes to invoke 1, 16 and 256 functions and bound methods, and to add and remove one of them.
Prints the best time of several rounds in nanoseconds. The libraries take turns in each round. Needs
the packages of these libraries from PyPI, and this module's wheel."""

import argparse
import sys
import time

import blinker
import psygnal
import pydispatch.dispatcher
import pyee

import multicast

COUNTS = (1, 16, 256)


class Listener:
    def on(self, payload):
        pass

    def on_keyword(self, sender, payload=None):
        pass


class Emitter:
    changed = psygnal.Signal(object)


def best(functions, repetitions, rounds):
    """Returns a map from the name of each function to its shortest time."""
    least = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.perf_counter_ns()
            for _ in range(repetitions):
                function()
            least[name] = min(least[name], (time.perf_counter_ns() - begin) / repetitions)
    return least


def contenders(methods, keyword_methods, weakly):
    """Returns, for each library, a function that invokes all listeners, and the objects that must
    stay alive."""
    payload = object()
    own, shared = multicast.Multicast(), multicast.Multicast()
    assert shared.handle  # C code may use it
    emitter, signal, typed = pyee.EventEmitter(), blinker.Signal(), Emitter()
    for one in methods:
        own.add(one, weak=weakly)
        shared.add(one, weak=weakly)
        emitter.on("changed", one)
        signal.connect(one, weak=weakly)
        typed.changed.connect(one)
    for one in keyword_methods:
        pydispatch.dispatcher.connect(one, signal=emitter, weak=weakly)
    return {
        "bare loop": lambda: [one(payload) for one in methods],
        "multicast": lambda: own.invoke(payload),
        "multicast that C code has": lambda: shared.invoke(payload),
        "pyee": lambda: emitter.emit("changed", payload),
        "blinker": lambda: signal.send(payload),
        "psygnal": lambda: typed.changed.emit(payload),
        "PyDispatcher": lambda: pydispatch.dispatcher.send(emitter, None, payload=payload),
    }, (emitter, signal, typed)


def changes(function):
    """Returns, for each library, a function that adds one listener and removes it."""
    own, emitter, signal, typed = (multicast.Multicast(), pyee.EventEmitter(), blinker.Signal(),
                                   Emitter())

    def by_token():
        own.add(function).remove()

    def by_pyee():
        emitter.on("changed", function)
        emitter.remove_listener("changed", function)

    def by_blinker():
        signal.connect(function, weak=False)
        signal.disconnect(function)

    def by_psygnal():
        typed.changed.connect(function)
        typed.changed.disconnect(function)

    def by_dispatcher():
        pydispatch.dispatcher.connect(function, signal=emitter, weak=False)
        pydispatch.dispatcher.disconnect(function, signal=emitter, weak=False)

    return {"multicast": by_token, "pyee": by_pyee, "blinker": by_blinker, "psygnal": by_psygnal,
            "PyDispatcher": by_dispatcher}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only whether everything runs")
    options = parser.parse_args()
    rounds = 1 if options.quick else 15
    print(f"Python {sys.version.split()[0]}; psygnal is compiled: {psygnal._compiled}")
    slower = []

    def show(title, functions, repetitions):
        times = best(functions, 1 if options.quick else repetitions, rounds)
        print(f"{title}: " + ", ".join(f"{name} {ns:.0f}" for name, ns in times.items()))
        slower.extend(f"{name}, {title}" for name, ns in times.items()
                      if not name.startswith(("bare", "multicast")) and ns < times["multicast"])

    for kind, weakly in (("functions", False), ("bound methods, weakly", True)):
        for count in COUNTS:
            listeners = [Listener() for _ in range(count)]
            methods = [one.on for one in listeners]
            keywords = [one.on_keyword for one in listeners]
            if not weakly:
                methods = [lambda payload: None for _ in range(count)]
                keywords = [lambda sender, payload=None: None for _ in range(count)]
            made, _kept = contenders(methods, keywords, weakly)
            show(f"{count} {kind}", made, max(20, 20000 // (count + 3)))
    show("add and remove", changes(lambda payload: None), 2000)
    print("faster than multicast: " + ("; ".join(slower) or "none"))


if __name__ == "__main__":
    main()
