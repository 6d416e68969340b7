"""The report as one page that needs nothing else: no resource from elsewhere, and no text of others can run as code.

The policy of the page allows its one style sheet and its one script by their digests, and nothing else.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from importlib import resources

import shoal
from shoal.experiments.report.figures import ExperimentReport, TierReport, Totals
from shoal.experiments.report.human import HumanComparison
from shoal.experiments.report.page.arms import write_arms, write_metrics
from shoal.experiments.report.page.curves import write_charts
from shoal.experiments.report.page.html import write_address, write_sentence, write_table, write_text
from shoal.experiments.report.page.people import write_people
from shoal.experiments.report.series import TierCurves
from shoal.experiments.report.wording import (
    METHODS,
    describe_findings,
    describe_problems,
    format_money,
    format_money_range,
    list_commands,
    list_formulas,
    list_judges,
    name_outcome,
)
from shoal.text import format_count, format_duration, printable

_MAX_FAILED = 200


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def write_page(report: ExperimentReport, curves: Sequence[TierCurves], people: HumanComparison | None) -> str:
    """Write the whole page."""
    css, js = _read("page.css"), _read("page.js")
    policy = (
        f"default-src 'none'; style-src {_digest(css)}; script-src {_digest(js)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = escape(printable(report.name))
    parts = [
        *_write_head(report),
        *(part for tier, drawn in zip(report.tiers, curves, strict=True) for part in _write_tier(report, tier, drawn)),
        *_write_judges(report),
        *_write_stops(report),
        *_write_failures(report),
        "" if people is None else write_people(people),
        *_write_reproduction(report),
        *_write_methods(report),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{title} – report</title>\n<style>{css}</style></head>\n"
        '<body><a class="skip" href="#main">Skip to the findings</a>\n'
        + "\n".join(part for part in parts if part)
        + f"\n</main><script>{js}</script></body></html>\n"
    )


def _write_head(report: ExperimentReport) -> Iterator[str]:
    totals = report.totals
    state = "all completed" if totals.completed == totals.runs else f"{totals.runs - totals.completed} not completed"
    arms = format_count(len(report.list_arms()), "arm")
    yield (
        f'<header><p class="crumbs"><b>Shoal</b> Experiment</p><h1>{write_text(report.name)}</h1>'
        f'<p class="chip{"" if totals.completed == totals.runs else " warn"}">'
        f"{format_count(totals.runs, 'run')} · {state}</p></header>\n"
        '<main id="main"><section class="card finding" aria-labelledby="h-finding">'
        '<h2 id="h-finding" class="quiet">Findings</h2>'
    )
    sentences = describe_findings(report)
    for number, sentence in enumerate(sentences):
        yield f'<p class="{"lead" if number == 0 else "next"}">{write_sentence(sentence)}</p>'
    if report.outcome is not None:
        yield (
            f'<p class="dim">Outcome: <b>{write_text(name_outcome(report.outcome))}</b>, '
            f"{escape(report.outcome_reason)}. {format_count(len(report.tiers), 'tier')}, {arms}.</p>"
        )
    for note in describe_problems(report):
        yield f'<p class="note">{escape(printable(note))}</p>'
    yield "</section>" + _write_figures(totals, report)


def _write_figures(totals: Totals, report: ExperimentReport) -> str:
    best = report.best_arm
    cost = best.cost_of_pass if best is not None and totals.cost else None
    rate = totals.pass_rate
    figures = [
        ("Runs", f"{totals.completed:,}", f"of {totals.runs:,} completed"),
        (
            "Passed",
            f"{totals.passed:,}" if totals.judged else "–",
            f"of {totals.judged:,} judged" if rate else "no judges",
        ),
        ("Cost", format_money(totals.cost), f"{totals.calls:,} calls, {totals.tokens:,} tokens"),
        ("Time of runs", format_duration(totals.seconds), "summed over all runs"),
    ]
    if cost is not None and best is not None:
        figures.insert(2, ("Cost of a pass", format_money(cost.value), f"{best.name}, {format_money_range(cost)}"))
    cells = "".join(
        f'<div class="card"><dt>{escape(name)}</dt><dd>{escape(value)}</dd>'
        f'<dd class="dim">{write_text(about)}</dd></div>'
        for name, value, about in figures
    )
    return f'<dl class="figures">{cells}</dl>'


# One tier


def _write_tier(report: ExperimentReport, tier: TierReport, curves: TierCurves) -> Iterator[str]:
    inherits = tier.record.inherits
    about = [format_count(len(tier.arms), "arm"), format_count(tier.totals.runs, "run")]
    if inherits:
        end = "highest" if inherits.get("highest") else "lowest"
        start = report.record.state.starts.get(tier.name, inherits.get("tier"))
        about.append(f"starts from {start}, where {inherits.get(end)} is {end}")
    yield f'<h2 class="tier">{write_text(tier.name)} <small>{write_text(" · ".join(about))}</small></h2>'
    if report.outcome is not None:
        yield write_arms(tier, report.outcome)
    yield from write_charts(report, tier, curves)
    yield from write_metrics(report, tier)


def _write_judges(report: ExperimentReport) -> Iterator[str]:
    if judges := list_judges(report):
        titles, *rows = judges
        columns = [(titles[0].capitalize(), "text"), *((title.capitalize(), "num") for title in titles[1:])]
        yield '<h2 class="tier">Judges</h2>'
        cells = [[(write_text(cell), cell.rstrip("%")) for cell in row] for row in rows]
        yield f'<section class="card">{write_table(columns, cells)}</section>'


def _write_stops(report: ExperimentReport) -> Iterator[str]:
    if report.stops:
        columns = [("Tier", "text"), ("Arm", "text"), ("After seeds", "num"), ("Because", "")]
        rows = [
            [
                (write_text(stop.tier), stop.tier),
                (write_text(stop.arm), stop.arm),
                (str(stop.seeds), str(stop.seeds)),
                (write_text(stop.reason), ""),
            ]
            for stop in report.stops
        ]
        yield '<h2 class="tier">Arms that were stopped</h2>'
        yield f'<section class="card">{write_table(columns, rows)}</section>'


def _write_failures(report: ExperimentReport) -> Iterator[str]:
    lost = report.list_lost()
    if not lost:
        return
    columns = [("Run", "text"), ("Status", "text"), ("Reason", "")]
    rows = [
        [
            (f'<a href="{write_address(run.folder)}">{write_text(run.folder)}</a>', run.folder),
            (escape(run.status), run.status),
            (write_text(run.error or "no reason was recorded"), ""),
        ]
        for run in lost[:_MAX_FAILED]
    ]
    more = f'<p class="dim pad">And {len(lost) - _MAX_FAILED:,} more.</p>' if len(lost) > _MAX_FAILED else ""
    yield '<h2 class="tier">Runs that failed, stopped or could not be judged</h2>'
    yield f'<section class="card">{write_table(columns, rows)}{more}</section>'


def _write_reproduction(report: ExperimentReport) -> Iterator[str]:
    rows = "".join(
        f"<li><code>{write_text(command)}</code><span>{escape(words)}</span></li>"
        for command, words in list_commands(report)
    )
    arms = "".join(
        f"<li><span>{write_text(arm)}</span><code>{write_text(command)}</code></li>"
        for arm, command in report.list_commands()
    )
    words = "The first run of each arm, made anew. Other runs: <code>command</code> in their report.json"
    more = f'<details><summary>{words}</summary><ul class="commands">{arms}</ul></details>' if arms else ""
    yield f'<h2 class="tier">Reproduce</h2><section class="card pad"><ul class="commands">{rows}</ul>{more}</section>'


def _write_methods(report: ExperimentReport) -> Iterator[str]:
    items = "".join(f"<li>{escape(line)}</li>" for line in METHODS)
    items += "".join(f"<li><b>{escape(name)}</b>: {escape(formula)}</li>" for name, formula in list_formulas(report))
    yield (
        f'<details class="methods"><summary>Methods</summary><ul>{items}</ul></details>'
        f'<footer class="dim">Shoal {escape(shoal.__version__)} · The same figures are in '
        '<a href="report.json">report.json</a>, here and in every folder below, and in '
        '<a href="report.md">report.md</a>.</footer>'
    )
