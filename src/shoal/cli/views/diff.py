"""Two runs compared, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec
from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from shoal.cli.views.observation import render_rows
from shoal.runs.rerun.diff import INJECTED, DeclaredDifference, Diff, Difference, Divergence, WorldDiff
from shoal.runs.rerun.spread import How, Reached
from shoal.text import format_count, printable
from shoal.types import Decision, Event, Notice

#: How much is shown of what may be much more; `--json` has everything.
_FIELDS, _DIFFERENCES, _PEOPLE, _ROUNDS = 12, 8, 20, 60
_WIDTH = 100

_HOW: Mapping[How, str] = {
    "happening": "by what was made to happen",
    "saw": "",
    "reaction": "by a reaction",
    "totals": "by counts or rankings that are nobody's in particular",
    "scenario": "by what was declared differently",
}


def print_diff(console: Console, found: Diff) -> None:
    """What was declared differently, then world by world."""
    console.print(Text.assemble((found.one, "bold"), " and ", (found.other, "bold")), soft_wrap=True)
    if found.declared:
        console.print(_declared(found))
    for name, worlds in ((found.one, found.only_one), (found.other, found.only_other)):
        if worlds:
            console.print(f"only {name} has {', '.join(worlds)}", soft_wrap=True)
    for world in found.worlds:
        for part in _world(world):
            console.print(part)


def _declared(found: Diff) -> Table:
    rows: list[tuple[str, RenderableType]] = [
        ("differ in", Text(_field(field), overflow="ellipsis", no_wrap=True)) for field in found.declared[:_FIELDS]
    ]
    if len(found.declared) > _FIELDS:
        rows.append(("", Text(f"and {len(found.declared) - _FIELDS} more fields", "dim")))
    return render_rows(rows)


def _field(field: DeclaredDifference) -> str:
    since = f"from round {field.since}: " if field.since else ""
    if field.path == INJECTED:
        return f"{since}injected {_short(field.one or field.other)}"
    return f"{since}{field.path}: {_short(field.one)} -> {_short(field.other)}"


def _world(world: WorldDiff) -> Iterator[RenderableType]:
    yield Text()
    yield Rule(Text(world.world, "bold cyan"), align="left", style="dim")
    if world.has[0] != world.has[1]:
        one, other = world.has
        yield Text(f"they have {one} and {format_count(other, 'round')}; {world.rounds} are compared", "yellow")
    if world.first is None:
        yield Text(f"the same up to round {world.rounds}, digest {world.digests[0]}", "green")
        return
    yield _first(world.first)
    yield Text()
    yield _rounds(world)
    yield Text()
    yield _tree(world)
    yield Text(f"{_totals(world)}", "dim")


def _first(first: Divergence) -> Table:
    rows: list[tuple[str, RenderableType]] = [
        ("first difference", Text(f"round {first.round}, {first.time[:16].replace('T', ' ')}", "bold"))
    ]
    for difference in first.differences[:_DIFFERENCES]:
        rows += _difference(difference)
    if first.count > _DIFFERENCES:
        rows.append(("", Text(f"and {first.count - _DIFFERENCES:,} more differences in this round", "dim")))
    return render_rows(rows)


def _difference(difference: Difference) -> Iterator[tuple[str, RenderableType]]:
    who = f"{printable(difference.name)} ({difference.agent})" if difference.name else "everybody"
    if difference.what == "turn":
        yield "turn", Text(f"{who}: only in the {'first' if difference.one else 'second'} run")
        return
    yield difference.what, Text(who)
    for sign, style, value in (("-", "red", difference.one), ("+", "green", difference.other)):
        if value is not None:
            yield "", Text(f"{sign} {_short(value)}", style)


def _short(value: Any) -> str:
    """One line of it."""
    if isinstance(value, Event):
        refused = "" if value.success else f" (came to nothing: {value.result})"
        text = f"{value.action_type} {_json(value.action_args)}{refused}"
    elif isinstance(value, Notice):
        text = f"{value.event_type}: {value.content}"
    elif isinstance(value, Decision):
        text = value.failure or ", ".join(f"{done.kind} {_json(done.args)}" for done in value.actions) or "nothing"
    else:
        text = value if isinstance(value, str) else _json(value)
    text = printable(text)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _rounds(world: WorldDiff) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("round", "acting", "pictures changed", "acted differently", "newly reached"):
        table.add_column(title, justify="right")
    for row in world.by_round[:_ROUNDS]:
        one, other = row.acting
        table.add_row(
            str(row.round),
            f"{one:,}" if one == other else f"{one:,}/{other:,}",
            *(f"{len(agents):,}" if agents else "-" for agents in (row.pictures, row.acted, row.reached)),
        )
    if len(world.by_round) > _ROUNDS:
        table.add_row("...")
    return table


def _tree(world: WorldDiff) -> Tree:
    """Who reached whom, in the order in which people were reached, the first of them."""
    tree = Tree(Text("who reached whom", "dim"), guide_style="dim")
    branches: dict[int, Tree] = {}
    for who in islice(world.reached, _PEOPLE):
        above = tree if who.via is None else branches.get(who.via, tree)
        branches[who.agent] = above.add(_reached(who))
    if len(world.reached) > _PEOPLE:
        tree.add(Text(f"and {len(world.reached) - _PEOPLE:,} more", "dim"))
    return tree


def _reached(who: Reached) -> Text:
    how = f", {_HOW[who.how]}" if _HOW[who.how] else ""
    return Text.assemble((printable(who.name), "bold"), (f" ({who.agent}) in round {who.round}{how}", "dim"))


def _totals(world: WorldDiff) -> str:
    people = f"{format_count(world.saw_differently, 'person', 'people')} saw something different"
    chain = f"; the longest chain: {' > '.join(map(printable, world.deepest))}" if len(world.deepest) > 1 else ""
    return f"{people}, {world.acted_differently:,} acted differently{chain}"
