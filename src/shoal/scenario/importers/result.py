"""What was understood of something that people brought, and what was not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

#: `used`: has its effect in the scenario; `kept`: carried along as a trait or a note; `unused`: has no counterpart.
Use = Literal["used", "kept", "unused"]


@dataclass(frozen=True, slots=True)
class FieldUse:
    """What became of one field."""

    #: The file it stands in.
    source: str
    #: Its name or path there, for example `agent_configs[].stance`.
    field: str
    use: Use
    #: What it becomes, or why it becomes nothing.
    becomes: str
    #: How many records have it.
    count: int = 1


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A scenario made from what was brought. No field of the source is missing from `fields`."""

    #: What was recognised, in words, for example `MiroFish directory`.
    kind: str
    #: The scenario in plain values, as a YAML file would hold it.
    scenario: dict[str, Any]
    fields: tuple[FieldUse, ...]
    #: What the user should know: what was repaired, guessed or made unique.
    notes: tuple[str, ...] = ()
