"""Judges runs that have ended again, with other judges and metrics. Nothing is run, and nothing is overwritten.

The results of an experiment judged again are in `judged/NAME` of its folder. That can be read like the folder itself,
as the files of its runs are linked there. Those of a single run are lines of `judgements.jsonl` in its directory.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from shoal.errors import RunRefused
from shoal.experiments.batch import RESULTS
from shoal.experiments.folder import DESIGN, STATE
from shoal.experiments.judges import Judging
from shoal.experiments.results import RunResult, read_results, write_results
from shoal.runs import CONFIG, RunDirectory, RunResources, read_outcome, replace_json, storage_errors

JUDGED = "judged"
#: What a folder of `judged` was judged by.
JUDGING_FILE = "judging.json"
#: Every judgement of a single run.
JUDGEMENTS = "judgements.jsonl"
#: Results that are judged at once: a few more than judges take, so that none of these waits.
_SIDE_BY_SIDE = 8
#: What a report writes into the directories of runs.
_REPORTS = frozenset({"report.json", "report.md", "report.html"})


class JudgingRecord(msgspec.Struct, frozen=True):
    """The content of `judging.json`."""

    digest: str
    metrics: tuple[str, ...]
    judges: tuple[str, ...]
    #: Where the metrics and judges were declared.
    source: str


class ExperimentJudging:
    """An experiment that is judged again, into a separate folder. The same call again goes on with what is left."""

    def __init__(self, folder: Path, judging: Judging, name: str, source: str) -> None:
        self.folder = folder / JUDGED / name
        self._experiment = folder
        self._judging = judging
        self._source = source

    async def run(
        self, resources: RunResources, watch: Callable[[RunResult], object] = lambda _: None
    ) -> list[RunResult]:
        """Judge every run that has a result and is not judged yet, and return all results in their order."""
        results = {result.id: result for result in read_results(self._experiment / RESULTS)}
        if not results:
            raise RunRefused(f"no run of {self._experiment} has a result yet")
        self._prepare()
        path = self.folder / RESULTS
        before = {result.id: result for result in read_results(path)}
        judged = {id: old for id, old in before.items() if id in results and self._judging.holds(old, results[id])}
        waiting = iter([result for id, result in results.items() if id not in judged])
        with storage_errors(path), path.open("ab", buffering=0) as file:

            async def work() -> None:
                for result in waiting:
                    here = self._experiment / result.id
                    moved = msgspec.structs.replace(result, run=str(here)) if (here / CONFIG).exists() else result
                    found = await self._judging.judge(moved, resources)
                    link_run(Path(found.run), self.folder / found.id)
                    file.write(msgspec.json.encode(found) + b"\n")
                    judged[found.id] = found
                    watch(found)

            async with asyncio.TaskGroup() as group:
                for _ in range(_SIDE_BY_SIDE):
                    group.create_task(work())
        ordered = [judged[id] for id in results]
        write_results(path, ordered)
        return ordered

    def _prepare(self) -> None:
        """Make the folder; RunRefused where it holds the results of other judges."""
        judging, path = self._judging, self.folder / JUDGING_FILE
        record = JudgingRecord(
            judging.digest,
            tuple(metric.name for metric in judging.metrics),
            tuple(judge.name for judge in judging.judges),
            self._source,
        )
        with storage_errors(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            if path.exists() and msgspec.json.decode(path.read_bytes(), type=JudgingRecord).digest != judging.digest:
                raise RunRefused(
                    f"{self.folder} holds the results of other judges, which are kept.\n"
                    "Name these otherwise: --name NAME"
                )
            for name in (DESIGN, STATE):
                if (self._experiment / name).is_file():
                    shutil.copy2(self._experiment / name, self.folder / name)
        replace_json(path, record)


def link_run(run: Path, beside: Path) -> None:
    """Make a directory in which the files of a run are found, so that reports can read it and write their own there."""
    with storage_errors(beside):
        beside.mkdir(parents=True, exist_ok=True)
        for file in run.iterdir() if run.is_dir() else ():
            link = beside / file.name
            if file.name not in _REPORTS and not link.is_symlink():
                link.symlink_to(os.path.relpath(file, beside))


async def judge_directory(path: Path, judging: Judging, resources: RunResources) -> RunResult:
    """Judge a single run, and keep the result beside earlier ones; the same judges say the same, for nothing."""
    directory = RunDirectory.open(path)
    result = _describe_run(directory)
    for before in reversed([*read_results(path / JUDGEMENTS)]):
        if judging.holds(before, result):
            return before
    found = await judging.judge(result, resources)
    file_path = path / JUDGEMENTS
    with storage_errors(file_path), file_path.open("ab", buffering=0) as file:
        file.write(msgspec.json.encode(found) + b"\n")
    return found


def _describe_run(directory: RunDirectory) -> RunResult:
    outcome, state = read_outcome(directory), directory.read_state()
    spent = state.spending or {}
    return RunResult(
        tier="",
        arm=directory.path.name,
        seed=directory.scenario.seed,
        status=str(outcome.status),
        error=state.error,
        cost=outcome.cost,
        calls=outcome.calls,
        input_tokens=spent.get("input", 0),
        output_tokens=spent.get("output", 0),
        seconds=state.metrics.parallel_seconds + state.metrics.sequential_seconds,
        metrics={},
        judgements=(),
        run=str(directory.path),
        digest=outcome.digest,
    )
