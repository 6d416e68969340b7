"""A line that shows how far a run is, where a person is watching: on a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from shoal.engine.record import Record
from shoal.runs.worker import Watch


@contextmanager
def progress(title: str, rounds: int, known: Mapping[str, int], quiet: bool = False) -> Iterator[Watch]:
    """Gives what is to be told of every round. `known`: worlds, and the rounds they have behind them already."""
    console = Console(stderr=True)
    if quiet or not _is_watched(console):
        yield _say_nothing
        return
    with _line(console) as line:
        bars = {world: line.add_task(_name(title, world, known), total=rounds, note="") for world in known}
        yield lambda record: _advance(line, bars[record.world], record)


def _is_watched(console: Console) -> bool:
    """A notebook can only show a moving line with the help of ipywidgets."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return console.is_terminal and not console.is_dumb_terminal


def _line(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("round"),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("[yellow]{task.fields[note]}"),
        console=console,
        transient=True,
    )


def _name(title: str, world: str, known: Mapping[str, int]) -> str:
    return escape(title if len(known) == 1 else f"{title}: {world}")


def _advance(line: Progress, bar: TaskID, record: Record) -> None:
    failed = record.tally.errors + record.tally.timeouts
    line.update(bar, completed=record.round, note=f"{failed} failed in round {record.round}" if failed else "")


def _say_nothing(record: Record) -> None:
    """Nobody is watching."""
