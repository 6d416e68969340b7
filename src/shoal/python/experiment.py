"""Experiments from a script or a notebook: run one, or open the folder of one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ArgumentInvalid
from shoal.experiments import (
    RESULTS_FOLDER,
    ArmStanding,
    BatchSettings,
    BudgetLimits,
    DailyWindow,
    ExperimentRun,
    RunResult,
    load_experiment,
    read_results,
    read_standing,
    recommend_simulations,
)
from shoal.python.results import build_frame, render_table
from shoal.python.session import find_resources
from shoal.runs import LimitSettings
from shoal.runs.launchers import LOCAL, open_launcher

#: Fields of a result that are columns as they are.
_COLUMNS = "tier arm seed status error cost calls cached_calls input_tokens output_tokens seconds passed".split()
_LAST_COLUMNS = ("run", "digest", "command")
_ARM_COLUMNS = "tier arm ended runs failed passed judged cost".split()


class ExperimentResults:
    """An experiment in its folder: where each arm stands, and a result for each run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._standing = read_standing(folder)
        self.results: list[RunResult] = list(read_results(folder / "results.jsonl"))

    @property
    def status(self) -> str:
        """`completed`, `stopped` or `running`."""
        return self._standing.state.status

    @property
    def arms(self) -> list[ArmStanding]:
        """How far each arm is, and what it cost."""
        return self._standing.arms

    @property
    def stops(self) -> list[dict[str, Any]]:
        """Arms that were stopped by a rule, after how many seeds and why."""
        return [msgspec.structs.asdict(stop) for stop in self._standing.state.stops]

    @property
    def reports(self) -> dict[str, Path]:
        """The reports that are there, by name: `report.json`, `report.md`, `report.html` and so on."""
        return {path.name: path for path in sorted(self.folder.glob("report.*"))}

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame with a row for each run, and a column for each metric and judge."""
        return build_frame(self._list_columns(), "pandas")

    def to_polars(self) -> Any:
        """Return a polars.DataFrame with a row for each run, and a column for each metric and judge."""
        return build_frame(self._list_columns(), "polars")

    def _list_columns(self) -> dict[str, list[Any]]:
        columns = {name: [getattr(each, name) for each in self.results] for name in _COLUMNS}
        for name in dict.fromkeys(name for each in self.results for name in each.metrics):
            columns[name] = [each.metrics.get(name) for each in self.results]
        for name in dict.fromkeys(judgement.judge for each in self.results for judgement in each.judgements):
            found = [next((one for one in each.judgements if one.judge == name), None) for each in self.results]
            columns[f"{name}.passed"] = [None if one is None else one.passed for one in found]
            columns[f"{name}.score"] = [None if one is None else one.score for one in found]
        return columns | {name: [getattr(each, name) for each in self.results] for name in _LAST_COLUMNS}

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self.results)

    def __repr__(self) -> str:
        return (
            f"<ExperimentResults: {self.folder}, {self._standing.ended} of {self._standing.runs} runs, {self.status}>"
        )

    def _repr_html_(self) -> str:
        rows = [[getattr(arm, name) for name in _ARM_COLUMNS] for arm in self.arms]
        return render_table(rows, _ARM_COLUMNS)


async def run_experiment(  # noqa: PLR0913  # the options of the command
    experiment: Mapping[str, Any] | str | Path,
    out: str | Path | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    max_simulations: int | None = None,
    between: str | None = None,
    retry_failed: bool = False,
    on: str = LOCAL,
    accept_changes: bool = False,
) -> ExperimentResults:
    """Run the experiment that a scenario file declares, or the content of one, and return its results.

    `limits` may have `parallel`, `patience`, and what the whole experiment may use: `max_cost`, `max_calls` and
    `max_hours`. A simulation that fails is a result with an `error`, not an exception; a budget that is used up is one.
    `on` is where simulations work: `local`, `ray`, or `ray://HOST:PORT`. The same call again continues, and repeats
    nothing that has ended.
    """
    wanted = load_experiment(dict(experiment) if isinstance(experiment, Mapping) else Path(experiment))
    folder = RESULTS_FOLDER / wanted.name if out is None else Path(out)
    given = dict(limits or {})
    budget = _read_budget({name: given.pop(name) for name in BudgetLimits.model_fields if name in given})
    settings = BatchSettings(
        min(max_simulations or recommend_simulations(wanted.base, folder, on), wanted.runs),
        LimitSettings.of(given),
        None if between is None else DailyWindow.parse(between),
        retry_failed,
    )
    work = ExperimentRun(wanted, folder, settings, budget, accept_changes=accept_changes)
    work.check(find_resources())
    async with open_launcher(on, os.environ) as launcher:
        await work.run(launcher, asyncio.Event())
    return ExperimentResults(folder)


def open_experiment(folder: str | Path) -> ExperimentResults:
    """Open the folder of an experiment, finished or not; one that the command `shoal` ran, too."""
    return ExperimentResults(Path(folder))


def _read_budget(given: Mapping[str, Any]) -> BudgetLimits:
    """Check each bound of a budget; ArgumentInvalid names the wrong one."""
    for name, value in given.items():
        wanted = int if name == "max_calls" else (int, float)
        if not isinstance(value, wanted) or isinstance(value, bool) or value <= 0:
            raise ArgumentInvalid(name.replace("_", "-"), f"expected a number above 0, found {value!r}.")
    return BudgetLimits(**given)
