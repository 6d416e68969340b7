"""Both ends of the wire: what clients send, and what the server answers. The OpenAPI document is made of these."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")

#: The name of a run's directory, or EXPERIMENT~TIER~ARM~SEED. It is checked before any file is touched.
ID_PATTERN = r"^([A-Za-z0-9][A-Za-z0-9_-]{0,99}|\w[\w. -]{0,99}(~[A-Za-z0-9][A-Za-z0-9._-]{0,99}){3})$"
RunId = Annotated[str, Field(pattern=ID_PATTERN, description="The id of a simulation.")]
ReportId = Annotated[str, Field(pattern=r"^report_[A-Za-z0-9][A-Za-z0-9_-]{0,99}$", description="The id of a report.")]


def refuse_texts(value: object) -> object:
    """Let 3.0 be a whole number, as JSON does, but not "3" and not true."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("Input should be a whole number")
    return value


_WHOLE = BeforeValidator(refuse_texts)
AgentNumber = Annotated[int, Field(strict=False, ge=0, le=2**31 - 1), _WHOLE]
WorldName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="A world, such as twitter or reddit.")]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Prompt = Annotated[str, Field(min_length=1, max_length=8_000)]


class Envelope(BaseModel, Generic[T]):
    """Every answer that is not an error."""

    success: Literal[True] = True
    data: T


class ListEnvelope(BaseModel, Generic[T]):
    """An answer that is a list, with its length."""

    success: Literal[True] = True
    data: list[T]
    count: int


class ErrorAnswer(BaseModel):
    """Every answer that is an error. `field` names the part of the request that is wrong, where there is one."""

    success: Literal[False] = False
    error: str
    field: str | None = None


class RequestModel(BaseModel):
    """What a client sends. Unknown fields are ignored, as older clients send some; types are not guessed."""

    model_config = ConfigDict(strict=True, frozen=True)


# Requests


class SessionRequest(RequestModel):
    token: Annotated[str, Field(max_length=1_000)]


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


class RunRequest(RequestModel):
    simulation_id: RunId


class UploadedText(RequestModel):
    """A document or a table, as text."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    text: str


class PreparationBody(RequestModel):
    """A requirement in plain words, with documents as text, of which a simulation is to be prepared."""

    requirement: Annotated[str, Field(max_length=20_000)]
    documents: Annotated[list[UploadedText], Field(max_length=500)] = []
    #: Demographic tables, as CSV.
    marginals: Annotated[list[UploadedText], Field(max_length=50)] = []
    people: Annotated[int, Field(strict=False, ge=1, le=1_000_000), _WHOLE] | None = None
    rounds: Annotated[int, Field(strict=False, ge=1, le=1_000_000), _WHOLE] | None = None
    worlds: list[str] | None = None
    seed: Annotated[int, Field(strict=False, ge=0), _WHOLE] | None = None
    topic: Annotated[str, Field(max_length=200)] | None = None
    #: The language model that reads; default: that of the server, or rules.
    model: Annotated[str, Field(max_length=200)] | None = None
    max_entities: Annotated[int, Field(strict=False, ge=1, le=100_000), _WHOLE] | None = None


class PrepareRequest(RunRequest):
    """Which simulation is to be prepared."""

    force_regenerate: bool = False


class PrepareStatusRequest(RequestModel):
    """A simulation that is prepared, or the task that prepares it."""

    simulation_id: RunId | None = None
    task_id: Annotated[str, Field(max_length=100)] | None = None


class StartRequest(RunRequest):
    platform: WorldName = "parallel"
    max_rounds: Annotated[int, Field(strict=False, ge=1, le=1_000_000), _WHOLE] | None = None
    force: bool = False
    enable_graph_memory_update: bool = False


class CloseRequest(RunRequest):
    timeout: Seconds = 30.0


class InjectRequest(RunRequest):
    event: dict[str, Any]
    timeout: Seconds = 30.0


class InterviewBody(RunRequest):
    agent_id: AgentNumber
    prompt: Prompt
    platform: WorldName | None = None
    #: Answers in the name of agents that have no language model.
    model: Annotated[str, Field(max_length=200)] | None = None
    #: What was said before in the same conversation.
    context: Annotated[str, Field(max_length=20_000)] = ""
    timeout: Seconds = 60.0


class ForkBody(RunRequest):
    """What is different in a fork, and from which round on."""

    at: Annotated[int, Field(strict=False, ge=0, le=1_000_000), _WHOLE]
    #: Path of a setting, such as `mind.persuasion` -> its new value.
    set: Annotated[dict[str, Any], Field(max_length=100)] = {}
    events: Annotated[list[dict[str, Any]], Field(max_length=1_000)] = []
    #: Numbers of the people who are taken out.
    without: Annotated[list[AgentNumber], Field(max_length=10_000)] = []
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None


class ArchiveRequest(RunRequest):
    #: False: list it among the others again.
    archived: bool = True


class BatchItem(RequestModel):
    agent_id: AgentNumber
    prompt: Prompt
    platform: WorldName | None = None


class BatchRequest(RunRequest):
    interviews: Annotated[list[BatchItem], Field(min_length=1, max_length=1_000)]
    platform: WorldName | None = None
    model: Annotated[str, Field(max_length=200)] | None = None
    timeout: Seconds = 120.0


class InterviewAllRequest(RunRequest):
    prompt: Prompt
    platform: WorldName | None = None
    model: Annotated[str, Field(max_length=200)] | None = None
    timeout: Seconds = 180.0


class ReportRequest(RunRequest):
    force_regenerate: bool = False


class QuestionRequest(RunRequest):
    message: Prompt
    #: Earlier messages. They are not needed: each question is answered from the graph.
    chat_history: list[dict[str, Any]] = []


class InterviewHistoryRequest(RunRequest):
    platform: WorldName | None = None
    agent_id: AgentNumber | None = None
    limit: Annotated[int, Field(strict=False, ge=1, le=1_000), _WHOLE] = 100


# Answers


class AnswerModel(BaseModel):
    """What the server answers. A client of an older version ignores fields that it does not know."""

    model_config = ConfigDict(extra="allow", frozen=True)


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


class WorldStatus(AnswerModel):
    """How far one world is."""

    current_round: int
    simulated_hours: float
    running: bool
    completed: bool
    actions_count: int
    rejected: int


class RunStatus(AnswerModel):
    """How far a run is: the content of `run_state.json`, as it is now."""

    simulation_id: str
    runner_status: str
    current_round: int
    total_rounds: int
    simulated_hours: float
    total_simulation_hours: float
    progress_percent: float
    total_actions_count: int
    twitter_current_round: int
    reddit_current_round: int
    twitter_simulated_hours: float
    reddit_simulated_hours: float
    twitter_running: bool
    reddit_running: bool
    twitter_completed: bool
    reddit_completed: bool
    twitter_actions_count: int
    reddit_actions_count: int
    worlds: dict[str, WorldStatus]
    started_at: str | None
    updated_at: str | None
    completed_at: str | None
    error: str | None
    process_pid: int | None
    resumable: bool
    sinks: dict[str, dict[str, Any]]
    calls: int
    cost: float | None


class ActionInfo(AnswerModel):
    """One action of an agent, also one that was refused."""

    id: str
    round_num: int
    timestamp: str
    platform: str
    agent_id: int
    agent_name: str
    action_type: str
    action_args: dict[str, Any]
    result: str | None
    success: bool


class ActionsAnswer(AnswerModel):
    """A page of actions, newest first. `next_cursor` gives the next page; null means that there is none."""

    count: int
    actions: list[ActionInfo]
    next_cursor: str | None


class RunDetail(RunStatus):
    """The state of a run with its newest actions."""

    all_actions: list[ActionInfo]
    twitter_actions: list[ActionInfo]
    reddit_actions: list[ActionInfo]
    recent_actions: list[ActionInfo]
    rounds_count: int
    next_cursor: str | None


class StartAnswer(RunStatus):
    force_restarted: bool
    graph_memory_update_enabled: bool


class RoundInfo(AnswerModel):
    round_num: int
    twitter_actions: int
    reddit_actions: int
    total_actions: int
    active_agents_count: int
    active_agents: list[int]
    action_types: dict[str, int]
    first_action_time: str | None
    last_action_time: str | None


class TimelineAnswer(AnswerModel):
    rounds_count: int
    timeline: list[RoundInfo]
    #: The round with which the next page begins; null: this was the last one.
    next_round: int | None


class AgentInfo(AnswerModel):
    agent_id: int
    agent_name: str
    total_actions: int
    twitter_actions: int
    reddit_actions: int
    action_types: dict[str, int]
    first_action_time: str | None
    last_action_time: str | None


class AgentsAnswer(AnswerModel):
    agents_count: int
    stats: list[AgentInfo]


class ProfilesAnswer(AnswerModel):
    platform: str
    count: int
    total: int
    profiles: list[dict[str, Any]]


class PostsAnswer(AnswerModel):
    platform: str
    total: int
    count: int
    posts: list[dict[str, Any]]


class CommentsAnswer(AnswerModel):
    count: int
    comments: list[dict[str, Any]]


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


class CommandAnswer(AnswerModel):
    """How a command to the worker ended."""

    success: bool
    result: dict[str, Any]
    timestamp: str


class HistoryRow(AnswerModel):
    agent_id: int
    prompt: str
    response: str
    timestamp: str
    platform: str


class InterviewHistoryAnswer(AnswerModel):
    count: int
    history: list[HistoryRow]


class EnvironmentAnswer(AnswerModel):
    simulation_id: str
    env_alive: bool
    twitter_available: bool
    reddit_available: bool
    message: str


class ProjectInfo(AnswerModel):
    """The project of a simulation, as far as pages of MiroFish read it."""

    project_id: str
    name: str
    status: str
    graph_id: str
    simulation_requirement: str
    created_at: str | None
    updated_at: str | None
    files: list[dict[str, Any]]
    ontology: dict[str, Any] | None
    error: str | None


class GraphData(AnswerModel):
    """The part of a graph that can be drawn, and how much the whole graph has."""

    graph_id: str
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    node_count: int
    edge_count: int
    entities: int
    facts: int
    #: Where to draw each node, from 0 to 1, if that was asked for.
    places: list[list[float]] | None = None


class GraphAnswerData(AnswerModel):
    """What a graph knows about a question."""

    question: str
    people: list[str]
    words: list[str]
    facts: list[dict[str, Any]]
    episodes: list[dict[str, Any]]
    views: dict[str, dict[str, int]]
    notes: list[str]


class ReportAnswer(AnswerModel):
    """That a report is ready, and its id."""

    simulation_id: str
    report_id: str
    task_id: str
    status: str
    progress: int
    message: str
    already_generated: bool
    already_completed: bool


class ReportInfo(AnswerModel):
    """A report, as far as pages of MiroFish read it."""

    report_id: str
    simulation_id: str
    graph_id: str
    simulation_requirement: str
    status: str
    outline: dict[str, Any]
    markdown_content: str
    created_at: str | None
    completed_at: str | None
    error: str | None


class ReportCheck(AnswerModel):
    """Whether a simulation has a report."""

    simulation_id: str
    has_report: bool
    interview_unlocked: bool
    report_status: str | None
    report_id: str


class LogAnswer(AnswerModel):
    """Lines of a log from one on."""

    logs: list[Any]
    total_lines: int
    from_line: int
    has_more: bool


class ChatAnswer(AnswerModel):
    """An answer about a simulation, and the actions that show it."""

    response: str
    tool_calls: list[Any]
    sources: list[str]
