"""A typed program, for mypy --strict: test_types.py. Each "error" is one that mypy has to report."""

import asyncio
from typing import Optional

from multicast import Broadcaster, DelegateErrors, Lifetime, Multicast, Queue, Token, current_token

door: Multicast[str] = Multicast("door")


class Lights:
    def on_door(self, name: str) -> None:
        print(name)


def wrong(number: int) -> None:
    print(number)


@door.listener(priority=3)
def heating(name: str) -> int:
    return len(name)


lights = Lights()
with Lifetime() as lifetime, Queue() as queue:
    token: Token = door.add(lights.on_door, events={1, 2}, lifetime=lifetime, queue=queue)
    door.add(wrong)  # error: arg-type
    door.invoke(3)  # error: arg-type
    count: int = door.invoke("Ada", 1)
    length: int = heating("Ada")
    ended: bool = token.remove(timeout=0.5)
    inside: Optional[Token] = current_token()


async def listen() -> str:
    async for name in door.listen():
        return name
    return 3  # error: return-value


try:
    Broadcaster().notify("title", b"Aria")
except DelegateErrors as errors:
    first: Exception = errors.exceptions[0]
asyncio.run(listen())
