"""What comes of the runs of an experiment: how each one ended, what was measured, and how it was judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from statistics import fmean

import msgspec

from shoal.experiments.metrics import find_value
from shoal.runs import storage_errors

#: What arms are compared by, beside the metrics of their runs.
PASS_RATE, COST_OF_PASS, COST = "pass_rate", "cost_of_pass", "cost"
FIGURES = (PASS_RATE, COST_OF_PASS, COST)


class Judgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one judge says of one run. A judge that failed says nothing, and why.

    What judging took is counted here, apart from what the run took.
    """

    judge: str
    #: None where the judge failed, or gives a score alone.
    passed: bool | None
    score: float | None
    reason: str = ""
    #: Why the judge could not say anything.
    error: str | None = None
    #: Whether a judge that failed is asked again the next time, as its server did not answer or its budget was reached.
    is_pending: bool = False
    #: The scores of a model's votes, how many of them pass the run, and the share of pairs of them that agree on that.
    votes: tuple[float, ...] = ()
    votes_for: int = 0
    agreement: float | None = None
    #: Dollars that the answers took, whenever they were given; None where a price is not known.
    cost: float | None = 0.0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def count_votes(self) -> tuple[int, int]:
        """Count the votes that pass the run, and those that do not."""
        return self.votes_for, len(self.votes) - self.votes_for

    @property
    def is_verdict(self) -> bool:
        """Whether it says, or should say, if the run passes. A score alone says nothing about that."""
        return self.passed is not None or self.error is not None


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
    #: Metrics without a value -> why they have none.
    unmeasured: dict[str, str] = {}
    #: Identifies the metrics and judges by which it was judged.
    judging: str = ""

    @property
    def id(self) -> str:
        """Name the run in its experiment: where it is in the tree of results."""
        return f"{self.tier}/{self.arm}/{self.seed}"

    @property
    def passed(self) -> bool | None:
        """Whether all judges passed it: True, False, or None where that is not known, so that it counts neither way.

        It is False as soon as one judge says no. A run that failed has not passed: every judge says no to it. It is
        None where a judge failed and none says no, where nothing judges, and for a run that was stopped, which goes on.
        """
        verdicts = [each.passed for each in self.judgements if each.is_verdict]
        if False in verdicts:
            return False
        return None if not verdicts or None in verdicts else True

    @property
    def judging_cost(self) -> float | None:
        """Dollars that judging took, which are not in `cost`; None where a price is not known."""
        costs = [each.cost for each in self.judgements]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def read_figure(self, name: str) -> float | None:
        """Return a metric, whether it passed, or its cost; None where that is not known.

        Only a run that completed has metrics and a cost to compare. One that failed has not passed all the same.
        """
        if name == PASS_RATE:
            return None if self.passed is None else float(self.passed)
        if self.status != "completed":
            return None
        if name == COST or name in self.metrics:
            return self.cost if name == COST else self.metrics[name]
        found = find_value(self.metrics, name)
        return None if isinstance(found, str) else found


def measure_arm(results: Sequence[RunResult], name: str) -> float | None:
    """Return the mean of a figure over the runs of an arm, or its cost of pass; None where it is not known."""
    values = [value for result in results if (value := result.read_figure(name)) is not None]
    if name != COST_OF_PASS:
        return fmean(values) if values else None
    counted = list_counted(results)
    costs = [result.cost for result in counted if result.cost is not None]
    if not counted or len(costs) < len(counted):
        return None
    passes = sum(result.passed is True for result in counted)
    return sum(costs) / passes if passes else inf


def list_counted(results: Iterable[RunResult]) -> list[RunResult]:
    """Return the runs of which it is known whether they passed: those that pass rate and cost of pass are made of.

    A run that failed is among them, with its cost: it was paid for, and did not pass.
    """
    return [result for result in results if result.passed is not None]


def write_results(path: Path, results: Iterable[RunResult]) -> None:
    """Replace a file of results."""
    beside = path.with_name(f".{path.name}")
    with storage_errors(path):
        beside.write_bytes(b"".join(msgspec.json.encode(result) + b"\n" for result in results))
        beside.replace(path)


def read_results(path: Path) -> Iterator[RunResult]:
    """Read the whole lines of a file of results. What a kill or a full disk cut off is left out."""
    if path.exists():
        decoder = msgspec.json.Decoder(RunResult)
        for line in path.read_bytes().split(b"\n"):
            with suppress(msgspec.DecodeError):
                yield decoder.decode(line)
