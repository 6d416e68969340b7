"""Reports on a run, and questions about it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from shoal.server.messages.base import AnswerModel, Prompt, RunRequest

ReportId = Annotated[str, Field(pattern=r"^report_[A-Za-z0-9][A-Za-z0-9_-]{0,99}$", description="The id of a report.")]


class ReportRequest(RunRequest):
    force_regenerate: bool = False


class QuestionRequest(RunRequest):
    message: Prompt
    #: Earlier messages. They are not needed: each question is answered from the graph.
    chat_history: list[dict[str, Any]] = []


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
