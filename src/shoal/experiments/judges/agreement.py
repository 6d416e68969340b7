"""How far the votes of model judges agree, over all runs that they judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from shoal.experiments.results import Judgement


@dataclass(frozen=True, slots=True)
class VoteAgreement:
    """How far the votes of one judge agree on whether runs pass."""

    judge: str
    #: Runs with at least two votes.
    runs: int
    #: The share of pairs of votes on the same run that agree.
    share: float
    #: The same, less what chance alone gives: Fleiss' kappa. None where all votes are alike, so that chance gives all.
    kappa: float | None


def measure_agreement(judgements: Iterable[Judgement]) -> list[VoteAgreement]:
    """Measure the agreement of each judge that casts several votes."""
    by_judge: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        if len(judgement.votes) > 1:
            by_judge.setdefault(judgement.judge, []).append(judgement)
    found = []
    for judge, judged in by_judge.items():
        shares = [each.agreement for each in judged if each.agreement is not None]
        counts = [(each.votes_for, len(each.votes) - each.votes_for) for each in judged]
        found.append(VoteAgreement(judge, len(judged), fmean(shares), measure_fleiss_kappa(counts)))
    return found


def measure_fleiss_kappa(counts: Sequence[tuple[int, int]]) -> float | None:
    """Return (P̄ - Pₑ) / (1 - Pₑ), from how many votes each run has for and against.

    P̄ is the mean share of pairs of votes on a run that agree, and Pₑ what it would be if votes were drawn from all
    (Fleiss 1971). Runs may have different numbers of votes, at least two each. None where all votes are alike.
    """
    agreeing = [sum(each * (each - 1) for each in row) / (sum(row) * (sum(row) - 1)) for row in counts]
    total = sum(map(sum, counts))
    by_chance = sum((sum(column) / total) ** 2 for column in zip(*counts, strict=True))
    return None if by_chance >= 1 - 1e-12 else (fmean(agreeing) - by_chance) / (1 - by_chance)
