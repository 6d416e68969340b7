"""What was said in rooms and conversations, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from shoal.cli.words import counted
from shoal.runs.conversations import Conversations, RatedPair, Remark, RoomTalk

#: Room for the labels at the left.
LABEL_WIDTH = 16


def labelled() -> Table:
    """A table whose first column says what the rest is."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", min_width=LABEL_WIDTH - 1, no_wrap=True)
    table.add_column()
    return table


def row(label: str, text: str) -> Table:
    table = labelled()
    table.add_row(label, Text(text))
    return table


def room_parts(talk: RoomTalk) -> Iterator[RenderableType]:
    """Who talked, to whom, what came of it, and the last words."""
    if talk.talkers:
        yield row("talked most", ", ".join(f"{who.name} {who.remarks}" for who in talk.talkers))
    table = labelled()
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
    table = labelled()
    finished = f"{talks.finished:,} of {counted(talks.pairs, 'conversation')} finished"
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
    table = labelled()
    table.add_row(title, Text.assemble((f"{pair.first} and {pair.second}", "bold"), f"  {pair.score:.1f}{agreed}"))
    for remark in pair.last:
        table.add_row("", remark_in_words(remark))
    return table


def _remarks(label: str, remarks: Sequence[Remark]) -> Table:
    table = labelled()
    for n, remark in enumerate(remarks):
        table.add_row("" if n else label, remark_in_words(remark))
    return table


def remark_in_words(remark: Remark) -> Text:
    to = f" to {remark.target}" if remark.target else ""
    return Text.assemble((f"{remark.speaker}{to}", "bold"), f": {' '.join(remark.text.split())}")
