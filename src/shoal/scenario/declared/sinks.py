"""Sinks as declared: where what a run commits is copied to while it goes on."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from shoal.scenario.fields import DeclaredModel, Text


class SinkSettings(DeclaredModel):
    """A place that the actions of a run are copied to while it goes on, as sentences and facts."""

    kind: Literal["graph", "zep", "neo4j"] = Field(
        description="graph: the file graph.db in the run's directory; zep: a graph of Zep; neo4j: a server that speaks "
        "Bolt."
    )
    address: Text | None = Field(
        default=None, description="Address of the server; default: https://api.getzep.com or bolt://localhost:7687."
    )
    graph: Text | None = Field(
        default=None, description="Zep's graph; default: the graph_id of MiroFish, or shoal- and the run's name."
    )
    user: Text = Field(default="neo4j", description="User at a Bolt server.")
    database: Text | None = Field(default=None, description="Database of a Bolt server; default: the server's own.")
    key_variable: Text | None = Field(
        default=None,
        description="Environment variable that holds the key or password; default: ZEP_API_KEY or NEO4J_PASSWORD.",
    )

    @model_validator(mode="before")
    @classmethod
    def _name_kind(cls, value: Any) -> Any:
        """Read `zep` as `{kind: zep}`."""
        return {"kind": value} if isinstance(value, str) else value

    @property
    def name(self) -> str:
        """What the state of a run calls it."""
        return self.kind
