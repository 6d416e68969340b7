"""What a MiroFish directory says shall happen: posts to begin with, and events of later rounds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shoal.scenario.importers.fields import SourceRecord
from shoal.scenario.importers.mirofish.people import Participants
from shoal.scenario.validation.problems import show

_POSTS = frozenset({"post", "create_post", "initial_post"})
_BROADCASTS = frozenset({"broadcast", "announcement", "news", "notice", "breaking_news"})
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
_WHEN = ("round", "hour", "hours", "time")


@dataclass(frozen=True, slots=True)
class Calendar:
    """Which round a time belongs to."""

    rounds: int
    minutes_per_round: int
    start: datetime

    def round_at(self, hours: float) -> int:
        """The round that goes on this many hours after the start."""
        return int(hours * 60 / self.minutes_per_round) + 1


def events(config: SourceRecord, everybody: Participants, calendar: Calendar) -> list[dict[str, Any]]:
    """The events of the scenario, in the order in which they stand."""
    happenings = [_initial_post(post, everybody) for post in config.each("initial_posts")]
    happenings += [_scheduled(event, everybody, calendar) for event in config.each("scheduled_events")]
    direction = config.text("narrative_direction", "a broadcast to everybody in round 1")
    if direction is not None:
        happenings.append({"broadcast": direction, "round": 1})
    return [happening for happening in happenings if happening is not None]


def _initial_post(post: SourceRecord, everybody: Participants) -> dict[str, Any] | None:
    content = post.text("content", "a post before round 1")
    author = _author(post, everybody, "poster_agent_id")
    post.rest("unused", "not a field that MiroFish is known to write")
    if content is None:
        post.wrong("content", "a post must say something")
        return None
    if author is None:
        author = everybody.most_influential()
        post.note("an initial post without an author is by whoever has the most influence_weight")
    return {"post": content, "by": author, "round": 0}


def _author(event: SourceRecord, everybody: Participants, field: str) -> int | None:
    """The agent by its id, or the first one of an entity type."""
    agent_id = event.whole(field, "who posts it", None)
    kind = event.text("poster_type", "who posts it, where no agent is named: the first of that entity type")
    if agent_id is not None:
        if agent_id not in everybody.numbers and not 0 <= agent_id < len(everybody.people):
            event.wrong(field, f"there is no agent {agent_id}: agents are numbered 0 to {len(everybody.people) - 1}")
            return None
        return everybody.numbers.get(agent_id, agent_id)
    first = None if kind is None else everybody.first_of(kind)
    if kind is not None and first is None:
        event.note(f"nobody is of the type {kind!r}")
    return first


def _scheduled(event: SourceRecord, everybody: Participants, calendar: Calendar) -> dict[str, Any] | None:
    """A post, or a broadcast where nobody posts it. What cannot be told is reported and left out."""
    when = next((name for name in _WHEN if name in event), None)
    kind = str(event.peek("type") or "").strip().lower()
    round = None if when is None else _round(event.peek(when), when, calendar)
    reason = _reason(event, when, kind, round, calendar)
    if when is None or round is None or reason is not None:
        event.note(f"{event.place('')}: an event was left out: {reason}")
        event.rest("unused", f"the event was left out: {reason}")
        return None
    event.mark(when, "used", "the round of the event")
    event.mark("type", "used", "whether it is a post or a broadcast")
    content = event.text("content", "a post or a broadcast in a later round")
    author = _author(event, everybody, "poster_agent_id" if "poster_agent_id" in event else "agent_id")
    event.rest("unused", "not a field that is understood here")
    if kind in _BROADCASTS or (author is None and kind not in _POSTS):
        return {"broadcast": content, "round": max(round, 1)}
    return {"post": content, "by": everybody.most_influential() if author is None else author, "round": round}


def _reason(event: SourceRecord, when: str | None, kind: str, round: int | None, calendar: Calendar) -> str | None:
    """Why an event cannot happen; None if it can."""
    if when is None:
        return "it does not say when, by `round`, `hour`, `hours` or `time`"
    if "content" not in event:
        return "it has no `content`"
    if kind and kind not in _POSTS | _BROADCASTS:
        return f"its type {kind!r} is neither a post nor a broadcast"
    if round is None:
        return f"when it happens cannot be told from {when}: {show(event.peek(when))}"
    return f"round {round} never comes: there are {calendar.rounds}" if round > calendar.rounds else None


def _round(value: object, name: str, calendar: Calendar) -> int | None:
    """The round that is meant; None where that cannot be told, or is before the start."""
    if name == "round":
        return value if type(value) is int and value >= 0 else None
    hours = _hours(value, calendar.start)
    return None if hours is None or hours < 0 else calendar.round_at(hours)


def _hours(value: object, start: datetime) -> float | None:
    """Hours since the start: a number, a time of the first day such as 18:30, or a date and time."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    if clock := _CLOCK.fullmatch(value.strip()):
        return int(clock[1]) + int(clock[2]) / 60
    try:
        return (datetime.fromisoformat(value.strip()).replace(tzinfo=None) - start) / timedelta(hours=1)
    except ValueError:
        return None
