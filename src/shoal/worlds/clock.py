"""Simulated time, and which agents act when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence, Set
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from shoal.seeds import derive, hashes, uniforms
from shoal.text import format_age
from shoal.types import Population

Hour = Annotated[int, Field(ge=0, le=23)]


class TimeSettings(BaseModel):
    """How simulated time passes, and how lively each hour of the day is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: datetime = Field(
        default=datetime(2026, 1, 1, 8, 0, tzinfo=UTC),
        description="Simulated time at which round 1 begins (UTC).",
    )
    minutes_per_round: int = Field(
        default=60, ge=1, le=10_080, description="Simulated minutes that one round stands for."
    )
    daily_rhythm: bool = Field(
        default=True, description="Whether the bands below scale activity; false: every hour alike."
    )
    peak_hours: tuple[Hour, ...] = Field(default=(19, 20, 21, 22), description="Hours with the most activity.")
    peak_factor: float = Field(default=1.5, ge=0, le=10, description="Activity is multiplied by this in peak hours.")
    off_peak_hours: tuple[Hour, ...] = Field(default=(0, 1, 2, 3, 4, 5), description="Hours with the least activity.")
    off_peak_factor: float = Field(
        default=0.05, ge=0, le=10, description="Activity is multiplied by this in off-peak hours."
    )
    morning_hours: tuple[Hour, ...] = Field(default=(6, 7, 8), description="Morning hours.")
    morning_factor: float = Field(
        default=0.4, ge=0, le=10, description="Activity is multiplied by this in the morning."
    )
    work_hours: tuple[Hour, ...] = Field(default=tuple(range(9, 19)), description="Working hours.")
    work_factor: float = Field(default=0.7, ge=0, le=10, description="Activity is multiplied by this in working hours.")
    agents_per_hour_min: int | None = Field(
        default=None, ge=0, description="At least this many act per hour, if enough are awake."
    )
    agents_per_hour_max: int | None = Field(default=None, ge=0, description="At most this many act per hour.")


class Clock:
    """Turns rounds into simulated time. Round 0 (initial events) and round 1 have the same time."""

    def __init__(self, settings: TimeSettings, skips: Iterable[tuple[int, int]] = ()) -> None:
        self.minutes_per_round = settings.minutes_per_round
        start = settings.start
        self._start = start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)
        #: Rounds before which time skips ahead, and the minutes skipped in all by then.
        ordered = sorted(skips)
        self._skips = [round for round, _ in ordered]
        self._skipped = [0, *accumulate(minutes for _, minutes in ordered)]
        self._stamps: dict[int, str] = {}

    def at(self, round: int) -> datetime:
        minutes = self.minutes_per_round * max(round - 1, 0) + self._sum_skips(round)
        return self._start + timedelta(minutes=minutes)

    def stamp(self, round: int) -> str:
        """Return the time in ISO 8601. Every event has it, so it is formatted once."""
        if round not in self._stamps:
            self._stamps[round] = self.at(round).isoformat()
        return self._stamps[round]

    def hour(self, round: int) -> int:
        return self.at(round).hour

    def format_age(self, round: int, rounds: int) -> str:
        """Return how long before a round something was that happened this many rounds earlier: `3 h ago`."""
        return format_age(int(60 * (self.hours_gone(round) - self.hours_gone(round - rounds)) + 0.5))

    def hours_gone(self, round: int) -> float:
        return (round * self.minutes_per_round + self._sum_skips(round)) / 60

    def _sum_skips(self, round: int) -> int:
        return self._skipped[bisect_right(self._skips, round)]


class ActivationSampler:
    """Draws which agents act in a round, from the hour of the day and each agent's activity and waking hours."""

    def __init__(self, settings: TimeSettings, clock: Clock, population: Population, seed: int, world: str) -> None:
        self._settings = settings
        self._clock = clock
        self._population = population
        self._seed = seed
        self._world = world
        self._agents = np.arange(len(population), dtype=np.int64)
        self._chances = population.activity

    def change(self, agents: Sequence[int], chance: float) -> None:
        """Set how active these agents are from now on."""
        self._chances = self._chances.copy()
        self._chances[list(agents)] = chance

    def draw(self, round: int, absent: Set[int] = frozenset()) -> NDArray[np.int64]:
        """Return the agents that act in this round, in order of their numbers, without the absent ones."""
        hour = self._clock.hour(round)
        is_awake = ((self._population.active_hours >> np.uint32(hour)) & np.uint32(1)) == 1
        if absent:
            is_awake[list(absent)] = False
        chance = self._chances * np.float32(self.factor(hour))
        draws = uniforms(derive(self._seed, self._world, round, "activation"), self._agents)
        is_drawn: NDArray[np.bool_] = (draws < chance) & is_awake
        drawn = self._agents[is_drawn]
        key = derive(self._seed, self._world, round, "quota")
        low = self._quota(round, self._settings.agents_per_hour_min)
        high = self._quota(round, self._settings.agents_per_hour_max)
        if high is not None and len(drawn) > high:
            return np.sort(_choose(drawn, high, key))
        if low is not None and len(drawn) < low:
            others = self._agents[is_awake & (self._chances > 0) & ~is_drawn]
            return np.sort(np.concatenate([drawn, _choose(others, low - len(drawn), key)]))
        return drawn

    def factor(self, hour: int) -> float:
        """Return how lively this hour is. Where bands overlap, the more special one counts."""
        settings = self._settings
        if not settings.daily_rhythm:
            return 1.0
        bands: Iterable[tuple[tuple[int, ...], float]] = (
            (settings.peak_hours, settings.peak_factor),
            (settings.off_peak_hours, settings.off_peak_factor),
            (settings.morning_hours, settings.morning_factor),
            (settings.work_hours, settings.work_factor),
        )
        return next((factor for hours, factor in bands if hour in hours), 1.0)

    def _quota(self, round: int, per_hour: int | None) -> int | None:
        """Return the round's part of an hourly number. What does not divide evenly is due in a later round."""
        if per_hour is None:
            return None
        per_round = per_hour * self._clock.minutes_per_round
        return round * per_round // 60 - (round - 1) * per_round // 60


def _choose(agents: NDArray[np.int64], count: int, key: int) -> NDArray[np.int64]:
    order = np.argsort(hashes(key, agents), kind="stable")
    return agents[order[:count]]
