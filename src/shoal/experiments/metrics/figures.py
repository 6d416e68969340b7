"""Metrics that worlds record for each round, and when a claim had spread."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter

from shoal.experiments.metrics.base import COUNT, SHARE, Measured, Metric
from shoal.experiments.metrics.record import PLATFORM, WorldRecord

#: The share of all people, or of the people who are reached in the end, by which spreading is timed.
_HALF = 0.5


def read_figure(record: WorldRecord, name: str, round: int) -> dict[str, float]:
    """Read a figure as the run recorded it: its last value up to a round, by what it is about."""
    found = {}
    for (known, about), rows in record.figures.items():
        if known == name and (end := bisect_right(rows, round, key=itemgetter(0))):
            found[about] = rows[end - 1][1]
    return found


def read_activity(record: WorldRecord, round: int) -> Measured:
    """a / n: actions in the round, but for doing nothing, over the number of people, as the run recorded it."""
    return read_figure(record, "activity", round)


def read_inequality(record: WorldRecord, round: int) -> Measured:
    """Gini coefficient of what posts received (likes, shares and comments) on a platform, and of actions by person in
    other worlds, as the run recorded it: 0 where all have the same, near 1 where one has everything."""
    return read_figure(record, "inequality", round)


def read_reach(record: WorldRecord, round: int) -> Measured:
    """r / n: the share of people that a claim has reached, in what they saw or heard, as the run recorded it."""
    return read_figure(record, "reach", round)


def read_unread(record: WorldRecord, round: int) -> Measured:
    """How many texts a platform could not read, in another language than English or sarcastic, as it recorded it."""
    return read_figure(record, "unread", round)


def define_figure(name: str, suggestion: str = "") -> Metric:
    """Return the metric of a figure that a run records beside the usual ones, such as a variable of the user's own.

    `suggestion` follows where the run does not record it.
    """

    def measure(record: WorldRecord, round: int) -> Measured:
        """As the run recorded it."""
        return read_figure(record, name, round)

    return Metric(name, measure, needs=f"the run records no figure {name!r}{suggestion}")


def time_reach(record: WorldRecord, round: int) -> Measured:
    """min {t: reach(t) ≥ 1/2}: the first round after which a claim had reached half of the people. None while it has
    not."""
    return _find_first(record, round, lambda last: _HALF)


def time_half_life(record: WorldRecord, round: int) -> Measured:
    """min {t: reach(t) ≥ reach(T) / 2}: the first round after which a claim had reached half of those it
    reached up to the round T."""
    return _find_first(record, round, lambda last: last * _HALF)


def _find_first(record: WorldRecord, round: int, threshold: Callable[[float], float]) -> dict[str, float]:
    found = {}
    for about, last in read_figure(record, "reach", round).items():
        level = threshold(last)
        first = next((at for at, value in record.figures["reach", about] if value >= level and last > 0), None)
        if first is not None and first <= round:
            found[about] = float(first)
    return found


_NEEDS_CLAIMS = "the scenario has no claims"

METRICS = (
    Metric("reach", read_reach, about="claim", needs=_NEEDS_CLAIMS, bounds=SHARE),
    Metric(
        "time_to_reach",
        time_reach,
        about="claim",
        has_series=False,
        needs="no claim reached half of the people",
        bounds=COUNT,
    ),
    Metric(
        "half_life", time_half_life, about="claim", has_series=False, needs="no claim reached anybody", bounds=COUNT
    ),
    Metric("activity", read_activity, needs="no figures are recorded", bounds=COUNT),
    Metric("inequality", read_inequality, needs="no figures are recorded", bounds=SHARE),
    Metric("unread", read_unread, (PLATFORM,), needs="no figures are recorded", bounds=COUNT),
)
