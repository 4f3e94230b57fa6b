"""Tests dataclasses that report changes of their fields."""

import copy
import dataclasses
import gc
import pickle
import sys
import weakref
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pytest

from multicast import DelegateErrors, Signal, evented

WAYS = [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]


@evented
@dataclass
class Point:
    x: int = 0
    y: int = 0


@evented
@dataclass(order=True)
class Plain:
    x: int
    names: list = field(default_factory=list)


@evented
@dataclass
class Space(Point):
    z: int = 0
    z_changed = Signal(int, int)
    other_changed = Signal(int)  # does not belong to a field

    def __setattr__(self, name, value):
        super().__setattr__(name, value)


@dataclass
class Slots:
    __slots__ = ("x", "y")
    x: int
    y: int


Slots = evented(Slots)


@evented
@dataclass
class SlotsBelow(Slots):
    __slots__ = ("z",)
    z: int


def listen(one):
    """Adds a delegate to each signal. Returns a list, to which the delegates append their
    arguments."""
    got = []
    for name in ("x_changed", "changed"):
        getattr(one, name).add(lambda *args, name=name: got.append((name, *args)))
    return got


KINDS = [lambda: Point(1, 2), lambda: Plain(1), lambda: Space(1, 2, 3), lambda: Slots(1, 2),
         lambda: SlotsBelow(1, 2, 3)]


@pytest.mark.parametrize("make", KINDS)
def test_assignments_to_fields_are_told(make):
    one, other = make(), make()
    got = listen(one)
    one.x = 5
    other.x = 6
    assert got == [("x_changed", 5, 1), ("changed", "x", 5, 1)] and (one.x, other.x) == (5, 6)
    assert one.x_changed.instance is one and one != other and one == dataclasses.replace(one)
    assert isinstance(type(one).x_changed, Signal) and dataclasses.asdict(one)["x"] == 5
    one.x += 0
    assert len(got) == 2


def test_fields_of_bases_are_told_once_and_others_not():
    one = Space(1, 2, 3)
    got = listen(one)
    one.z_changed.add(lambda new, old: got.append((new, old)))
    one.other_changed.add(got.append)
    one.x = 4
    one.z = 5
    one.other = 6
    assert got == [("x_changed", 4, 1), ("changed", "x", 4, 1), (5, 3), ("changed", "z", 5, 3)]
    assert Space.x_changed is Point.x_changed and not hasattr(Point, "z_changed")


def test_class_may_use_the_name_of_a_signal():
    class Child(Point):
        def changed(self):
            pass

    one, got = Child(1), []
    one.x_changed.add(lambda new, old: got.append((new, old)))
    one.x = 2
    assert got == [(2, 1)]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_copy_has_signals_of_its_own(make, way):
    one = make()
    got = listen(one)
    other = way(one)
    assert type(other) is type(one) and other == one and got == []
    other.x = 7
    assert got == [] and one.x == 1 and len(other.changed) == len(other.x_changed) == 0
    assert other.changed.instance is other and len(one.changed) == 1


class Array:
    """An array whose `==` compares each element, like numpy's arrays."""

    def __init__(self, *values):
        self.values = values

    def __eq__(self, other):
        if not isinstance(other, Array):
            raise TypeError("no array")
        return Array(*(a == b for a, b in zip(self.values, other.values)))

    def __bool__(self):
        if len(self.values) != 1:
            raise ValueError("the truth value is ambiguous")
        return self.values[0]


def test_equal_values_are_no_change():
    one, array = Point(1), Array(1, 2)
    got = []
    one.x_changed.add(lambda new: got.append(new))
    for value in (1, 1.0, True, array, array, Array(3), Array(3), 1.5, float("nan")):
        one.x = value
    assert [type(value) for value in got] == [Array, Array, float, float]
    one.x = Array(1, 2)
    one.x = Array(1, 2)  # may have a different value, so this counts as a change
    assert len(got) == 6


def test_nothing_is_compared_while_nobody_listens():
    class Strict:
        def __eq__(self, other):
            raise AssertionError

    one = Point(Strict())
    one.x = Strict()
    got = []
    one.x_changed.add(lambda new: got.append(new))
    one.x = None
    assert got == [None]


def test_interrupt_of_a_comparison_is_no_assignment():
    class Interrupted:
        def __eq__(self, other):
            raise KeyboardInterrupt

    one = Point(Interrupted())
    got = listen(one)
    with pytest.raises(KeyboardInterrupt):
        one.x = 2
    assert type(one.x) is Interrupted and got == []


def test_field_without_a_value():
    one = Plain(1)
    got = listen(one)
    del one.x
    one.x = 1
    assert got[0] == ("x_changed", 1, dataclasses.MISSING)


def test_failing_delegates_leave_the_others_and_the_assignment():
    one = Point()
    one.x_changed.add(lambda: 1 // 0)
    got = listen(one)
    with pytest.raises(DelegateErrors):
        one.x = 1
    assert one.x == 1 and got == [("x_changed", 1, 0), ("changed", "x", 1, 0)]


def test_signals_do_not_keep_the_object():
    def make():
        one = Slots(1, 2)
        one.changed.add(lambda: one)
        return weakref.ref(one)

    weak = make()
    gc.collect()
    assert weak() is None


def test_class_with_slots_keeps_its_name():
    class Outer:
        @evented
        @dataclass
        class Inner:
            """A comment."""

            __slots__ = ("x",)
            x: int

    assert repr(Outer.Inner(1)).endswith(".Outer.Inner(x=1)") and Outer.Inner.__doc__ == "A comment."
    assert Slots.__module__ == __name__

    T = TypeVar("T")

    @evented
    @dataclass
    class Box(Generic[T]):
        __slots__ = ("x",)
        x: T

    assert Box[int](1) == Box(1)
    with pytest.raises(AttributeError):
        Slots(1, 2).other = 3
    if sys.version_info >= (3, 10):
        made = evented(dataclasses.make_dataclass("Made", ["x"], slots=True))(1)
        got = listen(made)
        made.x = 2
        assert len(got) == 2


def test_what_cannot_be_evented_is_refused():
    @dataclass(frozen=True)
    class Frozen:
        x: int

    with pytest.raises(TypeError, match="Frozen is frozen"):
        evented(Frozen)
    for kind in (int, type("Kind", (Point,), {"__annotations__": {"z": int}})):
        with pytest.raises(TypeError, match="is no dataclass"):
            evented(kind)
    for body in ({"x_changed": 1}, {"__annotations__": {"x": int, "changed": bool}}):
        kind = dataclass(type("Kind", (), {"__annotations__": {"x": int}, **body}))
        with pytest.raises(TypeError, match="Kind.*changed is not a Signal"):
            evented(kind)
