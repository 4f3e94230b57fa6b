"""Tests signals that are attributes of classes."""

import gc
import sys
import threading
import weakref

import pytest

from multicast import Multicast, Reentry, Signal


class Model:
    changed = Signal(str, int)
    closed = Signal(reentry=Reentry.REFUSE)

    def __init__(self):
        self.got = []

    def on_changed(self, name):
        self.got.append(name)


def test_each_instance_has_its_own():
    first, second = Model(), Model()
    assert first.changed is first.changed and first.changed is not second.changed
    assert isinstance(first.changed, Multicast) and isinstance(Model.changed, Signal)
    first.changed.add(first.on_changed)
    first.changed("x", 1)
    second.changed("y", 2)
    assert first.got == ["x"] and repr(first.changed) == "<multicast.Bound 'Model.changed' of 1>"
    assert first.changed.instance is first and Model.changed.types == (str, int)
    with pytest.raises(TypeError, match="needs 3 arguments"):
        first.changed.add(lambda a, b, c: None)
    with pytest.raises(AttributeError):
        first.changed = 3


def test_signal_does_not_keep_its_object():
    model = Model()
    changed = model.changed
    weak = weakref.ref(model)
    del model
    assert weak() is None and changed.instance is None


def test_delegate_that_refers_to_the_object_is_no_leak():
    def make():
        model = Model()
        model.changed.add(lambda name: model.got.append(name))
        return weakref.ref(model)

    weak = make()
    gc.collect()
    assert weak() is None


def test_objects_of_other_kinds():
    class Child(Model):
        pass

    class Unhashable(dict):
        changed = Signal(int)

    class Slotted:
        __slots__ = ("_signal_changed", "__weakref__")
        changed = Signal(int)

    class TooSmall:
        __slots__ = ()
        changed = Signal(int)

    class Dynamic(Model):
        def __getattr__(self, name):
            return 0

    for kind in (Child, Unhashable, Slotted, Dynamic):
        one, got = kind(), []
        one.changed.add(got.append)
        one.changed(1)
        assert got == [1] and one.changed is one.changed
    with pytest.raises(TypeError, match="_signal_changed"):
        TooSmall().changed


def test_threads_that_use_a_signal_first_get_the_same_multicast(start):
    class Slotted:
        __slots__ = "_signal_changed", "__weakref__"
        changed = Signal(int)

    each = [kind() for kind in (Model, Slotted) for _ in range(2000)]
    found = [[], []]
    begin = threading.Barrier(2)

    def use(mine):
        begin.wait(10)
        mine.extend(model.changed for model in each)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in [start(use, mine) for mine in found]:
            thread.join(20)
    finally:
        sys.setswitchinterval(interval)
    assert len(found[0]) == 4000
    assert all(one is other for one, other in zip(*found))
