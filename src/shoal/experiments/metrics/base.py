"""A metric: a named figure of what happened in one world of a run, as it was when a round ended."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real
from pathlib import Path

from shoal.experiments.metrics.record import WorldRecord

#: What a metric gives: a number; numbers by what they are about; nothing, where it is not defined.
Measured = float | Mapping[str, float] | None

Bounds = tuple[float, float]
SHARE: Bounds = (0.0, 1.0)
SIGNED_SHARE: Bounds = (-1.0, 1.0)
COUNT: Bounds = (0.0, inf)


class NotMeasured(Exception):
    """A metric has no value for a run. The text says why."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One named figure. Its docstring holds the formula."""

    name: str
    #: Gives the figure as it was when a round ended.
    measure: Callable[[WorldRecord, int], Measured]
    #: The kinds of world that have it; empty for all.
    worlds: tuple[str, ...] = ()
    #: What there is one value for each of: `opinion` (the topic and claims), `claim`, `action`; empty for one value.
    about: str = ""
    #: Whether it has a value for each round.
    has_series: bool = True
    #: What it takes for there to be a value, as the reason why there is none.
    needs: str = ""
    #: What all its values lie between.
    bounds: Bounds = (-inf, inf)

    @property
    def formula(self) -> str:
        """The docstring of its function, as one paragraph."""
        return " ".join((inspect.getdoc(self.measure) or "").split())

    def measure_at(self, record: WorldRecord, round: int) -> dict[str, float]:
        """Return its values by what they are about; NotMeasured where it has no value."""
        if self.worlds and record.kind not in self.worlds:
            raise NotMeasured(f"it is for {' and '.join(self.worlds)} worlds, and {record.world} is none")
        found = self.measure(record, round)
        values = found if isinstance(found, Mapping) else {} if found is None else {"": found}
        if not values:
            raise NotMeasured(self.needs or "it is not defined here")
        for value in values.values():
            if not isinstance(value, Real) or not isfinite(value):
                raise NotMeasured(f"it must be a number, and it is {value!r}")
        return {about: float(value) for about, value in values.items()}


class OwnMetric:
    """A metric of the user's own: a function of the record of a world that returns a number.

    Write `@shoal.metric` above the function, and name its file in the experiment: `metrics: [{file: my_metrics.py}]`.
    A function of the record alone is measured at the end. One of the record and a round is measured for each round.
    """

    def __init__(self, function: Callable[..., Measured]) -> None:
        self.function = function
        self.name = function.__name__
        self.rounds = len(inspect.signature(function).parameters) > 1

    def __call__(self, *arguments: object) -> Measured:
        return self.function(*arguments)

    def as_metric(self) -> Metric:
        """Return it as a metric whose failures say in which line of the user's file they are."""

        def measure(record: WorldRecord, round: int) -> Measured:
            try:
                return self.function(record, round) if self.rounds else self.function(record)
            except Exception as error:
                # The function is the user's own code, and may fail in any way.
                raise NotMeasured(locate_failure(error, Path(inspect.getfile(self.function)))) from error

        measure.__doc__ = self.function.__doc__ or "A metric of the user's own."
        return Metric(self.name, measure, has_series=self.rounds, needs="the function returned nothing")


def metric(function: Callable[..., Measured]) -> OwnMetric:
    """Make a metric of a function."""
    return OwnMetric(function)


def locate_failure(error: BaseException, file: Path) -> str:
    """Say what went wrong in code of the user's, with the last line of their file that was reached."""
    frames: Sequence[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).name == file.name]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    words = error.msg if isinstance(error, SyntaxError) else error
    return f"{file}{f':{line}' if line else ''}: {type(error).__name__}: {words}"
