"""The parts of a prompt that are about one agent.

Prompts begin alike, so that a server can reuse what it has read: what all agents share, then who the agent is, then
what it remembers and sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.text import clip, outline
from shoal.types import Persona, Population

#: Persona texts that are kept before they are made anew.
_MAX_KEPT = 50_000
_MAX_BIO_CHARS = 300
_MAX_PERSONA_CHARS = 2400
_MAX_TRAITS_CHARS = 1200

_STANCES = (
    (0.6, "strongly in favour of"),
    (0.2, "rather in favour of"),
    (-0.2, "undecided about"),
    (-0.6, "rather against"),
    (-2.0, "strongly against"),
)
_MOODS = ((0.5, "bright"), (0.1, "rather bright"), (-0.1, "even"), (-0.5, "rather gloomy"), (-2.0, "gloomy"))

#: Traits that only the world uses, or that the prompt gives elsewhere.
_NOT_TOLD = frozenset({"influence", "response_delay", "activity", "stance", "sentiment", "relationships", "group"})
#: Traits that a generated persona says already.
_IN_PERSONA = frozenset({"age", "gender", "country", "profession"})
_PRONOUNS = {"female": " She ", "male": " He ", "other": " They "}


def join_prompt(persona: str, memory: str, sight: str) -> str:
    """Join the part of a prompt for one agent alone. Not every server takes two messages of one role in a row."""
    remembered = f"# What you remember\n{memory.rstrip()}\n\n" if memory else ""
    return f"{persona}\n\n{remembered}{sight}\n\nWhat do you do? Reply in JSON."


def persona_text(persona: Persona, topic: str | None, changed: Mapping[str, Any]) -> str:
    """Return the part of a prompt that says who the agent is, and what has changed about them since."""
    lines = [f"# Who you are\nYou are {persona.name}. {clip(persona.persona, _MAX_PERSONA_CHARS)}"]
    if persona.bio:
        lines.append(f"Your profile says: {clip(persona.bio, _MAX_BIO_CHARS)}")
    told = {
        name: value
        for name, value in persona.traits.items()
        if not (name in _IN_PERSONA and _PRONOUNS.get(value, str(value)) in persona.persona)
    }
    lines += _outline_traits(told)
    if sentiment := persona.traits.get("sentiment"):
        lines.append(f"Your mood is mostly {_word(_MOODS, sentiment)}.")
    stance = changed.get("stance")
    if topic is not None and stance is not None:
        lines.append(f"You have changed your mind: you are now {_word(_STANCES, stance)} {topic}.")
    elif topic is not None and "stance" not in changed:
        opinion = f"{_word(_STANCES, persona.stance)} {topic}"
        # The persona may say it in these very words already.
        lines += [] if opinion in persona.persona else [f"You are {opinion}."]
    lines += (f"What is new about you:\n{traits}" for traits in _outline_traits(changed))
    return "\n".join(lines)


def _outline_traits(traits: Mapping[str, Any]) -> list[str]:
    told = {name.replace("_", " "): value for name, value in traits.items() if name not in _NOT_TOLD}
    return [outline(told, _MAX_TRAITS_CHARS)] if told else []


def _word(scale: tuple[tuple[float, str], ...], value: float) -> str:
    return next(words for bound, words in scale if value >= bound)


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
        """Return the part of the agent's prompt that says who it is."""
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
