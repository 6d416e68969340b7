"""What a scenario may say about a room."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Hearing = Literal["everyone", "neighbours", "relations", "pairs"]
Turns = Literal["parallel", "sequential"]


class RelationSettings(BaseModel):
    """How two people stand to one another when the run starts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    between: tuple[str | int, str | int] = Field(description="Names or numbers of the two.")
    relation: str = Field(min_length=1, description="What they are to one another, such as: sisters.")


class RoomSettings(BaseModel):
    """People who hear one another."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["room"] = Field(default="room", description="A room.")
    turns: Turns = Field(
        default="parallel",
        description="parallel: all act on one picture; sequential: each sees what the one before did.",
    )
    order: Literal["random", "listed"] = Field(
        default="random", description="Who goes first when turns are sequential: drawn anew each round, or as listed."
    )
    hearing: Hearing = Field(
        default="everyone",
        description="Who hears what is said to nobody in particular: everyone; neighbours, who follow or are followed; "
        "relations; or pairs, drawn anew each round.",
    )
    location: str = Field(
        default="", description="Where everybody is at first; people hear those who are where they are."
    )
    relations: tuple[RelationSettings, ...] = Field(default=(), description="How people stand to one another.")
    quiet_rounds: int | None = Field(
        default=None, ge=1, description="The room empties after so many rounds in which nobody spoke."
    )
    actions: tuple[str, ...] | None = Field(
        default=None, description="The only actions allowed, besides DONE; default: all."
    )
