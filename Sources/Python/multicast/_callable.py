"""Determines how registrations hold callables, and which arguments callables accept."""

import inspect
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, Callable, NamedTuple, Optional

ANY = 2**31 - 1  # more than any call has arguments


class Unbound(NamedTuple):
    """A partial of a method, without the method's object."""

    function: Any
    args: "tuple[Any, ...]"
    keywords: "dict[str, Any]"

    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        return self.function(target, *self.args, *args, **{**self.keywords, **kwargs})


def split(function: Any, weak: "bool | None" = None) -> "tuple[Any, Any]":
    """Returns the callable that a registration holds, and its first argument, which is held weakly.

    If the callable is None, the first argument itself is called. Types are compared exactly, so
    that a decorator's proxy of a method does not count as a method.
    """
    if weak is False:
        return function, None
    kind = type(function)
    if kind is MethodType:
        return function.__func__, function.__self__
    if kind is partial and type(function.func) is MethodType:
        return Unbound(function.func.__func__, function.args, function.keywords), function.func.__self__
    if not weak:
        return function, None
    if kind is BuiltinMethodType:
        owner = function.__self__
        return getattr(type(owner), function.__name__, None), owner
    return None, function


def matches(one: Any, function: "Callable[..., Any]", held: Any, target: Any) -> bool:
    """Whether a registration belongs to `function`, where `held, target = split(function)`."""
    if one._target is not None:
        own = one._target()
        if one._function is None:
            return own is function
        if own is None or own is not target:
            return False
        function = held
    return type(one._function) is type(function) and are_equal(one._function, function)


def are_equal(one: Any, other: Any) -> bool:
    """Whether two objects are equal. Objects that cannot be compared are not equal."""
    try:
        return one is other or bool(one == other)
    except Exception:
        return False


def accepts(function: "Callable[..., Any]", is_bound: bool) -> "tuple[int, Optional[frozenset[str]]]":
    """Returns the maximum number of arguments, and the accepted keywords (None: all).

    With `is_bound`, the first argument is not counted, because it is the object of a method.
    """
    if type(function) is FunctionType:
        code = function.__code__
        names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        most = ANY if code.co_flags & inspect.CO_VARARGS else code.co_argcount - is_bound
        return most, None if code.co_flags & inspect.CO_VARKEYWORDS else frozenset(names)
    if isinstance(function, Unbound):
        most, known = accepts(function.function, True)
        return max(0, most - len(function.args)), known
    parameters = _parameters(function)
    kinds = [one.kind for one in parameters]
    most = sum(kind <= kind.POSITIONAL_OR_KEYWORD for kind in kinds) - is_bound
    return (ANY if inspect.Parameter.VAR_POSITIONAL in kinds else max(0, most),
            None if inspect.Parameter.VAR_KEYWORD in kinds
            else frozenset(one.name for one in parameters))


def known(kwargs: "dict[str, Any]", names: "frozenset[str]") -> "dict[str, Any]":
    return {name: value for name, value in kwargs.items() if name in names}


def check(function: "Callable[..., Any]", count: int) -> None:
    """Raises TypeError if the callable needs keywords or more than `count` arguments."""
    needed = [one for one in _parameters(function) if one.default is one.empty
              and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    named = [one.name for one in needed if one.kind is one.KEYWORD_ONLY]
    if named:
        raise TypeError(f"{function!r} needs keywords that are not given: {', '.join(named)}")
    if len(needed) > count:
        raise TypeError(f"{function!r} needs {len(needed)} arguments, and gets {count}")


def _parameters(function: "Callable[..., Any]") -> "list[inspect.Parameter]":
    # Do not inspect C functions, because that is slow, and their own errors name missing arguments.
    try:
        known = inspect.signature(_anything if isinstance(function, type(len)) else function)
    except (ValueError, TypeError):
        known = inspect.signature(_anything)
    return list(known.parameters.values())


def _anything(*args: Any, **kwargs: Any) -> None:
    """Its signature is used for callables whose own signature is unknown."""
