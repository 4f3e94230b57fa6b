"""The types of _core.c. A handle is its 64-bit integer."""

from typing import Any, Callable, Optional

class Core:
    """A multicast, as C sees it."""

    _handle: int
    _broadcaster: int
    _name: Optional[bytes]
    _ownership: int
    _is_shared: bool
    _pauses: int
    def __call__(self, *args: Any, **kwargs: Any) -> int: ...
    def invoke(self, *args: Any, **kwargs: Any) -> int: ...
    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], event: int, sender: object,
             results: Optional[list[Any]], keeps_coroutines: bool) -> int: ...
    def _open(self, label: Optional[str], reentry: int, replay: int,
              function: Optional[Callable[..., Any]], target: object) -> None: ...
    def _add(self, function: Optional[Callable[..., Any]], target: object, sender: object,
             queue: object, queue_handle: int, lifetime: object, lifetime_handle: int,
             priority: int, events: int, flags: int, label: Optional[str]) -> Any: ...
    def _tokens(self) -> list[Any]: ...
    def _held(self) -> list[Any]: ...

class Held:
    """A registration, as C sees it: the context of its delegate."""

    _id: int
    _function: Any
    _target: Any
    _sender: Any
    _sender_is_weak: bool
    queue: Any
    lifetime: Any
    on_end: Optional[Callable[[], object]]

Number = Callable[[int], int]
end_token: Number
end_multicast: Number
end_lifetime: Number
end_queue: Number
end_broadcaster: Number
clear: Number
is_valid: Number
count: Number
has_listeners: Number
token_is_valid: Number
token_pause: Number
token_resume: Number
lifetime_create: Number
lifetime_count: Number
queue_clear: Number
queue_fd: Number
broadcaster_create: Number
broadcaster_default: Number
create_error: Number
version: Number
finish: Number

def wait(is_queue: bool, handle: int, nanoseconds: int) -> int: ...
def token_properties(handle: int) -> Optional[tuple[int, int, bool, Optional[str]]]: ...
def queue_create(capacity: int, overflow: int, number: int) -> int: ...
def queue_run(handle: int, max: int) -> int: ...
def queue_stats(handle: int) -> tuple[int, ...]: ...
def broadcaster_multicast(handle: int, name: bytes) -> int: ...
def current_call() -> Optional[tuple[Any, int]]: ...
def status_message(status: int) -> str: ...
def setup(*hooks: Any) -> None: ...
def set_greenlet(function: Callable[[], object]) -> None: ...
def after_fork(mark: Optional[int]) -> None: ...
