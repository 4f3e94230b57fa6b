"""Tests copy, deepcopy and pickle. A copy must not share the handle of the original object."""

import copy
import dataclasses
import pickle

import pytest
from conftest import made

from multicast import (
    Broadcaster, DelegateErrors, Lifetime, Multicast, MulticastError, Queue, Reentry, Signal, Status)

WAYS = [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]


@pytest.mark.parametrize("way", WAYS)
def test_copy_of_a_multicast_is_a_new_one(shared, way):
    m, got = made(shared, label="door", reentry=Reentry.REFUSE, arguments=(str,)), []
    m.add(print)
    other = way(m)
    assert other._handle != m._handle and len(other) == 0 and repr(other) == repr(other)
    other.add(got.append)
    other.clear()
    del other
    assert len(m) == 1
    other = way(m)
    other.add(lambda a: got.append(a) or other("again"))
    with pytest.raises(DelegateErrors):  # the copy has the same policies as the original
        other("x")
    with pytest.raises(TypeError):
        other.add(lambda a, b: None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [Queue, Lifetime, Broadcaster, lambda: Multicast().add(print),
                                  lambda: Multicast().listen(),
                                  lambda: Broadcaster()["name"]])
def test_others_have_no_copy(way, kind):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        way(kind())


@dataclasses.dataclass
class Settings:
    name: str
    changed: "Multicast[str]" = dataclasses.field(default_factory=Multicast)


def test_dataclass_with_a_multicast_is_taken_apart():
    settings = Settings("x")
    settings.changed.add(print)
    assert len(dataclasses.asdict(settings)["changed"]) == 0 and len(settings.changed) == 1


class Named(Multicast):
    def __init__(self, name):
        super().__init__(name, arguments=(str,))
        self.name, self.on_add = name, lambda token: None


@pytest.mark.parametrize("way", WAYS)
def test_copy_of_a_derived_class(way):
    other = way(Named("door"))
    assert type(other) is Named and other.name == "door" and repr(other).endswith("'door' of 0>")
    assert other.on_add is None


class Model:
    changed = Signal(str)
    other = Signal(lambda: None)  # a type that cannot be pickled

    def __init__(self):
        self.value = [1]


@pytest.mark.parametrize("way", WAYS)
def test_copy_of_an_object_has_signals_of_its_own(way):
    model = Model()
    model.changed.add(print)
    model.other.add(print)
    other = way(model)
    assert other.value == [1] and other.changed is not model.changed
    assert other.changed.instance is other and model.changed.instance is model
    assert len(other.changed) == 0 and len(model.changed) == 1


def test_copy_does_not_keep_the_delegates_of_the_original():
    model = Model()
    token = model.changed.add(print)
    other, changed = copy.copy(model), model.changed
    del model
    assert token.is_valid and changed.instance is None
    del changed
    assert not token.is_valid and len(other.changed) == 0


def test_errors_can_be_pickled():
    with pytest.raises(MulticastError) as caught:
        m = Multicast()
        m.destroy()
        m()
    error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is MulticastError and error.status is Status.INVALID_HANDLE
    assert str(error) == str(caught.value) == "it was destroyed or has ended"
    assert str(error.status) == "Status.INVALID_HANDLE"
    group = pickle.loads(pickle.dumps(DelegateErrors("some", [error])))
    assert type(group.exceptions[0]) is MulticastError
