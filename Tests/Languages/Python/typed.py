"""A typed program, which test_types.py checks with mypy --strict. mypy must report exactly the lines with
"error"."""

import asyncio
from dataclasses import dataclass
from typing import Optional

from multicast import (
    Broadcaster, DelegateErrors, Lifetime, Multicast, Queue, Signal, Status, Token, current_token,
    evented)

door: Multicast[str] = Multicast("door")
bell: Multicast[()] = Multicast()


class Lights:
    changed = Signal(str, int)
    off = Signal()
    dimmed = Signal(str, Optional[int], int, float, bool)

    def on_door(self, name: str) -> None:
        print(name)


@evented
@dataclass
class Point:
    x: int = 0
    x_changed = Signal(int, int)


@evented
@dataclass(order=True)
class Space(Point):
    z: int = 0


def wrong(number: int) -> None:
    print(number)


@door.listener(priority=3)
def heating(name: str) -> int:
    return len(name)


@door.listener(nonsense=3)  # error: call-arg
def cooling(name: str) -> int:
    return len(name)


def changed(name: str, level: int) -> None:
    print(name, level)


lights = Lights()
with Lifetime() as lifetime, Queue() as queue:
    token: Token = door.add(lights.on_door, events={1, 2}, lifetime=lifetime, queue=queue)
    door.add(wrong)  # error: arg-type
    door.add(lambda: None)
    door.add(lambda name, unknown: None)  # error: arg-type
    door.invoke(3)  # error: arg-type
    bell()
    bell(1)  # error: call-arg
    lights.changed.add(changed)
    lights.changed.add(lambda what: print(what.upper()))
    lights.changed.add(wrong)  # error: arg-type
    lights.dimmed.add(changed)
    lights.changed("level", 3)
    lights.changed("level", "high")  # error: arg-type
    lights.off()
    count: int = door.invoke("Ada", event=1)
    length: int = heating("Ada")
    ended: bool = token.remove(timeout=0.5)
    inside: Optional[Token] = current_token()


async def listen() -> str:
    print(await door.invoke_async("Ada"))
    async for name in door.listen():
        return name
    return 3  # error: return-value


space = Space(1, z=2)
space.x_changed.add(lambda new, old: print(new + old))
space.x_changed.add(changed)  # error: arg-type
Point("text")  # error: arg-type
nearer: bool = space < Space()
try:
    Broadcaster().notify("title", b"Aria", composer="Bach")
except DelegateErrors as errors:
    first: Exception = errors.exceptions[0]
status: Status = Status.OK
asyncio.run(listen())
