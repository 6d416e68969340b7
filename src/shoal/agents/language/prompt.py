"""Prompts, put together so that they begin alike: what all share, then who one is, then what one remembers and sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from shoal.agents.language.reply import complaint
from shoal.agents.language.world_card import WorldCard
from shoal.agents.settings import LanguageSettings
from shoal.journal import JournalKey
from shoal.models.base import Message, Question
from shoal.text import clip, outline
from shoal.types import Persona, Population

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


class TurnKey(NamedTuple):
    """Whose turn it is, who is asked, and in which run of the same scenario."""

    key: JournalKey
    model: str
    seed: int


def first_question(occasion: TurnKey, prompt: Prompt, card: WorldCard, settings: LanguageSettings) -> Question:
    """The question for a turn. Runs with different seeds are different samples, also where they ask the same."""
    return Question(
        key=occasion.key,
        model=occasion.model,
        iteration=occasion.seed,
        messages=(Message("system", card.text), Message("user", prompt.text())),
        schema=card.schema,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
    )


def correction_question(first: Question, reply: str, complaints: tuple[str, ...]) -> Question:
    """The same question again, with what was wrong about the reply."""
    said = Message("assistant", reply[:_MAX_REPLY_CHARS] or "(nothing)")
    return Question(
        key=first.key.next(),
        model=first.model,
        messages=(*first.messages, said, Message("user", complaint(complaints))),
        schema=first.schema,
        temperature=first.temperature,
        max_tokens=first.max_tokens,
        iteration=first.iteration,
    )


MAX_BIO_CHARS = 300
MAX_PERSONA_CHARS = 2400
MAX_TRAITS_CHARS = 1200

_STANCES = (
    (0.6, "strongly in favour of"),
    (0.2, "rather in favour of"),
    (-0.2, "undecided about"),
    (-0.6, "rather against"),
    (-2.0, "strongly against"),
)
_MOODS = ((0.5, "bright"), (0.1, "rather bright"), (-0.1, "even"), (-0.5, "rather gloomy"), (-2.0, "gloomy"))

#: The world's business, or said elsewhere.
_NOT_TOLD = frozenset({"influence", "response_delay", "activity", "stance", "sentiment", "relationships", "group"})
#: What a persona that Shoal made from them says already.
_IN_PERSONA = frozenset({"age", "gender", "country", "profession"})
_PRONOUNS = {"female": " She ", "male": " He ", "other": " They "}


def persona_text(persona: Persona, topic: str | None, changed: Mapping[str, Any]) -> str:
    """The part of a prompt that says who the agent is, and what has changed about them since."""
    lines = [f"# Who you are\nYou are {persona.name}. {clip(persona.persona, MAX_PERSONA_CHARS)}"]
    if persona.bio:
        lines.append(f"Your profile says: {clip(persona.bio, MAX_BIO_CHARS)}")
    lines += _traits(persona.persona, persona.traits)
    if topic is not None and "stance" not in changed:
        lines += _opinion(persona, topic)
    lines += _changes(changed, topic)
    return "\n".join(lines)


def _traits(persona: str, traits: Mapping[str, Any]) -> list[str]:
    told = {
        name.replace("_", " "): value
        for name, value in traits.items()
        if name not in _NOT_TOLD and not (name in _IN_PERSONA and _PRONOUNS.get(value, str(value)) in persona)
    }
    lines = [outline(told, MAX_TRAITS_CHARS)] if told else []
    sentiment = traits.get("sentiment")
    return [*lines, f"Your mood is mostly {_word(_MOODS, sentiment)}."] if sentiment else lines


def _opinion(persona: Persona, topic: str) -> list[str]:
    """Where the persona does not say it in these words already."""
    stance = _word(_STANCES, persona.stance)
    return [] if f"{stance} {topic}" in persona.persona else [f"You are {stance} {topic}."]


def _changes(changed: Mapping[str, Any], topic: str | None) -> list[str]:
    lines = []
    stance = changed.get("stance")
    if stance is not None and topic is not None:
        lines.append(f"You have changed your mind: you are now {_word(_STANCES, stance)} {topic}.")
    told = {name.replace("_", " "): value for name, value in changed.items() if name not in _NOT_TOLD}
    return [*lines, f"What is new about you:\n{outline(told, MAX_TRAITS_CHARS)}"] if told else lines


def _word(scale: tuple[tuple[float, str], ...], value: float) -> str:
    return next(words for bound, words in scale if value >= bound)


#: Personas kept in words before they are made anew.
_MAX_KEPT = 50_000


class PersonaTexts:
    """Who people are, and what has changed about them since the run began."""

    def __init__(self, population: Population, topic: str | None) -> None:
        self.names: Sequence[str] = population.names
        self._population = population
        self._topic = topic
        self._texts: dict[int, str] = {}
        self._groups: dict[int, str | None] = {}
        self._changed: dict[int, dict[str, Any]] = {}

    def persona(self, agent: int) -> str:
        text = self._texts.get(agent)
        if text is None:
            if len(self._texts) >= _MAX_KEPT:
                self._texts.clear()
            text = persona_text(self._population[agent], self._topic, self._changed.get(agent, {}))
            self._texts[agent] = text
        return text

    def group(self, agent: int) -> str | None:
        if agent not in self._groups:
            group = self._population[agent].traits.get("group")
            self._groups[agent] = None if group is None else str(group)
        return self._groups[agent]

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._changed[agent] = {**self._changed.get(agent, {}), **traits}
        self._texts.pop(agent, None)
