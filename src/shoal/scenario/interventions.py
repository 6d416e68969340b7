"""What is made to happen when something has happened."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator

from shoal.scenario.conditions import Condition, Unreadable, understood
from shoal.scenario.entries import Name
from shoal.scenario.events import Event, SkipEvent
from shoal.scenario.fields import Model, Text, Whole
from shoal.scenario.problems import Problem, refuse, wrong


def _several(value: object) -> object:
    """One event alone may stand without a list around it."""
    return value if isinstance(value, (list, tuple)) else (value,)


class Intervention(Model):
    """When a condition holds after a round, do this in the next."""

    when: Text = Field(description='What must hold, for example: total("CREATE_POST") > 100 and round >= 5.')
    do: Annotated[tuple[Event, ...], Field(min_length=1), BeforeValidator(_several)] = Field(
        description="Events as in `events`, without a round."
    )
    name: Text | None = Field(default=None, description="What to call it in the stream; default: its condition.")
    times: Annotated[Whole, Field(ge=1)] = Field(default=1, description="How often at most.")
    pause: Annotated[Whole, Field(ge=0)] = Field(default=0, description="Rounds before it may happen again.")
    world: Name | None = Field(default=None, description="Only in this world; default: in each for itself.")

    @field_validator("when")
    @classmethod
    def _readable(cls, value: str) -> str:
        try:
            understood(value)
        except Unreadable as error:
            raise wrong(str(error)) from None
        return value

    @field_validator("do")
    @classmethod
    def _undated(cls, value: tuple[Event, ...]) -> tuple[Event, ...]:
        problems = [
            Problem((index, field), f"{field} has no place here: it happens when and where the condition holds")
            for index, event in enumerate(value)
            for field in ("round", "world")
            if field in event.model_fields_set and getattr(event, field) != type(event).model_fields[field].default
        ]
        problems += [
            Problem((index,), "time cannot be skipped by an intervention; schedule it under `events`")
            for index, event in enumerate(value)
            if isinstance(event, SkipEvent)
        ]
        if problems:
            raise refuse(*problems)
        return value

    @property
    def condition(self) -> Condition:
        return understood(self.when)
