"""Who follows whom when the run starts, as declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field

from shoal.scenario.fields import Model, Number, Who
from shoal.scenario.problems import expected, hint, one_of, wrong

GraphKind = Literal["scale-free", "small-world", "homophilous", "none"]
GRAPHS: tuple[str, ...] = get_args(GraphKind)


class FollowSettings(Model):
    """How the follow graph is made."""

    graph: GraphKind = Field(default="scale-free", description="scale-free, small-world, homophilous or none.")
    mean_degree: Annotated[Number, Field(ge=0, le=10_000)] = Field(
        default=8.0, description="How many others a person follows on average."
    )
    rewire: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=0.1, description="small-world: share of links that go to anybody instead of a neighbour."
    )
    homophily: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=0.8, description="homophilous: share of links that go to people of similar stance."
    )
    edges: tuple[tuple[Who, Who], ...] = Field(
        default=(), description="[follower, followed] by name or number, in addition to the graph."
    )


def _settings(value: object) -> object:
    if isinstance(value, str):
        if value not in GRAPHS:
            raise wrong(f"unknown graph {value!r}, expected {one_of(GRAPHS)}{hint(value, GRAPHS)}")
        return {"graph": value}
    if not isinstance(value, (Mapping, FollowSettings)):
        raise wrong(expected(f"{one_of(GRAPHS)}, or a mapping of settings", value))
    return value


Follows = Annotated[FollowSettings, BeforeValidator(_settings)]
