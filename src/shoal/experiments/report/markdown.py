"""The report as Markdown, for readers in a terminal, and for pull requests and papers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shoal.experiments.report.figures import ArmReport, ExperimentReport, TierReport
from shoal.experiments.report.human import HumanComparison
from shoal.experiments.report.page import EXPLANATION, list_people
from shoal.experiments.report.wording import (
    METHODS,
    Strong,
    describe_findings,
    describe_problems,
    format_money,
    format_p,
    format_range,
    format_signed,
    format_value,
    list_commands,
    list_formulas,
    list_judges,
    name_outcome,
)
from shoal.experiments.results import PASS_RATE
from shoal.text import format_count, format_duration, printable

_MARKS = re.compile(r"([\\`*_{}\[\]<>|#!~])")
_MAX_FAILED = 50


def _escape(words: object) -> str:
    """Escape what Markdown and the HTML in it would take for marks."""
    return _MARKS.sub(r"\\\1", printable(str(words)).replace("&", "&amp;"))


def write_markdown(report: ExperimentReport, people: HumanComparison | None) -> str:
    """Write the whole report."""
    return "\n".join(_write(report, people)).rstrip() + "\n"


def _write(report: ExperimentReport, people: HumanComparison | None) -> Iterator[str]:
    totals = report.totals
    yield f"# {_escape(report.name)}\n"
    for sentence in describe_findings(report):
        marked = (f"**{_escape(part.text)}**" if isinstance(part, Strong) else _escape(part) for part in sentence)
        yield f"{''.join(marked)}\n"
    for note in describe_problems(report):
        yield f"> {_escape(note)}\n"
    yield (
        f"{format_count(totals.runs, 'run')}, {totals.completed:,} completed; {totals.judged:,} judged, "
        f"{totals.passed:,} passed; {format_money(totals.cost)}, {totals.calls:,} calls, {totals.tokens:,} tokens, "
        f"{format_duration(totals.seconds)} of work.\n"
    )
    for tier in report.tiers:
        yield from _write_tier(report, tier)
    if judges := list_judges(report):
        yield "## Judges\n"
        titles, *rows = [[_escape(cell) for cell in row] for row in judges]
        yield from _write_table(titles, rows)
        yield ""
    if report.stops:
        yield "## Arms that were stopped\n"
        yield from (
            f"- {_escape(f'{stop.tier}/{stop.arm}')} after {format_count(stop.seeds, 'seed')}: {_escape(stop.reason)}"
            for stop in report.stops
        )
        yield ""
    lost = report.list_lost()
    if lost:
        yield "## Runs that failed, stopped or could not be judged\n"
        yield from (
            f"- [{_escape(run.folder)}]({run.folder}/), {run.status}: {_escape(run.error or 'no reason was recorded')}"
            for run in lost[:_MAX_FAILED]
        )
        yield f"\nAnd {len(lost) - _MAX_FAILED:,} more.\n" if len(lost) > _MAX_FAILED else ""
    if people is not None:
        yield f"## Beside people\n\n{_escape(people.file)}, {format_count(people.people, 'person', 'people')}.\n"
        yield from (f"> {_escape(note)}\n" for note in people.notes)
        titles, *rows = list_people(people)
        yield from _write_table(titles, [[_escape(cell) for cell in row] for row in rows])
        yield f"\n{_escape(EXPLANATION)}\n"
    yield "## Reproduce\n"
    yield from (f"- `{command}`: {words}" for command, words in list_commands(report))
    yield "\n## Methods\n"
    yield from (f"- {_escape(line)}" for line in METHODS)
    yield from (f"- **{_escape(name)}**: {_escape(formula)}" for name, formula in list_formulas(report))


def _write_tier(report: ExperimentReport, tier: TierReport) -> Iterator[str]:
    yield f"## {_escape(tier.name)}\n"
    is_judged, has_cost = tier.totals.judged > 0, bool(tier.totals.cost)
    outcomes = [name for name in (report.outcome,) if name is not None]
    heads = ["arm", *(_escape(name_outcome(name)) for name in outcomes), "difference", "corrected p", "d", "runs"]
    heads += ["pass rate"] if is_judged and PASS_RATE not in outcomes else []
    heads += ["cost a run"] if has_cost else []
    heads += ["cost of a pass"] if is_judged and has_cost else []
    rows = []
    for arm in tier.arms:
        name = f"[{_escape(arm.name)}]({arm.record.folder}/)" + (" (control)" if arm.is_control else "")
        cells = [name, *(_write_value(arm, outcome) for outcome in outcomes), *_write_effect(arm, report.outcome or "")]
        cells.append(f"{arm.totals.completed}/{arm.totals.runs}")
        cells += [_write_value(arm, PASS_RATE)] if is_judged and PASS_RATE not in outcomes else []
        cells += [format_money(arm.cost.value if arm.cost else None)] if has_cost else []
        cost = arm.cost_of_pass
        cells += [format_money(cost.value if cost else None)] if is_judged and has_cost else []
        rows.append(cells)
    yield from _write_table(heads, rows)
    yield ""
    if len(report.metrics) > len(outcomes):
        arms = tier.arms
        rows = [
            [_escape(name), *(_write_value(arm, name) for arm in arms)]
            for name in report.metrics
            if name not in outcomes
        ]
        yield from _write_table(["mean (95 % interval)", *(_escape(arm.name) for arm in arms)], rows)
        yield ""


def _write_value(arm: ArmReport, outcome: str) -> str:
    found = arm.read_outcome(outcome)
    return "–" if found is None else f"{format_value(found.value, outcome)} ({format_range(found, outcome)})"


def _write_effect(arm: ArmReport, outcome: str) -> list[str]:
    effect = arm.effects.get(outcome)
    if effect is None:
        return ["–", "–", "–"]
    found = effect.effect
    ends = format_range(found.difference, outcome, signed=True)
    words = f"{format_signed(found.difference.value, outcome)} ({ends})"
    d = "–" if found.standardised is None else format_signed(found.standardised)
    return [words, format_p(effect.corrected_p).removeprefix("p ").removeprefix("= "), d]


def _write_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
