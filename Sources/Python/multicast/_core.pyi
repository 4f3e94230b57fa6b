"""The types of _core.c. Handles are passed as 64-bit integers."""

from typing import Any, Callable, Optional

class Core:
    """The C part of a multicast."""

    _handle: int
    _broadcaster: int
    _name: Optional[bytes]
    _ownership: int
    _is_shared: bool
    _pauses: int
    _open: Any
    _add: Any
    _run: Callable[..., int]
    invoke: Any
    _tokens: Any
    _held: Any

class Held:
    """The C part of a registration: the context of its delegate."""

    _id: int
    _number: int
    _function: Any
    _target: Any
    _sender: Any
    on_end: Optional[Callable[[], object]]

def __getattr__(name: str) -> Callable[..., int]:
    """The functions, most of which return a number or a status."""

def token_properties(handle: int) -> tuple[Optional[int], bool, Optional[str]]: ...
def queue_stats(handle: int) -> tuple[int, ...]: ...
def current_call() -> tuple[Any, Optional[int]]: ...
def status_message(status: int) -> str: ...
