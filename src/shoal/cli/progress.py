"""Showing a run while it runs: a live view on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.text import Text

from shoal.cli.board import Board, WorldCount, duration
from shoal.engine.record import Record

FRAMES_PER_SECOND = 8
#: A plain line comes after a tenth of the rounds, but not more often than this, and at least this often.
LINE_SECONDS = 2.0
LONG_SECONDS = 60.0
LINES = 10
BAR_WIDTH = 24
_TOP_KINDS = 6

STOPPING = "stopping after what is under way; once more to end at once"


class Progress(Protocol):
    """Shows a run while it runs."""

    def open(self) -> None: ...

    def watch(self, record: Record) -> None:
        """A round was committed. Must cost next to nothing."""
        ...

    def stopping(self) -> None:
        """The run was asked to stop."""
        ...

    def close(self) -> None: ...


def progress_on(console: Console, board: Board, title: str, quiet: bool) -> Progress:
    """What suits the console: `Live` for a person who watches, lines for a log."""
    if quiet:
        return Silent()
    watched = console.file.isatty() and not console.is_dumb_terminal
    return LiveView(console, board, title) if watched else PlainLines(console.file.write, board, title)


@contextmanager
def shown(progress: Progress) -> Iterator[Progress]:
    progress.open()
    try:
        yield progress
    finally:
        progress.close()


class Silent:
    """Says nothing."""

    def open(self) -> None: ...

    def watch(self, record: Record) -> None: ...

    def stopping(self) -> None: ...

    def close(self) -> None: ...


class LiveView:
    """All worlds at once, drawn by a thread of its own; what the run does is count."""

    def __init__(self, console: Console, board: Board, title: str) -> None:
        self.watch = board.watch
        self._board = board
        self._live = Live(View(board, title), console=console, refresh_per_second=FRAMES_PER_SECOND, transient=True)

    def open(self) -> None:
        self._live.start(refresh=True)

    def stopping(self) -> None:
        self._board.stopping = True

    def close(self) -> None:
        self._live.stop()


@dataclass(frozen=True, slots=True)
class View:
    """The board as it is when it is drawn."""

    board: Board
    title: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        now = self.board.now()
        head = Text.assemble(f"{duration(now - self.board.began)}  ", (self.title, "bold"))
        parts = [Text(STOPPING, "yellow") if self.board.stopping else head]
        name_width = max(map(len, self.board.worlds))
        for world in self.board.worlds.values():
            parts += self._world(world, now, name_width)
        if spent := self.board.spent():
            parts.append(Text(spent, "dim"))
        parts += [Text(text, "yellow") for text in self.board.strained()]
        for part in parts:
            part.no_wrap, part.overflow = True, "ellipsis"
        # Room at the right for the ^C that a terminal echoes: it must not start a new line.
        yield Constrain(Group(*parts), options.max_width - 4)

    def _world(self, world: WorldCount, now: float, name_width: int) -> list[Text]:
        indent = " " * (name_width + 2)
        first = Text.assemble((world.name.ljust(name_width + 2), "cyan"), _bar(world), "  ")
        first.append(f"round {world.round}/{world.rounds}", "bold")
        first.append("".join(f"  {part}" for part in (self.board.simulated(world), _time_left(world, now)) if part))
        second = Text.assemble(indent, (_pace(world, now), "dim"), (_troubles(world), "yellow"))
        return [first, second, Text(indent + _kinds(world), "dim")]


def _bar(world: WorldCount) -> Text:
    filled = BAR_WIDTH * world.round // max(world.rounds, 1)
    return Text.assemble(("━" * filled, "green"), ("─" * (BAR_WIDTH - filled), "dim"))


class PlainLines:
    """A line now and then, for logs and pipes."""

    def __init__(self, write: Callable[[str], object], board: Board, title: str) -> None:
        self._write = write
        self._board = board
        self._title = title
        self._last = dict.fromkeys(board.worlds, (board.began, 0))

    def open(self) -> None:
        self._write(f"{self._title}\n")

    def watch(self, record: Record) -> None:
        self._board.watch(record)
        world = self._board.worlds[record.world]
        now = self._board.now()
        if self._is_due(world, now):
            self._last[world.name] = (now, world.round)
            self._write(f"{self._line(world, now)}\n")

    def stopping(self) -> None:
        self._write(f"{STOPPING}\n")

    def close(self) -> None: ...

    def _is_due(self, world: WorldCount, now: float) -> bool:
        since, round = self._last[world.name]
        far = world.round - round >= world.rounds / LINES
        return world.done or (far and now - since >= LINE_SECONDS) or now - since >= LONG_SECONDS

    def _line(self, world: WorldCount, now: float) -> str:
        parts = [f"{world.name}: round {world.round}/{world.rounds}", self._board.simulated(world), _pace(world, now)]
        parts += [_time_left(world, now), _troubles(world).strip(), self._board.spent()]
        return "  ".join(part for part in parts if part)


def _time_left(world: WorldCount, now: float) -> str:
    if world.done:
        return "done"
    left = world.seconds_left(now)
    return "" if left is None else f"{duration(left)} left"


def _pace(world: WorldCount, now: float) -> str:
    if world.catching_up:
        return f"catching up from the journal to round {world.known}"
    if not world.steps:
        return "the first decisions are being made"
    rate = world.rates(now)[0]
    pace = f"  {rate:,.0f} agent-steps/s" if rate and not world.done else ""
    return f"{world.acting:,} acting  {world.actions:,} actions{pace}{_waiting(world)}"


def _waiting(world: WorldCount) -> str:
    """How long decisions take, and what making them side by side gains; nothing where they are made at once."""
    latencies, speedup = world.metrics.latencies, world.speedup
    if not world.calls or speedup is None:
        return ""
    shown = (f"p{percent} {milliseconds(latencies.percentile(percent) * 1000)}" for percent in (50, 99))
    return f"  speedup {speedup:.1f}  {'  '.join(shown)}"


def milliseconds(ms: float) -> str:
    """Read at a glance: 0.04 ms, 105 ms, 2.3 s."""
    if ms >= 1000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"


def _troubles(world: WorldCount) -> str:
    counts = {"rejected": world.rejected, "errors": world.errors, "timeouts": world.timeouts}
    return "".join(f"  {count:,} {name}" for name, count in counts.items() if count)


def _kinds(world: WorldCount) -> str:
    return "  ".join(f"{kind_in_words(kind)} {count:,}" for kind, count in world.top(_TOP_KINDS))


def kind_in_words(kind: str) -> str:
    """`LIKE_POST` as people say it."""
    return kind.lower().replace("_", " ")
