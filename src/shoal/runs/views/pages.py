"""Pages of a long list, and rows of a database by the round in which they were written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from shoal.errors import ArgumentInvalid
from shoal.runs.directory import RunDirectory

T = TypeVar("T")


@dataclass(frozen=True)
class ViewPage(Generic[T]):
    """Some items of a list."""

    items: list[T]
    #: How many there are in all, where that is known without counting them one by one.
    total: int | None
    #: Gives the next page; None where this is the last one.
    next: str | None


def parse_cursor(text: str | None, name: str = "before") -> int | None:
    """Return the number that a page ended with; ArgumentInvalid where it is none of ours."""
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise ArgumentInvalid(name, "this is nothing that a page ended with")
    return int(text)


def check_world(run: RunDirectory, world: str) -> None:
    """Raise ArgumentInvalid where a run has no such world."""
    if world not in run.worlds:
        raise ArgumentInvalid("world", f"there is no world {world!r}; there is {', '.join(run.worlds)}")


def make_placeholders(values: int) -> str:
    """Return the placeholders for this many values of a query."""
    return ",".join("?" * values)
