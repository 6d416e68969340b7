"""The reports of runs, under the routes and in the fields of MiroFish's report, chat and survey pages.

A report is made from what is recorded whenever it is asked for. So there is one for each run, and nothing to wait for.
"""

from __future__ import annotations

from html import escape
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse

from shoal.errors import RunMissing
from shoal.runs import RunDirectory
from shoal.runs.narrative import RunNarrative, number_evidence, render_markdown, tell_run
from shoal.runs.sinks import answer_from_graph
from shoal.server.api.context import Context, ServerContext, answer, find_run, in_thread
from shoal.server.api.describing import describe_simulation, name_report
from shoal.server.messages.base import Envelope, RunId
from shoal.server.messages.reports import (
    ChatAnswer,
    LogAnswer,
    QuestionRequest,
    ReportAnswer,
    ReportCheck,
    ReportId,
    ReportInfo,
    ReportRequest,
)

router = APIRouter(tags=["reports"])

_COMPLETED = "completed"
_EVIDENCE = "Evidence"
FromLine = Annotated[int, Query(ge=0, le=1_000_000)]


@router.post("/generate", response_model=Envelope[ReportAnswer])
async def generate(body: ReportRequest, context: Context) -> Response:
    """Name the report of a simulation. It is made when it is read, from what has happened by then."""
    return answer(_describe_task(await find_run(context, body.simulation_id)))


@router.post("/generate/status", response_model=Envelope[ReportAnswer])
async def get_task(body: ReportRequest, context: Context) -> Response:
    """Answer that a report is ready: it always is."""
    return answer(_describe_task(await find_run(context, body.simulation_id)))


@router.get("/by-simulation/{simulation_id}", response_model=Envelope[ReportInfo])
async def get_report_of(simulation_id: RunId, context: Context) -> Response:
    """Return the report of a simulation."""
    return answer(await in_thread(_describe_report, await find_run(context, simulation_id)))


@router.get("/check/{simulation_id}", response_model=Envelope[ReportCheck])
async def check(simulation_id: RunId, context: Context) -> Response:
    """Say whether a simulation has a report, and whether its people can be asked."""
    run = await find_run(context, simulation_id)
    has_report = run.observe_state().current_round > 0
    known = {"simulation_id": simulation_id, "has_report": has_report, "interview_unlocked": has_report}
    return answer({**known, "report_status": _COMPLETED if has_report else None, "report_id": name_report(run)})


@router.post("/chat", response_model=Envelope[ChatAnswer])
async def chat(body: QuestionRequest, context: Context) -> Response:
    """Answer a question about a simulation from its graph memory, with the actions that show the answer."""
    found = await in_thread(answer_from_graph, await find_run(context, body.simulation_id), body.message)
    sources = [episode.event for episode in found.episodes]
    parts = []
    for about, views in found.views.items():
        parts.append(f"- {about}: {', '.join(f'{count} {view.lower()}' for view, count in views.items())}")
    parts += [f"- {fact.sentence}" for fact in found.facts]
    parts += [f"- Round {episode.round}: {episode.text} (`{episode.event}`)" for episode in found.episodes]
    parts += [f"- {note}" for note in found.notes]
    return answer(
        {
            "response": escape("\n".join(parts), quote=False)
            or "The graph knows nothing about this. Name a person, or a word.",
            "tool_calls": [],
            "sources": sources,
        }
    )


@router.get("/{report_id}", response_model=Envelope[ReportInfo])
async def get_report(report_id: ReportId, context: Context) -> Response:
    """Return a report: its outline, and the whole of it as Markdown."""
    return answer(await in_thread(_describe_report, await _find_reported(context, report_id)))


@router.get("/{report_id}/download", response_class=PlainTextResponse)
async def download(report_id: ReportId, context: Context) -> Response:
    """Return a report as a Markdown file."""
    run = await _find_reported(context, report_id)
    text = render_markdown(await in_thread(tell_run, run))
    headers = {"content-disposition": f'attachment; filename="{report_id}.md"'}
    return PlainTextResponse(text, media_type="text/markdown", headers=headers)


@router.get("/{report_id}/agent-log", response_model=Envelope[LogAnswer])
async def get_steps(report_id: ReportId, context: Context, from_line: FromLine = 0) -> Response:
    """Return the steps by which MiroFish's report page builds up a report: its outline, then its sections."""
    run = await _find_reported(context, report_id)
    return answer(_page(await in_thread(_list_steps, run), from_line))


@router.get("/{report_id}/console-log", response_model=Envelope[LogAnswer])
async def get_console(report_id: ReportId, context: Context, from_line: FromLine = 0) -> Response:
    """Return the lines that MiroFish's report page shows below a report."""
    run = await _find_reported(context, report_id)
    return answer(_page([f"INFO: {report_id} is made from what {run.path.name} has recorded"], from_line))


async def _find_reported(context: ServerContext, report_id: str) -> RunDirectory:
    """Find the run that a report is about; RunMissing where the id is none of a report."""
    prefix, _, identity = report_id.partition("_")
    if prefix != "report":
        raise RunMissing(f"there is no report {report_id}")
    return await find_run(context, identity)


def _page(lines: list[Any], from_line: int) -> dict[str, Any]:
    return {"logs": lines[from_line:], "total_lines": len(lines), "from_line": from_line, "has_more": False}


def _describe_task(run: RunDirectory) -> dict[str, Any]:
    report_id = name_report(run)
    named = {"simulation_id": run.path.name, "report_id": report_id, "task_id": report_id}
    done = {"status": _COMPLETED, "progress": 100, "message": "the report is ready"}
    return {**named, **done, "already_generated": True, "already_completed": True}


def _describe_report(run: RunDirectory) -> dict[str, Any]:
    narrative, simulation = tell_run(run), describe_simulation(run)
    return {
        "report_id": name_report(run),
        "simulation_id": run.path.name,
        "graph_id": simulation["graph_id"],
        "simulation_requirement": simulation["simulation_requirement"],
        "status": _COMPLETED,
        "outline": _outline(narrative),
        "markdown_content": render_markdown(narrative),
        "created_at": simulation["updated_at"],
        "completed_at": simulation["updated_at"],
        "error": None,
    }


def _outline(narrative: RunNarrative) -> dict[str, Any]:
    """Write each section as Markdown for pages that take HTML in it for HTML; the evidence comes last."""
    numbers = number_evidence(narrative)
    written: dict[str, list[str]] = {}
    for section in narrative.sections:
        for statement in section.statements:
            marks = ", ".join(str(numbers[event]) for event in statement.events if event in numbers)
            line = f"- {escape(statement.text, quote=False)}" + (f" [{marks}]" if marks else "")
            written.setdefault(section.heading, []).append(line)
    for event, number in numbers.items():
        episode = narrative.evidence[event]
        line = f"{number}. Round {episode.round}: {escape(episode.text, quote=False)}"
        written.setdefault(_EVIDENCE, []).append(line)
    summary = next((each.text for section in narrative.sections for each in section.statements), "")
    sections = [{"title": title, "content": "\n".join(lines), "subsections": []} for title, lines in written.items()]
    return {
        "title": escape(narrative.title, quote=False),
        "summary": escape(summary, quote=False),
        "sections": sections,
    }


def _list_steps(run: RunDirectory) -> list[dict[str, Any]]:
    narrative, simulation = tell_run(run), describe_simulation(run)
    outline = _outline(narrative)
    steps: list[dict[str, Any]] = []

    def add(action: str, stage: str, details: dict[str, Any], index: int | None = None) -> None:
        title = None if index is None else outline["sections"][index - 1]["title"]
        when = {"timestamp": simulation["updated_at"], "elapsed_seconds": 0.0, "report_id": name_report(run)}
        where = {"action": action, "stage": stage, "section_title": title, "section_index": index}
        steps.append({**when, **where, "details": details})

    known = {name: simulation[name] for name in ("simulation_id", "graph_id", "simulation_requirement")}
    add("report_start", "pending", {**known, "message": "the report is made from what is recorded"})
    add("planning_start", "planning", {"message": "the outline"})
    add("planning_complete", "planning", {"message": "the outline is complete", "outline": outline})
    for number, section in enumerate(outline["sections"], 1):
        add("section_start", "generating", {"message": section["title"]}, number)
        content = {"content": section["content"], "content_length": len(section["content"]), "subsection_count": 0}
        add("section_complete", "generating", {**content, "message": section["title"]}, number)
    total = {"total_sections": len(outline["sections"]), "total_time_seconds": 0.0}
    add("report_complete", _COMPLETED, {**total, "message": "the report is complete"})
    return steps
