"""Metrics of ties between people: echo chambers, reciprocity, and how unequally people are followed."""

from __future__ import annotations

import numpy as np

from shoal.experiments.metrics.base import SHARE, SIGNED_SHARE, Measured, Metric
from shoal.experiments.metrics.formulas import measure_assortativity, measure_reciprocity
from shoal.experiments.metrics.record import PLATFORM, Ties, WorldRecord
from shoal.worlds import measure_inequality

#: Two people always correlate in full.
_FEWEST = 3
_NEEDS = "there are too few ties between people whose opinions are known and differ"


def find_echo_chamber(record: WorldRecord, round: int) -> Measured:
    """Σ (xᵢ - x̄ₛ)(yᵢ - ȳₜ) / (m sₛ sₜ) over the m cases in which one person took notice of another: the correlation of
    their opinions (assortativity, Newman 2003), -1 to 1. Taking notice is to like, comment, repost or quote; in rooms
    to speak to a person; in dialogues a line."""
    return _correlate(record, record.interactions, round)


def find_follow_assortativity(record: WorldRecord, round: int) -> Measured:
    """The same as `echo_chamber`, over follows in place of interactions. A person who was not followed any more at the
    end counts as never followed."""
    return _correlate(record, record.follows, round)


def _correlate(record: WorldRecord, ties: Ties, round: int) -> dict[str, float]:
    found: dict[str, float] = {}
    now = ties.until(round)
    if len(np.union1d(now.sources, now.targets)) < _FEWEST:
        return found
    for about in record.subjects:
        value = measure_assortativity(record.opinions(about, round), now.sources, now.targets)
        if value is not None:
            found[about] = value
    return found


def find_reciprocity(record: WorldRecord, round: int) -> Measured:
    """|{(i, j): i → j and j → i}| / |{(i, j): i → j}|: the share of ties that go both ways. Ties are
    follows on a platform, and remarks to a person elsewhere."""
    ties = record.follows if record.kind == PLATFORM else record.interactions
    now = ties.until(round)
    return measure_reciprocity(now.sources, now.targets)


def find_follower_inequality(record: WorldRecord, round: int) -> Measured:
    """Gini coefficient of how many follow each person: 0 where all are followed by as many, near 1 where all follow
    one."""
    followers = np.bincount(record.follows.until(round).targets, minlength=record.people)
    return measure_inequality(followers) if followers.any() else None


METRICS = (
    Metric("echo_chamber", find_echo_chamber, about="opinion", needs=_NEEDS, bounds=SIGNED_SHARE),
    Metric(
        "follow_assortativity",
        find_follow_assortativity,
        (PLATFORM,),
        about="opinion",
        needs=_NEEDS,
        bounds=SIGNED_SHARE,
    ),
    Metric("reciprocity", find_reciprocity, needs="there are no ties", bounds=SHARE),
    Metric("follower_inequality", find_follower_inequality, (PLATFORM,), needs="nobody follows anybody", bounds=SHARE),
)
