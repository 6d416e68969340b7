"""Conclusions from a stretch of the past: the question to the model, and how its answer is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.journal import JournalKey
from shoal.models import Message, Question, estimate, shorten

#: Conclusions from one stretch, and the tokens of each.
MAX_INSIGHTS = 3
INSIGHT_TOKENS = 40
ANSWER_TOKENS = 300

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"insights": {"type": "array", "items": {"type": "string"}}},
    "required": ["insights"],
    "additionalProperties": False,
}

#: The same for all agents, so that servers can cache it as a prefix.
_TASK = (
    "You keep the long-term memory of one person. You are given what the person already knows and what the person has "
    f"just lived through. Write down at most {MAX_INSIGHTS} new conclusions that will matter later: about other "
    "people, about what was said to be true and by whom, about what the person did, promised or came to think. Each is "
    "one short sentence, names names, is in the language of the notes, and repeats nothing that is already known. "
    'Answer with JSON: {"insights": ["..."]}. If nothing will matter, the list is empty.'
)


class _InsightsReply(msgspec.Struct):
    insights: list[str]


_decode = msgspec.json.Decoder(_InsightsReply).decode


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of an agent's past to draw conclusions from, and the tokens that all its conclusions may take."""

    key: JournalKey
    model: str
    #: The seed of the run, so that runs with other seeds are not answered from the cache.
    iteration: int
    name: str
    lines: tuple[str, ...]
    tokens: int

    def build_question(self, known: Sequence[str]) -> Question:
        notes = "".join(format_insight(insight) for insight in known) or "- nothing yet\n"
        text = f"The person: {self.name}\n\nAlready known:\n{notes}\nLived through:\n{''.join(self.lines)}"
        return Question(
            key=self.key,
            model=self.model,
            messages=(Message("system", _TASK), Message("user", text)),
            schema=SCHEMA,
            max_tokens=ANSWER_TOKENS,
            iteration=self.iteration,
        )

    def merge(self, known: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
        """Return the newest conclusions that fit, oldest first."""
        everything = [*known, *(insight for insight in new if insight not in known)]
        left, kept = self.tokens, 0
        for insight in reversed(everything):
            left -= estimate(format_insight(insight))
            if left < 0:
                break
            kept += 1
        return tuple(everything[len(everything) - kept :])


def format_insight(insight: str) -> str:
    return f"- {insight}\n"


def read_insights(text: str) -> list[str] | None:
    """Read the conclusions in an answer, also where the model wrote something around them; None if there are none."""
    try:
        insights = _decode(text[text.find("{") : text.rfind("}") + 1]).insights
    except (msgspec.DecodeError, RecursionError):
        return None
    cleaned = (shorten(" ".join(insight.split()), INSIGHT_TOKENS) for insight in insights)
    return [insight for insight in dict.fromkeys(cleaned) if insight][:MAX_INSIGHTS]
