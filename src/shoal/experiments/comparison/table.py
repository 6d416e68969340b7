"""The results of an experiment as one table: a row for each run, with metrics and judgements as columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from shoal.experiments.report.reading import read_record, stream_results
from shoal.formats import ExportTable, Format, choose_writer
from shoal.runs import storage_errors

_FIELDS = ("tier", "arm", "seed", "status", "passed", "cost", "calls", "input_tokens", "output_tokens", "seconds")
_LAST = ("error", "run", "digest", "scenario_digest")


def export_results(folder: Path, path: Path, format: Format, raw: bool = False) -> int:
    """Write the table, and return how many rows it has.

    Columns are the fields of a result; `is_control`; a column for each metric; `judge.passed`, `judge.score` and
    `judge.error` for each judge; and `set.PATH` for each value that at least one arm changes.
    """
    record = read_record(folder)
    arms = {(arm.tier, arm.name): arm for arm in record.list_arms()}
    metrics = list(dict.fromkeys(name for arm in arms.values() for name in arm.metrics))
    judges = list(dict.fromkeys(name for arm in arms.values() for name in arm.judges))
    changes = list(dict.fromkeys(path for arm in arms.values() for path in arm.changes))
    judged = [f"{judge}.{part}" for judge in judges for part in ("passed", "score", "error")]
    columns = (*_FIELDS, "is_control", *metrics, *judged, *(f"set.{path}" for path in changes), *_LAST)

    def list_rows() -> Iterator[list[Any]]:
        for result in stream_results(folder):
            arm, verdicts = arms[result.tier, result.arm], list[Any]()
            given = {each.judge: each for each in result.judgements}
            for found in map(given.get, judges):
                verdicts += [None] * 3 if found is None else [found.passed, found.score, found.error]
            yield [
                *(getattr(result, name) for name in _FIELDS),
                result.arm == record.tiers[result.tier].control,
                *map(result.metrics.get, metrics),
                *verdicts,
                *(_flatten(arm.changes.get(path)) for path in changes),
                *(getattr(result, name) for name in _LAST),
            ]

    write = choose_writer(format, raw)
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return write(ExportTable("runs", columns, list_rows()), path)


def _flatten(value: Any) -> Any:
    """Return a value that fits into a cell."""
    return (
        value if value is None or isinstance(value, str | int | float | bool) else msgspec.json.encode(value).decode()
    )
