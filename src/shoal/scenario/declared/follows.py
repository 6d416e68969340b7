"""The follow graph as declared: which graph to draw, and edges written by hand or in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.population import FullPath
from shoal.scenario.fields import DeclaredModel, Number, Text, Who
from shoal.scenario.importers.edges import Edges, read_edges
from shoal.scenario.validation.problems import InvalidValue, Problem
from shoal.text import one_of

GraphKind = Literal["scale-free", "small-world", "homophilous", "none"]
GRAPHS: tuple[str, ...] = get_args(GraphKind)


class EdgeColumns(DeclaredModel):
    """The columns of a file of edges."""

    source: Text = Field(alias="from", description="The column with the follower.")
    target: Text = Field(alias="to", description="The column with the followed person.")


class FollowSettings(DeclaredModel):
    """How the follow graph is made."""

    graph: GraphKind | None = Field(
        default=None,
        description="scale-free, small-world, homophilous or none; default: scale-free where people are drawn in "
        "groups and no file says whom anybody follows, else none.",
    )
    mean_degree: Annotated[Number, Field(ge=0, le=10_000)] = Field(
        default=8.0, description="How many others a person follows on average."
    )
    rewire: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=0.1, description="small-world: share of edges that go to anybody instead of a neighbour."
    )
    homophily: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=0.8, description="homophilous: share of edges that go to people of similar stance."
    )
    edges: tuple[tuple[Who, Who], ...] = Field(
        default=(), description="[follower, followed] by name or number, in addition to the graph."
    )
    file: FullPath | None = Field(
        default=None, description="Edges in a file, CSV, TSV, text, JSONL or GraphML, in addition to the graph."
    )
    columns: EdgeColumns | None = Field(
        default=None, description="The file's columns; default: those with usual names, else the first two."
    )
    by: Text | None = Field(
        default=None,
        description="Trait in which the ends of the file, or without one of `follows` columns, are found; default: "
        "names, usernames, numbers.",
    )

    _from_file: Edges | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _read(self) -> FollowSettings:
        if self.file is None:
            return self
        columns = None if self.columns is None else (self.columns.source, self.columns.target)
        try:
            self._from_file = read_edges(Path(self.file), columns)
        except ScenarioInvalid as error:
            raise InvalidValue(*(Problem(("file",), text) for text in error.problems)) from error
        return self

    @property
    def from_file(self) -> Edges | None:
        return self._from_file


def parse_follows(value: object) -> object:
    """Expand the short form, the kind of graph alone. A mean degree alone asks for a graph too."""
    if isinstance(value, str):
        if value not in GRAPHS:
            raise InvalidValue(Problem.unknown("graph", value, GRAPHS, expected=one_of(GRAPHS)))
        return {"graph": value}
    if not isinstance(value, (Mapping, FollowSettings)):
        raise InvalidValue(Problem.mismatch(f"{one_of(GRAPHS)}, or a mapping of settings", value))
    if isinstance(value, Mapping) and "graph" not in value and value.get("file") is None and "mean_degree" in value:
        return {**value, "graph": "scale-free"}
    return value


Follows = Annotated[FollowSettings, BeforeValidator(parse_follows)]
