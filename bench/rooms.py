"""What a step in a room costs, late against early, and with many relations."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.bars import Bar, microseconds, probe

#: People in the room, and rounds; all hear all.
PEOPLE, ROUNDS = 100, 52
#: Relations of five hundred people.
RELATIONS = 2_000
#: A round of a hundred people takes milliseconds, so each is measured in several runs of which the median counts.
_TRIES = 9


def everyone_hears_everyone() -> dict[str, Any]:
    return {
        "topic": "the old bridge",
        "rounds": ROUNDS,
        "population": {"count": PEOPLE, "activity": 1.0},
        "worlds": {"room": {"hearing": "everyone"}},
        "events": [{"hear": "They say the old bridge will be closed for good.", "round": 1}],
    }


def room_ageing(folder: Path) -> list[Bar]:
    """Rounds around the 50th against rounds around the 5th, of 100 people who all hear one another."""
    runs = [probe(folder / f"run-{n}", everyone_hears_everyone()) for n in range(_TRIES)]
    ratio = _usual(runs, 47, 52) / _usual(runs, 3, 8)
    told = f"{min(microseconds(run, 3, 8) for run in runs):.0f} us per step at round 5; {PEOPLE} people, all hear all"
    return [Bar("room: round 50 against round 5", ratio, "x", 1.3, False, told)]


def room_relations(folder: Path) -> list[Bar]:
    """Four rounds of people with two thousand relations against people with none, each from the building on."""
    declared = [{"between": [n % 500, (n + 1 + n // 500) % 500], "relation": "kin"} for n in range(RELATIONS)]
    costs: dict[int, list[float]] = {0: [], RELATIONS: []}
    for attempt in range(_TRIES):
        for count, measured in costs.items():
            scenario = {
                **everyone_hears_everyone(),
                "rounds": 4,
                "population": {"count": 500, "activity": 1.0},
                "worlds": {"room": {"relations": declared[:count]}},
            }
            run = probe(folder / f"related-{count}-{attempt}", scenario)
            measured.append(sum(round["cpu"] / round["task"] for round in run["rounds"]))
    without, related = (statistics.median(measured) for measured in costs.values())
    told = "500 people, 4 rounds, CPU time, medians"
    return [Bar(f"room: {RELATIONS:,} relations against none", related / without, "x", 1.5, False, told)]


def _usual(runs: Sequence[dict[str, Any]], first: int, last: int) -> float:
    """What these rounds cost: of each round the median over the runs, in units of the task that was timed beside it."""
    costs = [[run["rounds"][r]["cpu"] / run["rounds"][r]["task"] for run in runs] for r in range(first, last + 1)]
    return float(sum(map(statistics.median, costs)))
