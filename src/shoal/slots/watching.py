"""Watches the machine while a run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from shoal.slots.sampling import Sampler
from shoal.slots.strain import Strain, Verdict

EVERY_SECONDS = 1.0


async def watch(
    tell: Callable[[Verdict], None],
    failed: Callable[[float], float | None],
    sampler: Sampler | None = None,
    every_seconds: float = EVERY_SECONDS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Tell, again and again, what the run should do; ends when it is cancelled.

    `failed` is asked for the share of failed calls at a moment, as `Failures.share` has it.
    """
    sampler = sampler or Sampler()
    strain = Strain()
    while True:
        await sleep(every_seconds)
        sample = sampler.take()
        tell(strain.update(sample, failed(sample.at)))
