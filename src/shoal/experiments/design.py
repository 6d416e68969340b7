"""An experiment as declared: tiers of arms over the same seeds, in the section `experiment` of a scenario file.

The scenario around the section is the base that arms change. Every arm is run with the same seeds, so that arms differ
by cause and not by luck.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

import msgspec
from pydantic import BeforeValidator, Field, ValidationError

from shoal.agents import LanguageSettings
from shoal.errors import ScenarioInvalid
from shoal.experiments.batch_rows import BatchRow, check_row
from shoal.experiments.budgets import BudgetLimits
from shoal.experiments.declared import SECTION, ExperimentPart, Name, locate_problems, read_error, wrap_in_list
from shoal.experiments.judges import Judging, JudgingReader
from shoal.experiments.results import COST_OF_PASS, FIGURES, PASS_RATE
from shoal.experiments.stopping import StopRule
from shoal.journal import digest
from shoal.runs import freeze_scenario
from shoal.scenario import (
    Document,
    OwnWorldSettings,
    Problem,
    Scenario,
    load,
    override,
    parse,
    read_document,
    read_text,
    validate,
)

#: The arm in which nothing is changed, where there are sweeps.
BASE = "base"
#: Runs of one experiment, at most.
MAX_RUNS = 100_000
#: Arms of tiers that inherit are checked on top of every arm that they may inherit, up to this many pairs.
_MAX_CHECKED = 3000
_MAX_PROBLEMS = 20

Overrides = dict[str, Any]
Levels = dict[str, Annotated[list[Any], Field(min_length=1)]]
Seed = Annotated[int, Field(ge=0)]
Seeds = Annotated[int, Field(ge=1)] | Annotated[list[Seed], Field(min_length=1)]
#: What a section needs at least.
EXAMPLE = "experiment: {seeds: 10, tiers: [{name: main, arms: {control: {}, other: {rounds: 9}}}]}"
#: What may differ between an arm and the control if they share their past: everything else changes the first round.
_LATE_FIELDS = frozenset({"events", "interventions", "rounds", "name", "metrics", "budget"})


class Inheritance(ExperimentPart):
    """The arm of an earlier tier that a tier starts from: the one whose mean of a metric is best.

    Beside metrics there are `pass_rate`, `cost_of_pass` and `cost`.
    """

    tier: str
    highest: str | None = None
    lowest: str | None = None

    @property
    def figure(self) -> str:
        return str(self.highest or self.lowest)


Rules = Annotated[list[StopRule], BeforeValidator(wrap_in_list)]


class TierSettings(ExperimentPart):
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
    #: Its own seeds and stopping rules, in place of the experiment's.
    seeds: Seeds | None = None
    stop: Rules | None = None
    #: What all its runs together may use.
    budget: BudgetLimits = BudgetLimits()

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


class ExperimentSettings(ExperimentPart):
    """The section `experiment` of a file."""

    name: Name | None = None
    #: The scenario's file, where it is not the rest of this one.
    base: str | None = None
    #: How many seeds, from that of the scenario on, or which.
    seeds: Seeds = 10
    tiers: Annotated[list[TierSettings], Field(min_length=1)]
    #: When arms stop before they have been run with all seeds.
    stop: Rules = Field(default_factory=list)
    #: What all runs together may use.
    budget: BudgetLimits = BudgetLimits()
    #: What is measured of each run, and who judges it; `judges` has what they may be.
    metrics: Any = Field(default_factory=list)
    judges: Any = Field(default_factory=dict)


@dataclass(frozen=True)
class Design:
    """An experiment as it was declared, without the scenario that its arms change."""

    name: str
    settings: ExperimentSettings
    #: The seed of the scenario: numbers of seeds count from it.
    first_seed: int

    @property
    def tiers(self) -> Sequence[TierSettings]:
        return self.settings.tiers

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of tiers that have none of their own."""
        return self._number(self.settings.seeds)

    def find_tier(self, name: str) -> TierSettings:
        return next(tier for tier in self.tiers if tier.name == name)

    def list_seeds(self, tier: TierSettings) -> tuple[int, ...]:
        return self.seeds if tier.seeds is None else self._number(tier.seeds)

    def list_rules(self, tier: TierSettings) -> Sequence[StopRule]:
        return self.settings.stop if tier.stop is None else tier.stop

    def list_ids(self, tier: TierSettings) -> list[str]:
        """Name the runs of a tier in the order of arms and seeds."""
        return [f"{tier.name}/{arm}/{seed}" for arm in tier.list_arms() for seed in self.list_seeds(tier)]

    @property
    def runs(self) -> int:
        return sum(len(tier.list_arms()) * len(self.list_seeds(tier)) for tier in self.tiers)

    def _number(self, seeds: int | list[int]) -> tuple[int, ...]:
        return tuple(range(self.first_seed, self.first_seed + seeds)) if isinstance(seeds, int) else tuple(seeds)


@dataclass(frozen=True)
class Experiment(Design):
    """An experiment whose every arm has been checked."""

    base: Scenario
    #: The file of the scenario as users name it; None where it was given in plain values.
    file: Path | None = None
    folder: Path | None = None
    judging: Judging = field(default_factory=Judging)

    @cached_property
    def arms(self) -> dict[str, dict[str, Overrides]]:
        """Tier -> arm -> what it changes before anything is inherited, with absolute paths of files."""
        return {
            tier.name: {name: _resolve_files(changes, self.folder) for name, changes in tier.list_arms().items()}
            for tier in self.tiers
        }

    def make_scenario(self, tier: TierSettings, arm: str, inherited: Mapping[str, Any] | None = None) -> Scenario:
        """Make the scenario of an arm, with the seed of the base."""
        return override(self.base, _assign({**(inherited or {}), **self.arms[tier.name][arm]}, tier.name, arm))

    def list_rows(self, tier: TierSettings, inherited: Mapping[str, Any]) -> list[BatchRow]:
        """Return the runs of a tier: seed by seed, so that arms can be compared before all seeds are done.

        The control comes first in each seed, as others may share its past.
        """
        arms = {name: {**inherited, **changes} for name, changes in self.arms[tier.name].items()}
        if tier.control is not None:
            arms = {tier.control: arms[tier.control], **arms}
        scenarios = {name: self.make_scenario(tier, name, inherited) for name in arms}
        rows = []
        for seed in self.list_seeds(tier):
            for name, changes in arms.items():
                assignments = _assign({**changes, "seed": seed}, tier.name, name)
                identity = digest(freeze_scenario(scenarios[name].model_copy(update={"seed": seed})))
                rows.append(BatchRow(f"{tier.name}/{name}/{seed}", assignments, identity))
        return rows

    def list_followers(self, tier: TierSettings, inherited: Mapping[str, Any]) -> frozenset[str]:
        """Name the arms that share the past of the control: those that only change what happens later.

        Language models answer the same question with the same seed once, so that run after the control, the shared
        past costs nothing.
        """
        if tier.control is None or not isinstance(self.base.mind, LanguageSettings):
            return frozenset()
        control = {**inherited, **self.arms[tier.name][tier.control]}
        return frozenset(
            name
            for name, changes in self.arms[tier.name].items()
            if name != tier.control
            and all(
                path.partition(".")[0] in _LATE_FIELDS
                for path in {*control, *changes}
                if control.get(path) != {**inherited, **changes}.get(path)
            )
        )

    def write_command(self, changes: Mapping[str, Any], seed: int) -> str:
        """Write the command that makes one run of the experiment again."""
        if self.file is None:
            return ""
        options = []
        for path, value in changes.items():
            # A text is written as it is where it is read as that text, everything else as JSON.
            is_plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w ./-]*", value) is not None
            text = value if is_plain and read_document(value, "").value == value else _to_json(value)
            options += ["--set", f"{path}={text}"]
        return shlex.join(["shoal", "run", str(self.file), "--seed", str(seed), *options])


def declares_experiment(file: Path) -> bool:
    """Return whether a file has an experiment in it; a folder, and standard input, has none."""
    if not file.is_file():
        return False
    value = read_document(read_text(file), str(file)).value
    return isinstance(value, dict) and SECTION in value


def load_experiment(source: Path | Mapping[str, Any]) -> Experiment:
    """Load the experiment in a scenario's file, or in plain values; ScenarioInvalid holds everything that is wrong."""
    if isinstance(source, Path):
        name, folder = str(source), source.parent
        text = read_text(source)
        document = read_document(text, name)
    else:
        name, folder, text, document = "experiment", Path(), "", Document(dict(source))
    section = document.value.get(SECTION) if isinstance(document.value, dict) else None
    if section is None:
        raise ScenarioInvalid([f"{name}: no section {SECTION!r} in it; add one such as {EXAMPLE}"])
    try:
        settings = ExperimentSettings.model_validate(section)
    except ValidationError as error:
        raise locate_problems(name, document, list(read_error(error, ExperimentSettings, section))) from None
    if problems := list(_find_problems(settings)):
        raise locate_problems(name, document, problems)
    file: Path | None = source if isinstance(source, Path) else None
    if settings.base is not None:
        file = folder / settings.base
        base = load(file)
    elif file is not None:
        base = parse(text, name, folder)
    else:
        base = validate({key: value for key, value in document.value.items() if key != SECTION}, name)
    variables = [place.rpartition(":")[2].rpartition(".")[2] for place in base.variables]
    # A world of the user's own may record figures that nothing declares.
    is_open = any(isinstance(world, OwnWorldSettings) for world in base.worlds.values())
    changed = {path.partition(".")[0] for tier in settings.tiers for arm in tier.list_arms().values() for path in arm}
    claims = None if is_open or "claims" in changed else [claim.id for claim in base.claims]
    reader = JudgingReader(folder, variables, is_open=is_open, claims=claims)
    judging = reader.read(settings.metrics, settings.judges, _list_named_metrics(settings))
    if reader.problems:
        raise locate_problems(name, document, reader.problems)
    experiment = Experiment(settings.name or base.name, settings, base.seed, base, file, folder, judging)
    if experiment.runs > MAX_RUNS:
        raise ScenarioInvalid([f"{name}: {experiment.runs:,} runs; at most {MAX_RUNS:,} are possible"])
    _check_arms(experiment, name, document)
    return experiment


def _list_named_metrics(settings: ExperimentSettings) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Yield every metric that tiers and stopping rules name, with its place."""
    rules: list[tuple[StopRule, tuple[str | int, ...]]] = []
    rules += [(rule, ("stop", number)) for number, rule in enumerate(settings.stop)]
    for at, tier in enumerate(settings.tiers):
        rules += [(rule, ("tiers", at, "stop", number)) for number, rule in enumerate(tier.stop or ())]
        if tier.inherits is not None and tier.inherits.figure not in FIGURES:
            yield tier.inherits.figure, ("tiers", at, "inherits", "highest" if tier.inherits.highest else "lowest")
    for rule, place in rules:
        if rule.metric is not None and rule.metric not in FIGURES:
            yield rule.metric, (*place, "metric")


def _check_arms(experiment: Experiment, file: str, document: Document) -> None:
    """Check the scenario of every arm, also on top of what it may inherit, and say where a wrong one is declared."""
    problems: list[str] = []
    #: Tier -> what its runs may change in all.
    possible: dict[str, list[Overrides]] = {}
    for number, tier in enumerate(experiment.tiers):
        bases: list[Overrides] = [{}] if tier.inherits is None else possible[tier.inherits.tier]
        possible[tier.name] = []
        for name, changes in experiment.arms[tier.name].items():
            place = ("tiers", number, *_find_arm(tier, name))
            found: dict[str, None] = {}
            for base in bases:
                possible[tier.name].append({**base, **changes})
                try:
                    check_row(experiment.base, name, _assign({**base, **changes}, tier.name, name))
                except ScenarioInvalid as error:
                    found |= dict.fromkeys(error.problems)
            line, column = document.locate(Problem((SECTION, *place)))
            start = f"{file}:{line}:{column}" if document.values else file
            problems += [f"{start}: {each}" for each in found]
        del possible[tier.name][_MAX_CHECKED:]
    if problems:
        left = len(problems) - _MAX_PROBLEMS
        raise ScenarioInvalid(problems[:_MAX_PROBLEMS] + ([f"{left} more like these"] if left > 0 else []))


def _find_arm(tier: TierSettings, name: str) -> tuple[str | int, ...]:
    """Return where in its tier an arm is declared."""
    if name in tier.arms:
        return ("arms", name)
    for path, levels in tier.sweep.items():
        for number, level in enumerate(levels):
            if _name_level(path, level) == name:
                return ("sweep", path, number)
    return ("grid",) if tier.grid else ()


def _resolve_files(value: Any, folder: Path | None, path: str = "") -> Any:
    """Let files that an arm names lead from the folder of the scenario, as in the scenario itself."""
    if isinstance(value, dict):
        return {key: _resolve_files(each, folder, str(key)) for key, each in value.items()}
    if isinstance(value, list):
        return [_resolve_files(each, folder, path) for each in value]
    if isinstance(value, str) and folder is not None and path.rpartition(".")[2] in ("file", "fragments"):
        return str((folder / value).absolute())
    return value


def _assign(changes: Overrides, tier: str, arm: str) -> dict[str, str]:
    """Return what `override` takes, each with the words that problems with it are reported under."""
    return {f"{path}={_to_json(value)}": f"tier {tier}, arm {arm}, {path}" for path, value in changes.items()}


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _find_problems(settings: ExperimentSettings) -> Iterator[Problem]:
    """Yield what is wrong across the fields of an experiment."""
    earlier: list[str] = []
    judges = settings.judges if isinstance(settings.judges, dict) else {}
    yield from _check_rules(settings.stop, judges)
    yield from _check_seeds(settings.seeds)
    for number, tier in enumerate(settings.tiers):
        place = ("tiers", number)
        arms = tier.list_arms()
        if tier.name.casefold() in map(str.casefold, earlier):
            yield Problem((*place, "name"), f"there is a tier {tier.name!r} already")
        if not arms:
            yield Problem(place, "no arms in it", expected="one of arms, grid and sweep")
        if len(set(map(str.casefold, arms))) < tier.count_arms():
            twice = [name for name, times in Counter(map(str.casefold, arms)).items() if times > 1]
            names = f" ({twice[0]!r})" if twice else ""
            yield Problem(place, f"two arms of it have the same name{names}; name them under arms")
        if tier.control is not None and tier.control not in arms:
            yield Problem.unknown("arm", tier.control, arms, *place, "control")
        if (inherits := tier.inherits) is not None:
            if inherits.tier not in earlier:
                yield Problem.unknown("earlier tier", inherits.tier, earlier, *place, "inherits", "tier")
            if (inherits.highest is None) == (inherits.lowest is None):
                yield Problem((*place, "inherits"), expected="one of highest and lowest, with the name of a metric")
            if inherits.figure in (PASS_RATE, COST_OF_PASS) and not settings.judges:
                yield Problem(
                    (*place, "inherits"), f"nothing judges runs, so there is no {inherits.figure}: add judges"
                )
        for problem in (*_check_rules(tier.stop or (), judges), *_check_seeds(tier.seeds or 1)):
            yield replace(problem, path=(*place, *problem.path))
        if any("seed" in changes for changes in arms.values()):
            yield Problem(place, "an arm changes the seed, but arms are compared over the same seeds: see seeds")
        earlier.append(tier.name)


def _check_rules(rules: Sequence[StopRule], judges: Mapping[str, Any]) -> Iterator[Problem]:
    for number, rule in enumerate(rules):
        for problem in rule.find_problems():
            yield replace(problem, path=("stop", number, *problem.path))
        if rule.judge is not None and rule.judge not in judges:
            yield Problem.unknown("judge", rule.judge, judges, "stop", number, "judge")
        if rule.metric == PASS_RATE and not judges:
            yield Problem(("stop", number, "metric"), "nothing judges runs, so there is no pass_rate: add judges")


def _check_seeds(seeds: int | list[int]) -> Iterator[Problem]:
    if isinstance(seeds, list) and len(set(seeds)) < len(seeds):
        twice = next(seed for seed, times in Counter(seeds).items() if times > 1)
        yield Problem(("seeds",), f"the seed {twice} is there twice")


def _name_level(path: str, level: Any) -> str:
    """Name a level of a factor, so that it can name a folder."""
    value = level if isinstance(level, str) else _to_json(level)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{path.rpartition('.')[2]}-{value}").strip("-._")[:60] or "level"
