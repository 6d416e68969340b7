"""The comparison with people, in the page and in Markdown."""

from __future__ import annotations

from html import escape

from shoal.experiments.report.human import HumanComparison, OutcomeComparison
from shoal.experiments.report.page.html import write_table, write_text
from shoal.experiments.report.wording import format_range, format_signed, format_value
from shoal.experiments.statistics import Interval
from shoal.text import format_count

_MAX_SHARES = 6
_COLUMNS = [
    ("Outcome", "text"),
    ("Arm", "text"),
    ("People", "num"),
    ("Simulated", "num"),
    ("Difference", "num"),
    ("Variance ratio", "num"),
    ("Distance", "num"),
    ("Agreement", "num"),
]
EXPLANATION = (
    "Variance ratio: of the simulated over that of people; below 1, the simulated are too alike. Distance of numbers: "
    "Wasserstein, in standard deviations of people in brackets; of categories: Jensen-Shannon (0 to 1), and the share "
    "of answers that would have to change. Agreement: equal answers, or how near numbers are within the range of "
    "people's, person by person; normalised, it is divided by that of people with themselves when asked again, so that "
    "1 is as good as the people themselves."
)


def write_people(found: HumanComparison) -> str:
    """Write the section of the page."""
    rows = [
        [
            (write_text(row.outcome) + (f"<small>{write_text(row.group)}</small>" if row.group else ""), row.outcome),
            (write_text(row.arm or "-"), row.arm),
            _write_side(row, 0),
            _write_side(row, 1),
            _write_interval(row.difference, signed=True),
            _write_interval(row.variance_ratio),
            _write_distance(row),
            _write_agreement(row),
        ]
        for row in found.rows
    ]
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in found.notes)
    return (
        f'<h2 class="tier">Beside people <small>{write_text(found.file)}, {found.people:,} people</small></h2>{notes}'
        f'<section class="card">{write_table(_COLUMNS, rows)}<p class="dim pad">{EXPLANATION}</p></section>'
    )


def _write_side(row: OutcomeComparison, side: int) -> tuple[str, str]:
    count = format_count((row.people, row.simulated)[side], "value")
    mean = (row.human_mean, row.simulated_mean)[side]
    if mean is not None:
        words = f"<b>{format_value(mean.value)}</b><small>{format_range(mean)}</small><small>{count}</small>"
        return words, f"{mean.value}"
    shares = [f"{write_text(answer)} {pair[side]:.0%}" for answer, pair in list(row.shares.items())[:_MAX_SHARES]]
    return f"{', '.join(shares)}<small>{count}</small>", ""


def _write_interval(interval: Interval | None, *, signed: bool = False) -> tuple[str, str]:
    if interval is None:
        return '<span class="dim">–</span>', ""
    value = format_signed(interval.value) if signed else format_value(interval.value)
    return f"<b>{value}</b><small>{format_range(interval, signed=signed)}</small>", f"{interval.value}"


def _write_distance(row: OutcomeComparison) -> tuple[str, str]:
    if row.wasserstein is not None:
        scaled = row.standardised_wasserstein
        more = "" if scaled is None else f"<small>({format_value(scaled)} sd)</small>"
        return f"<b>{format_value(row.wasserstein)}</b>{more}", f"{row.wasserstein}"
    distance, moved = row.jensen_shannon or 0.0, row.total_variation or 0.0
    return f"<b>{format_value(distance)}</b><small>{moved:.0%} would change</small>", f"{distance}"


def _write_agreement(row: OutcomeComparison) -> tuple[str, str]:
    found = row.agreement
    if found is None:
        return '<span class="dim">–</span>', ""
    words = f"<b>{found.simulated:.0%}</b><small>of {format_count(found.people, 'person', 'people')}</small>"
    if found.normalised is not None and found.retest is not None:
        words += f"<small>people with themselves {found.retest:.0%}</small>"
        words += f"<small>normalised <b>{found.normalised.value:.2f}</b> ({format_range(found.normalised)})</small>"
    return words, f"{found.simulated}"


def list_people(found: HumanComparison) -> list[list[str]]:
    """Return the comparison as the cells of a table in plain text, titles first."""
    rows = [["outcome", "arm", "people", "simulated", "difference", "variance ratio", "distance", "agreement"]]
    for row in found.rows:
        sides = [
            ", ".join(f"{answer} {pair[side]:.0%}" for answer, pair in list(row.shares.items())[:_MAX_SHARES])
            if mean is None
            else f"{format_value(mean.value)} ({format_range(mean)})"
            for side, mean in enumerate((row.human_mean, row.simulated_mean))
        ]
        distance = row.jensen_shannon if row.wasserstein is None else row.wasserstein
        outcome = f"{row.outcome}, {row.group}" if row.group else row.outcome
        cells = [outcome, row.arm or "-", *sides, _format_interval(row.difference, signed=True)]
        kind = "JS" if row.wasserstein is None else "W"
        cells += [
            _format_interval(row.variance_ratio),
            f"{kind} {format_value(distance or 0.0)}",
            _describe_agreement(row),
        ]
        rows.append(cells)
    return rows


def _format_interval(interval: Interval | None, *, signed: bool = False) -> str:
    if interval is None:
        return "-"
    value = format_signed(interval.value) if signed else format_value(interval.value)
    return f"{value} ({format_range(interval, signed=signed)})"


def _describe_agreement(row: OutcomeComparison) -> str:
    found = row.agreement
    if found is None:
        return "-"
    if found.normalised is None:
        return f"{found.simulated:.2f}"
    return f"{found.simulated:.2f}, normalised {found.normalised.value:.2f} ({format_range(found.normalised)})"
