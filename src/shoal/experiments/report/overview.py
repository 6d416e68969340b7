"""The whole report in one plain value, from which pages draw it without computing anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from shoal.experiments.report.figures import ExperimentReport, TierReport
from shoal.experiments.report.page.charts import find_front, list_dots
from shoal.experiments.report.series import TierCurves
from shoal.experiments.report.tree import describe_arm, describe_experiment, describe_tier
from shoal.experiments.report.wording import (
    METHODS,
    Strong,
    describe_findings,
    format_p,
    list_commands,
    list_formulas,
    name_outcome,
)

#: Figures of a curve are drawn, so that more digits say nothing.
_DIGITS = 6


def describe_report(report: ExperimentReport) -> dict[str, Any]:
    """Describe an experiment with all its tiers and arms: what `report.json` has at every level, but for its runs."""
    return {
        **describe_experiment(report),
        "sentences": [
            [{"text": str(getattr(part, "text", part)), "is_strong": isinstance(part, Strong)} for part in sentence]
            for sentence in describe_findings(report)
        ],
        "outcome_name": None if report.outcome is None else name_outcome(report.outcome),
        "metrics": list(report.metrics),
        "formulas": dict(list_formulas(report)),
        "methods": list(METHODS),
        "commands": [{"command": command, "what": what} for command, what in list_commands(report)],
        "tiers": [_describe_tier(tier) for tier in report.tiers],
        "lost": [{"run": run.folder, "status": run.status, "error": run.error} for run in report.list_lost()],
    }


def _describe_tier(tier: TierReport) -> dict[str, Any]:
    # The tiers of an experiment are compared in one picture, their fronts are not: each has its control.
    front = {dot.name for dot in find_front(list_dots(tier.arms))}
    arms = []
    for arm in tier.arms:
        described = describe_arm(arm)
        for name, effect in arm.effects.items():
            described["effects"][name] |= {"is_found": effect.is_found, "corrected": format_p(effect.corrected_p)}
        arms.append({**described, "is_on_front": arm.name in front})
    return {**describe_tier(tier), "arms": arms}


def describe_curves(curves: Sequence[TierCurves]) -> Iterator[dict[str, Any]]:
    """Yield the curves of each tier: metric -> a band for each arm."""
    for tier in curves:
        bands = {
            metric: [
                {
                    "arm": band.arm,
                    "runs": band.runs,
                    "rounds": list(band.rounds),
                    **{name: getattr(band, name).round(_DIGITS).tolist() for name in ("mean", "low", "high")},
                }
                for band in of_metric
            ]
            for metric, of_metric in tier.bands.items()
        }
        yield {"tier": tier.tier, "sampled": tier.sampled, "metrics": msgspec.to_builtins(bands)}
