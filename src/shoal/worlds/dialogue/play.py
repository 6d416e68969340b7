"""A conversation for a person who plays one of the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from shoal.types import Action
from shoal.worlds.dialogue.observations import DialogueObservation
from shoal.worlds.playing import NO_ACTION, Mistake, PlayAdapter, choose_verb, need_text, split_word

#: What was said before these lines has been read before.
LINES_SHOWN = 6


class DialoguePlay(PlayAdapter[DialogueObservation]):
    """A conversation, as a person plays it."""

    help = """\
  any text            say it
  /think TEXT         think it; nobody hears that
  /leave              end the scene for both
  /rate 7 TEXT        when the scene is over: 0 to 10, and why
  /nothing            stay silent"""

    def show(self, seen: DialogueObservation) -> Iterable[str]:
        about = f" ({seen.partner_bio.rstrip('.')})" if seen.partner_bio else ""
        yield f"You talk to {seen.partner}{about}. Scene {seen.scene}, turn {seen.turn} of at most {seen.turns}."
        if seen.setting:
            yield f"Scene: {seen.setting}"
        if seen.turning_point:
            yield f"Then: {seen.turning_point}"
        for line in seen.lines[-LINES_SHOWN:]:
            yield f"  {'You' if line.speaker_id == seen.agent else line.speaker}: {line.content}"
        if seen.rating:
            yield "The scene is over. How did it go? /rate 0 to 10, and why."

    def read(self, line: str, seen: DialogueObservation) -> Action:
        if not line.startswith("/"):
            if not seen.rating:
                return Action("SAY", {"content": line})
            line = f"/rate {line}"
        verb, rest = split_word(line[1:])
        verbs: Mapping[str, Callable[[], Action]] = {
            "say": lambda: Action("SAY", {"content": need_text(rest)}),
            "think": lambda: Action("THINK", {"content": need_text(rest)}),
            "leave": lambda: Action("LEAVE"),
            "rate": lambda: _rate(rest),
            "nothing": lambda: NO_ACTION,
        }
        act = choose_verb(verb, verbs, "/")
        if verb in ("say", "leave") and seen.rating:
            raise Mistake("the scene is over; /rate it")
        if verb == "rate" and not seen.rating:
            raise Mistake("a scene is rated when it is over")
        return act()


def _rate(rest: str) -> Action:
    score, reason = split_word(rest)
    if not score.isdecimal() or int(score) > 10:
        raise Mistake("rate with a whole number from 0 to 10, as in: /rate 7 a good talk")
    return Action("RATE", {"score": int(score), **({"reason": reason} if reason else {})})
