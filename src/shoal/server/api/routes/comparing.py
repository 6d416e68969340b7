"""Compares two runs: what was declared differently, where they part, and how the difference spread."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response

from shoal.event_loop import run_async
from shoal.runs import RunDirectory
from shoal.runs.rerun import Diff, WorldDiff, diff_runs
from shoal.scenario import count_people
from shoal.server.api.context import Context, answer, find_run, in_thread
from shoal.server.messages.base import Envelope, RunId
from shoal.server.messages.experiments import ComparisonAnswer
from shoal.text import clip
from shoal.types import Decision, Event, Notice

router = APIRouter(tags=["comparison"])

#: What is answered of each; the rest is counted.
_MAX_CHANGES, _MAX_REACHED, _MAX_FIELDS = 24, 500, 200
_MAX_CHARS = 600
#: Arguments that are the text of an action.
_TEXTS = ("content", "quote_content")


@router.get("/compare", response_model=Envelope[ComparisonAnswer])
async def compare(
    context: Context,
    one: Annotated[RunId, Query()],
    other: Annotated[RunId, Query()],
    rounds: Annotated[int | None, Query(ge=0, le=10_000_000)] = None,
) -> Response:
    """Compare two runs up to a round, or as far as both go: both are run again from their journals."""
    runs = await find_run(context, one), await find_run(context, other)

    def compute() -> dict[str, Any]:
        return _describe_comparison((one, other), runs, run_async(diff_runs(*runs, rounds)))

    made_of = [(run.config.generated_at, *sorted(run.read_last_rounds().items())) for run in runs]
    return answer(await in_thread(context.answers.recall, ("compare", one, other, rounds), tuple(made_of), compute))


def _describe_comparison(
    names: tuple[str, str], runs: tuple[RunDirectory, RunDirectory], found: Diff
) -> dict[str, Any]:
    described = [
        {
            "id": name,
            "name": run.scenario.name or name,
            "status": run.read_status(),
            "last_round": max(run.read_last_rounds().values()),
        }
        for name, run in zip(names, runs, strict=True)
    ]
    return {
        "one": described[0],
        "other": described[1],
        "people": max(count_people(run.scenario.population) for run in runs),
        "is_same": found.same,
        "declared": msgspec.to_builtins(found.declared[:_MAX_FIELDS]),
        "declared_count": len(found.declared),
        "worlds": [_describe_world(world) for world in found.worlds],
        "only_one": found.only_one,
        "only_other": found.only_other,
    }


def _describe_world(world: WorldDiff) -> dict[str, Any]:
    ends = [{(each.name, each.about): each.last for each in side} for side in world.outcomes]
    return {
        "world": world.world,
        "rounds": world.rounds,
        "has": world.has,
        "first": None if world.first is None else _describe_first(world),
        "by_round": [
            {
                "round": row.round,
                "acting": row.acting,
                "saw": len(row.pictures),
                "acted": len(row.acted),
                "reached": len(row.reached),
            }
            for row in world.by_round
        ],
        "reached": msgspec.to_builtins(world.reached[:_MAX_REACHED]),
        "reached_count": len(world.reached),
        "deepest": world.deepest,
        "saw_differently": world.saw_differently,
        "acted_differently": world.acted_differently,
        "figures": [
            {"name": name, "about": about, "one": ends[0].get((name, about)), "other": ends[1].get((name, about))}
            for name, about in dict.fromkeys([*ends[0], *ends[1]])
        ],
    }


def _describe_first(world: WorldDiff) -> dict[str, Any]:
    assert world.first is not None
    changes = [
        {
            "what": each.what,
            "agent": each.agent,
            "name": each.name,
            **_describe_sides(each.one, each.other),
        }
        for each in world.first.differences[:_MAX_CHANGES]
    ]
    return {"round": world.first.round, "time": world.first.time, "changes": changes, "count": world.first.count}


def _describe_sides(one: Any, other: Any) -> dict[str, Any]:
    """Say what is on both sides. Where the words are the same, that which they differ in is added."""
    sides = [_describe_side(one), _describe_side(other)]
    if sides[0] is not None and sides[0] == sides[1] and isinstance(one, Event) and isinstance(other, Event):
        names = [name for name, value in one.action_args.items() if other.action_args.get(name) != value]
        for side, event in zip(sides, (one, other), strict=True):
            differing = {name: event.action_args.get(name) for name in names} or {"result": event.result}
            assert side is not None
            side["text"] += f" {_to_json(differing)}"
    return {"one": sides[0], "other": sides[1]}


def _describe_side(value: Any) -> dict[str, str] | None:
    """Say what is on one side in a word and a text; None where there is nothing, or no turn."""
    match value:
        case None | False:
            return None
        case True:
            return {"title": "turn", "text": ""}
        case Event():
            words = next((str(value.action_args[name]) for name in _TEXTS if name in value.action_args), None)
            title, text = value.action_type, _to_json(value.action_args) if words is None else words
        case Notice():
            title, text = value.event_type, value.content
        case Decision():
            title = value.failure or ", ".join(action.kind for action in value.actions) or "nothing"
            text = value.reason or ""
        case _:
            title, text = "", value if isinstance(value, str) else _to_json(value)
    return {"title": title, "text": clip(text, _MAX_CHARS)}


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
