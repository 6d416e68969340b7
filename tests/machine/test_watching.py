"""Watching the machine while a run goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shoal.machine.pressure import Pressure, Throttle, watch_machine
from shoal.machine.sampling import Sampler
from tests.machine.fake_machines import GIB, computer, meminfo, write_files


async def test_what_the_machine_says_is_told_again_and_again(tmp_path: Path) -> None:
    root, now = write_files(tmp_path, computer()), [0.0]
    throttles: list[Throttle] = []

    async def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] == 5:
            write_files(root, {"proc/meminfo": meminfo(10 * GIB, GIB)})
        if now[0] == 20:
            raise asyncio.CancelledError

    sampler = Sampler(root, lambda: now[0])
    with pytest.raises(asyncio.CancelledError):
        await watch_machine(throttles.append, lambda at: 0.5 if at >= 10 else None, sampler, sleep=sleep)
    assert len(throttles) == 19
    assert [each.kind for throttle in throttles for each in throttle.began] == [Pressure.MEMORY, Pressure.FAILURES]
    assert throttles[6].began
    assert throttles[-1].factor < 1


async def test_the_real_machine_can_be_watched() -> None:
    throttles: list[Throttle] = []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await watch_machine(lambda throttle: _end_after(throttles, throttle), lambda at: None, every_seconds=0)
    assert len(throttles) == 3


def _end_after(throttles: list[Throttle], throttle: Throttle) -> None:
    throttles.append(throttle)
    if len(throttles) == 3:
        raise TimeoutError
