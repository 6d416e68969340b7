"""Finds how many calls a server works on at once when it queues or slows down instead of refusing.

With free capacity an answer takes the same time whatever is in flight. In a full server it takes longer in proportion:
twice the calls, twice the time, the same throughput. So the logarithm of the time is flat over that of the number in
flight up to the capacity, and has a slope of one beyond it. The capacity is where that bend fits best.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log
from typing import NamedTuple

from shoal.slots.adaptive.attempts import Attempt

#: Levels are grouped by this factor.
STEP = log(1.25)
#: Bends are tried at this many levels for each of these groups.
FINER = 4
#: How much better a bend must explain the times than no bend: as chi-squared.
SURE = 12.0
#: The same for a capacity that is known, as the calls beyond it that showed it are no longer sent.
STILL_SURE = 4.0
#: Times that grow with this power of the number in flight, and no bend: more calls bring hardly more answers. Where the
#: power is lower and explains more than a bend, they do.
PROPORTIONAL = 0.8
#: How much worse than the best bend another one may be; the last of these is taken, as too few in flight cost more.
LIKELY = 2.0
#: How much worse than the best bend another one is that can be ruled out.
RULED_OUT = 12.0
#: About this many answers count in a group; older ones count less and less.
MEMORY = 400.0
#: Times differ at least this much, for reasons of their own.
LEAST_VARIANCE = 0.01
#: Answers that the memory of an earlier run counts for, on each side of the bend, and how much their times differ.
RECALLED, VARIANCE = 30.0, 0.36
#: Answers until the first fit, the share of them after which the next follows, and the most.
FIRST_FIT, NEXT_FIT, LAST_FIT = 6, 0.1, 40.0
#: How much less older answers count with each fit, and the proof by overtaking with each answer that could renew it.
FADE = 0.01


@dataclass(slots=True)
class _Group:
    """Answers to calls that began with about as many in flight: how many, and the logarithms of their times."""

    #: The logarithm of the number in flight.
    level: float
    count: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def add(self, count: float, time: float, variance: float = 0.0) -> None:
        self.count += count
        self.total += count * time
        self.squares += count * (time * time + variance)

    def fade(self, share: float) -> None:
        self.count *= 1 - share
        self.total *= 1 - share
        self.squares *= 1 - share

    @property
    def mean(self) -> float:
        return self.total / self.count


class Fit(NamedTuple):
    """The capacity that explains the times of answers best."""

    #: Infinity: more never took longer. And how long an answer takes below it.
    capacity: float
    service_seconds: float | None
    #: What the capacity is at least.
    at_least: float
    #: What is left unexplained of the times, as a variance.
    unexplained: float


class LoadCurve:
    """The times of answers by the number of calls that were in flight, for one way to count these."""

    def __init__(self) -> None:
        self._groups: dict[int, _Group] = {}
        self._is_known = False

    def add(self, level: int, seconds: float) -> None:
        group = self._group(log(level))
        if group.count >= MEMORY:
            group.fade(1 / MEMORY)
        group.add(1.0, log(max(seconds, 1e-6)))

    def remember(self, capacity: float, seconds: float) -> Fit:
        """Add answers as an earlier run may have had them, and fit."""
        for factor in (1, 2):
            self._group(log(factor * capacity)).add(RECALLED, log(factor * seconds), VARIANCE)
        return self._fit(self._groups)

    def fit(self, ages: Iterable[tuple[int, float]]) -> Fit:
        """Fit a capacity to the answers, and to the calls in flight, the oldest first, by level and age in seconds."""
        for each in self._groups.values():
            each.fade(FADE)
        groups = {step: replace(group) for step, group in self._groups.items()}
        shortest = min(group.mean for group in groups.values())
        for level, seconds in ages:
            # The first answers of a crowd are the fast ones: a call that is out for longer will be a slow one.
            age = log(max(seconds, 1e-6))
            if age < shortest:
                break
            step = round(log(level) / STEP)
            group = groups.get(step)
            if group is not None and age > self._groups[step].mean:
                group.add(1.0, age)
        return self._fit(groups)

    def _group(self, level: float) -> _Group:
        step = round(level / STEP)
        return self._groups.setdefault(step, _Group(step * STEP))

    def _fit(self, grouped: Mapping[int, _Group]) -> Fit:
        groups = sorted(grouped.values(), key=lambda group: group.level)
        answers = sum(group.count for group in groups)
        within = sum(group.squares - group.count * group.mean**2 for group in groups)
        variance = max(within / max(answers - len(groups), 1.0), LEAST_VARIANCE)
        bends = list(_fit_bends(groups, answers))
        least = min(bend.misfit for bend in bends)
        likely = [bend for bend in bends if bend.misfit < least + LIKELY * variance][-1]
        is_bent = bends[-1].misfit > least + (STILL_SURE if self._is_known else SURE) * variance
        slope, misfit = _fit_line(groups, answers)
        self._is_known = is_bent and (slope > PROPORTIONAL or least < misfit)
        return Fit(
            exp(likely.level) if self._is_known else inf,
            exp(likely.flat) if self._is_known else None,
            exp(next(bend.level for bend in bends if bend.misfit < least + RULED_OUT * variance)),
            (within + least) / answers,
        )


class Saturation:
    """The capacity of a server, as far as times show it.

    What a call waits for depends on the server. In a line it waits for the calls before it: what counts is how many
    were in flight when it began. Where calls share the machine, as in a server that works on them in batches, it waits
    for those that were sent together with it, too: what counts is how many were in flight at the next answer.
    """

    def __init__(self) -> None:
        #: The capacity; infinity: more never took longer.
        self.capacity = inf
        #: How long an answer takes below the capacity, if there is one.
        self.service_seconds: float | None = None
        #: What the capacity is at least.
        self.at_least = 1.0
        self._in_line = LoadCurve()
        self._shared = LoadCurve()
        self._overtaking = 1.0
        self._answers = 0
        self._fit_at = float(FIRST_FIT)

    def add_answer(self, level: int, crowd: int, beside: int, seconds: float) -> None:
        """Count an answer: how many were in flight, how many of these are left with it, and how long it took."""
        if level > self._overtaking:
            # In a queue a call is answered when fewer of those before it are left than there are workers.
            self._overtaking = max(beside, self._overtaking * (1 - FADE), 1.0)
        self._in_line.add(level, seconds)
        self._shared.add(crowd, seconds)
        self._answers += 1
        self.at_least = max(self.at_least, self._overtaking)

    @property
    def is_due(self) -> bool:
        """Whether enough answers came since the last fit."""
        return self._answers >= self._fit_at

    def fit(self, in_flight: Collection[Attempt], now: float) -> None:
        """Find the capacity from the answers so far and from the calls that are not answered yet."""
        usual = min(max(NEXT_FIT * self._answers, 1.0), LAST_FIT)
        self._fit_at = self._answers + max(usual, NEXT_FIT * len(in_flight) - LAST_FIT / 4)
        in_line = self._in_line.fit((each.level, now - each.at) for each in in_flight)
        shared = self._shared.fit((each.crowd, now - each.at) for each in in_flight)
        self._use(shared if shared.unexplained < in_line.unexplained and shared.capacity < inf else in_line)
        self.at_least = max(self.at_least, self._overtaking)

    def remember(self, capacity: float, seconds: float) -> None:
        """Begin with what an earlier run found, as if some answers had shown it."""
        self._shared.remember(capacity, seconds)
        self._use(self._in_line.remember(capacity, seconds))

    def _use(self, fit: Fit) -> None:
        self.capacity, self.service_seconds, self.at_least = fit.capacity, fit.service_seconds, fit.at_least


def _fit_line(groups: Sequence[_Group], answers: float) -> tuple[float, float]:
    """Fit a straight line; return its slope and its squared errors."""
    level = sum(group.count * group.level for group in groups) / answers
    time = sum(group.count * group.mean for group in groups) / answers
    squares = sum(group.count * (group.level - level) ** 2 for group in groups)
    slope = sum(group.count * (group.level - level) * (group.mean - time) for group in groups) / max(squares, 1e-9)
    misfit = sum(group.count * (group.mean - time) ** 2 for group in groups) - slope**2 * squares
    return slope, misfit


class _Bend(NamedTuple):
    """A capacity that may be: its logarithm, that of the time below it, and the squared errors of the two lines."""

    level: float
    flat: float
    misfit: float


def _fit_bends(groups: Sequence[_Group], answers: float) -> Iterator[_Bend]:
    """Fit a bend at each level up to that of the last group. Sums move from one side to the other, group by group."""
    below = below_squares = 0.0
    # Beyond the bend, what is left of a time is its distance from the line that rises from level 0, and the bend.
    beyond = sum(group.count for group in groups)
    rests = sum(group.count * (group.mean - group.level) for group in groups)
    rests_squares = sum(group.count * (group.mean - group.level) ** 2 for group in groups)
    left = deque(groups)
    for step in range(FINER * round(groups[-1].level / STEP) + 1):
        bend = step * STEP / FINER
        while left and left[0].level <= bend + STEP / FINER / 2:
            group = left.popleft()
            rest = group.mean - group.level
            below += group.count * group.mean
            below_squares += group.count * group.mean**2
            beyond -= group.count
            rests -= group.count * rest
            rests_squares -= group.count * rest**2
        flat = (below + rests + beyond * bend) / answers
        squares = below_squares + rests_squares + 2 * bend * rests + bend**2 * beyond
        yield _Bend(bend, flat, squares - answers * flat**2)
