"""How the terminal says things."""

from __future__ import annotations

import shlex
from pathlib import Path

from shoal.scenario.declared.population import size
from shoal.scenario.scenario import Scenario


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 round`, `48 rounds`, `1,000 people`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def of_scenario(scenario: Scenario) -> str:
    """A scenario in one line."""
    worlds = f"{counted(len(scenario.worlds), 'world')} ({', '.join(scenario.worlds)})"
    minutes = counted(scenario.time.minutes_per_round, "minute")
    people = counted(size(scenario.population), "person", "people")
    return f"{people}, {worlds}, {counted(scenario.rounds, 'round')} of {minutes}"


def quoted(path: Path | str) -> str:
    """A path as it can be pasted into a shell."""
    return shlex.quote(str(path))
