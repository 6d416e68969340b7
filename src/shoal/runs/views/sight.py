"""What an agent saw in one turn, as labelled rows for pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shoal.types import Observation
from shoal.worlds import renderer_for


@dataclass(frozen=True, slots=True)
class SightLine:
    """One line of an observation: its speaker, its text, and facts about it."""

    who: str
    text: str
    facts: str
    is_reply: bool
    #: What an action calls it that is about it: `{"post_id": 12, "user": 3}`.
    named: dict[str, int]


@dataclass(frozen=True, slots=True)
class SightRow:
    """A labelled part of an observation: lines, or else a plain value."""

    label: str
    lines: list[SightLine]
    value: Any


def view_sight(seen: Observation) -> list[SightRow]:
    """Return everything that was there to be seen."""
    rows = [
        SightRow(
            row.label,
            [SightLine(one.who, one.text, one.facts, one.is_reply, dict(one.named)) for one in row.lines],
            row.value,
        )
        for row in renderer_for(seen).view(seen)
    ]
    situation = [SightLine("", text, "", False, {}) for text in seen.context or ()]
    pending = [SightLine(action.kind, str(action.args.get("content", "")), "", False, {}) for action in seen.pending]
    return [
        *([SightRow("situation", situation, None)] if situation else []),
        *rows,
        *([SightRow("own, unseen yet", pending, None)] if pending else []),
    ]
