"""Simulations as they are created, prepared, started, forked and listed."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from shoal.server.messages.base import WHOLE, AgentNumber, AnswerModel, RequestModel, RunId, RunRequest, WorldName
from shoal.server.messages.observation import RunStatus


class ScenarioBody(RequestModel):
    """A scenario, as the YAML file holds it."""

    scenario: dict[str, Any]


class TextBody(RequestModel):
    """A scenario as the text of a YAML file."""

    text: Annotated[str, Field(max_length=2_000_000)]


class MirofishBody(RequestModel):
    """A configuration that MiroFish prepared, with its people."""

    config: dict[str, Any]
    reddit_profiles: list[dict[str, Any]] | None = None
    #: The text of a CSV file.
    twitter_profiles: str | None = None


class PrepareRequest(RunRequest):
    """Which simulation is to be prepared."""

    force_regenerate: bool = False


class PrepareStatusRequest(RequestModel):
    """A simulation that is prepared, or the task that prepares it."""

    simulation_id: RunId | None = None
    task_id: Annotated[str, Field(max_length=100)] | None = None


class StartRequest(RunRequest):
    platform: WorldName = "parallel"
    max_rounds: Annotated[int, Field(strict=False, ge=1, le=1_000_000), WHOLE] | None = None
    force: bool = False
    enable_graph_memory_update: bool = False


class ForkBody(RunRequest):
    """What is different in a fork, and from which round on."""

    at: Annotated[int, Field(strict=False, ge=0, le=1_000_000), WHOLE]
    #: Path of a setting, such as `mind.persuasion` -> its new value.
    set: Annotated[dict[str, Any], Field(max_length=100)] = {}
    events: Annotated[list[dict[str, Any]], Field(max_length=1_000)] = []
    #: Numbers of the people who are taken out.
    without: Annotated[list[AgentNumber], Field(max_length=10_000)] = []
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None


class ArchiveRequest(RunRequest):
    #: False: list it among the others again.
    archived: bool = True


class SimulationInfo(AnswerModel):
    """A simulation: what it is, and where it stands."""

    simulation_id: str
    status: str
    project_id: str | None = None
    graph_id: str | None = None
    enable_twitter: bool
    enable_reddit: bool
    entities_count: int
    profiles_count: int
    entity_types: list[str]
    config_generated: bool
    config_reasoning: str
    current_round: int
    twitter_status: str
    reddit_status: str
    created_at: str | None
    updated_at: str | None
    error: str | None
    simulation_requirement: str
    worlds: list[str]


class HistoryInfo(SimulationInfo):
    total_simulation_hours: float
    runner_status: str
    total_rounds: int
    files: list[dict[str, str]]
    report_id: str | None
    version: str
    created_date: str


class StartAnswer(RunStatus):
    force_restarted: bool
    graph_memory_update_enabled: bool


class PrepareAnswer(AnswerModel):
    """How far a preparation is. `prepare_info` is there once it is ready, and the task until then."""

    simulation_id: str
    status: str
    message: str
    already_prepared: bool
    progress: int = 0
    prepare_info: dict[str, Any] = {}
    task_id: str | None = None
    progress_detail: dict[str, Any] = {}
    error: str | None = None
