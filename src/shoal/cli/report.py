"""A run's summary on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from shoal.cli.board import duration
from shoal.cli.exits import leave_broken_pipe
from shoal.cli.progress import kind_in_words
from shoal.cli.words import counted, quoted
from shoal.runs.state import Status
from shoal.runs.summary import ActivePerson, Camp, Kind, Summary, Talk, TopPost, WorldSummary

STYLES: Mapping[str, str] = {
    Status.COMPLETED: "green",
    Status.RUNNING: "cyan",
    Status.STOPPED: "yellow",
    Status.FAILED: "red",
}
_BARS = " ▁▂▃▄▅▆▇█"
_KINDS = 8
_BAR_WIDTH = 24
#: Room for the labels before a sparkline, and for the words after it.
_LABEL_WIDTH = 16
_WORDS_WIDTH = 34


class Output(Console):
    """Standard output, as it is: nothing is coloured for looking like a number or a path."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def on_broken_pipe(self) -> None:
        leave_broken_pipe()


def print_summary(console: Console, summary: Summary) -> None:
    """Everything, from the general to the particular, then what to do next."""
    console.print(_head(summary))
    for world in summary.worlds:
        for part in _world(summary, world, console.width):
            console.print(part)
    for part in _foot(summary):
        console.print(part, soft_wrap=True)


def _head(summary: Summary) -> Text:
    head = Text.assemble((summary.name, "bold"), "  ", (summary.status, STYLES.get(summary.status, "")))
    if summary.parent:
        head.append(f"  fork of {summary.parent}", "dim")
    done = min((world.round for world in summary.worlds), default=0)
    facts = [counted(summary.people, "person", "people"), f"{done} of {counted(summary.rounds, 'round')}"]
    facts.append(f"seed {summary.seed}")
    if summary.topic:
        facts.append(f"topic: {summary.topic}")
    head.append(f"\n{', '.join(facts)}")
    if summary.status is Status.FAILED:
        head.append(f"\n{summary.error or 'its worker was killed'}", "red")
    return head


def _world(summary: Summary, world: WorldSummary, width: int) -> Iterator[RenderableType]:
    yield Text()
    yield Rule(Text(world.name, "bold cyan"), align="left", style="dim")
    if not world.actions:
        yield Text("nothing has happened here yet", "dim")
        return
    yield _curves(summary, world, width)
    yield Text()
    yield _kinds(world.kinds)
    if world.active:
        yield Text()
        yield _active(world.active)
    if world.talk and world.talk.camps:
        yield Text()
        yield _camps(world.talk.camps)
    if world.top_posts:
        yield Text()
        yield _top_posts(world.top_posts)


def _curves(summary: Summary, world: WorldSummary, width: int) -> Table:
    """What went on, round by round."""
    room = max(min(width - _LABEL_WIDTH - _WORDS_WIDTH - 4, 60), 10)
    table = Table.grid(padding=(0, 2, 0, 0))
    busiest = max(range(len(world.actions_by_round)), key=world.actions_by_round.__getitem__)
    table.add_row(
        Text("actions", "dim"),
        Text(sparkline(world.actions_by_round, room), "cyan"),
        f"{world.actions:,}, most at {_moment(summary, busiest)}",
    )
    if world.talk:
        _add_talk(table, summary, world.talk, room)
    return table


def _add_talk(table: Table, summary: Summary, talk: Talk, room: int) -> None:
    table.add_row(
        Text("posts on topic", "dim"),
        Text(sparkline(talk.posts_by_round, room), "magenta"),
        f"{sum(talk.posts_by_round):,}",
    )
    reached = talk.people_by_round[-1]
    table.add_row(
        Text("people drawn in", "dim"),
        Text(sparkline(talk.people_by_round, room), "magenta"),
        f"{reached:,} of {counted(summary.people, 'person', 'people')}",
    )


def sparkline(values: Sequence[float], room: int) -> str:
    """One character for each value, or for the mean of several where there is no room."""
    if len(values) > room:
        edges = [len(values) * n // room for n in range(room + 1)]
        values = [sum(values[low:high]) / (high - low) for low, high in pairwise(edges)]
    top = max(values, default=0) or 1
    return "".join(_BARS[ceil(value * (len(_BARS) - 1) / top)] for value in values)


def _moment(summary: Summary, round: int) -> str:
    start = datetime.fromisoformat(summary.start)
    at = start + timedelta(minutes=summary.minutes_per_round * max(round - 1, 0))
    return f"day {(at.date() - start.date()).days + 1}, {at:%H:%M}"


def _kinds(kinds: Sequence[Kind]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", min_width=_LABEL_WIDTH - 1)
    table.add_column(justify="right")
    shown, rest = kinds[:_KINDS], kinds[_KINDS:]
    top = max((kind.count for kind in shown), default=1)
    for kind in shown:
        table.add_row(kind_in_words(kind.name), f"{kind.count:,}", Text(_bar(kind.count, top), "cyan"))
    if rest:
        table.add_row(f"{len(rest)} other kinds", f"{sum(kind.count for kind in rest):,}", "")
    return table


def _active(people: Sequence[ActivePerson]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    named = ", ".join(f"{person.name} {person.actions}" for person in people)
    table.add_row(Text("most active".ljust(_LABEL_WIDTH - 1), "dim"), Text(named))
    return table


def _bar(count: int, top: int) -> str:
    return "█" * max(round(_BAR_WIDTH * count / top), 1)


def _camps(camps: Sequence[Camp]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title in ("opinion at start", "people", "posts on topic", "likes within own camp"):
        table.add_column(title, justify="left" if title == "opinion at start" else "right")
    for camp in camps:
        within = f"{camp.likes_within / camp.likes:.0%}" if camp.likes else "-"
        table.add_row(camp.name, f"{camp.people:,}", f"{camp.posts:,}", within)
    return table


def _top_posts(posts: Sequence[TopPost]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0), expand=True)
    for title in ("likes", "shares", "comments"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("post", ratio=1, no_wrap=True, overflow="ellipsis")
    for post in posts:
        text = Text.assemble(
            (post.author, "bold"), f": {' '.join(post.text.split())}", no_wrap=True, overflow="ellipsis"
        )
        table.add_row(f"{post.likes:,}", f"{post.shares:,}", f"{post.comments:,}", text)
    return table


def _foot(summary: Summary) -> Iterator[RenderableType]:
    measured = summary.measured
    rejected = sum(world.rejected for world in summary.worlds)
    facts = [f"{rejected:,} rejected", counted(summary.errors, "error"), counted(summary.timeouts, "timeout")]
    if summary.calls:
        facts.append(counted(summary.calls, "call"))
    yield Text()
    yield Text(
        f"{', '.join(facts)}; {_seconds(measured.wall_seconds)} of work, "
        f"{measured.steps_per_second:,.0f} agent-steps per second",
        "dim",
    )
    yield Text()
    yield Text(summary.run, "bold")
    yield from _next_steps(summary)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 60 else duration(seconds)


def _next_steps(summary: Summary) -> Iterator[Text]:
    run = quoted(summary.run)
    world = summary.worlds[0].name
    if summary.status in (Status.STOPPED, Status.FAILED, Status.IDLE):
        yield Text(f"  shoal resume {run}")
    yield Text(f"  shoal show {run}")
    yield Text(f"  shoal replay {run}")
    half = min(world.round for world in summary.worlds) // 2
    yield Text(f"  shoal fork {run} --at {half} --set worlds.{world}.feed.echo_chamber=0.9")
    query = "select action, count(*) from trace group by 1"
    yield Text(f'  shoal query {quoted(summary.run)} "{query}"')
