"""Figures as text, and the findings of an experiment in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, inf, isfinite, log10
from typing import NamedTuple

from shoal.errors import QueryFailed
from shoal.experiments.judges import measure_votes
from shoal.experiments.metrics import METRICS, MetricName
from shoal.experiments.report.figures import (
    SIGNIFICANT,
    ArmEffect,
    ArmReport,
    ExperimentReport,
    TierReport,
)
from shoal.experiments.results import PASS_RATE
from shoal.experiments.statistics import Interval, describe_power
from shoal.text import format_count, quote_path

MINUS = "\u2212"


class Strong(NamedTuple):
    """A part of a sentence that stands out."""

    text: str


#: Parts of texts of others and of our own words, which writers escape each in their way.
Sentence = Sequence[str | Strong]


def join_sentence(sentence: Sentence) -> str:
    return "".join(part.text if isinstance(part, Strong) else part for part in sentence)


def format_value(value: float, outcome: str = "") -> str:
    """Format a figure with about three digits, as a share where the outcome is the pass rate."""
    if not isfinite(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if outcome == PASS_RATE:
        return _sign(f"{value * 100:.0f}") + " %"
    size = abs(value)
    if size == 0 or size >= 1000:
        return _sign(f"{value:,.0f}")
    digits = max(2 - floor(log10(size)), 0) if size >= 0.01 else 3
    text = f"{value:.{min(digits, 3)}f}" if size >= 0.0005 else f"{value:.{-floor(log10(size))}f}"
    return _sign(text)


def format_signed(value: float, outcome: str = "") -> str:
    """Format a difference with its sign."""
    text = format_value(value, outcome)
    return f"+{text}" if value > 0 else text


def format_range(interval: Interval, outcome: str = "", *, signed: bool = False) -> str:
    """Format the ends of an interval; `not known` where it has none."""
    if interval.low == -inf and interval.high == inf:
        return "not known"
    write = format_signed if signed else format_value
    return f"{write(interval.low, outcome)} to {write(interval.high, outcome)}"


def format_money(dollars: float | None) -> str:
    if dollars is None:
        return "unknown"
    if not isfinite(dollars):
        return "∞"
    if dollars == 0 or dollars >= 1000:
        return f"${dollars:,.0f}"
    return f"${dollars:,.2f}" if dollars >= 0.1 else f"${dollars:.2g}" if dollars >= 1e-4 else "< $0.0001"


def format_money_range(interval: Interval) -> str:
    if interval.low == -inf:
        return "not known"
    return f"{format_money(max(interval.low, 0.0))} to {format_money(interval.high)}"


def format_p(p: float | None) -> str:
    if p is None:
        return "p not known"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def name_outcome(outcome: str) -> str:
    return "pass rate" if outcome == PASS_RATE else outcome


def _sign(text: str) -> str:
    return text.replace("-", MINUS) if float(text.replace(",", "")) else text.lstrip("-")


def describe_findings(report: ExperimentReport) -> list[Sentence]:
    """Say what was found, the answer first."""
    if not report.totals.runs:
        return [["No run has ended yet."]]
    found: list[Sentence] = []
    if report.outcome is not None:
        found += [_describe_tier(tier, report.outcome, len(report.tiers) > 1) for tier in report.tiers]
    if (best := report.best_arm) is not None and (cost := best.cost_of_pass) is not None:
        if not isfinite(cost.value):
            found.append(["No run passed, so the cost of a pass is infinite."])
        elif cost.value > 0:
            words = f" per passing run (95 % interval {format_money_range(cost)}), the least of all arms."
            found.append([Strong(best.name), " costs ", Strong(format_money(cost.value)), words])
    return [sentence for sentence in found if sentence]


def list_judges(report: ExperimentReport) -> list[list[str]]:
    """List what each judge said of all runs, under a row of titles; nothing where nothing judges."""
    rows = []
    for name, counts in report.judges.items():
        agreement = measure_votes(name, counts.votes) if counts.votes else None
        kappa = None if agreement is None else agreement.kappa
        rows.append(
            [
                name,
                f"{counts.passed:,}",
                f"{counts.refused:,}",
                f"{counts.failed:,}",
                "–" if counts.mean_score is None else f"{counts.mean_score:.3g}",
                "–" if agreement is None else f"{agreement.share:.0%}",
                "–" if kappa is None else f"{kappa:.2f}",
            ]
        )
    titles = ["judge", "passed", "not passed", "failed", "mean score", "votes that agree", "Fleiss' kappa"]
    return [titles, *rows] if rows else []


def describe_problems(report: ExperimentReport) -> list[str]:
    """Say what a reader must know before believing the figures."""
    totals = report.totals
    notes = []
    of = f"Of {format_count(totals.runs, 'run')}"
    if totals.failed:
        as_what = "in pass rates they count as not passed" if totals.judged else "nothing judges them"
        notes.append(f"{of}, {totals.failed:,} failed. Their cost counts, their metrics do not, and {as_what}.")
    if totals.stopped:
        notes.append(f"{of}, {totals.stopped:,} stopped early. Their cost counts, and nothing else of them.")
    if totals.judged and (unknown := totals.completed + totals.failed - totals.judged) > 0:
        notes.append(
            f"{format_count(unknown, 'completed run')} could not be judged; the pass rate is of the other "
            f"{totals.judged:,}."
        )
    seeds = [effect.effect.seeds for arm in report.list_arms() for effect in arm.effects.values()]
    if seeds and (power := describe_power(min(seeds))) is not None:
        notes.append(power)
    notes += (
        f"Tier {tier.name} declares no control; its arms are compared with {tier.record.control}."
        for tier in report.tiers
        if not tier.record.is_control_declared and len(tier.arms) > 1
    )
    state = report.record.state
    notes += (f"Tier {tier} was not run: {reason}." for tier, reason in state.skipped.items())
    notes += state.notes
    for change in report.record.design.changes:
        differences = "; ".join(change.differences)
        notes.append(f"The design was changed after {format_count(change.runs, 'run')} ({change.at}): {differences}.")
    return notes


def _describe_tier(tier: TierReport, outcome: str, is_one_of_many: bool) -> Sentence:
    control = tier.control
    place: list[str | Strong] = [f"{tier.name}: "] if is_one_of_many else []
    effects = [(arm, arm.effects[outcome]) for arm in tier.arms if outcome in arm.effects]
    if control is None or not effects:
        return [*place, *_describe_alone(tier, outcome)]
    found = [(arm, each) for arm, each in effects if each.is_found]
    pool = found or effects
    arm, effect = max(pool, key=lambda pair: abs(pair[1].effect.difference.value))
    difference = effect.effect.difference
    words = (
        f"{format_signed(difference.value, outcome)}, 95 % interval {format_range(difference, outcome, signed=True)}"
    )
    if not found:
        return [
            *place,
            "no arm differs from " if place else "No arm differs from ",
            Strong(control.name),
            f" in {name_outcome(outcome)} by more than chance explains. The largest difference is that of ",
            Strong(arm.name),
            f" ({words}, corrected {format_p(effect.corrected_p)}).",
        ]
    verb, others = "raises" if difference.value > 0 else "lowers", len(found) - 1
    also = f"also {'differs' if others == 1 else 'differ'} from it beyond chance"
    return [
        *place,
        Strong(arm.name),
        f" {verb} {name_outcome(outcome)} against ",
        Strong(control.name),
        *_describe_values(arm, control, outcome),
        f" ({words}, corrected {format_p(effect.corrected_p)})",
        *_describe_wins(arm, control, outcome, difference.value),
        f"; {format_count(others, 'other arm')} {also}." if others else ".",
    ]


def _describe_alone(tier: TierReport, outcome: str) -> Iterator[str | Strong]:
    known = [(arm, value) for arm in tier.arms if (value := arm.read_outcome(outcome)) is not None]
    for number, (arm, value) in enumerate(known):
        yield ", " if number else f"{name_outcome(outcome)} is "
        yield Strong(format_value(value.value, outcome))
        yield f" in {arm.name} (95 % interval {format_range(value, outcome)})"
    yield "." if known else f"no run has {name_outcome(outcome)}."


def _describe_values(arm: ArmReport, control: ArmReport, outcome: str) -> Iterator[str | Strong]:
    """Say which values an arm and its control have; nothing where one of them is not known."""
    one, other = arm.read_outcome(outcome), control.read_outcome(outcome)
    if one is not None and other is not None:
        yield ": "
        yield Strong(format_value(one.value, outcome))
        yield f" instead of {format_value(other.value, outcome)}"


def _describe_wins(arm: ArmReport, control: ArmReport, outcome: str, difference: float) -> Iterator[str]:
    """Say in how many seeds the arm was on the side of its effect."""
    if outcome == PASS_RATE:
        return
    one, other = arm.record.read_metric(outcome), control.record.read_metric(outcome)
    common = one.keys() & other.keys()
    wins = sum((one[seed] - other[seed]) * difference > 0 for seed in common)
    yield f", in {wins} of {format_count(len(common), 'seed')}"


def describe_effect(effect: ArmEffect, outcome: str) -> str:
    """Describe an effect in one line, for readers that cannot see its picture."""
    found = effect.effect
    sure = "beyond chance" if effect.is_found else "not beyond chance"
    return (
        f"{format_signed(found.difference.value, outcome)}, 95 % interval "
        f"{format_range(found.difference, outcome, signed=True)}, corrected {format_p(effect.corrected_p)}, {sure}"
    )


def list_formulas(report: ExperimentReport) -> list[tuple[str, str]]:
    """Return the formulas of the metrics that Shoal knows, each once."""
    found = {}
    for name in report.metrics:
        try:
            metric = METRICS.get(MetricName.parse(name).metric)
        except QueryFailed:
            # A name that a user gave to something else.
            continue
        if metric is not None:
            found[metric.name] = metric.formula
    return list(found.items())


def list_commands(report: ExperimentReport) -> list[tuple[str, str]]:
    """Return what reproduces the figures, each with what it does."""
    folder = report.record.folder
    first = next((run for arm in report.list_arms() for run in arm.record.runs), None)
    commands = [(f"shoal report {quote_path(folder)}", "every figure of this report again, from the results")]
    if first is not None:
        path = quote_path(folder / first.folder)
        commands.append(
            (f"shoal replay {path}", "one run again from its journal: free, offline, and compared with its record")
        )
    if report.record.design.file is not None:
        command = f"shoal experiment {quote_path(report.record.design.file)} --out {quote_path(folder)}"
        commands.append((command, "the whole experiment; nothing that has ended is repeated"))
    commands.append(
        (
            f"shoal export {quote_path(folder)} --format parquet",
            "one table, a row for each run, for an analysis of your own",
        )
    )
    return commands


METHODS = (
    "A run is one observation, however many agents are in it. Arms have the same seeds, so that an arm is compared "
    "with the control seed by seed.",
    "Intervals are 95 %. Means: studentised bootstrap, and Student's t below 5 runs or above 400. Rates: Wilson. Cost "
    "of a pass: mean cost over pass rate, with both drawn from what the judged runs leave possible. Where it is known "
    "what values a metric can have, such as 0 to 1 for a share, intervals and bands end there.",
    "Effects on a mean: the interval holds what either flipping the signs of the paired differences or their "
    "studentised bootstrap leaves possible, and p is the larger of both, so that the two never disagree. Five seeds "
    "are too few to flip signs; below and above 400 both are Student's t. Effects on pass rates: what pairs that are "
    "better, worse and alike leave possible, if nothing was known before; p is close to the mid-p of McNemar's test.",
    f"Corrected p: Holm, over all arms that are compared in the same outcome. Below {SIGNIFICANT} a finding is called "
    "beyond chance. The interval is that of one comparison alone, so a corrected p can exceed 0.05 beside an interval "
    "without zero. Of many metrics some differ by chance: only the outcome above was chosen before looking.",
    "Bands over rounds are Student's t of each round by itself.",
    "d is the mean difference in standard deviations of the differences.",
)
