"""What is made to happen during a run, and when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator

from shoal.scenario.declared.distributions import stance_number
from shoal.scenario.declared.population import RANDOM, Name
from shoal.scenario.fields import DeclaredModel, Text, Who, Whole
from shoal.scenario.validation.problems import expected, wrong, wrong_key
from shoal.text import hint, one_of


class _Timed(DeclaredModel):
    round: Annotated[Whole, Field(ge=1)] = Field(default=1, description="When.")
    world: Name | None = Field(default=None, description="Only in this world; default: in all that know such a thing.")


class PostEvent(_Timed):
    """A post in somebody's name."""

    post: Text = Field(description="What the post says.")
    by: Who = Field(default=RANDOM, description="Name or number of the author, random, or most_followed.")
    round: Annotated[Whole, Field(ge=0)] = Field(default=0, description="When; 0 is before round 1.")


class BroadcastEvent(_Timed):
    """A message that people receive, whatever else they see."""

    broadcast: Text = Field(description="What the message says.")
    to: tuple[Who, ...] = Field(default=(), description="Names or numbers of who receives it; default: everybody.")


#: Traits that are numbers with bounds; anything else may be changed to anything.
_BOUNDS = {"stance": (-1, 1), "activity": (0, 1), "sentiment": (-1, 1)}

STIMULI = ("hear", "see", "think", "goal", "location")


class StimulusEvent(_Timed):
    """Something that reaches people in a room. Exactly one of the first five is given."""

    hear: Text | None = Field(default=None, description="Something they hear.")
    see: Text | None = Field(default=None, description="Something they see.")
    think: Text | None = Field(default=None, description="A thought that comes to them.")
    goal: Text | None = Field(default=None, description="A goal that they make their own.")
    location: Text | None = Field(default=None, description="Where they are from then on.")
    by: Who | None = Field(default=None, description="Name or number of who it comes from; default: nobody.")
    to: tuple[Who, ...] = Field(default=(), description="Names or numbers of whom it reaches; default: everybody.")

    @property
    def kind(self) -> str:
        return next(kind for kind in STIMULI if getattr(self, kind) is not None)

    @property
    def content(self) -> str:
        return str(getattr(self, self.kind))


class ChangeEvent(_Timed):
    """Something about people becomes different."""

    change: dict[str, Any] = Field(min_length=1, description="Trait -> new value, for example {stance: 0.5}.")
    to: tuple[Who, ...] = Field(default=(), description="Names or numbers of whom it concerns; default: everybody.")

    @field_validator("change")
    @classmethod
    def _sensible(cls, value: dict[str, Any]) -> dict[str, Any]:
        changed = {**value, **({"stance": stance_number(value["stance"])} if "stance" in value else {})}
        for trait, (low, high) in _BOUNDS.items():
            number = changed.get(trait, low)
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not low <= number <= high:
                raise wrong(expected(f"a number from {low} to {high}", number), trait)
        return changed


class MuteEvent(_Timed):
    """People who take no turns for a while."""

    mute: Annotated[tuple[Who, ...], Field(min_length=1)] = Field(description="Names or numbers.")
    rounds: Annotated[Whole, Field(ge=1)] = Field(default=1, description="For how many rounds.")


class StopEvent(_Timed):
    """The end of the world's history."""

    stop: Text = Field(description="Why it ends here.")


_UNITS = {"minute": 1, "hour": 60, "day": 1440, "week": 10_080}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(minute|hour|day|week)s?\s*", re.IGNORECASE)
_MAX_SKIP_MINUTES = 1_000 * 366 * 1440


def duration(value: object) -> int:
    """`3 days`, `90 minutes` or a whole number of minutes, as minutes."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    minutes = float(match[1]) * _UNITS[match[2].lower()] if match else value
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or minutes != int(minutes) or minutes < 1:
        raise wrong(expected("a time such as 3 days, 2 hours or 90 minutes", value))
    if minutes > _MAX_SKIP_MINUTES:
        raise wrong(expected("at most 1,000 years", value))
    return int(minutes)


class SkipEvent(DeclaredModel):
    """Time that passes before a round without anybody acting."""

    skip: Annotated[int, BeforeValidator(duration)] = Field(
        description="How long, for example 3 days; a number means minutes."
    )
    round: Annotated[Whole, Field(ge=1)] = Field(default=1, description="Before which round.")

    @property
    def world(self) -> None:
        """Time passes everywhere."""
        return None


DeclaredEvent = PostEvent | BroadcastEvent | StimulusEvent | ChangeEvent | MuteEvent | StopEvent | SkipEvent

_KINDS: Mapping[str, type[DeclaredModel]] = {
    "post": PostEvent,
    "broadcast": BroadcastEvent,
    **dict.fromkeys(STIMULI, StimulusEvent),
    "change": ChangeEvent,
    "mute": MuteEvent,
    "stop": StopEvent,
    "skip": SkipEvent,
}


def _tag(model: type[DeclaredModel]) -> str:
    return f"<{model.__name__.removesuffix('Event').lower()}>"


def _which(value: object) -> str | None:
    if isinstance(value, Mapping):
        return next((_tag(model) for kind, model in _KINDS.items() if value.get(kind) is not None), None)
    return _tag(type(value)) if isinstance(value, DeclaredEvent) else None


def _require_event(value: object) -> object:
    if isinstance(value, Mapping) and value:
        _require_kind(value)
    elif _which(value) is None:
        raise wrong(expected("an event such as {post: text} or {broadcast: text}", value))
    return value


def _require_kind(value: Mapping[str, Any]) -> None:
    kinds = [kind for kind in _KINDS if value.get(kind) is not None]
    if len(kinds) > 1:
        raise wrong(f"an event is one thing, found {' and '.join(kinds)}; write them as two events")
    if kinds:
        return
    for key in value:
        if key in _KINDS:
            raise wrong(expected("text", value[key]), key)
        if guess := hint(key, _KINDS):
            raise wrong_key(f"unknown field {key!r}{guess}", key)
    raise wrong(f"an event needs one of {one_of(_KINDS)}, found none of them")


EventField = Annotated[
    Annotated[PostEvent, Tag("<post>")]
    | Annotated[BroadcastEvent, Tag("<broadcast>")]
    | Annotated[StimulusEvent, Tag("<stimulus>")]
    | Annotated[ChangeEvent, Tag("<change>")]
    | Annotated[MuteEvent, Tag("<mute>")]
    | Annotated[StopEvent, Tag("<stop>")]
    | Annotated[SkipEvent, Tag("<skip>")],
    Discriminator(_which),
    BeforeValidator(_require_event),
]


def kind_of(event: DeclaredEvent) -> str:
    """The word that an event is declared with."""
    if isinstance(event, StimulusEvent):
        return event.kind
    return type(event).__name__.removesuffix("Event").lower()
