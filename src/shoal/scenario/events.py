"""What is made to happen during a run, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag

from shoal.scenario.entries import RANDOM, Name
from shoal.scenario.fields import Model, Text, Who, Whole
from shoal.scenario.problems import expected, hint, wrong, wrong_key


class PostEvent(Model):
    """A post in somebody's name."""

    post: Text = Field(description="What the post says.")
    by: Who = Field(default=RANDOM, description="Name or number of the author, random, or most_followed.")
    round: Annotated[Whole, Field(ge=0)] = Field(default=0, description="When; 0 is before round 1.")
    world: Name | None = Field(default=None, description="Only in this world; default: in all.")


class BroadcastEvent(Model):
    """A message that people receive, whatever their feed shows them."""

    broadcast: Text = Field(description="What the message says.")
    to: tuple[Who, ...] = Field(default=(), description="Names or numbers of who receives it; default: everybody.")
    round: Annotated[Whole, Field(ge=1)] = Field(default=1, description="When.")
    world: Name | None = Field(default=None, description="Only in this world; default: in all.")


_KINDS = ("post", "broadcast")


def _which(value: object) -> str | None:
    if isinstance(value, Mapping):
        return next((f"<{kind}>" for kind in _KINDS if kind in value), None)
    if isinstance(value, PostEvent):
        return "<post>"
    return "<broadcast>" if isinstance(value, BroadcastEvent) else None


def _require_event(value: object) -> object:
    if isinstance(value, Mapping) and value:
        _require_kind(value)
    elif _which(value) is None:
        raise wrong(expected("an event such as {post: text} or {broadcast: text}", value))
    return value


def _require_kind(value: Mapping[str, Any]) -> None:
    if all(kind in value for kind in _KINDS):
        raise wrong("an event is a `post` or a `broadcast`, not both")
    if _which(value) is not None:
        return
    for key in value:
        if guess := hint(key, _KINDS):
            raise wrong_key(f"unknown field {key!r}{guess}", key)
    raise wrong("an event needs a `post` or a `broadcast`, found neither")


Event = Annotated[
    Annotated[PostEvent, Tag("<post>")] | Annotated[BroadcastEvent, Tag("<broadcast>")],
    Discriminator(_which),
    BeforeValidator(_require_event),
]
