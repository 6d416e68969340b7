"""What the settings of every kind of world have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

from pydantic import BaseModel, ConfigDict

#: Where something stands in the settings, such as `("pairs", 2, 0)`.
Path = tuple[str | int, ...]
#: A person by name or number.
Who = str | int


class WorldSettings(BaseModel):
    """The settings of one world. What a kind of world does not override holds for worlds of the user's own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str

    def mentions(self) -> Iterator[tuple[Path, Who]]:
        """Yield the people that the settings name, and where."""
        yield from ()

    def problems(self, number: Callable[[Who], Who]) -> Iterator[tuple[Path, str]]:
        """Yield what is wrong with the people that the settings name, and where; `number` turns names into numbers."""
        yield from ()

    def rounds_needed(self) -> int | None:
        """Return the rounds after which the world is over by itself, or None where it goes on for ever."""
        return None

    def without_early_end(self) -> Self:
        """Return the settings with which the world lasts as long as it can."""
        return self

    def least_turns(self, acting: int) -> int | None:
        """Return the turns that are taken at least if the world ends as early as it can, or None where it cannot.

        `acting` is the number of agents that act in the busiest of the first rounds.
        """
        return None
