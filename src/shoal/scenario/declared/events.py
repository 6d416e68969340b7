"""Events: what a scenario makes happen during a run, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator

from shoal.scenario.declared.claims import Speaking
from shoal.scenario.declared.distributions import parse_stance
from shoal.scenario.declared.population import MOST_FOLLOWED, RANDOM, Name
from shoal.scenario.fields import DeclaredModel, Text, Who, Whole, make_tag
from shoal.scenario.validation.problems import InvalidValue, Path, Problem
from shoal.text import nearest, one_of


class _Event(DeclaredModel):
    """The base class of events."""

    @property
    def kind(self) -> str:
        """The word that the event is declared with."""
        return next(kind for kind, model in _KINDS.items() if isinstance(self, model))

    def mentions(self) -> Iterator[tuple[Path, str | int]]:
        """Yield the people that the event names, each with its path in the event."""
        by = getattr(self, "by", None)
        if by is not None and not (isinstance(self, PostEvent) and by in (RANDOM, MOST_FOLLOWED)):
            yield ("by",), by
        yield from (((field,), getattr(self, field)) for field in ("seat", "give_back") if hasattr(self, field))
        for field in ("mute", "join", "leave", "suspend", "cut", "to", "liked_by", "disliked_by"):
            yield from (((field, place), who) for place, who in enumerate(getattr(self, field, ())))


class _WorldEvent(_Event):
    """An event in one world or in all of them."""

    round: Annotated[Whole, Field(ge=1)] = Field(default=1, description="When.")
    world: Name | None = Field(
        default=None, description="Only in this world; default: in all worlds where it can happen."
    )


class PostEvent(Speaking, _WorldEvent):
    """A post in the name of a person."""

    post: Text = Field(description="What the post says.")
    by: Who = Field(default=RANDOM, description="Name or number of the author, random, or most_followed.")
    round: Annotated[Whole, Field(ge=0)] = Field(default=0, description="When; 0 is before round 1.")
    liked_by: tuple[Who, ...] = Field(default=(), description="Names or numbers of people who like it at once.")
    disliked_by: tuple[Who, ...] = Field(default=(), description="Names or numbers of people who dislike it at once.")

    @property
    def content(self) -> str:
        return self.post


class BroadcastEvent(Speaking, _WorldEvent):
    """A message that people receive, whatever else they see."""

    broadcast: Text = Field(description="What the message says.")
    to: tuple[Who, ...] = Field(default=(), description="Names or numbers of the people who receive it; default: all.")

    @property
    def content(self) -> str:
        return self.broadcast


#: Texts that agents see in every turn; a single one may stand without a list around it.
Context = Annotated[tuple[Text, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]

#: Traits that are numbers with bounds; anything else may be changed to anything.
_BOUNDS = {"stance": (-1, 1), "activity": (0, 1), "sentiment": (-1, 1)}

STIMULI = ("hear", "see", "think", "goal", "location")


class StimulusEvent(Speaking, _WorldEvent):
    """Something that reaches people in a room. Exactly one of the first five is given."""

    hear: Text | None = Field(default=None, description="Something they hear.")
    see: Text | None = Field(default=None, description="Something they see.")
    think: Text | None = Field(default=None, description="A thought that comes to them.")
    goal: Text | None = Field(default=None, description="A goal that they make their own.")
    location: Text | None = Field(default=None, description="Where they are from then on.")
    by: Who | None = Field(default=None, description="Name or number of the person it comes from; default: none.")
    to: tuple[Who, ...] = Field(default=(), description="Names or numbers of the people it reaches; default: all.")

    @property
    def kind(self) -> str:
        """Which of the five it is."""
        return next(kind for kind in STIMULI if getattr(self, kind) is not None)

    @property
    def content(self) -> str:
        return str(getattr(self, self.kind))


class ChangeEvent(_WorldEvent):
    """Something about people becomes different."""

    change: dict[str, Any] = Field(min_length=1, description="Trait -> new value, for example {stance: 0.5}.")
    to: tuple[Who, ...] = Field(default=(), description="Names or numbers of the people it concerns; default: all.")

    @field_validator("change")
    @classmethod
    def _check_bounds(cls, value: dict[str, Any]) -> dict[str, Any]:
        changed = {**value, **({"stance": parse_stance(value["stance"])} if "stance" in value else {})}
        for trait, (low, high) in _BOUNDS.items():
            number = changed.get(trait, low)
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not low <= number <= high:
                raise InvalidValue(Problem.mismatch(f"a number from {low} to {high}", number, trait))
        return changed


class ContextEvent(_WorldEvent):
    """The situation that people are in from then on. It replaces the one before."""

    context: Context = Field(description="A text or several; an empty list ends the situation before.")
    to: tuple[Who, ...] = Field(default=(), description="Names or numbers of the people it concerns; default: all.")


class MuteEvent(_WorldEvent):
    """People who take no turns for a while."""

    mute: Annotated[tuple[Who, ...], Field(min_length=1)] = Field(description="Names or numbers.")
    rounds: Annotated[Whole, Field(ge=1)] = Field(default=1, description="For how many rounds.")


class JoinEvent(_WorldEvent):
    """People who come in. They are not there before, unless they have left."""

    join: Annotated[tuple[Who, ...], Field(min_length=1)] = Field(description="Names or numbers.")


class LeaveEvent(_WorldEvent):
    """People who leave. They take no turns and perceive nothing until they join again."""

    leave: Annotated[tuple[Who, ...], Field(min_length=1)] = Field(description="Names or numbers.")


class SuspendEvent(_WorldEvent):
    """People whose accounts are suspended: nobody sees what they wrote or can find them until they join again."""

    suspend: Annotated[tuple[Who, ...], Field(min_length=1)] = Field(description="Names or numbers.")


class CutEvent(_WorldEvent):
    """People who lose all ties: they follow nobody and nobody follows them, until somebody follows anew."""

    cut: Annotated[tuple[Who, ...], Field(min_length=1)] = Field(description="Names or numbers.")


class StopEvent(_WorldEvent):
    """The end of the world's history."""

    stop: Text = Field(description="Why it ends here.")


_UNITS_IN_MINUTES = {"minute": 1, "hour": 60, "day": 1440, "week": 10_080}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(minute|hour|day|week)s?\s*", re.IGNORECASE)
_MAX_SKIP_MINUTES = 1_000 * 366 * 1440


def parse_minutes(value: object) -> int:
    """Turn `3 days`, `90 minutes` or a whole number of minutes into minutes."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    minutes = float(match[1]) * _UNITS_IN_MINUTES[match[2].lower()] if match else value
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or minutes != int(minutes) or minutes < 1:
        raise InvalidValue(Problem.mismatch("a time such as 3 days, 2 hours or 90 minutes", value))
    if minutes > _MAX_SKIP_MINUTES:
        raise InvalidValue(Problem.mismatch("at most 1,000 years", value))
    return int(minutes)


class SeatEvent(_WorldEvent):
    """A person at a keyboard takes somebody's turns from then on."""

    seat: Who = Field(description="Name or number of the agent.")
    seconds: Annotated[float, Field(ge=1, le=604_800)] = Field(
        default=120.0, description="How long the person may take for a turn."
    )
    otherwise: Literal["mind", "nothing"] = Field(
        default="mind", description="Who decides when that time is over: the agent's own mind, or nobody."
    )


class GiveBackEvent(_WorldEvent):
    """The agent's own mind takes its turns again."""

    give_back: Who = Field(description="Name or number of the agent.")


class SkipEvent(_Event):
    """Time that passes before a round without anybody acting."""

    skip: Annotated[int, BeforeValidator(parse_minutes)] = Field(
        description="How long, for example 3 days; a number means minutes."
    )
    round: Annotated[Whole, Field(ge=1)] = Field(default=1, description="Before which round.")

    @property
    def world(self) -> None:
        """Time passes everywhere."""
        return None


DeclaredEvent = (
    PostEvent
    | BroadcastEvent
    | StimulusEvent
    | ChangeEvent
    | ContextEvent
    | MuteEvent
    | JoinEvent
    | LeaveEvent
    | SuspendEvent
    | CutEvent
    | StopEvent
    | SeatEvent
    | GiveBackEvent
    | SkipEvent
)

_KINDS: Mapping[str, type[_Event]] = {
    "post": PostEvent,
    "broadcast": BroadcastEvent,
    **dict.fromkeys(STIMULI, StimulusEvent),
    "change": ChangeEvent,
    "context": ContextEvent,
    "mute": MuteEvent,
    "join": JoinEvent,
    "leave": LeaveEvent,
    "suspend": SuspendEvent,
    "cut": CutEvent,
    "stop": StopEvent,
    "seat": SeatEvent,
    "give_back": GiveBackEvent,
    "skip": SkipEvent,
}


def find_event_tag(value: object) -> str | None:
    if isinstance(value, Mapping):
        return next((make_tag(model) for kind, model in _KINDS.items() if value.get(kind) is not None), None)
    return make_tag(type(value)) if isinstance(value, _Event) else None


def require_event(value: object) -> object:
    if not isinstance(value, Mapping) or not value:
        if find_event_tag(value) is None:
            raise InvalidValue(Problem.mismatch("an event such as {post: text} or {broadcast: text}", value))
        return value
    kinds = [kind for kind in _KINDS if value.get(kind) is not None]
    if len(kinds) > 1:
        message = f"an event is one thing, found {' and '.join(kinds)}; write them as two events"
        raise InvalidValue(Problem((), message))
    for key in value if not kinds else ():
        if key in _KINDS:
            raise InvalidValue(Problem.mismatch("text", value[key], key))
        if nearest(key, _KINDS):
            raise InvalidValue(Problem.unknown("field", key, _KINDS, key, at_key=True))
    if not kinds:
        raise InvalidValue(Problem((), f"an event needs one of {one_of(_KINDS)}, found none of them"))
    return value


EventField = Annotated[
    Annotated[PostEvent, Tag(make_tag(PostEvent))]
    | Annotated[BroadcastEvent, Tag(make_tag(BroadcastEvent))]
    | Annotated[StimulusEvent, Tag(make_tag(StimulusEvent))]
    | Annotated[ChangeEvent, Tag(make_tag(ChangeEvent))]
    | Annotated[ContextEvent, Tag(make_tag(ContextEvent))]
    | Annotated[MuteEvent, Tag(make_tag(MuteEvent))]
    | Annotated[JoinEvent, Tag(make_tag(JoinEvent))]
    | Annotated[LeaveEvent, Tag(make_tag(LeaveEvent))]
    | Annotated[SuspendEvent, Tag(make_tag(SuspendEvent))]
    | Annotated[CutEvent, Tag(make_tag(CutEvent))]
    | Annotated[StopEvent, Tag(make_tag(StopEvent))]
    | Annotated[SeatEvent, Tag(make_tag(SeatEvent))]
    | Annotated[GiveBackEvent, Tag(make_tag(GiveBackEvent))]
    | Annotated[SkipEvent, Tag(make_tag(SkipEvent))],
    Discriminator(find_event_tag),
    BeforeValidator(require_event),
]
