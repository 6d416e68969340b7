"""What people in a room see, as text."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.text import clip, join_words, quote
from shoal.worlds.rendering import (
    CUE_CHARS,
    CUE_ITEMS,
    MAX_NAMES,
    MAX_NEWS_CHARS,
    MAX_POST_CHARS,
    MAX_SEEN_CHARS,
    MAX_SPEECH_CHARS,
    ObservationRenderer,
    PromptWriter,
    ViewLine,
    ViewRow,
    list_lines,
)
from shoal.worlds.room.observations import RoomObservation, Stimulus

_MAX_GOALS, _MAX_RELATIONS = 5, 12
_MAX_RELATION_CHARS = 60
#: Of the things heard in a turn, this many are remembered.
_REMEMBERED = 2
_UNSOURCED = {"hear": "You hear", "see": "You see", "think": "It crosses your mind", "goal": "You have a new goal",
              "location": "You are now here"}  # fmt: skip


class RoomRenderer(ObservationRenderer[RoomObservation]):
    """Turns moments in a room into text."""

    def write_prompt(self, writer: PromptWriter, seen: RoomObservation) -> None:
        if seen.location:
            writer.add(f"You are here: {clip(seen.location, MAX_POST_CHARS)}")
        writer.add(f"Within hearing: {join_words(seen.present, MAX_NAMES) or 'nobody'}")
        for goal in seen.goals[-_MAX_GOALS:]:
            writer.add(f"Your goal: {clip(goal, MAX_NEWS_CHARS)}")
        if seen.attention:
            writer.add(f"Your attention is on: {clip(seen.attention, MAX_POST_CHARS)}")
        if seen.relations:
            known = (f"{other.agent} ({quote(other.relation, _MAX_RELATION_CHARS)})" for other in seen.relations)
            writer.add(f"You are related to: {join_words(known, _MAX_RELATIONS)}")
        writer.add_pending(seen.pending)
        stimuli = [_render_stimulus(writer, one) for one in seen.stimuli]
        writer.add_latest("Since your last turn:", stimuli, "Nothing has happened.")

    def cue(self, seen: RoomObservation) -> Iterator[str]:
        yield from (stimulus.content[:CUE_CHARS] for stimulus in seen.stimuli[-CUE_ITEMS:])

    def people(self, seen: RoomObservation) -> Iterator[str]:
        yield from seen.present
        yield from (relation.agent for relation in seen.relations)
        yield from (stimulus.source for stimulus in seen.stimuli if stimulus.source is not None)

    def recall_sight(self, seen: RoomObservation) -> str:
        heard = [f"{one.source or one.kind}: {quote(one.content, MAX_SEEN_CHARS)}" for one in seen.stimuli]
        return "; ".join(heard[-_REMEMBERED:]) + "." if heard else ""

    def view(self, seen: RoomObservation) -> Iterator[ViewRow]:
        if seen.location:
            yield ViewRow("where", (ViewLine(seen.location),))
        yield ViewRow("within hearing", (ViewLine(", ".join(seen.present) or "nobody"),))
        yield from list_lines("came in", map(_view_stimulus, seen.stimuli))
        yield from list_lines("goals", map(ViewLine, seen.goals))
        if seen.attention:
            yield ViewRow("attention", (ViewLine(seen.attention),))
        yield from list_lines("relations", (ViewLine(tie.relation, tie.agent) for tie in seen.relations))


def _render_stimulus(writer: PromptWriter, one: Stimulus) -> str:
    words = quote(one.content, MAX_SPEECH_CHARS)
    if one.source is None:
        return f"{_UNSOURCED.get(one.kind, one.kind)}: {words}"
    who = writer.name(one.source_id if one.source_id is not None else -1, one.source)
    match one.kind:
        case "hear":
            return f"{who}{' to you' if one.addressed else ''}: {words}"
        case "relate":
            return f"{who} says you are to one another: {words}"
        case "reach_out":
            return f"{who} wants a word with you."
    return f"{who} ({one.kind}): {words}"


def _view_stimulus(stimulus: Stimulus) -> ViewLine:
    facts = [] if stimulus.kind == "hear" else [stimulus.kind.replace("_", " ")]
    facts += ["addressed"] * stimulus.addressed
    return ViewLine(stimulus.content, stimulus.source or "(nobody)", ", ".join(facts))
