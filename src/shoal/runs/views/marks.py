"""Marks on the timeline of a run: events, interventions, and where other histories branch off."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from shoal.engine import INTERVENTION
from shoal.runs.directory import RunDirectory, parse_injected_events
from shoal.scenario import DeclaredEvent, GiveBackEvent, SeatEvent
from shoal.text import clip, format_count
from shoal.types import Notice

#: The most characters of a mark.
_MAX_CHARS = 200
_MAX_MARKS = 500
#: Streams whose interventions were looked for before, by path, number of the file and length.
_MAX_SEARCHED = 64
_NOTICE = b'\n{"event_type":"%s",' % INTERVENTION.encode()


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """Something on the timeline: an event, an intervention, a fork, or people who join or leave."""

    round: int
    kind: str
    text: str
    #: The other run of a fork.
    run_id: str | None


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """The run that a fork branches from, and the round from which on it differs."""

    id: str
    round: int


def list_marks(run: RunDirectory, parent: ForkPoint | None, forks: Iterable[tuple[int, str]]) -> list[TimelineMark]:
    """List the marks of a run in the order of their rounds. `forks`: round and id of the runs that branch off."""
    events = [*run.scenario.events, *parse_injected_events(run.events)]
    marks = [
        TimelineMark(
            event.round, event.kind if event.kind in ("join", "leave") else "event", describe_event(event), None
        )
        for event in events
    ]
    if any(version.interventions for version in run.scenario_versions.versions()):
        for world in run.worlds:
            path = run.open_stream(world).path
            found = path.stat() if path.exists() else None
            notices = () if found is None else _search_stream(path, found.st_ino, found.st_size)
            marks += [TimelineMark(notice.round, "intervention", _abridge(notice.content), None) for notice in notices]
    if parent is not None:
        marks.append(TimelineMark(parent.round, "fork", f"branches off {parent.id}", parent.id))
    marks += [TimelineMark(round, "fork", f"{name} branches off", name) for round, name in forks]
    return sorted(dict.fromkeys(marks), key=lambda mark: mark.round)[:_MAX_MARKS]


def describe_event(event: DeclaredEvent) -> str:
    """Say in a few words what an event does."""
    if isinstance(event, SeatEvent):
        return _abridge(f"a person takes the seat of {_name(event.seat)}")
    if isinstance(event, GiveBackEvent):
        return _abridge(f"the seat of {_name(event.give_back)} is given back")
    content = getattr(event, "content", None)
    if content is not None:
        return _abridge(f"{event.kind}: {content}")
    about = getattr(event, event.kind, None)
    match about:
        case dict():
            changes = ", ".join(f"{name} becomes {value}" for name, value in about.items())
            return _abridge(f"change: {changes}")
        case tuple() if event.kind == "context":
            return _abridge(f"context: {'; '.join(about)}")
        case tuple():
            return f"{event.kind}: {format_count(len(about), 'person', 'people')}"
        case _:
            return _abridge(f"{event.kind} {'' if about is True else about or ''}".strip())


def _name(who: str | int) -> str:
    return who if isinstance(who, str) else f"agent {who}"


def _abridge(text: str) -> str:
    return clip(text, _MAX_CHARS)


@lru_cache(maxsize=_MAX_SEARCHED)
def _search_stream(path: Path, inode: int, size: int) -> Sequence[Notice]:
    """Search a stream for the interventions that happened, without reading the lines between them."""
    notices: list[Notice] = []
    if not size:
        return notices
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as stream:
        at = stream.find(_NOTICE)
        while at >= 0 and (end := stream.find(b"\n", at + 1)) >= 0:
            notices.append(msgspec.json.decode(stream[at + 1 : end], type=Notice))
            at = stream.find(_NOTICE, end)
    return notices
