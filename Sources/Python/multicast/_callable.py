"""Determines how registrations hold callables, and which arguments callables accept."""

import inspect
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodDescriptorType, MethodType
from typing import Any, Callable, NamedTuple, Optional

ANY = 2**31 - 1  # more than any call has arguments
#: The parameters of callables whose own parameters are unknown.
UNKNOWN = list(inspect.signature(lambda *args, **kwargs: None).parameters.values())


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
    if not issubclass(kind, BuiltinMethodType):
        return None, function
    owner = function.__self__
    for base in type(owner).__mro__:
        method = vars(base).get(function.__name__)
        if type(method) is MethodDescriptorType and method.__get__(owner) == function:
            return method, owner
    return function, None  # a function of a module or a class


def matches(one: Any, function: "Callable[..., Any]", held: Any, target: Any) -> bool:
    """Whether a registration belongs to `function`, where `held, target = split(function, True)`."""
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
    most, names = ANY, None
    if type(function) is FunctionType:
        code = function.__code__
        if not code.co_flags & inspect.CO_VARARGS:
            most = code.co_argcount - is_bound
        if not code.co_flags & inspect.CO_VARKEYWORDS:
            first = code.co_posonlyargcount or min(is_bound, code.co_argcount)
            names = frozenset(code.co_varnames[first:code.co_argcount + code.co_kwonlyargcount])
        if not function.__dict__:  # otherwise, the attributes may name the function it decorates
            return most, names
    if isinstance(function, Unbound):
        function = partial(function.function, function, *function.args, **function.keywords)
    elif is_bound:
        function = MethodType(function, function)
    parameters = _parameters(function)
    kinds = [one.kind for one in parameters]
    if most == ANY and inspect.Parameter.VAR_POSITIONAL not in kinds:
        most = sum(kind <= kind.POSITIONAL_OR_KEYWORD for kind in kinds)
    if names is None and inspect.Parameter.VAR_KEYWORD not in kinds:
        names = frozenset(one.name for one in parameters
                          if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY))
    return most, names


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
    if not isinstance(function, type(len)):
        for one in (function, MethodType(type(function).__call__, function)):
            try:
                return list(inspect.signature(one).parameters.values())
            except Exception:
                pass  # inspect compares the callable with others, which may raise any exception
    return UNKNOWN
