"""What a scenario may say about minds."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Latency(BaseModel):
    """How long decisions take, drawn from a lognormal distribution."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    median_ms: float = Field(gt=0, description="Half of the decisions are faster than this.")
    sigma: float = Field(default=0.8, ge=0, le=3, description="Spread of the logarithm; 0: all take the same time.")


class HeuristicSettings(BaseModel):
    """The offline mind: a seeded classical agent model, never a language model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["heuristic"] = "heuristic"
    confidence: float = Field(default=0.6, ge=0, le=2, description="Opinions further away than this do not persuade.")
    persuasion: float = Field(
        default=0.08, ge=0, le=1, description="How far one agreeable post pulls the agent's opinion."
    )
    influence_rule: Literal["pull", "average"] = Field(
        default="pull",
        description="pull: each opinion pulls by `persuasion`, one after another; average: all of them count alike.",
    )
    attention: int = Field(
        default=3, ge=1, le=1_000_000, description="Opinions that count in one turn; in a room, the latest."
    )
    talkativeness: float = Field(
        default=1.0, ge=0, le=10, description="Multiplies the chance to write or speak rather than react."
    )
    outspoken: bool = Field(
        default=False, description="Everybody in a room says what they think of the topic, in every turn."
    )
    latency: Latency | None = Field(
        default=None,
        description="Let decisions take time and be journaled, as if a language model had been asked: a rehearsal.",
    )


class ScriptedTurn(BaseModel):
    """What one agent does in one round."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    round: int = Field(ge=1, description="The round.")
    agent: str | int = Field(description="Name or number of the agent.")
    world: str | None = Field(default=None, description="Only in this world; default: in all.")
    action: str = Field(description="Kind of action, for example CREATE_POST.")
    args: dict[str, Any] = Field(default_factory=dict, description="Arguments of the action.")


class ScriptedSettings(BaseModel):
    """Agents that do what is written down, and nothing else. Each turn is journaled like a reply from outside."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["scripted"]
    turns: tuple[ScriptedTurn, ...] = Field(default=(), description="Who does what, when.")
    latency: Latency | None = Field(default=None, description="Let decisions take time.")
