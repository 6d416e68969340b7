"""Prints the comparison of two runs on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from shoal.cli.views.observation import Row
from shoal.cli.views.output import Output, label_table
from shoal.cli.views.summary import draw_outcomes
from shoal.runs.rerun import INJECTED, Diff, Divergence, How, WorldDiff
from shoal.text import format_count, printable
from shoal.types import Decision, Event, Notice

#: The most that is shown of each; `--json` has everything.
_MAX_FIELDS, _MAX_DIFFERENCES, _MAX_PEOPLE, _MAX_ROUNDS = 12, 8, 20, 60
_MAX_CHARS = 100

_CAUSES: Mapping[How, str] = {
    "happening": ", by what was made to happen",
    "saw": "",
    "reaction": ", by a reaction",
    "totals": ", by counts or rankings that are nobody's in particular",
    "scenario": ", by what was declared differently",
}


def print_diff(console: Output, found: Diff) -> None:
    """Print what was declared differently, then the differences of each world."""
    console.print(Text.assemble((found.one, "bold"), " and ", (found.other, "bold")), soft_wrap=True)
    if found.declared:
        table = label_table()
        for field in found.declared[:_MAX_FIELDS]:
            since = f"from round {field.since}: " if field.since else ""
            if field.path == INJECTED:
                words = f"{since}injected {_shorten(field.one or field.other)}"
            else:
                words = f"{since}{field.path}: {_shorten(field.one)} -> {_shorten(field.other)}"
            table.add_row("differ in", Text(words, overflow="ellipsis", no_wrap=True))
        if len(found.declared) > _MAX_FIELDS:
            table.add_row("", Text(f"and {len(found.declared) - _MAX_FIELDS} more fields", "dim"))
        console.print(table)
    for name, worlds in ((found.one, found.only_one), (found.other, found.only_other)):
        if worlds:
            console.print_text(f"only {name} has {', '.join(worlds)}")
    for world in found.worlds:
        console.print()
        console.print(Rule(Text(world.world, "bold cyan"), align="left", style="dim"))
        if world.has[0] != world.has[1]:
            has = f"they have {world.has[0]} and {format_count(world.has[1], 'round')}"
            console.print(Text(f"{has}; {world.rounds} are compared", "yellow"))
        if world.first is None:
            console.print(Text(f"the same up to round {world.rounds}, digest {world.digests[0]}", "green"))
        else:
            console.print(label_table(_describe_divergence(world.first)))
            _print_spread(console, world)
            if any(outcome.about for outcome in world.outcomes[0]):
                console.print()
                console.print(draw_outcomes(world.outcomes))


def _describe_divergence(first: Divergence) -> Iterator[Row]:
    yield "first difference", Text(f"round {first.round}, {first.time[:16].replace('T', ' ')}", "bold")
    for difference in first.differences[:_MAX_DIFFERENCES]:
        who = f"{printable(difference.name)} ({difference.agent})" if difference.name else "everybody"
        if difference.what == "turn":
            yield "turn", Text(f"{who}: only in the {'first' if difference.one else 'second'} run")
            continue
        yield difference.what, Text(who)
        for sign, style, value in (("-", "red", difference.one), ("+", "green", difference.other)):
            if value is not None:
                yield "", Text(f"{sign} {_shorten(value)}", style)
    if first.count > _MAX_DIFFERENCES:
        yield "", Text(f"and {first.count - _MAX_DIFFERENCES:,} more differences in this round", "dim")


def _print_spread(console: Output, world: WorldDiff) -> None:
    """Print the differences round by round, and which agent reached which others, in the order of reaching."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("round", "acting", "pictures changed", "acted differently", "newly reached"):
        table.add_column(title, justify="right")
    for row in world.by_round[:_MAX_ROUNDS]:
        one, other = row.acting
        changes = (f"{len(agents):,}" if agents else "-" for agents in (row.pictures, row.acted, row.reached))
        table.add_row(str(row.round), f"{one:,}" if one == other else f"{one:,}/{other:,}", *changes)
    if len(world.by_round) > _MAX_ROUNDS:
        table.add_row("...")
    tree = Tree(Text("who reached whom", "dim"), guide_style="dim")
    branches: dict[int, Tree] = {}
    for who in islice(world.reached, _MAX_PEOPLE):
        above = tree if who.via is None else branches.get(who.via, tree)
        reached = f" ({who.agent}) in round {who.round}{_CAUSES[who.how]}"
        branches[who.agent] = above.add(Text.assemble((printable(who.name), "bold"), (reached, "dim")))
    if len(world.reached) > _MAX_PEOPLE:
        tree.add(Text(f"and {len(world.reached) - _MAX_PEOPLE:,} more", "dim"))
    for part in (table, tree):
        console.print()
        console.print(part)
    people = format_count(world.saw_differently, "person", "people")
    chain = f"; the longest chain: {' > '.join(map(printable, world.deepest))}" if len(world.deepest) > 1 else ""
    totals = f"{people} saw something different, {world.acted_differently:,} acted differently{chain}"
    console.print(Text(totals, "dim"))


def _shorten(value: Any) -> str:
    """Format a value on one line of limited length."""
    if isinstance(value, Event):
        refused = "" if value.success else f" (came to nothing: {value.result})"
        text = f"{value.action_type} {_to_json(value.action_args)}{refused}"
    elif isinstance(value, Notice):
        text = f"{value.event_type}: {value.content}"
    elif isinstance(value, Decision):
        text = value.failure or ", ".join(f"{done.kind} {_to_json(done.args)}" for done in value.actions) or "nothing"
    else:
        text = value if isinstance(value, str) else _to_json(value)
    text = printable(text)
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 3]}..."


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
