"""Showing a run while it runs: a live view on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.text import Text

from shoal.engine.metrics import Metrics
from shoal.engine.record import RoundRecord
from shoal.models.costs import Spending
from shoal.text import format_duration, format_kind, format_milliseconds
from shoal.worlds.clock import Clock

if TYPE_CHECKING:
    from shoal.runs.model_limits import RunLimits


#: The rate is that of the last seconds, sampled now and then; a shorter time says nothing yet.
_RATE_SECONDS = 8.0
_SAMPLE_SECONDS = 0.25
_FIRST_RATE_SECONDS = 0.4


@dataclass(slots=True)
class WorldCount:
    """How far one world is."""

    name: str
    rounds: int
    #: Rounds that were committed by an earlier worker; until then the run is catching up from its journal.
    known: int = 0
    round: int = 0
    acting: int = 0
    steps: int = 0
    actions: int = 0
    rejected: int = 0
    errors: int = 0
    timeouts: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    #: Decisions asked for outside; only then is it worth saying how long they take.
    calls: int = 0
    metrics: Metrics = field(default_factory=Metrics)
    ended: bool = False
    samples: deque[tuple[float, int, int]] = field(default_factory=deque)

    @property
    def catching_up(self) -> bool:
        return self.round < self.known

    @property
    def done(self) -> bool:
        return self.ended or self.round >= self.rounds

    @property
    def speedup(self) -> float | None:
        """Measured, of the rounds that this worker did itself."""
        return self.metrics.speedup or self.metrics.sequential_speedup

    def take_in(self, record: RoundRecord, now: float) -> None:
        tally = record.tally
        self.round = record.round
        self.acting = tally.acting
        self.steps += tally.acting
        self.actions += tally.actions
        self.rejected += tally.rejected
        self.errors += tally.errors
        self.timeouts += tally.timeouts
        self.kinds.update(tally.kinds)
        self.calls += tally.calls
        self.ended = record.last
        if record.step is not None and record.round > self.known:
            self.metrics.add_step(record.step, tally.errors, tally.timeouts)
        if record.round == self.known:
            self.samples.clear()
        if not self.samples or now - self.samples[-1][0] > _SAMPLE_SECONDS:
            self.samples.append((now, self.steps, self.round))
            while now - self.samples[0][0] > _RATE_SECONDS and len(self.samples) > 2:
                self.samples.popleft()

    def rates(self, now: float) -> tuple[float, float]:
        """Agent-steps and rounds per second, lately; zero while that is not known."""
        since, steps, rounds = self.samples[0] if self.samples else (now, 0, 0)
        seconds = now - since
        if seconds < _FIRST_RATE_SECONDS:
            return 0.0, 0.0
        return (self.steps - steps) / seconds, (self.round - rounds) / seconds

    def seconds_left(self, now: float) -> float | None:
        per_second = self.rates(now)[1]
        return (self.rounds - self.round) / per_second if per_second > 0 and not self.catching_up else None

    def top(self, count: int) -> list[tuple[str, int]]:
        """What is done most. The copy is made in one step, so that it may be asked for from another thread."""
        kinds = dict(self.kinds)
        return sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))[:count]


class Board:
    """All worlds of one run."""

    def __init__(
        self, rounds: int, known: Mapping[str, int], clock: Clock, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.worlds = {name: WorldCount(name, rounds, count) for name, count in known.items()}
        self.now = now
        self.began = now()
        self.stopping = False
        self._clock = clock
        self._spending: Spending | None = None
        self._limits: RunLimits | None = None

    def watch(self, record: RoundRecord) -> None:
        """A round was committed."""
        self.worlds[record.world].take_in(record, self.now())

    def watch_spending(self, spending: Spending) -> None:
        """From now on this is where the cost is counted."""
        self._spending = spending

    def watch_limits(self, limits: RunLimits) -> None:
        """The same for what limits them."""
        self._limits = limits

    def at_once(self) -> str:
        """How many calls are under way; nothing where none are made."""
        if self._limits is None:
            return ""
        waiting = f", {self._limits.waiting:,} waiting" if self._limits.waiting else ""
        return f"{self._limits.in_flight:,} in flight{waiting}"

    def strained(self) -> list[str]:
        """What is too much for the machine or the server, in words."""
        return [] if self._limits is None else [each.text for each in self._limits.alarms]

    def spent(self) -> str:
        """What language models took so far; nothing where none is asked."""
        if self._spending is None:
            return ""
        total = self._spending.total
        cost = "cost unknown" if total.cost is None else f"${total.cost:,.2f}"
        retries = f"  {self._spending.retries:,} retries" if self._spending.retries else ""
        return f"{total.calls:,} calls  {total.tokens:,} tokens  {cost}{retries}  {self.at_once()}".rstrip()

    def simulated(self, world: WorldCount) -> str:
        """Day and time in the world."""
        start, at = self._clock.at(0), self._clock.at(world.round)
        return f"day {_days(start, at) + 1}, {at:%H:%M}"


def _days(start: datetime, at: datetime) -> int:
    return (at.date() - start.date()).days


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

    def watch(self, record: RoundRecord) -> None:
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
def show_progress(progress: Progress) -> Iterator[Progress]:
    progress.open()
    try:
        yield progress
    finally:
        progress.close()


class Silent:
    """Says nothing."""

    def open(self) -> None: ...

    def watch(self, record: RoundRecord) -> None: ...

    def stopping(self) -> None: ...

    def close(self) -> None: ...


class LiveView:
    """All worlds at once, drawn by a thread of its own; what the run does is count."""

    def __init__(self, console: Console, board: Board, title: str) -> None:
        self.watch = board.watch
        self._board = board
        self._live = Live(
            ProgressView(board, title), console=console, refresh_per_second=FRAMES_PER_SECOND, transient=True
        )

    def open(self) -> None:
        self._live.start(refresh=True)

    def stopping(self) -> None:
        self._board.stopping = True

    def close(self) -> None:
        self._live.stop()


@dataclass(frozen=True, slots=True)
class ProgressView:
    """The board as it is when it is drawn."""

    board: Board
    title: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        now = self.board.now()
        head = Text.assemble(f"{format_duration(now - self.board.began)}  ", (self.title, "bold"))
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

    def watch(self, record: RoundRecord) -> None:
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
    return "" if left is None else f"{format_duration(left)} left"


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
    show_progress = (f"p{percent} {format_milliseconds(latencies.percentile(percent) * 1000)}" for percent in (50, 99))
    return f"  speedup {speedup:.1f}  {'  '.join(show_progress)}"


def _troubles(world: WorldCount) -> str:
    counts = {"rejected": world.rejected, "errors": world.errors, "timeouts": world.timeouts}
    return "".join(f"  {count:,} {name}" for name, count in counts.items() if count)


def _kinds(world: WorldCount) -> str:
    return "  ".join(f"{format_kind(kind)} {count:,}" for kind, count in world.top(_TOP_KINDS))
