"""What is seen of a run while it runs."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from shoal.cli.views.progress import PlainLines, ProgressView
from shoal.cli.views.summary import draw_sparkline
from shoal.engine.engine import TurnCount
from shoal.engine.metrics import Latencies, Step
from shoal.engine.record import RoundRecord, Tally
from shoal.engine.seats import DecidedBy, Seats, SeatTerms
from shoal.runs.progress import RunProgress
from shoal.text import format_duration, format_milliseconds
from shoal.types import Observation
from shoal.worlds.clock import Clock, TimeSettings
from tests.cli.terminal import COMMAND, environment, shoal


def record(round: int, world: str = "twitter") -> RoundRecord:
    tally = Tally(acting=10, actions=12, kinds=Counter(LIKE_POST=12), rejected=1)
    return RoundRecord(world, round, b"", {}, "", float(round), tally)


class Lines:
    """Progress on a clock that is set by hand, and what was written about it."""

    def __init__(self, rounds: int, known: int = 0) -> None:
        self.time = 0.0
        self.written: list[str] = []
        self.progress = RunProgress(rounds, {"twitter": known}, Clock(TimeSettings()), now=lambda: self.time)
        self.plain = PlainLines(self.written.append, self.progress, "running")

    def pass_rounds(self, first: int, last: int, seconds_each: float) -> None:
        for round in range(first, last + 1):
            self.time += seconds_each
            self.progress.add_round(record(round))


def test_a_fast_run_writes_one_line_for_each_world() -> None:
    lines = Lines(rounds=100)
    lines.pass_rounds(1, 100, seconds_each=0.001)
    assert len(lines.written) == 1
    assert lines.written[0].startswith("twitter: round 100/100  day 5, 11:00  10 acting  1,200 actions  done")


def test_a_longer_run_writes_a_line_for_each_tenth() -> None:
    lines = Lines(rounds=100)
    lines.pass_rounds(1, 100, seconds_each=0.5)
    assert len(lines.written) == 10
    assert "20 agent-steps/s  0:45 left" in lines.written[0]


def test_a_very_long_run_writes_a_line_a_minute() -> None:
    lines = Lines(rounds=10_000)
    lines.pass_rounds(1, 30, seconds_each=20)
    assert len(lines.written) == 10


def test_a_run_that_catches_up_says_so_and_promises_nothing() -> None:
    lines = Lines(rounds=100, known=50)
    lines.pass_rounds(1, 20, seconds_each=0.5)
    assert "catching up from the journal to round 50" in lines.written[0]
    assert "left" not in lines.written[0]


def test_the_time_left_is_that_of_the_rounds_after_catching_up() -> None:
    lines = Lines(rounds=100, known=50)
    lines.pass_rounds(1, 50, seconds_each=0.001)
    lines.pass_rounds(51, 61, seconds_each=2)
    assert "round 61/100" in lines.written[-1]
    assert "1:18 left" in lines.written[-1]


def test_latencies_are_shown_where_calls_were_made() -> None:
    lines = Lines(rounds=1)
    latencies = Latencies()
    for _ in range(8):
        latencies.add(0.1)
    timed = replace(record(1), step=Step("parallel", 0.102, 0.8, latencies))
    lines.progress.add_round(timed)
    assert "speedup" not in lines.written[-1]
    lines.progress.add_round(replace(timed, tally=Tally(acting=8, actions=8, calls=8)))
    assert "speedup 7.8  p50 100 ms  p99 100 ms" in lines.written[-1]


def test_rounds_that_are_only_repeated_are_not_measured() -> None:
    lines = Lines(rounds=3, known=2)
    asked = Tally(acting=8, actions=8, calls=8)
    for round, seconds in ((1, 0.001), (2, 0.001), (3, 0.1)):
        latencies = Latencies()
        latencies.add(seconds)
        lines.progress.add_round(replace(record(round), tally=asked, step=Step("sequential", 0.2, seconds, latencies)))
    assert "speedup 0.5  p50 100 ms" in lines.written[-1]


def test_the_bar_moves_within_a_round() -> None:
    lines, drawn = Lines(rounds=4), []
    console = Console(file=io.StringIO(), width=100)
    for decided in (0, 5, 9):
        lines.progress.follow_turns("twitter", partial(TurnCount, 1, 10, decided))
        with console.capture() as capture:
            console.print(ProgressView(lines.progress, "running"))
        drawn.append(capture.get())
    assert [each.count("━") * 2 + each.count("╸") for each in drawn] == [0, 6, 10]
    assert "5 of 10 decided" in drawn[1]


async def test_it_says_for_whom_the_others_wait() -> None:
    lines, seats = Lines(rounds=4), Seats()
    lines.progress.seats, seats.is_attended = seats, True
    seen = Observation(world="twitter", round=2, agent=0, name="Ada", time="")
    asking = asyncio.create_task(seats.ask(seen, SeatTerms(600.0, DecidedBy.MIND)))
    await asyncio.sleep(0)
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as capture:
        console.print(ProgressView(lines.progress, "running"))
    assert "waiting for the person in Ada's seat until" in capture.get()
    asking.cancel()


def test_a_world_that_came_to_its_end_is_done() -> None:
    lines = Lines(rounds=100)
    lines.progress.add_round(replace(record(4), last=True))
    assert lines.written[-1].endswith("round 4/100  day 1, 11:00  10 acting  12 actions  done  1 rejected\n")


@pytest.mark.parametrize(("ms", "words"), [(0.0412, "0.041 ms"), (12.4, "12 ms"), (999, "999 ms"), (2345, "2.3 s")])
def test_a_time_has_few_digits(ms: float, words: str) -> None:
    assert format_milliseconds(ms) == words


def test_a_duration_is_read_at_a_glance() -> None:
    assert [format_duration(seconds) for seconds in (0.4, 75, 11_100)] == ["0:00", "1:15", "3:05:00"]


def test_a_sparkline_fits_its_room_and_shows_that_little_is_not_nothing() -> None:
    assert draw_sparkline([0, 1, 50, 100], 10) == " ▁▄█"
    assert len(draw_sparkline(range(1000), 40)) == 40


@pytest.mark.parametrize("command", [["run", "slow.yaml"], ["run", "slow.yaml", "--json"], ["list"]])
def test_without_a_terminal_there_are_no_control_characters(folder: Path, command: list[str]) -> None:
    result = shoal(*command, cwd=folder, FORCE_COLOR="", TERM="xterm-256color")
    assert result.returncode == 0
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", result.stdout + result.stderr)


def run_in_terminal(*args: str, cwd: Path, watch: Callable[[str], None] | None = None, **env: str) -> str:
    """Run the command in a terminal and return all that it receives; `watch` gets the text so far each time."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *args], cwd=cwd, env=environment(TERM="xterm-256color", COLUMNS="100", **env),
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    received = bytearray()
    try:
        while part := os.read(ours, 65536):
            received += part
            if watch is not None:
                watch(received.decode(errors="replace"))
    except OSError:
        pass  # this is how Linux says that the other end was closed
    finally:
        os.close(ours)
    assert process.wait() == 0
    return received.decode()


def test_on_a_terminal_all_worlds_are_drawn_live(gated: Path) -> None:
    def read(seen: str) -> tuple[str, bool]:
        """The text of what was drawn, and whether both worlds were drawn in the middle of their rounds."""
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)
        twitter = re.search(r"twitter  ━+╸?─+  round \d+/15  day 1, \d\d:\d\d", text)
        reddit = re.search(r"reddit   ━*╸?─+  round \d+/15", text)
        return text, twitter is not None and reddit is not None

    def open_gate(seen: str) -> None:
        if read(seen)[1]:
            (gated / "go").touch()

    seen = run_in_terminal("run", "gated.yaml", "--set", "rounds=15", cwd=gated, watch=open_gate)
    text, was_live = read(seen)
    assert was_live
    assert " decided" in text
    assert "small-1  completed" in text
    hidden, shown = seen.rfind("\x1b[?25l"), seen.rfind("\x1b[?25h")
    assert 0 <= hidden < shown, "the cursor is there again at the end"


def test_no_color_is_honoured(folder: Path) -> None:
    seen = run_in_terminal("run", "small.yaml", cwd=folder, NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", seen)
