"""An experiment as declared: tiers of arms over the same seeds, in the section `experiment` of a scenario file.

The scenario around the section is the base that arms change. Every arm is run with the same seeds, so that arms differ
by cause and not by luck.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shoal.errors import ScenarioInvalid
from shoal.experiments.batch_rows import BatchRow, check_row
from shoal.scenario import Document, Problem, Scenario, load, parse, read_document, read_problems, read_text

SECTION = "experiment"
#: The arm in which nothing is changed, where there are sweeps.
BASE = "base"
#: Runs of one experiment, at most.
MAX_RUNS = 100_000

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Overrides = dict[str, Any]
Levels = dict[str, Annotated[list[Any], Field(min_length=1)]]


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Inheritance(_Declared):
    """The arm of an earlier tier that a tier starts from: the one whose mean of a metric is best."""

    tier: str
    highest: str | None = None
    lowest: str | None = None


class TierSettings(_Declared):
    """One tier: its arms, named or as combinations of levels, all compared over the same seeds."""

    name: Name
    inherits: Inheritance | None = None
    #: Name -> values of the scenario that the arm changes, named as for `--set`.
    arms: dict[Name, Overrides] = Field(default_factory=dict)
    #: An arm for each combination of levels.
    grid: Levels = Field(default_factory=dict)
    #: An arm for each level, one change at a time, beside the arm `base`.
    sweep: Levels = Field(default_factory=dict)
    control: str | None = None

    def list_arms(self) -> dict[str, Overrides]:
        """Return every arm with what it changes, before anything is inherited."""
        arms = dict(self.arms)
        if self.grid:
            for levels in product(*self.grid.values()):
                changes = dict(zip(self.grid, levels, strict=True))
                arms["_".join(_name_level(*each) for each in changes.items())] = changes
        if self.sweep:
            arms.setdefault(BASE, {})
            arms |= {_name_level(path, level): {path: level} for path, levels in self.sweep.items() for level in levels}
        return arms

    def count_arms(self) -> int:
        """Count the arms that are declared. There are fewer names where two arms have the same one."""
        combinations = prod(map(len, self.grid.values())) if self.grid else 0
        levels = sum(map(len, self.sweep.values()))
        return len(self.arms) + combinations + levels + (bool(self.sweep) and BASE not in self.arms)


class ExperimentSettings(_Declared):
    """The section `experiment` of a file."""

    name: Name | None = None
    #: The scenario's file, where it is not the rest of this one.
    base: str | None = None
    #: How many seeds, from that of the scenario on, or which.
    seeds: Annotated[int, Field(ge=1)] | Annotated[list[int], Field(min_length=1)] = 10
    tiers: Annotated[list[TierSettings], Field(min_length=1)]


@dataclass(frozen=True)
class Experiment:
    """An experiment whose every run has been checked."""

    name: str
    base: Scenario
    tiers: tuple[TierSettings, ...]
    seeds: tuple[int, ...]

    @property
    def runs(self) -> int:
        return sum(len(tier.list_arms()) for tier in self.tiers) * len(self.seeds)

    def list_rows(self, tier: TierSettings, inherited: Mapping[str, Any]) -> list[BatchRow]:
        """Return the runs of a tier, seed by seed, so that arms can be compared before all seeds are done."""
        arms = {name: {**inherited, **changes} for name, changes in tier.list_arms().items()}
        return [
            check_row(self.base, f"{tier.name}/{name}/{seed}", _assign({**changes, "seed": seed}, tier.name, name))
            for seed in self.seeds
            for name, changes in arms.items()
        ]


def load_experiment(path: Path) -> Experiment:
    """Load the experiment in a scenario's file; ScenarioInvalid holds everything that is wrong with it."""
    text = read_text(path)
    document = read_document(text, str(path))
    section = document.value.get(SECTION) if isinstance(document.value, dict) else None
    if section is None:
        example = "experiment: {seeds: 10, tiers: [{name: main, arms: {control: {}, other: {rounds: 9}}}]}"
        raise ScenarioInvalid([f"{path}: no section {SECTION!r} in it; add one such as {example}"])
    try:
        settings = ExperimentSettings.model_validate(section)
    except ValidationError as error:
        raise _locate(path, document, list(_read_error(error))) from None
    if problems := list(_find_problems(settings)):
        raise _locate(path, document, problems)
    base = load(path.parent / settings.base) if settings.base else parse(text, str(path), path.parent)
    seeds = settings.seeds
    numbers = tuple(range(base.seed, base.seed + seeds)) if isinstance(seeds, int) else tuple(dict.fromkeys(seeds))
    experiment = Experiment(settings.name or base.name, base, tuple(settings.tiers), numbers)
    if experiment.runs > MAX_RUNS:
        raise ScenarioInvalid([f"{path}: {experiment.runs:,} runs; at most {MAX_RUNS:,} are possible"])
    _check_arms(experiment, path, document)
    return experiment


def _check_arms(experiment: Experiment, path: Path, document: Document) -> None:
    """Check the scenario of every arm once, and say where a wrong one is declared."""
    problems = []
    for number, tier in enumerate(experiment.tiers):
        for name, changes in tier.list_arms().items():
            try:
                check_row(experiment.base, name, _assign(changes, tier.name, name))
            except ScenarioInvalid as error:
                where = (SECTION, "tiers", number, *(("arms", name) if name in tier.arms else ()))
                line, column = document.locate(Problem(where))
                problems += [f"{path}:{line}:{column}: {each}" for each in error.problems]
    if problems:
        raise ScenarioInvalid(problems)


def _assign(changes: Overrides, tier: str, arm: str) -> dict[str, str]:
    """Return what `override` takes, each with the words that problems with it are reported under."""
    return {
        f"{path}={msgspec.json.encode(value).decode()}": f"tier {tier}, arm {arm}, {path}"
        for path, value in changes.items()
    }


def _find_problems(settings: ExperimentSettings) -> Iterator[Problem]:
    """Yield what is wrong across the fields of an experiment."""
    earlier: list[str] = []
    for number, tier in enumerate(settings.tiers):
        place = ("tiers", number)
        arms = tier.list_arms()
        if tier.name in earlier:
            yield Problem((*place, "name"), f"there is a tier {tier.name!r} already")
        if not arms:
            yield Problem(place, "no arms in it", expected="one of arms, grid and sweep")
        if len(arms) < tier.count_arms():
            yield Problem(place, "two arms of it have the same name; name them under arms")
        if tier.control is not None and tier.control not in arms:
            yield Problem.unknown("arm", tier.control, arms, *place, "control")
        if (inherits := tier.inherits) is not None:
            if inherits.tier not in earlier:
                yield Problem.unknown("earlier tier", inherits.tier, earlier, *place, "inherits", "tier")
            if (inherits.highest is None) == (inherits.lowest is None):
                yield Problem((*place, "inherits"), expected="one of highest and lowest, with the name of a metric")
        earlier.append(tier.name)


def _read_error(error: ValidationError) -> Iterator[Problem]:
    """Yield the problems of pydantic's errors, with the nearest field where one is unknown."""
    for details in error.errors(include_url=False):
        # Pydantic adds the branch of a union to the place of an error in it.
        place = tuple(part for part in details["loc"] if not (isinstance(part, str) and "[" in part))
        if details["type"] == "extra_forbidden":
            owners: dict[int, type[_Declared]] = {1: ExperimentSettings, 3: TierSettings}
            owner = owners.get(len(place), Inheritance)
            yield Problem.unknown("field", str(place[-1]), owner.model_fields, *place, at_key=True)
        elif details["type"] == "missing":
            yield Problem(place[:-1], f"missing field {place[-1]!r}")
        else:
            for problem in read_problems(details):
                yield replace(problem, path=(*place, *problem.path))


def _locate(path: Path, document: Document, problems: list[Problem]) -> ScenarioInvalid:
    """Say where in the file each problem is."""
    moved = [replace(problem, path=(SECTION, *problem.path)) for problem in problems]
    places = [(document.locate(problem), problem) for problem in moved]
    return ScenarioInvalid([f"{path}:{line}:{column}: {problem}" for (line, column), problem in places])


def _name_level(path: str, level: Any) -> str:
    """Name a level of a factor, so that it can name a folder."""
    value = level if isinstance(level, str) else msgspec.json.encode(level).decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{path.rpartition('.')[2]}-{value}").strip("-._")[:60] or "level"
