"""What the two in a conversation see, as text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from shoal.text import clip, quote
from shoal.types import Action
from shoal.worlds import rendering
from shoal.worlds.dialogue.observations import NOBODY, DialogueObservation
from shoal.worlds.rendering import NO_ACTION, Mistake, ObservationRenderer, PromptWriter, ViewLine, ViewRow, list_lines

_MAX_SETTING_CHARS = 1200
#: What was said before these lines has been read before.
LINES_SHOWN = 6


class DialogueRenderer(ObservationRenderer[DialogueObservation]):
    """Turns moments in a conversation into text."""

    def write_prompt(self, writer: PromptWriter, seen: DialogueObservation) -> None:
        if seen.partner_id == NOBODY:
            writer.add("You have nobody to talk to.")
            writer.add_news(seen.announcements)
            return
        about = f" ({clip(seen.partner_bio, rendering.MAX_POST_CHARS)})" if seen.partner_bio else ""
        writer.add(f"You talk with {seen.partner}{about}.")
        if seen.setting:
            writer.add(f"Scene {seen.scene}: {clip(seen.setting, _MAX_SETTING_CHARS)}")
        if seen.turning_point:
            writer.add(f"Meanwhile: {clip(seen.turning_point, _MAX_SETTING_CHARS)}")
        writer.add_news(seen.announcements)
        writer.add_pending(seen.pending)
        said = [
            f"{writer.name(line.speaker_id, line.speaker)}: {quote(line.content, writer.speech_chars)}"
            for line in seen.lines
        ]
        writer.add_latest("What was said:", said, "Nothing has been said yet.")
        turn = f"It is your turn ({seen.turn} of {seen.turns})."
        writer.lines.append("The scene is over: RATE it." if seen.rating else turn)

    def cue(self, seen: DialogueObservation) -> Iterator[str]:
        yield from (line.content[: rendering.CUE_CHARS] for line in seen.lines[-rendering.CUE_ITEMS :])

    def find_senseless(self, seen: DialogueObservation, done: Collection[str]) -> frozenset[str]:
        talking = frozenset({"SAY", "LEAVE"})
        if seen.partner_id == NOBODY:
            return talking | {"RATE"}
        return talking if seen.rating else frozenset({"RATE"})

    def list_said(self, seen: DialogueObservation) -> Iterator[tuple[bool, str]]:
        yield from ((line.speaker_id == seen.agent, line.content) for line in seen.lines)

    def recall_sight(self, seen: DialogueObservation) -> str:
        line = seen.lines[-1] if seen.lines else None
        return f"{line.speaker}: {quote(line.content, rendering.MAX_WRITTEN_CHARS)}." if line else ""

    def view(self, seen: DialogueObservation) -> Iterator[ViewRow]:
        yield from list_lines("news", map(ViewLine, seen.announcements))
        yield ViewRow("partner", (ViewLine(seen.partner_bio, seen.partner),))
        scene = f"{seen.scene}, turn {seen.turn} of {seen.turns}. {seen.setting}".strip()
        yield ViewRow("scene", (ViewLine(scene),))
        if seen.turning_point:
            yield ViewRow("turning point", (ViewLine(seen.turning_point),))
        yield from list_lines("said so far", (ViewLine(line.content, line.speaker) for line in seen.lines))
        if seen.rating:
            yield ViewRow("asked", (ViewLine("to rate the scene"),))

    # A person who plays an agent

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
        verb, rest = rendering.split_word(line[1:])
        verbs: Mapping[str, Callable[[], Action]] = {
            "say": lambda: Action("SAY", {"content": rendering.need_text(rest)}),
            "think": lambda: Action("THINK", {"content": rendering.need_text(rest)}),
            "leave": lambda: Action("LEAVE"),
            "rate": lambda: _rate(rest),
            "nothing": lambda: NO_ACTION,
        }
        act = rendering.choose_verb(verb, verbs, "/")
        if verb in ("say", "leave") and seen.rating:
            raise Mistake("the scene is over; /rate it")
        if verb == "rate" and not seen.rating:
            raise Mistake("a scene is rated when it is over")
        return act()


def _rate(rest: str) -> Action:
    score, reason = rendering.split_word(rest)
    if not score.isdecimal() or int(score) > 10:
        raise Mistake("rate with a whole number from 0 to 10, as in: /rate 7 a good talk")
    return Action("RATE", {"score": int(score), **({"reason": reason} if reason else {})})
