"""Compares simulated answers and outcomes with those of people: means, spread, distributions, agreement.

The file of people has a row for each person and a column for each outcome. `person` names who it is, and a column
`OUTCOME.retest` has what the same person answered when asked again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from shoal.errors import RunRefused
from shoal.experiments.report.reading import ArmColumns, read_record
from shoal.experiments.statistics import (
    Agreement,
    Interval,
    bootstrap_mean,
    compare_unpaired,
    estimate_agreement,
    estimate_diversity_ratio,
    estimate_variance_ratio,
    measure_jensen_shannon,
    measure_total_variation,
    measure_wasserstein,
)
from shoal.runs import RunDirectory
from shoal.runs.reports import read_last_opinions
from shoal.scenario import RecordTable, read_records
from shoal.text import join_words

#: Columns that name a person, the first that is there.
_PERSON = ("person", "name", "agent", "id")
_RETEST = ".retest"
#: Columns of `shoal ask --csv` that are no answers.
_NO_ANSWERS = frozenset({*_PERSON, "iteration", "model", "error"})
_OPINION = "opinion({})"
_MAX_NAMES = 8


class SimulatedAnswer(NamedTuple):
    """One simulated value, and whose it is where that is known."""

    value: float | str
    person: str | None = None
    #: Column -> value, where the simulated answers have these columns themselves.
    groups: Mapping[str, str] | None = None
    #: The run that it is of, where one run brings several.
    run: str | None = None


#: Arm -> outcome -> values.
Simulated = Mapping[str, Mapping[str, Sequence[SimulatedAnswer]]]


@dataclass(frozen=True, slots=True)
class OutcomeComparison:
    """One outcome of one arm, beside that of people."""

    arm: str
    outcome: str
    #: Such as `age = old`; empty for all people.
    group: str
    people: int
    simulated: int
    #: Whether the answers are numbers; else they are categories.
    is_numeric: bool
    #: Of numbers.
    human_mean: Interval | None
    simulated_mean: Interval | None
    difference: Interval | None
    #: Of categories: answer -> share among people, and among the simulated.
    shares: Mapping[str, tuple[float, float]]
    #: Variance of the simulated over that of people; of categories, the chance that two answers differ.
    variance_ratio: Interval | None
    #: Of numbers: Wasserstein, and in standard deviations of people.
    wasserstein: float | None
    standardised_wasserstein: float | None
    #: Of categories.
    total_variation: float | None
    jensen_shannon: float | None
    agreement: Agreement | None


@dataclass(frozen=True, slots=True)
class HumanComparison:
    """Everything that people and simulation both answered."""

    file: str
    people: int
    rows: Sequence[OutcomeComparison]
    notes: Sequence[str]


def compare_with_people(
    file: Path, experiment: Path | None = None, answers: Path | None = None, by: Sequence[str] = ()
) -> HumanComparison:
    """Compare people's answers with simulated answers in a file, or else with the outcomes of an experiment.

    Of an experiment, a metric has one value for each run, and `opinion(topic)` or `opinion(CLAIM)` one for each person
    at the end of each run. `by` names columns that divide people into groups.
    """
    human = read_records(file)
    missing = [column for column in by if column not in human.columns]
    if missing:
        raise RunRefused(f"{file}: there is no column {missing[0]!r}.\nIt has {join_words(human.columns, _MAX_NAMES)}.")
    if answers is not None:
        simulated: Simulated = {"": _read_answers(read_records(answers), by)}
        source = str(answers)
    elif experiment is not None:
        simulated = _read_experiment(experiment, human.columns)
        source = str(experiment)
    else:
        raise RunRefused(
            "there are no simulated answers.\nGive an experiment, or --answers FILE from `shoal ask --csv`."
        )
    rows = [row for arm, outcomes in simulated.items() for row in _compare_arm(human, arm, outcomes, by)]
    if not rows:
        known = dict.fromkeys(name for outcomes in simulated.values() for name in outcomes)
        raise RunRefused(
            f"{file} and {source} have no outcome in common.\n"
            f"The file has {join_words(human.columns, _MAX_NAMES)}; simulated are {join_words(known, 4 * _MAX_NAMES)}."
        )
    return HumanComparison(str(file), len(human), rows, list(_describe(human, rows)))


def _describe(human: RecordTable, rows: Sequence[OutcomeComparison]) -> Iterator[str]:
    """Say what a reader must know about the comparison."""
    if not any(column.endswith(_RETEST) for column in human.columns):
        yield (
            "Nobody was asked twice, so agreement is not normalised: people do not always agree with themselves. "
            "A column OUTCOME.retest has what the same person answered again."
        )
    elif all(row.agreement is None for row in rows):
        yield "No simulated person has the name of a person in the file, so nothing can be said about agreement."
    if any(row.variance_ratio is not None and row.variance_ratio.high < 1 for row in rows):
        yield "Simulated answers that vary less than those of people can have the right mean and be wrong all the same."


# Reading


def _read_answers(table: RecordTable, by: Sequence[str]) -> dict[str, list[SimulatedAnswer]]:
    """Read the simulated answers of a file, such as `shoal ask --csv` writes."""
    person = _find_person(table)
    groups = [column for column in by if column in table.columns]
    found: dict[str, list[SimulatedAnswer]] = {}
    for outcome, cells in table.columns.items():
        if outcome in _NO_ANSWERS or outcome in by:
            continue
        found[outcome] = [
            SimulatedAnswer(
                _read_cell(cell),
                None if person is None else str(table.columns[person][row]),
                {column: str(table.columns[column][row]) for column in groups},
            )
            for row, cell in enumerate(cells)
            if cell is not None
        ]
    return found


def _read_experiment(folder: Path, columns: Mapping[str, Any]) -> dict[str, dict[str, list[SimulatedAnswer]]]:
    """Read what people answered too: metrics of runs, and opinions of persons at the end of runs."""
    wants_opinions = any(column.startswith(_OPINION.partition("{")[0]) for column in columns)
    found = {}
    for arm in read_record(folder).list_arms():
        outcomes: dict[str, list[SimulatedAnswer]] = {
            name: [SimulatedAnswer(value) for value in arm.read_metric(name).values()]
            for name in arm.metrics
            if name in columns
        }
        if wants_opinions:
            outcomes |= _read_opinions(folder, arm)
        found[arm.folder] = outcomes
    return found


def _read_opinions(folder: Path, arm: ArmColumns) -> dict[str, list[SimulatedAnswer]]:
    found: dict[str, list[SimulatedAnswer]] = defaultdict(list)
    for line in arm.runs:
        if line.status == "completed":
            run = RunDirectory.open(folder / line.folder)
            for world in run.worlds:
                for about, name, value in read_last_opinions(run, world):
                    found[_OPINION.format(about)].append(SimulatedAnswer(value, name, run=line.folder))
    return found


def _find_person(table: RecordTable) -> str | None:
    return next((column for column in _PERSON if column in table.columns), None)


def _read_cell(cell: Any) -> float | str:
    """Read a cell as a number where it is one. Categories are compared without regard to case."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return str(cell).strip().casefold()
    return number if number == number else str(cell)


# Comparing


def _compare_arm(
    human: RecordTable, arm: str, outcomes: Mapping[str, Sequence[SimulatedAnswer]], by: Sequence[str]
) -> Iterator[OutcomeComparison]:
    person = _find_person(human)
    for outcome, answers in outcomes.items():
        if outcome not in human.columns or outcome in by or outcome in _PERSON or not answers:
            continue
        rows = [row for row, cell in enumerate(human.columns[outcome]) if cell is not None]
        yield from _compare_group(human, arm, outcome, "", rows, answers)
        for column in by:
            names = (
                {}
                if person is None
                else {str(human.columns[person][row]): str(human.columns[column][row]) for row in rows}
            )
            for group in dict.fromkeys(str(human.columns[column][row]) for row in rows):
                of_group = [row for row in rows if str(human.columns[column][row]) == group]
                mine = [each for each in answers if _find_group(each, column, names) == group]
                yield from _compare_group(human, arm, outcome, f"{column} = {group}", of_group, mine)


def _find_group(answer: SimulatedAnswer, column: str, names: Mapping[str, str]) -> str | None:
    """Return the group of a simulated answer: its own, or else that of the person of the same name."""
    if answer.groups and column in answer.groups:
        return answer.groups[column]
    return None if answer.person is None else names.get(answer.person)


def _compare_group(
    human: RecordTable,
    arm: str,
    outcome: str,
    group: str,
    rows: Sequence[int],
    answers: Sequence[SimulatedAnswer],
) -> Iterator[OutcomeComparison]:
    values = [_read_cell(human.columns[outcome][row]) for row in rows]
    given = [answer.value for answer in answers]
    if not values or not given:
        return
    numbers, simulated = _read_numbers(values), _read_numbers(given)
    is_numeric = numbers is not None and simulated is not None
    agreement = _compare_persons(human, outcome, rows, answers, is_numeric)
    if numbers is not None and simulated is not None:
        of_runs: dict[object, list[float]] = defaultdict(list)
        for number, (answer, value) in enumerate(zip(answers, simulated, strict=True)):
            of_runs[answer.run or number].append(value)
        yield _compare_numbers((arm, outcome, group), numbers, list(of_runs.values()), agreement)
    else:
        yield _compare_categories((arm, outcome, group), [*map(str, values)], [*map(str, given)], agreement)


def _read_numbers(values: Sequence[float | str]) -> list[float] | None:
    numbers = [value for value in values if not isinstance(value, str)]
    return numbers if len(numbers) == len(values) else None


def _compare_numbers(
    place: tuple[str, str, str], human: Sequence[float], runs: Sequence[Sequence[float]], agreement: Agreement | None
) -> OutcomeComparison:
    """Compare numbers. People of one run hear one another, so a run is one observation, however many are in it."""
    means, simulated = [fmean(values) for values in runs], [value for values in runs for value in values]
    difference = compare_unpaired(means, human)
    distance = measure_wasserstein(simulated, human)
    spread = fmean((value - fmean(human)) ** 2 for value in human) ** 0.5
    arm, outcome, group = place
    return OutcomeComparison(
        arm=arm,
        outcome=outcome,
        group=group,
        people=len(human),
        simulated=len(simulated),
        is_numeric=True,
        human_mean=bootstrap_mean(human),
        simulated_mean=bootstrap_mean(means),
        difference=None if difference is None else difference.difference,
        shares={},
        variance_ratio=estimate_variance_ratio(runs, human),
        wasserstein=distance,
        standardised_wasserstein=distance / spread if spread else None,
        total_variation=None,
        jensen_shannon=None,
        agreement=agreement,
    )


def _compare_categories(
    place: tuple[str, str, str], human: Sequence[str], simulated: Sequence[str], agreement: Agreement | None
) -> OutcomeComparison:
    answers = sorted(dict.fromkeys([*human, *simulated]), key=lambda answer: -human.count(answer))
    arm, outcome, group = place
    return OutcomeComparison(
        arm=arm,
        outcome=outcome,
        group=group,
        people=len(human),
        simulated=len(simulated),
        is_numeric=False,
        human_mean=None,
        simulated_mean=None,
        difference=None,
        shares={each: (human.count(each) / len(human), simulated.count(each) / len(simulated)) for each in answers},
        variance_ratio=estimate_diversity_ratio(simulated, human),
        wasserstein=None,
        standardised_wasserstein=None,
        total_variation=measure_total_variation(simulated, human),
        jensen_shannon=measure_jensen_shannon(simulated, human),
        agreement=agreement,
    )


def _compare_persons(
    human: RecordTable, outcome: str, rows: Sequence[int], answers: Sequence[SimulatedAnswer], is_numeric: bool
) -> Agreement | None:
    """Compare each person with the simulated answers in their name: equal answers, or how near numbers are."""
    person = _find_person(human)
    if person is None:
        return None
    by_person: dict[str, list[float | str]] = defaultdict(list)
    for answer in answers:
        if answer.person is not None:
            by_person[answer.person].append(answer.value)
    again = human.columns.get(f"{outcome}{_RETEST}")
    own = [_read_cell(human.columns[outcome][row]) for row in rows]
    numbers = _read_numbers(own) if is_numeric else None
    width = max(numbers) - min(numbers) if numbers else 0.0
    simulated, retests = [], []
    for row, value in zip(rows, own, strict=True):
        if mine := by_person.get(str(human.columns[person][row])):
            simulated.append(fmean(_agree(value, each, width) for each in mine))
            second = None if again is None else again[row]
            retests.append(None if second is None else _agree(value, _read_cell(second), width))
    return estimate_agreement(simulated, retests)


def _agree(one: float | str, other: float | str, width: float) -> float:
    """Return 1 for equal answers and 0 for others; of numbers, how near they are in the range of people's answers."""
    if isinstance(one, str) or isinstance(other, str) or not width:
        return float(one == other)
    return max(1 - abs(one - other) / width, 0.0)
