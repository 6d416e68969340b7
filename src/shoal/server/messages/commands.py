"""Commands to the worker of a run, and how they ended."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from shoal.server.messages.base import AgentNumber, AnswerModel, Prompt, RequestModel, RunRequest, Seconds, WorldName


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


class CommandAnswer(AnswerModel):
    """How a command to the worker ended."""

    success: bool
    result: dict[str, Any]
    timestamp: str


class EnvironmentAnswer(AnswerModel):
    simulation_id: str
    env_alive: bool
    twitter_available: bool
    reddit_available: bool
    message: str
