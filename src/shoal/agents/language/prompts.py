"""Prompts, put together so that they begin alike: what all share, then who one is, then what one remembers and sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from shoal.agents.language.cards import WorldCard
from shoal.agents.language.reading import complaint
from shoal.agents.settings import LanguageSettings
from shoal.models.question import Message, Question

#: Of a reply that could not be used, so much is shown to its author again.
_MAX_REPLY_CHARS = 1500


@dataclass(frozen=True, slots=True)
class Prompt:
    """The parts of one agent's prompt, in the order in which they are told."""

    persona: str
    memory: str
    sight: str

    def text(self) -> str:
        """What is told to one agent only. One message: not every server takes two of the same role in a row."""
        remembered = f"# What you remember\n{self.memory.rstrip()}\n\n" if self.memory else ""
        return f"{self.persona}\n\n{remembered}{self.sight}\n\nWhat do you do? Reply in JSON."


class Occasion(NamedTuple):
    """Whose turn it is, who is asked, and in which run of the same scenario."""

    key: str
    model: str
    seed: int


def first_question(occasion: Occasion, prompt: Prompt, card: WorldCard, settings: LanguageSettings) -> Question:
    """The question for a turn. Runs with different seeds are different samples, also where they ask the same."""
    return Question(
        key=f"{occasion.key}/decide/0",
        model=occasion.model,
        iteration=occasion.seed,
        messages=(Message("system", card.text), Message("user", prompt.text())),
        schema=card.schema,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
    )


def second_question(first: Question, reply: str, complaints: tuple[str, ...]) -> Question:
    """The same question again, with what was wrong about the reply."""
    said = Message("assistant", reply[:_MAX_REPLY_CHARS] or "(nothing)")
    return Question(
        key=first.key[:-1] + "1",
        model=first.model,
        messages=(*first.messages, said, Message("user", complaint(complaints))),
        schema=first.schema,
        temperature=first.temperature,
        max_tokens=first.max_tokens,
        iteration=first.iteration,
    )
