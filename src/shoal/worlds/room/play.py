"""A room for a person who plays one of its people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from shoal.types import Action
from shoal.worlds.playing import NO_ACTION, Mistake, PlayAdapter, choose_verb, need_text, split_word
from shoal.worlds.room.observations import RoomObservation


class RoomPlay(PlayAdapter[RoomObservation]):
    """A room, as a person plays it."""

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
        verb, rest = split_word(line[1:])
        verbs: Mapping[str, Callable[[], Action]] = {
            "say": lambda: Action("TALK", {"content": need_text(rest)}),
            "to": lambda: _talk_to(rest, seen),
            "think": lambda: Action("THINK", {"content": need_text(rest)}),
            "reach": lambda: Action("REACH_OUT", {"target": _find_name(need_text(rest), seen)}),
            "attend": lambda: Action("ATTEND", {"content": need_text(rest)}),
            "go": lambda: Action("MOVE_TO", {"location": need_text(rest)}),
            "done": lambda: Action("DONE"),
            "nothing": lambda: NO_ACTION,
        }
        return choose_verb(verb, verbs, "/")()


def _talk_to(rest: str, seen: RoomObservation) -> Action:
    name, colon, words = rest.partition(":")
    if not colon:
        name, words = split_word(rest)
    return Action("TALK", {"content": need_text(words.strip()), "target": _find_name(name.strip(), seen)})


def _find_name(wanted: str, seen: RoomObservation) -> str:
    """Return the whole name of a person here, from a part that only one of them has."""
    if wanted in seen.present:
        return wanted
    found = [name for name in seen.present if wanted.casefold() in name.casefold().split()]
    if len(found) == 1:
        return found[0]
    who = "there are several" if found else "nobody here is"
    raise Mistake(f"{who} called {wanted!r}: {', '.join(seen.present) or '-'}")
