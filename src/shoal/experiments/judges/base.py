"""A judge, and what it is shown of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shoal.experiments.metrics import WorldRecord, open_record
from shoal.experiments.results import Judgement
from shoal.runs import RunDirectory, RunResources


class JudgeFailed(Exception):
    """A judge cannot say anything about a run. The text says why."""

    def __init__(self, why: str, *, is_pending: bool = False) -> None:
        """`is_pending`: it may pass by itself or be mended, such as a server that does not answer."""
        super().__init__(why)
        self.is_pending = is_pending


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run that has ended, as judges see it."""

    directory: RunDirectory
    #: What was measured of it, what it cost and took, by name.
    values: Mapping[str, float]
    #: Metrics without a value -> why they have none.
    missing: Mapping[str, str]
    #: What models may be asked with.
    resources: RunResources

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.directory.path

    @property
    def worlds(self) -> tuple[str, ...]:
        return tuple(self.directory.worlds)

    @contextmanager
    def open(self, world: str | None = None) -> Iterator[WorldRecord]:
        """Open the record of a world, as metrics see it; by default that of the first."""
        with open_record(self.directory, world or self.worlds[0]) as record:
            if record is None:
                raise JudgeFailed("no round of the run is committed")
            yield record


class Judge(Protocol):
    """Says whether a run passes."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> object:
        """What its judgement depends on, beside the run: its settings, and the content of its files."""
        ...

    async def judge(self, run: JudgedRun) -> Judgement:
        """Judge a run that has ended; JudgeFailed where it cannot be judged."""
        ...


def describe_threshold(at_least: float | None, at_most: float | None) -> str:
    """Describe the bounds of a score, such as `at least 0.4`; an empty text where there are none."""
    parts = [
        f"at least {at_least:g}" if at_least is not None else "",
        f"at most {at_most:g}" if at_most is not None else "",
    ]
    return " and ".join(filter(None, parts))


def is_within(value: float, at_least: float | None, at_most: float | None) -> bool:
    return (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
