"""Many simulations from a script: one scenario, and a row of values for each."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shoal.experiments import (
    Batch,
    BatchResult,
    BatchSettings,
    DailyWindow,
    name_batch,
    read_rows,
    recommend_simulations,
)
from shoal.python.session import find_resources
from shoal.runs import RUNS, LimitSettings
from shoal.runs.launchers import LOCAL, open_launcher
from shoal.scenario import Scenario, load, validate


async def run_many(  # noqa: PLR0913  # the options of the command
    scenario: Scenario | Mapping[str, Any] | str | Path,
    rows: Iterable[Mapping[str, Any]] | str | Path,
    out: str | Path | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    max_simulations: int | None = None,
    between: str | None = None,
    retry_failed: bool = False,
    on: str = LOCAL,
) -> list[BatchResult]:
    """Run a scenario once for each row, many side by side, in processes of their own. Return a result for each.

    A row maps values of the scenario, named as for `--set`, to what they are to be: `{"id": "a", "seed": 3,
    "population.0.persona": "..."}`. Rows may also be the path of a table. A simulation that fails is a result with an
    `error`, not an exception. `on` is where simulations work: `local`, `ray`, or `ray://HOST:PORT`. The same call again
    continues after an interrupt, and repeats nothing that has ended.
    """
    if isinstance(scenario, Mapping):
        scenario = validate(dict(scenario))
    base = scenario if isinstance(scenario, Scenario) else load(Path(scenario))
    source = Path(rows) if isinstance(rows, str | Path) else rows
    table = read_rows(base, source)
    folder = Path(out) if out is not None else RUNS / name_batch(base, source if isinstance(source, Path) else None)
    settings = BatchSettings(
        max_simulations or recommend_simulations(base, folder, on),
        LimitSettings.of(limits or {}),
        None if between is None else DailyWindow.parse(between),
        retry_failed,
    )
    batch = Batch(base, table, folder, settings)
    batch.check_models(find_resources())
    async with open_launcher(on, os.environ) as launcher:
        return await batch.run(launcher, asyncio.Event())
