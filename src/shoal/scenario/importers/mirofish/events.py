"""Reads the events of a directory that MiroFish has prepared: first posts, scheduled ones, and broadcasts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shoal.scenario.importers.fields import SourceRecord
from shoal.scenario.importers.mirofish.people import UNKNOWN, Participants
from shoal.scenario.validation.problems import show_value

_POSTS = frozenset({"post", "create_post", "initial_post"})
_BROADCASTS = frozenset({"broadcast", "announcement", "news", "notice", "breaking_news"})
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
_TIME_FIELDS = ("round", "hour", "hours", "time")


@dataclass(frozen=True, slots=True)
class Calendar:
    """The rounds of a simulation in simulated time."""

    rounds: int
    minutes_per_round: int
    start: datetime

    def find_round(self, field: str, value: object) -> int | None:
        """Return the round that a time field means; None if it cannot be told, or is before the start.

        `round` holds a number of a round. The other fields hold hours since the start, a time of the first day such
        as 18:30, or a date and time.
        """
        if field == "round":
            return value if type(value) is int and value >= 0 else None
        hours: float
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            hours = float(value)
        elif not isinstance(value, str):
            return None
        elif clock := _CLOCK.fullmatch(value.strip()):
            hours = int(clock[1]) + int(clock[2]) / 60
        else:
            try:
                then = datetime.fromisoformat(value.strip())
            except ValueError:
                return None
            hours = (then.replace(tzinfo=None) - self.start) / timedelta(hours=1)
        return None if hours < 0 else int(hours * 60 / self.minutes_per_round) + 1


def read_events(config: SourceRecord, participants: Participants, calendar: Calendar) -> list[dict[str, Any]]:
    """Read the events of the scenario, in the order of the file."""
    events: list[dict[str, Any]] = []
    for post in config.read_objects("initial_posts"):
        content = post.read_text("content", "a post before round 1")
        author = _find_author(post, participants, "poster_agent_id")
        post.take_rest("unused", UNKNOWN)
        if content is None:
            post.add_problem("content", "a post must say something")
            continue
        if author is None:
            author = participants.most_influential
            post.add_note("an initial post without an author is by whoever has the most influence_weight")
        events.append({"post": content, "by": author, "round": 0})
    for record in config.read_objects("scheduled_events"):
        event = _read_scheduled(record, participants, calendar)
        events += [] if event is None else [event]
    direction = config.read_text("narrative_direction", "a broadcast to everybody in round 1")
    if direction is not None:
        events.append({"broadcast": direction, "round": 1})
    return events


def _find_author(event: SourceRecord, participants: Participants, field: str) -> int | None:
    """Find an agent by its id, or the first one of an entity type."""
    agent_id = event.read_whole(field, "who posts it", None)
    kind = event.read_text("poster_type", "who posts it, where no agent is named: the first of that entity type")
    if agent_id is not None:
        last = len(participants.people) - 1
        if agent_id not in participants.numbers and not 0 <= agent_id <= last:
            event.add_problem(field, f"there is no agent {agent_id}: agents are numbered 0 to {last}")
            return None
        return participants.numbers.get(agent_id, agent_id)
    first = None if kind is None else participants.first_of_type.get(kind.casefold())
    if kind is not None and first is None:
        event.add_note(f"nobody is of the type {kind!r}")
    return first


def _read_scheduled(event: SourceRecord, participants: Participants, calendar: Calendar) -> dict[str, Any] | None:
    """Read a post, or a broadcast if it has no author. Events that are not understood are noted and left out."""
    when = next((name for name in _TIME_FIELDS if name in event), None)
    kind = str(event.peek("type") or "").strip().lower()
    round = None if when is None else calendar.find_round(when, event.peek(when))
    if when is None:
        reason = "it does not say when, by `round`, `hour`, `hours` or `time`"
    elif "content" not in event:
        reason = "it has no `content`"
    elif kind and kind not in _POSTS | _BROADCASTS:
        reason = f"its type {kind!r} is neither a post nor a broadcast"
    elif round is None:
        reason = f"when it happens cannot be told from {when}: {show_value(event.peek(when))}"
    elif round > calendar.rounds:
        reason = f"round {round} never comes: there are {calendar.rounds}"
    else:
        event.take(when, "used", "the round of the event")
        event.take("type", "used", "whether it is a post or a broadcast")
        content = event.read_text("content", "a post or a broadcast in a later round")
        author = _find_author(event, participants, "poster_agent_id" if "poster_agent_id" in event else "agent_id")
        event.take_rest("unused", "not a field that is understood here")
        if kind in _BROADCASTS or (author is None and kind not in _POSTS):
            return {"broadcast": content, "round": max(round, 1)}
        return {
            "post": content,
            "by": participants.most_influential if author is None else author,
            "round": round,
        }
    event.add_note(f"{event.path_to('')}: an event was left out: {reason}")
    event.take_rest("unused", f"the event was left out: {reason}")
    return None
