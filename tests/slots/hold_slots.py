"""python -m tests.slots.hold_slots SOCKET COUNT: takes COUNT slots of the pool `one`, prints `held`, and holds them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from shoal.slots.client import open_slots
from shoal.slots.location import BrokerLocation


async def main(socket: Path, count: int) -> None:
    async with open_slots("holder", BrokerLocation(socket, socket.with_name("limits.json"))) as slots:
        await asyncio.gather(*(slots.acquire(("one",)) for _ in range(count)))
        print("held", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
