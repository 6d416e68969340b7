"""What comes of the runs of an experiment: how each one ended, what was measured, and how it was judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from statistics import fmean

import msgspec

#: What arms are compared by, beside the metrics of their runs.
PASS_RATE, COST_OF_PASS, COST = "pass_rate", "cost_of_pass", "cost"
FIGURES = (PASS_RATE, COST_OF_PASS, COST)


class Judgement(msgspec.Struct, frozen=True):
    """What one judge says of one run. A judge that failed says nothing, and why."""

    judge: str
    #: None where the judge failed, or gives a score alone.
    passed: bool | None
    score: float | None
    reason: str = ""
    error: str | None = None


class RunResult(msgspec.Struct, frozen=True):
    """How one run of an experiment ended: a line of its `results.jsonl`."""

    tier: str
    arm: str
    seed: int
    #: `completed`, `failed`, or `stopped`: by its budget, or because a server did not answer.
    status: str
    error: str | None
    #: Dollars; None where a model's price is not known.
    cost: float | None
    calls: int
    input_tokens: int
    output_tokens: int
    #: How long it was worked on.
    seconds: float
    metrics: dict[str, float]
    judgements: tuple[Judgement, ...]
    #: The run directory.
    run: str
    #: Identifies the history.
    digest: str
    #: Identifies the scenario, the content of its files included.
    scenario_digest: str = ""
    #: Replies that other runs had paid for: its cost would be higher without them.
    cached_calls: int = 0
    #: Makes this run again, and with it every number above.
    command: str = ""

    @property
    def id(self) -> str:
        """Name the run in its experiment: where it is in the tree of results."""
        return f"{self.tier}/{self.arm}/{self.seed}"

    @property
    def passed(self) -> bool | None:
        """Whether all judges passed it; None where one of them failed, none judged, or the run did not complete."""
        verdicts = [each.passed for each in self.judgements]
        if self.status != "completed" or not verdicts or None in verdicts:
            return None
        return all(verdicts)

    def read_figure(self, name: str) -> float | None:
        """Return a metric, whether it passed, or its cost; None where that is not known or it did not complete."""
        if self.status != "completed":
            return None
        if name == PASS_RATE:
            return None if self.passed is None else float(self.passed)
        return self.cost if name == COST else self.metrics.get(name)


def measure_arm(results: Sequence[RunResult], name: str) -> float | None:
    """Return the mean of a figure over the runs of an arm, or its cost of pass; None where it is not known."""
    values = [value for result in results if (value := result.read_figure(name)) is not None]
    if name != COST_OF_PASS:
        return fmean(values) if values else None
    cost, rate = measure_arm(results, COST), measure_arm(results, PASS_RATE)
    if cost is None or rate is None:
        return None
    return cost / rate if rate else inf


def read_results(path: Path) -> Iterator[RunResult]:
    """Read the whole lines of a file of results. What a kill or a full disk cut off is left out."""
    if path.exists():
        decoder = msgspec.json.Decoder(RunResult)
        for line in path.read_bytes().split(b"\n"):
            with suppress(msgspec.DecodeError):
                yield decoder.decode(line)
