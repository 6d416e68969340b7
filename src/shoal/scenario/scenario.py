"""A scenario: everything that a user declares about a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from shoal.agents import HeuristicSettings, MeasureSettings
from shoal.scenario.declared.claims import DeclaredClaim
from shoal.scenario.declared.events import Context, EventField
from shoal.scenario.declared.follows import Follows, FollowSettings
from shoal.scenario.declared.interventions import Intervention
from shoal.scenario.declared.kinds import MindField, Variables, Worlds, count_rounds_needed
from shoal.scenario.declared.population import Entries
from shoal.scenario.declared.sinks import SinkSettings
from shoal.scenario.fields import DeclaredModel, Number, Text, Who, Whole, refuse_coercion
from shoal.scenario.validation.problems import InvalidValue, Problem
from shoal.worlds import DEFAULT_WORLDS, TimeSettings

MAX_ROUNDS = 1_000_000
#: Decisions made at once by minds that ask something else than a model of a known server.
USUAL_WORKERS = 64


class BudgetSettings(DeclaredModel):
    """What language models may cost. Reaching any of it stops the run cleanly; it goes on with a larger one."""

    max_cost: Annotated[Number, Field(gt=0)] | None = Field(default=None, description="US dollars.")
    max_tokens: Annotated[Whole, Field(ge=1)] | None = Field(default=None, description="Tokens sent and received.")
    max_calls: Annotated[Whole, Field(ge=1)] | None = Field(default=None, description="Calls that are answered.")


class Scenario(DeclaredModel):
    """Everything that a user declares about a run."""

    name: Annotated[Text, Field(max_length=80)] = Field(default="scenario", description="Letters, digits, - and _.")
    topic: Text | None = Field(default=None, description="What people talk about, for example: the old bridge.")
    claims: tuple[DeclaredClaim, ...] = Field(
        default=(), description="Statements that people may believe or not, each {id: ..., text: ..., truth: false}."
    )
    seed: Whole = Field(default=1, description="Everything drawn at random follows from it.")
    rounds: Annotated[Whole, Field(ge=1, le=MAX_ROUNDS)] = Field(default=24, description="How many rounds to run.")
    time: Annotated[TimeSettings, refuse_coercion(TimeSettings)] = Field(
        default=TimeSettings(), description="How simulated time passes."
    )
    population: Entries = Field(description="Groups, people and files of people; their order numbers them from 0.")
    follows: Follows = Field(default=FollowSettings(), description="The follow graph when the run starts.")
    worlds: Worlds = Field(default=DEFAULT_WORLDS, description="Where people meet: names, or names with settings.")
    mind: MindField = Field(default=HeuristicSettings(), description="What makes the decisions.")
    context: Context = Field(
        default=(), description="The situation that people are in at the start, a text or several; they see it always."
    )
    events: tuple[EventField, ...] = Field(default=(), description="Events, and when they happen.")
    interventions: tuple[Intervention, ...] = Field(
        default=(), description="Events that happen when a condition holds."
    )
    variables: Variables = Field(
        default=(),
        description="Figures of your own for every round: functions with @shoal.variable, as module:function.",
    )
    measure: Annotated[MeasureSettings, refuse_coercion(MeasureSettings)] | None = Field(
        default=None, description="Ask agents with a language model what they think, such as {every: 6} rounds."
    )
    play: tuple[Who, ...] = Field(default=(), description="Names or numbers of the agents whose turns a person takes.")
    max_workers: Annotated[Whole, Field(ge=1)] | None = Field(
        default=None,
        description="Decisions made at once, at most. By default as many as the provider of the model turns out to "
        "allow; and 64 where something else is asked.",
    )
    deadline_seconds: Annotated[Number, Field(gt=0)] = Field(
        default=300.0, description="An agent that takes longer than this to decide does nothing that round."
    )
    budget: BudgetSettings = Field(default=BudgetSettings(), description="What language models may cost.")
    sinks: tuple[SinkSettings, ...] = Field(
        default=(),
        description="Where actions are copied to while the run goes on: graph, zep, neo4j, or these with settings.",
    )
    metrics: bool = Field(default=True, description="Whether steps and decisions are timed.")
    edition: Literal[1, 2] = Field(
        default=2, description="Which offline model is followed; runs of Shoal 0.2 keep 1, so that they stay the same."
    )
    notes: dict[str, Any] = Field(default_factory=dict, description="Notes of any kind; they do not affect the run.")

    @property
    def workers(self) -> int:
        """Decisions made at once where the limit is not learned."""
        return self.max_workers or USUAL_WORKERS

    @model_validator(mode="before")
    @classmethod
    def _set_rounds(cls, value: Any) -> Any:
        """Let worlds that end by themselves come to their end, unless the number of rounds says otherwise."""
        if not isinstance(value, Mapping) or "rounds" in value:
            return value
        needed = count_rounds_needed(value.get("worlds"))
        return value if needed is None else {**value, "rounds": min(needed, MAX_ROUNDS)}

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if not value.replace("-", "a").replace("_", "a").isalnum() or not value.isascii():
            raise InvalidValue(Problem((), expected="letters, digits, - and _ only", found=repr(value)))
        return value
