"""Says what a run or an experiment will take, before anything is spent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from fastapi import APIRouter, Response

from shoal.agents import LanguageSettings
from shoal.event_loop import run_async
from shoal.experiments import Experiment, Forecast, forecast_experiment, recommend_simulations
from shoal.runs import LimitSettings, describe_servers
from shoal.runs.planning import plan_run, time_rounds
from shoal.scenario import Scenario, count_people, describe_notes, override, read_document
from shoal.server.api.context import Context, ServerContext, answer, in_thread
from shoal.server.messages.base import Envelope
from shoal.server.messages.experiments import PlanAnswer, PlanRequest

router = APIRouter(tags=["planning"])


@router.post("/plan", response_model=Envelope[PlanAnswer])
async def plan(body: PlanRequest, context: Context) -> Response:
    """Predict calls, cost and time of a scenario. It is played through in memory, and no model is asked."""
    return answer(await in_thread(_plan, context, body))


def _plan(context: ServerContext, body: PlanRequest) -> dict[str, Any]:
    value = read_document(body.text, "scenario").value
    if isinstance(value, dict) and "experiment" in value:
        experiment = context.experiments.read(body.text)
        if body.model is not None:
            experiment = replace(experiment, base=_use_model(experiment.base, body.model))
        return _plan_experiment(context, experiment)
    scenario = context.folder.read_scenario(body.text)
    return _plan_run(context, scenario if body.model is None else _use_model(scenario, body.model))


def _use_model(scenario: Scenario, model: str) -> Scenario:
    """Return the scenario with another language model, with its other settings where it has one already."""
    is_language = isinstance(scenario.mind, LanguageSettings)
    path, value = ("mind.model", model) if is_language else ("mind", {"kind": "language", "model": model})
    return override(scenario, {f"{path}={msgspec.json.encode(value).decode()}": "model"})


def _describe(scenario: Scenario) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "people": count_people(scenario.population),
        "rounds": scenario.rounds,
        "worlds": list(scenario.worlds),
        "is_free": not isinstance(scenario.mind, LanguageSettings),
        "notes": describe_notes(scenario),
    }


def _plan_run(context: ServerContext, scenario: Scenario) -> dict[str, Any]:
    found = run_async(plan_run(scenario, servers=describe_servers(scenario, context.settings.environ)))
    is_free = not isinstance(scenario.mind, LanguageSettings)
    total = found.total
    return {
        **_describe(scenario),
        "kind": "run",
        "runs": 1,
        "side_by_side": 1,
        "calls": total.calls,
        "least_calls": total.least_calls,
        "tokens": total.tokens,
        "cost": total.cost,
        "cost_most": total.cost_uncached,
        "seconds": run_async(time_rounds(scenario)) if is_free else found.seconds,
        "calls_at_once": found.max_workers,
        "unpriced": found.unpriced,
        "short": found.short,
        "parts": [
            {"name": each.world, "model": each.model, "runs": 1, "calls": each.calls, "cost": each.cost}
            for each in found.expected
        ],
    }


def _plan_experiment(context: ServerContext, experiment: Experiment) -> dict[str, Any]:
    at_once = min(recommend_simulations(experiment.base, context.experiments.path), experiment.runs)
    found: Forecast = run_async(forecast_experiment(experiment, LimitSettings(), at_once))
    inherits = [f"tier {tier} is planned without what it will inherit" for tier in found.inheriting]
    described = _describe(experiment.base)
    return {
        **described,
        "name": found.experiment,
        "kind": "experiment",
        "runs": found.simulations,
        "side_by_side": found.max_simulations,
        "calls": found.calls,
        "least_calls": found.calls,
        "tokens": 0,
        "cost": found.cost,
        "cost_most": found.cost,
        "seconds": found.seconds,
        "calls_at_once": found.parallel or experiment.base.workers,
        "is_free": found.calls == 0,
        "unpriced": [],
        "short": found.short,
        "notes": [*inherits, *described["notes"]],
        "parts": [
            {"name": f"{arm.tier}/{arm.arm}", "model": None, "runs": arm.runs, "calls": arm.calls, "cost": arm.cost}
            for arm in found.arms
        ],
    }
