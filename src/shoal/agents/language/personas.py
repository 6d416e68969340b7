"""Who somebody is, in words: no figure that a person would not say about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.agents.language.wording import clipped, outlined
from shoal.types import Persona

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


def in_words(persona: Persona, topic: str | None, changed: Mapping[str, Any]) -> str:
    """The part of a prompt that says who the agent is, and what has changed about them since."""
    lines = [f"# Who you are\nYou are {persona.name}. {clipped(persona.persona, MAX_PERSONA_CHARS)}"]
    if persona.bio:
        lines.append(f"Your profile says: {clipped(persona.bio, MAX_BIO_CHARS)}")
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
    lines = [outlined(told, MAX_TRAITS_CHARS)] if told else []
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
    return [*lines, f"What is new about you:\n{outlined(told, MAX_TRAITS_CHARS)}"] if told else lines


def _word(scale: tuple[tuple[float, str], ...], value: float) -> str:
    return next(words for bound, words in scale if value >= bound)
