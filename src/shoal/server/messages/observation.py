"""How far a run is, and what its agents did, by rounds, by agents and one by one."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from shoal.server.messages.base import WHOLE, AgentNumber, AnswerModel, RunRequest, WorldName


class InterviewHistoryRequest(RunRequest):
    platform: WorldName | None = None
    agent_id: AgentNumber | None = None
    limit: Annotated[int, Field(strict=False, ge=1, le=1_000), WHOLE] = 100


class WorldStatus(AnswerModel):
    """How far one world is."""

    current_round: int
    simulated_hours: float
    running: bool
    completed: bool
    actions_count: int
    rejected: int


class SeatTurnStatus(AnswerModel):
    """A turn that waits for the person in a seat."""

    world: str
    round: int
    since: str
    until: str


class SeatStatus(AnswerModel):
    """A seat that a person has taken."""

    agent: int
    name: str
    since_round: int
    seconds: float
    otherwise: str
    turns: list[SeatTurnStatus]


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
    #: The seats that people have taken, each with the turns that wait.
    seats: list[SeatStatus] = []
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


class HistoryRow(AnswerModel):
    agent_id: int
    prompt: str
    response: str
    timestamp: str
    platform: str


class InterviewHistoryAnswer(AnswerModel):
    count: int
    history: list[HistoryRow]
