"""What comes of the runs of an experiment: how each one ended, what was measured, and how it was judged."""

from __future__ import annotations

import msgspec


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
