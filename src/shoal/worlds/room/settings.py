"""What a scenario may say about a room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from shoal.worlds.world_kind import Path, Who, WorldSettings

Hearing = Literal["everyone", "neighbours", "relations", "pairs"]
Turns = Literal["parallel", "sequential"]


class RelationSettings(BaseModel):
    """How two people stand to one another when the run starts, or how one stands to the other. A pair may have many."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    between: tuple[Who, Who] = Field(description="Names or numbers of the two.")
    relation: str = Field(
        min_length=1, description="What they are to one another, such as: sisters. Or what the first is to the second."
    )
    mutual: bool = Field(
        default=True, description="false: only the first one knows it, such as: manager of. The second has their own."
    )


class RoomSettings(WorldSettings):
    """People who hear one another."""

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
        description="Who hears words that address no one: everyone; neighbours, who follow or are followed; "
        "relations; or pairs, drawn anew each round.",
    )
    location: str = Field(
        default="", description="Where everybody is at first; people hear those who are where they are."
    )
    relations: tuple[RelationSettings, ...] = Field(default=(), description="How people stand to one another.")
    one_relation: bool = Field(
        default=False,
        description="Whether two people have one relation at a time, which both know, as in runs of earlier versions.",
    )
    quiet_rounds: int | None = Field(
        default=None, ge=1, description="The run of the room ends after this many rounds without a word."
    )
    actions: tuple[str, ...] | None = Field(
        default=None, description="The only actions allowed, besides DONE; default: all."
    )

    def offers(self, action: str) -> bool:
        return self.actions is None or action in (*self.actions, "DONE")

    def mentions(self) -> Iterator[tuple[Path, Who]]:
        for index, relation in enumerate(self.relations):
            yield from ((("relations", index, "between", end), who) for end, who in enumerate(relation.between))

    def problems(self, number: Callable[[Who], Who]) -> Iterator[tuple[Path, str]]:
        for index, relation in enumerate(self.relations):
            first, second = relation.between
            if number(first) == number(second):
                yield ("relations", index, "between"), f"{first!r} cannot be related to themselves"
