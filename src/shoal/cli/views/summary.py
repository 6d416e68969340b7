"""A run's summary on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import ceil
from typing import Any

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from shoal.cli.views.progress import duration, kind_in_words, milliseconds
from shoal.runs.reports.conversations import Conversations, RatedPair, Remark, RoomTalk
from shoal.runs.reports.summary import (
    ActionCount,
    ActivePerson,
    Camp,
    Intervened,
    MeasuredFigures,
    Summary,
    Talk,
    TopPost,
    WorldSummary,
)
from shoal.runs.state import Status
from shoal.text import format_count, quote_path

#: Room for the labels at the left.
LABEL_WIDTH = 16


def label_parts() -> Table:
    """A table whose first column says what the rest is."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", min_width=LABEL_WIDTH - 1, no_wrap=True)
    table.add_column()
    return table


def row(label: str, text: str) -> Table:
    table = label_parts()
    table.add_row(label, Text(text))
    return table


def room_parts(talk: RoomTalk) -> Iterator[RenderableType]:
    """Who talked, to whom, what came of it, and the last words."""
    if talk.talkers:
        yield row("talked most", ", ".join(f"{who.name} {who.remarks}" for who in talk.talkers))
    table = label_parts()
    if talk.addresses:
        pairs = ", ".join(f"{pair.speaker} to {pair.target} {pair.remarks}" for pair in talk.addresses)
        table.add_row("to one another", Text(pairs))
    if talk.relations:
        bonds = ", ".join(f"{bond.first} and {bond.second}: {bond.relation}" for bond in talk.bonds)
        more = f" and {talk.relations - len(talk.bonds)} more" if talk.relations > len(talk.bonds) else ""
        table.add_row("relations formed", Text(bonds + more))
    if talk.attention:
        table.add_row("turned to", Text(", ".join(f"{each.content} {each.people}" for each in talk.attention)))
    if table.row_count:
        yield table
    if talk.last:
        yield _remarks("last remarks", talk.last)


def conversation_parts(talks: Conversations) -> Iterator[RenderableType]:
    """How they went, and those that went best and worst."""
    table = label_parts()
    finished = f"{talks.finished:,} of {format_count(talks.pairs, 'conversation')} finished"
    turns = "" if talks.mean_turns is None else f", {talks.mean_turns:.1f} turns to a scene"
    table.add_row("conversations", f"{finished}{turns}")
    if talks.endings:
        endings = ", ".join(
            f"{_REASONS.get(ending.reason, ending.reason)} {ending.scenes:,}" for ending in talks.endings
        )
        table.add_row("scenes ended", Text(endings))
    if talks.mean_score is not None:
        table.add_row("mean score", f"{talks.mean_score:.1f} of 10")
    if talks.mean_agreement is not None:
        table.add_row("mean agreement", f"{talks.mean_agreement:.0%}")
    yield table
    for title, pairs in (("rated best", talks.highest), ("rated worst", talks.lowest)):
        for pair in pairs:
            yield _rated(title, pair)


#: Why a scene ended, as people say it.
_REASONS = {
    "turns": "all turns taken",
    "said": "a closing word",
    "agreement": "they agreed",
    "silence": "nobody spoke",
    "left": "somebody left",
}


def _rated(title: str, pair: RatedPair) -> Table:
    agreed = "" if pair.agreement is None else f", agreement {pair.agreement:.0%}"
    table = label_parts()
    table.add_row(title, Text.assemble((f"{pair.first} and {pair.second}", "bold"), f"  {pair.score:.1f}{agreed}"))
    for remark in pair.last:
        table.add_row("", remark_in_words(remark))
    return table


def _remarks(label: str, remarks: Sequence[Remark]) -> Table:
    table = label_parts()
    for n, remark in enumerate(remarks):
        table.add_row("" if n else label, remark_in_words(remark))
    return table


def remark_in_words(remark: Remark) -> Text:
    to = f" to {remark.target}" if remark.target else ""
    return Text.assemble((f"{remark.speaker}{to}", "bold"), f": {' '.join(remark.text.split())}")


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
    facts = [format_count(summary.people, "person", "people"), _rounds(summary)]
    facts.append(f"seed {summary.seed}")
    if summary.topic:
        facts.append(f"topic: {summary.topic}")
    head.append(f"\n{', '.join(facts)}")
    if summary.status is Status.FAILED:
        head.append(f"\n{summary.error or 'its worker was killed'}", "red")
    return head


def _rounds(summary: Summary) -> str:
    over = summary.status is Status.COMPLETED
    done = (max if over else min)((world.round for world in summary.worlds), default=0)
    ended = ", when it came to its end" if over and done < summary.rounds else ""
    return f"{done} of {format_count(summary.rounds, 'round')}{ended}"


def _world(summary: Summary, world: WorldSummary, width: int) -> Iterator[RenderableType]:
    yield Text()
    yield Rule(Text(world.name, "bold cyan"), align="left", style="dim")
    if not world.actions:
        yield Text("nothing has happened here yet", "dim")
        return
    yield _curves(summary, world, width)
    yield Text()
    yield _kinds(world.kinds)
    for part in _particulars(world):
        yield Text()
        yield part


def _particulars(world: WorldSummary) -> Iterator[RenderableType]:
    if world.interventions:
        yield _interventions(world.interventions)
    if world.active:
        yield _active(world.active)
    if world.talk and world.talk.camps:
        yield _camps(world.talk.camps)
    if world.top_posts:
        yield _top_posts(world.top_posts)
    if world.room:
        yield from room_parts(world.room)
    if world.conversations:
        yield from conversation_parts(world.conversations)


def _interventions(happened: Sequence[Intervened]) -> Table:
    table = label_parts()
    for n, each in enumerate(happened):
        rounds = ", ".join(map(str, each.rounds))
        when = f"in round{'s' if len(each.rounds) > 1 else ''} {rounds}"
        table.add_row("" if n else "interventions", Text.assemble(f"{each.name}  ", (when, "dim")))
    return table


def _curves(summary: Summary, world: WorldSummary, width: int) -> Table:
    """What went on, round by round."""
    room = max(min(width - _LABEL_WIDTH - _WORDS_WIDTH - 4, 60), 10)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row(
        Text("actions", "dim"),
        Text(sparkline(world.actions_by_round, room), "cyan"),
        f"{world.actions:,}, most at {_moment(summary.start, world.busiest_at or summary.start)}",
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
        f"{reached:,} of {format_count(summary.people, 'person', 'people')}",
    )


def sparkline(values: Sequence[float], room: int) -> str:
    """One character for each value, or for the mean of several where there is no room."""
    if len(values) > room:
        edges = [len(values) * n // room for n in range(room + 1)]
        values = [sum(values[low:high]) / (high - low) for low, high in pairwise(edges)]
    top = max(values, default=0) or 1
    return "".join(_BARS[ceil(value * (len(_BARS) - 1) / top)] for value in values)


def _moment(began: str, stamp: str) -> str:
    start, at = datetime.fromisoformat(began), datetime.fromisoformat(stamp)
    return f"day {(at.date() - start.date()).days + 1}, {at:%H:%M}"


def _kinds(kinds: Sequence[ActionCount]) -> Table:
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
    return row("most active", ", ".join(f"{person.name} {person.actions}" for person in people))


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
    rejected = sum(world.rejected for world in summary.worlds)
    facts = [f"{rejected:,} rejected", format_count(summary.errors, "error"), format_count(summary.timeouts, "timeout")]
    if summary.calls:
        facts.append(format_count(summary.calls, "call"))
    if summary.spending is not None:
        yield Text(f"\n{_spent(summary.spending)}", "dim")
    if summary.prefixes is not None and summary.prefixes["characters"]:
        yield Text(_repeated(summary.prefixes), "dim")
    yield Text()
    if summary.measured is None:
        yield Text(", ".join(facts), "dim")
    else:
        work = f"{_seconds(summary.measured.wall_seconds)} of work"
        pace = f"{summary.measured.steps_per_second:,.0f} agent-steps per second"
        yield Text(f"{', '.join(facts)}; {work}, {pace}\n{_steps(summary.measured, asked=summary.calls > 0)}", "dim")
    yield Text()
    yield Text(summary.run, "bold")
    yield from _next_steps(summary)


def _spent(spending: Mapping[str, Any]) -> str:
    """What language models took: `1,204 calls, 2.1 million tokens sent (61 % from a prefix cache) ...`."""
    sent, received = spending["input"], spending["output"]
    cached = f" ({spending['cached'] / sent:.0%} from the server's prefix cache)" if sent and spending["cached"] else ""
    cost = "unknown, for a model has no known price" if spending["cost"] is None else f"${spending['cost']:,.4g}"
    parts = [
        f"{format_count(spending['calls'], 'model call')}",
        f"{sent:,} tokens sent{cached}",
        f"{received:,} received",
    ]
    parts += [f"{spending[name]:,} {words}" for name, words in _ALSO_SPENT.items() if spending[name]]
    troubles = ", ".join(f"{kind.replace('_', ' ')} {count:,}" for kind, count in spending["failures"].items())
    return f"{', '.join(parts)}; cost {cost}" + (f"\nattempts that failed: {troubles}" if troubles else "")


def _repeated(prefixes: Mapping[str, Any]) -> str:
    """What a server with a prefix cache could save, whether or not this one has one."""
    shares = f"{prefixes['any_share']:.0%} of what is in the prompts repeats the beginning of an earlier one"
    return f"{shares}, {prefixes['own_share']:.0%} that of the same agent's last"


_ALSO_SPENT = {"cache_hits": "answered by the cache", "retries": "retries", "refused": "refused", "cut_off": "cut off"}


def _steps(measured: MeasuredFigures, asked: bool) -> str:
    """How the steps went: `24 parallel steps, measured speedup 7.8; a decision took 101 ms (p50), ...`.

    Where nobody outside was asked there was nothing to speed up.
    """
    modes = {
        "parallel": (measured.parallel_steps, measured.speedup),
        "sequential": (measured.sequential_steps, measured.sequential_speedup),
    }
    parts = [
        format_count(steps, f"{mode} step") + (f", measured speedup {speedup:.2f}" if asked and speedup else "")
        for mode, (steps, speedup) in modes.items()
        if steps
    ]
    if measured.decisions:
        times = ", ".join(f"{milliseconds(measured.latency_ms[name])} ({name})" for name in ("p50", "p90", "p99"))
        parts.append(f"a decision took {times}")
    return "; ".join(parts)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 60 else duration(seconds)


def _next_steps(summary: Summary) -> Iterator[Text]:
    run = quote_path(summary.run)
    if summary.status in (Status.STOPPED, Status.FAILED, Status.IDLE):
        yield Text(f"  shoal resume {run}")
    yield Text(f"  shoal show {run}")
    yield Text(f"  shoal replay {run}")
    half = min(world.round for world in summary.worlds) // 2
    yield Text(f"  shoal fork {run} --at {half} --set {_worth_trying(summary)}")
    query = "select action, count(*) from trace group by 1"
    yield Text(f'  shoal query {quote_path(summary.run)} "{query}"')


def _worth_trying(summary: Summary) -> str:
    """Something to change in a fork that is possible in this run."""
    world = summary.worlds[0]
    if world.kind in ("twitter", "reddit"):
        return f"worlds.{world.name}.feed.echo_chamber=0.9"
    return "mind.persuasion=0.5" if summary.mind == "heuristic" else f"rounds={summary.rounds + 10}"
