"""What people in a room see, as text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from shoal.text import clip, join_words, quote
from shoal.types import Action
from shoal.worlds import rendering
from shoal.worlds.rendering import NO_ACTION, Mistake, ObservationRenderer, PromptWriter, ViewLine, ViewRow, list_lines
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
            writer.add(f"You are here: {clip(seen.location, rendering.MAX_POST_CHARS)}")
        writer.add(f"Within hearing: {join_words(seen.present, rendering.MAX_NAMES) or 'nobody'}")
        for goal in seen.goals[-_MAX_GOALS:]:
            writer.add(f"Your goal: {clip(goal, rendering.MAX_NEWS_CHARS)}")
        if seen.attention:
            writer.add(f"Your attention is on: {clip(seen.attention, rendering.MAX_POST_CHARS)}")
        if seen.relations:
            known: dict[str, list[str]] = {}
            for one in seen.relations:
                known.setdefault(one.agent, []).append(quote(one.relation, _MAX_RELATION_CHARS))
            people = (f"{name} ({', '.join(what)})" for name, what in known.items())
            writer.add(f"You are related to: {join_words(people, _MAX_RELATIONS)}")
        writer.add_pending(seen.pending)
        stimuli = [_render_stimulus(writer, one) for one in seen.stimuli]
        writer.add_latest("Since your last turn:", stimuli, "Nothing has happened.")

    def cue(self, seen: RoomObservation) -> Iterator[str]:
        yield from (stimulus.content[: rendering.CUE_CHARS] for stimulus in seen.stimuli[-rendering.CUE_ITEMS :])

    def find_senseless(self, seen: RoomObservation, done: Collection[str]) -> frozenset[str]:
        return frozenset() if seen.present else frozenset({"TALK", "RELATE"})

    def people(self, seen: RoomObservation) -> Iterator[str]:
        yield from seen.present
        yield from (relation.agent for relation in seen.relations)
        yield from (stimulus.source for stimulus in seen.stimuli if stimulus.source is not None)

    def recall_sight(self, seen: RoomObservation) -> str:
        heard = [f"{one.source or one.kind}: {quote(one.content, rendering.MAX_SEEN_CHARS)}" for one in seen.stimuli]
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

    # A person who plays an agent

    help = """\
  any text            say it to everybody who is here
  /to NAME: TEXT      say it to one of them (without the colon, the first word is the name)
  /think TEXT         think it; nobody hears that
  /reach NAME         ask for somebody's attention
  /attend TEXT        turn to something
  /go PLACE           go somewhere else
  /done               be done for this turn
  /nothing            do nothing"""

    def show(self, seen: RoomObservation) -> Iterable[str]:
        here = ", ".join(seen.present) or "nobody"
        yield f"You are {'in ' + seen.location if seen.location else 'here'} with {here}."
        for goal in seen.goals:
            yield f"You want: {goal}"
        for relation in seen.relations:
            yield f"{relation.agent}: {relation.relation}"
        for stimulus in seen.stimuli:
            if stimulus.kind == "hear" and stimulus.source:
                yield f"  {stimulus.source}{' (to you)' if stimulus.addressed else ''}: {stimulus.content}"
            else:
                source = f" {stimulus.source}" if stimulus.source else ""
                yield f"  [{stimulus.kind.replace('_', ' ')}{source}] {stimulus.content}".rstrip()

    def read(self, line: str, seen: RoomObservation) -> Action:
        if not line.startswith("/"):
            return Action("TALK", {"content": line})
        verb, rest = rendering.split_word(line[1:])
        verbs: Mapping[str, Callable[[], Action]] = {
            "say": lambda: Action("TALK", {"content": rendering.need_text(rest)}),
            "to": lambda: _talk_to(rest, seen),
            "think": lambda: Action("THINK", {"content": rendering.need_text(rest)}),
            "reach": lambda: Action("REACH_OUT", {"target": _find_name(rendering.need_text(rest), seen)}),
            "attend": lambda: Action("ATTEND", {"content": rendering.need_text(rest)}),
            "go": lambda: Action("MOVE_TO", {"location": rendering.need_text(rest)}),
            "done": lambda: Action("DONE"),
            "nothing": lambda: NO_ACTION,
        }
        return rendering.choose_verb(verb, verbs, "/")()


def _render_stimulus(writer: PromptWriter, one: Stimulus) -> str:
    words = quote(one.content, writer.speech_chars)
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


def _talk_to(rest: str, seen: RoomObservation) -> Action:
    name, colon, words = rest.partition(":")
    if not colon:
        name, words = rendering.split_word(rest)
    return Action("TALK", {"content": rendering.need_text(words.strip()), "target": _find_name(name.strip(), seen)})


def _find_name(wanted: str, seen: RoomObservation) -> str:
    """Return the whole name of a person here, from a part that only one of them has."""
    if wanted in seen.present:
        return wanted
    found = [name for name in seen.present if wanted.casefold() in name.casefold().split()]
    if len(found) == 1:
        return found[0]
    who = "there are several" if found else "nobody here is"
    raise Mistake(f"{who} called {wanted!r}: {', '.join(seen.present) or '-'}")
