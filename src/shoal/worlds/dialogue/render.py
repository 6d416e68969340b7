"""What the two in a conversation see, as text."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.text import clip, quote
from shoal.worlds.dialogue.observations import DialogueObservation
from shoal.worlds.dialogue.world import NOBODY
from shoal.worlds.rendering import (
    CUE_CHARS,
    CUE_ITEMS,
    MAX_POST_CHARS,
    MAX_SPEECH_CHARS,
    MAX_WRITTEN_CHARS,
    ObservationRenderer,
    PromptWriter,
    ViewLine,
    ViewRow,
    list_lines,
)

_MAX_SETTING_CHARS = 1200


class DialogueRenderer(ObservationRenderer[DialogueObservation]):
    """Turns moments in a conversation into text."""

    def write_prompt(self, writer: PromptWriter, seen: DialogueObservation) -> None:
        if seen.partner_id == NOBODY:
            writer.add("You have nobody to talk to.")
            writer.add_news(seen.announcements)
            return
        about = f" ({clip(seen.partner_bio, MAX_POST_CHARS)})" if seen.partner_bio else ""
        writer.add(f"You talk with {seen.partner}{about}.")
        if seen.setting:
            writer.add(f"Scene {seen.scene}: {clip(seen.setting, _MAX_SETTING_CHARS)}")
        if seen.turning_point:
            writer.add(f"Meanwhile: {clip(seen.turning_point, _MAX_SETTING_CHARS)}")
        writer.add_news(seen.announcements)
        writer.add_pending(seen.pending)
        said = [
            f"{writer.name(line.speaker_id, line.speaker)}: {quote(line.content, MAX_SPEECH_CHARS)}"
            for line in seen.lines
        ]
        writer.add_latest("What was said:", said, "Nothing has been said yet.")
        turn = f"It is your turn ({seen.turn} of {seen.turns})."
        writer.lines.append("The scene is over: RATE it." if seen.rating else turn)

    def cue(self, seen: DialogueObservation) -> Iterator[str]:
        yield from (line.content[:CUE_CHARS] for line in seen.lines[-CUE_ITEMS:])

    def recall_sight(self, seen: DialogueObservation) -> str:
        line = seen.lines[-1] if seen.lines else None
        return f"{line.speaker}: {quote(line.content, MAX_WRITTEN_CHARS)}." if line else ""

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
