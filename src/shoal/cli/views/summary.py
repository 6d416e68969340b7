"""Prints a run's summary on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import ceil

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from shoal.cli.views.output import LABEL_WIDTH, Output, label_table, make_table
from shoal.runs import Status
from shoal.runs.reports import Outcome, Summary, Verdict, WorldSummary
from shoal.text import format_count, format_duration, format_kind, format_milliseconds, quote_path
from shoal.worlds import Remark, kind_named
from shoal.worlds.dialogue import Conversations
from shoal.worlds.room import RoomTalk

STYLES: Mapping[str, str] = {
    Status.COMPLETED: "green",
    Status.RUNNING: "cyan",
    Status.PAUSED: "yellow",
    Status.STOPPED: "yellow",
    Status.FAILED: "red",
}
_VERDICT_STYLES = {Verdict.GOOD: "green", Verdict.DOUBTFUL: "yellow", Verdict.BAD: "red"}
_BARS = " ▁▂▃▄▅▆▇█"
_BAR_WIDTH = 24
#: Columns for the words after a sparkline.
_WORDS_WIDTH = 34
_MAX_KINDS = 8
#: Why a scene ended -> how the summary says it.
_REASONS = {
    "turns": "all turns taken",
    "said": "a closing word",
    "agreement": "they agreed",
    "silence": "nobody spoke",
    "left": "somebody left",
}
_LIMITS = {
    "max_cost": "${:,.4g}",
    "max_tokens": "{:,} tokens",
    "max_calls": "{:,} calls",
    "parallel": "{:,} agents at once over all runs with --parallel",
    "max_workers": "{:,} decisions at once",
    "shards": "{:,} processes for its agents",
}
_ALSO_SPENT = {
    "cache_hits": "answered by the cache",
    "retries": "retries",
    "refused": "refused",
    "cut_off": "cut off",
    "estimated": "with tokens estimated",
}


def print_summary(console: Output, summary: Summary) -> None:
    """Print the whole run, then each world, then what it took and what to do next."""
    head = Text.assemble((summary.name, "bold"), "  ", (summary.status, STYLES.get(summary.status, "")))
    if summary.parent:
        head.append(f"  fork of {summary.parent}", "dim")
    over = summary.status is Status.COMPLETED
    done = (max if over else min)((world.round for world in summary.worlds), default=0)
    ended = ", when it came to its end" if over and done < summary.rounds else ""
    rounds = f"{done} of {format_count(summary.rounds, 'round')}{ended}"
    topic = f", topic: {summary.topic}" if summary.topic else ""
    head.append(f"\n{format_count(summary.people, 'person', 'people')}, {rounds}, seed {summary.seed}{topic}")
    if summary.status is Status.FAILED:
        head.append(f"\n{summary.error or 'its worker was killed'}", "red")
    elif summary.status is Status.STOPPED and summary.error:
        head.append(f"\n{summary.error}", "yellow")
    elif summary.status is Status.PAUSED and summary.waiting:
        wait = summary.waiting
        head.append(f"\nwaiting since {wait.since[11:19]}, until {wait.until[11:19]} UTC: {wait.reason}", "yellow")
    console.print(head)
    if (variety := summary.variety) is not None:
        varied = f"diversity {variety.diversity:.2f}, {variety.repetition:.0%} say what was said before"
        console.print(f"texts {variety.texts:,}: {varied}")
    quality = summary.quality
    console.print(Text.assemble("quality ", (quality.verdict, _VERDICT_STYLES[quality.verdict])))
    if quality.reasons:
        reasons = Table.grid(padding=(0, 1, 0, 0))
        for reason in quality.reasons:
            reasons.add_row("  -", Text(str(reason)))
        console.print(reasons)
    for world in summary.worlds:
        console.print(Text())
        console.print(Rule(Text(world.name, "bold cyan"), align="left", style="dim"))
        if not world.actions:
            console.print(Text("nothing has happened here yet", "dim"))
            continue
        console.print(_draw_curves(summary, world, console.width))
        for part in _describe_world(world):
            console.print(Text())
            console.print(part)
    for line in _describe_costs(summary):
        console.print_text(line)
    console.print(Text("\n").join(_suggest_commands(summary)), soft_wrap=True)


def _describe_costs(summary: Summary) -> Iterator[str | Text]:
    """Describe where the run is copied to, and what it took."""
    for name, sink in summary.sinks.items():
        yield f"sink {name}: {sink.status}" + (f", {sink.error}" if sink.error else "")
    facts = [f"{sum(world.rejected for world in summary.worlds):,} rejected"]
    facts += [format_count(summary.errors, "error"), format_count(summary.timeouts, "timeout")]
    if summary.calls:
        facts.append(format_count(summary.calls, "call"))
    line = ", ".join(facts)
    if measured := summary.measured:
        steps = []
        for mode, count, speedup in (
            ("parallel", measured.parallel_steps, measured.speedup),
            ("sequential", measured.sequential_steps, measured.sequential_speedup),
        ):
            # Without outside calls there is nothing to speed up.
            faster = f", measured speedup {speedup:.2f}" if summary.calls and speedup else ""
            steps += [format_count(count, f"{mode} step") + faster] if count else []
        if measured.decisions:
            times = (f"{format_milliseconds(measured.latency_ms[name])} ({name})" for name in ("p50", "p90", "p99"))
            steps.append(f"a decision took {', '.join(times)}")
        seconds = measured.wall_seconds
        work = f"{seconds:.2f} s" if seconds < 60 else format_duration(seconds)
        pace = f"{measured.steps_per_second:,.0f} agent-steps per second"
        line = f"{line}; {work} of work, {pace}\n{'; '.join(steps)}"
    yield from _describe_spending(summary)
    if summary.limits:
        # Such as `limited to $2, 500 calls, 8 agents at once over all runs with --parallel`.
        limits = ", ".join(_LIMITS[name].format(value) for name, value in summary.limits.items())
        yield Text(f"\nlimited to {limits}", "dim")
    yield Text(f"\n{line}\n", "dim")


def _describe_world(world: WorldSummary) -> Iterator[RenderableType]:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", min_width=LABEL_WIDTH)
    table.add_column(justify="right")
    shown, rest = world.kinds[:_MAX_KINDS], world.kinds[_MAX_KINDS:]
    top = max((kind.count for kind in shown), default=1)
    for kind in shown:
        bar = "█" * max(round(_BAR_WIDTH * kind.count / top), 1)
        table.add_row(format_kind(kind.name), f"{kind.count:,}", Text(bar, "cyan"))
    if rest:
        table.add_row(f"{len(rest)} other kinds", f"{sum(kind.count for kind in rest):,}", "")
    yield table
    if world.interventions:
        table = label_table()
        for n, each in enumerate(world.interventions):
            when = f"in round{'s' if len(each.rounds) > 1 else ''} {', '.join(map(str, each.rounds))}"
            table.add_row("" if n else "interventions", Text.assemble(f"{each.name}  ", (when, "dim")))
        yield table
    if world.active:
        people = ", ".join(f"{person.name} {person.actions}" for person in world.active)
        yield label_table([("most active", Text(people))])
    if any(outcome.about for outcome in world.outcomes):
        yield draw_outcomes([world.outcomes])
    yield from _describe_posts(world)
    if world.room:
        yield from _describe_room(world.room)
    if world.conversations:
        yield from _describe_conversations(world.conversations)


#: Figures of opinions, in the order in which they are shown.
_FIGURES = ("mean", "spread", "polarisation", "reach")


def draw_outcomes(runs: Sequence[Sequence[Outcome]]) -> Table:
    """Draw how opinions on the topic and beliefs in claims changed: of one run from start to end, or of two runs."""
    found = [{(outcome.about, outcome.name): outcome for outcome in outcomes} for outcomes in runs]
    subjects = dict.fromkeys(about for outcomes in found for about, _ in outcomes if about)
    names = [name for name in _FIGURES if any((about, name) in found[0] for about in subjects)]
    table = make_table("opinion on" if len(runs) == 1 else "opinion on, at the end", *names, right=tuple(names))
    for about in subjects:
        cells = []
        for name in names:
            known = [outcome for each in found if (outcome := each.get((about, name))) is not None]
            if len(runs) == 1:
                ends = [f"{value:.2f}" for outcome in known for value in (outcome.first, outcome.last)]
                cells.append(" -> ".join(ends) or "-")
            else:
                cells.append(" | ".join(f"{outcome.last:.2f}" for outcome in known) or "-")
        table.add_row(about, *cells)
    return table


def _draw_curves(summary: Summary, world: WorldSummary, width: int) -> Table:
    """Draw sparklines of the rounds."""
    room = max(min(width - LABEL_WIDTH - _WORDS_WIDTH - 5, 60), 10)
    start = datetime.fromisoformat(summary.start)
    busiest = datetime.fromisoformat(world.busiest_at or summary.start)
    most_at = f"day {(busiest.date() - start.date()).days + 1}, {busiest:%H:%M}"
    rows = [("actions", "cyan", world.actions_by_round, f"{world.actions:,}, most at {most_at}")]
    if talk := world.talk:
        reached = f"{talk.people_by_round[-1]:,} of {format_count(summary.people, 'person', 'people')}"
        rows.append(("posts on topic", "magenta", talk.posts_by_round, f"{sum(talk.posts_by_round):,}"))
        rows.append(("people drawn in", "magenta", talk.people_by_round, reached))
    table = Table.grid(padding=(0, 2, 0, 0))
    for label, style, values, words in rows:
        table.add_row(Text(label, "dim"), Text(draw_sparkline(values, room), style), words)
    return table


def draw_sparkline(values: Sequence[float], room: int) -> str:
    """Draw one character for each value, or for the mean of several where there is no room."""
    if len(values) > room:
        edges = [len(values) * n // room for n in range(room + 1)]
        values = [sum(values[low:high]) / (high - low) for low, high in pairwise(edges)]
    top = max(values, default=0) or 1
    return "".join(_BARS[ceil(value * (len(_BARS) - 1) / top)] for value in values)


def _describe_posts(world: WorldSummary) -> Iterator[Table]:
    if world.talk and world.talk.camps:
        figures = ("people", "posts on topic", "likes within own camp")
        table = make_table("opinion at start", *figures, right=figures)
        for camp in world.talk.camps:
            within = f"{camp.likes_within / camp.likes:.0%}" if camp.likes else "-"
            table.add_row(camp.name, f"{camp.people:,}", f"{camp.posts:,}", within)
        yield table
    if world.top_posts:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0), expand=True)
        for title in ("likes", "shares", "comments"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("post", ratio=1, no_wrap=True, overflow="ellipsis")
        for post in world.top_posts:
            text = Text.assemble((post.author, "bold"), f": {' '.join(post.text.split())}")
            text.no_wrap, text.overflow = True, "ellipsis"
            table.add_row(f"{post.likes:,}", f"{post.shares:,}", f"{post.comments:,}", text)
        yield table


def _describe_room(talk: RoomTalk) -> Iterator[RenderableType]:
    if talk.talkers:
        yield label_table([("talked most", Text(", ".join(f"{who.name} {who.remarks}" for who in talk.talkers)))])
    table = label_table()
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
        labels = ("last remarks", *[""] * (len(talk.last) - 1))
        yield label_table((label, _quote_remark(remark)) for label, remark in zip(labels, talk.last, strict=True))


def _describe_conversations(talks: Conversations) -> Iterator[RenderableType]:
    table = label_table()
    finished = f"{talks.finished:,} of {format_count(talks.pairs, 'conversation')} finished"
    turns = "" if talks.mean_turns is None else f", {talks.mean_turns:.1f} turns to a scene"
    table.add_row("conversations", f"{finished}{turns}")
    if talks.endings:
        endings = (f"{_REASONS.get(ending.reason, ending.reason)} {ending.scenes:,}" for ending in talks.endings)
        table.add_row("scenes ended", Text(", ".join(endings)))
    if talks.mean_score is not None:
        table.add_row("mean score", f"{talks.mean_score:.1f} of 10")
    if talks.mean_agreement is not None:
        table.add_row("mean agreement", f"{talks.mean_agreement:.0%}")
    yield table
    for title, pairs in (("rated best", talks.highest), ("rated worst", talks.lowest)):
        for pair in pairs:
            agreed = "" if pair.agreement is None else f", agreement {pair.agreement:.0%}"
            head = Text.assemble((f"{pair.first} and {pair.second}", "bold"), f"  {pair.score:.1f}{agreed}")
            yield label_table([(title, head), *(("", _quote_remark(remark)) for remark in pair.last)])


def _quote_remark(remark: Remark) -> Text:
    to = f" to {remark.target}" if remark.target else ""
    return Text.assemble((f"{remark.speaker}{to}", "bold"), f": {' '.join(remark.text.split())}")


def _describe_spending(summary: Summary) -> Iterator[Text]:
    """Yield `1,204 model calls, 2,100,000 tokens sent (61% from the server's prefix cache), ...; cost $1.2`."""
    if (spending := summary.spending) is not None:
        sent, received, share = spending["input"], spending["output"], ""
        if sent and spending["cached"]:
            share = f" ({spending['cached'] / sent:.0%} from the server's prefix cache)"
        parts = [
            format_count(spending["calls"], "model call"),
            f"{sent:,} tokens sent{share}",
            f"{received:,} received",
        ]
        parts += [f"{spending[name]:,} {words}" for name, words in _ALSO_SPENT.items() if spending.get(name)]
        cost = "unknown, for a model has no known price" if spending["cost"] is None else f"${spending['cost']:,.4g}"
        failures = ", ".join(f"{kind.replace('_', ' ')} {count:,}" for kind, count in spending["failures"].items())
        troubles = f"\nattempts that failed: {failures}" if failures else ""
        yield Text(f"\n{', '.join(parts)}; cost {cost}{troubles}", "dim")
    prefixes = summary.prefixes
    if prefixes is not None and prefixes["characters"]:
        yield Text(
            f"{prefixes['any_share']:.0%} of what is in the prompts repeats the beginning of an earlier one, "
            f"{prefixes['own_share']:.0%} that of the same agent's last",
            "dim",
        )


def _suggest_commands(summary: Summary) -> Iterator[Text]:
    """Yield where the run is and what to do with it next, with a change that is possible in a fork of it."""
    yield Text(summary.run, "bold")
    run = quote_path(summary.run)
    if summary.status in (Status.STOPPED, Status.FAILED, Status.IDLE):
        yield Text(f"  shoal resume {run}")
    yield Text(f"  shoal show {run}")
    yield Text(f"  shoal replay {run}")
    world = summary.worlds[0]
    kind = kind_named(world.kind)
    if kind is not None and kind.example_change:
        change = f"worlds.{world.name}.{kind.example_change}"
    else:
        change = "mind.persuasion=0.5" if summary.mind == "heuristic" else f"rounds={summary.rounds + 10}"
    half = min(world.round for world in summary.worlds) // 2
    yield Text(f"  shoal fork {run} --at {half} --set {change}")
    yield Text(f'  shoal query {run} "select action, count(*) from trace group by 1"')
