"""The figures of every level as `report.json`: the experiment, its tiers, their arms and runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

import shoal
from shoal.experiments.judges import measure_votes
from shoal.experiments.report.figures import (
    ArmEffect,
    ArmReport,
    ExperimentReport,
    TierReport,
    Totals,
)
from shoal.experiments.report.human import HumanComparison
from shoal.experiments.report.reading import JudgeCounts, stream_results
from shoal.experiments.report.wording import describe_findings, describe_problems, join_sentence
from shoal.experiments.results import PASS_RATE
from shoal.experiments.statistics import Interval
from shoal.runs import replace_json, storage_errors
from shoal.text import quote_path

REPORT = "report.json"


def write_tree(report: ExperimentReport, people: HumanComparison | None = None) -> int:
    """Write `report.json` at every level, and return how many. Folders that are missing are made."""
    folder = report.record.folder
    count = 0

    def write(place: str, content: Mapping[str, Any]) -> None:
        nonlocal count
        path = folder / place / REPORT
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_json(path, content, sync=False)
        count += 1

    beside = {} if people is None else {"people": msgspec.to_builtins(people)}
    write("", {**describe_experiment(report), **beside})
    for tier in report.tiers:
        write(tier.name, describe_tier(tier))
        for arm in tier.arms:
            write(arm.record.folder, describe_arm(arm))
    for result in stream_results(folder):
        described = {"level": "run", **msgspec.to_builtins(result), "passed": result.passed}
        write(result.id, {**described, "replay": f"shoal replay {quote_path(folder / result.id)}"})
    return count


def describe_experiment(report: ExperimentReport) -> dict[str, Any]:
    """Describe an experiment in plain values. The cost of a pass is that of its best arm."""
    best = report.best_arm
    return {
        "level": "experiment",
        "experiment": report.name,
        "shoal_version": shoal.__version__,
        "command": f"shoal report {quote_path(report.record.folder)}",
        "findings": [join_sentence(sentence) for sentence in describe_findings(report)],
        "notes": describe_problems(report),
        "outcome": report.outcome,
        "outcome_reason": report.outcome_reason,
        **_describe_totals(report.totals),
        "best_arm": best.record.folder if best else None,
        **describe_interval("cost_of_pass", best.cost_of_pass if best else None),
        "judges": _describe_judges(report.judges),
        "stops": msgspec.to_builtins(report.stops),
        "tiers": [{"tier": tier.name, **_describe_part(tier.name, tier.totals)} for tier in report.tiers],
    }


def describe_tier(tier: TierReport) -> dict[str, Any]:
    best = tier.best_arm
    return {
        "level": "tier",
        "tier": tier.name,
        "control": tier.record.control or None,
        "inherits": tier.record.inherits,
        **_describe_totals(tier.totals),
        "best_arm": best.name if best else None,
        **describe_interval("cost_of_pass", best.cost_of_pass if best else None),
        "power": tier.power,
        "arms": [{"arm": arm.name, **_describe_part(arm.name, arm.totals)} for arm in tier.arms],
    }


def describe_arm(arm: ArmReport) -> dict[str, Any]:
    return {
        "level": "arm",
        "tier": arm.record.tier,
        "arm": arm.name,
        "is_control": arm.is_control,
        "changes": arm.record.changes,
        **_describe_totals(arm.totals),
        **describe_interval("mean_cost", arm.cost),
        **describe_interval("cost_of_pass", arm.cost_of_pass),
        "judges": _describe_judges(arm.record.judges),
        "metrics": {
            name: {**describe_interval("mean", each.mean), "runs": each.runs} for name, each in arm.metrics.items()
        },
        "effects": {name: describe_effect_values(effect) for name, effect in arm.effects.items()},
        "runs_by_seed": {str(run.seed): f"{run.seed}/{REPORT}" for run in arm.record.runs},
    }


def _describe_judges(judges: Mapping[str, JudgeCounts]) -> dict[str, Any]:
    found = {}
    for name, counts in judges.items():
        agreement = measure_votes(name, counts.votes) if counts.votes else None
        found[name] = {
            "passed": counts.passed,
            "not_passed": counts.refused,
            "failed": counts.failed,
            "mean_score": counts.mean_score,
            **({} if agreement is None else {"votes_agree": agreement.share, "kappa": agreement.kappa}),
        }
    return found


def describe_effect_values(effect: ArmEffect) -> dict[str, Any]:
    found = effect.effect
    return {
        "seeds": found.seeds,
        **describe_interval("difference", found.difference),
        "standardised": found.standardised,
        "p": found.p,
        "corrected_p": effect.corrected_p,
        "test": found.test,
    }


def describe_interval(name: str, interval: Interval | None) -> dict[str, Any]:
    """Return an estimate and its interval in plain values; JSON has null for what is infinite or not known."""
    ends = None if interval is None else [interval.low, interval.high]
    return {name: None if interval is None else interval.value, f"{name}_interval": ends}


def _describe_part(folder: str, totals: Totals) -> dict[str, Any]:
    counts = {"runs": totals.runs, "completed": totals.completed, "judged": totals.judged, "passed": totals.passed}
    return {"report": f"{folder}/{REPORT}", **counts}


def _describe_totals(totals: Totals) -> dict[str, Any]:
    return {
        "runs": totals.runs,
        "completed": totals.completed,
        "failed": totals.failed,
        "stopped": totals.stopped,
        "judged": totals.judged,
        "passed": totals.passed,
        **describe_interval(PASS_RATE, totals.pass_rate),
        "cost": totals.cost,
        "calls": totals.calls,
        "tokens": totals.tokens,
        "seconds": totals.seconds,
    }
