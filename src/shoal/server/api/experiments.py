"""The experiments of a server: found by their names, listed, and made of what clients send."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shoal.errors import RunMissing, ScenarioInvalid
from shoal.experiments import (
    RESULTS,
    DesignRecord,
    Experiment,
    is_experiment,
    load_experiment,
)
from shoal.experiments.live import SCENARIO_FILE
from shoal.runs import storage_errors
from shoal.scenario import read_document
from shoal.server.api.references import find_references

#: The name of a folder, before any file is touched.
_NAME = re.compile(r"\w[\w. -]{0,99}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_SECTION = "experiment"


class ExperimentFolder:
    """The folder that holds the experiments of a server. Nothing outside of it is ever opened."""

    def __init__(self, path: Path, key_variables: frozenset[str]) -> None:
        self.path = path.absolute()
        self._key_variables = key_variables

    def find(self, name: str) -> Path:
        """Return the folder of an experiment; RunMissing for another name, before any file is touched."""
        path = self.path / name
        if not _NAME.fullmatch(name) or path.is_symlink() or not is_experiment(path):
            raise RunMissing(f"there is no experiment {name!r}")
        return path

    def list_names(self) -> list[str]:
        """List the names of all experiments, the one that was worked on last first."""
        if not self.path.is_dir():
            return []
        found = [path for path in self.path.iterdir() if _NAME.fullmatch(path.name) and not path.is_symlink()]
        dated = [(read_change(path), path.name) for path in found if is_experiment(path)]
        return [name for _, name in sorted(dated, reverse=True)]

    def read(self, text: str) -> Experiment:
        """Read an experiment that is data: it names no code, no file and no variable of this machine."""
        value = read_document(text, "scenario").value
        if not isinstance(value, dict):
            raise ScenarioInvalid(["scenario: expected a mapping with a section experiment"])
        if problems := list(self._find_references(value)):
            raise ScenarioInvalid(problems)
        # Problems of a file are reported with their lines.
        with TemporaryDirectory() as folder:
            path = Path(folder) / SCENARIO_FILE
            path.write_text(text, encoding="utf-8")
            try:
                return load_experiment(path)
            except ScenarioInvalid as error:
                raise ScenarioInvalid([problem.replace(f"{folder}/", "") for problem in error.problems]) from None

    def create(self, text: str) -> Path:
        """Make the folder of a new experiment, with its scenario in it."""
        experiment = self.read(text)
        # Names of folders are plain, whatever the scenario is called.
        start = _NOT_IN_NAMES.sub("-", experiment.name).strip("-._")[:80] or "experiment"
        with storage_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            path, number = self.path / start, 1
            while path.exists():
                path, number = self.path / f"{start}-{number + 1}", number + 1
            path.mkdir()
            (path / SCENARIO_FILE).write_text(text, encoding="utf-8")
        return path

    def remove_unstarted(self, path: Path) -> None:
        """Remove the folder of an experiment that could not be started."""
        if not is_experiment(path):
            shutil.rmtree(path)

    def _find_references(self, value: Mapping[str, Any]) -> list[str]:
        """Find what an experiment may not name when a client sends it: in its base, arms and judges."""
        base = {key: part for key, part in value.items() if key != _SECTION}
        problems = list(map(str, find_references(base, self._key_variables)))
        section = value.get(_SECTION)
        if not isinstance(section, dict):
            return problems
        if section.get("base") is not None:
            problems.append(f"{_SECTION}.base: a scenario that is sent cannot name files; send what is in it")
        judges, metrics = section.get("judges"), section.get("metrics")
        named: list[tuple[str, Any]] = []
        named += [(f"judges.{name}", judge) for name, judge in judges.items()] if isinstance(judges, dict) else []
        named += [(f"metrics.{at}", metric) for at, metric in enumerate(metrics)] if isinstance(metrics, list) else []
        problems += [
            f"{_SECTION}.{path}: a scenario that is sent cannot name code"
            for path, declared in named
            if isinstance(declared, dict) and "file" in declared
        ]
        if {"base_url", "key_variable"} <= set(_list_last_names(value)):
            # Arms inherit from one another, so that what stands in two of them may come together in a third.
            problems.append(f"{_SECTION}: an address that is sent gets no key of this machine; leave out key_variable")
        tiers = section.get("tiers")
        for tier in tiers if isinstance(tiers, list) else []:
            for path, change in _list_changes(tier):
                problems += [
                    f"{_SECTION}, {path}: {problem}"
                    for problem in map(str, find_references(_nest(path, change, base), self._key_variables))
                    if problem not in problems
                ]
        return problems


def describe_design(record: DesignRecord) -> dict[str, Any]:
    """Return what is shown of an experiment beside its figures."""
    return {
        "title": record.base.get("name") or record.name,
        "topic": record.base.get("topic") or "",
        "made_at": record.made_at,
        "worlds": list(record.base.get("worlds") or {}),
        "rounds": record.base.get("rounds"),
    }


def read_change(path: Path) -> int:
    """Return when results of an experiment were last written, or its design where it has none."""
    results = path / RESULTS
    return (results if results.exists() else path / "experiment.json").stat().st_mtime_ns


def _list_last_names(value: object) -> Iterator[str]:
    """Yield the last name of every key, as keys of arms are whole paths."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield str(key).rpartition(".")[2]
            yield from _list_last_names(each)
    elif isinstance(value, list):
        for each in value:
            yield from _list_last_names(each)


def _list_changes(tier: object) -> list[tuple[str, Any]]:
    """Return every value of the scenario that an arm of a tier changes, with its path."""
    if not isinstance(tier, dict):
        return []
    arms, factors = tier.get("arms"), [tier.get(name) for name in ("grid", "sweep")]
    found = [change for arm in (arms.values() if isinstance(arms, dict) else ()) for change in _list_items(arm)]
    for factor in factors:
        for path, levels in _list_items(factor):
            found += [(path, level) for level in (levels if isinstance(levels, list) else [levels])]
    return found


def _list_items(value: object) -> list[tuple[str, Any]]:
    return [(str(path), each) for path, each in value.items()] if isinstance(value, dict) else []


def _nest(path: str, value: Any, base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a scenario in which a change is, as the change makes it."""
    part, *places = path.split(".")
    for place in reversed(places):
        # A number is a place in a list, whose items have no key.
        value = [value] if place.isdecimal() else {place: value}
    known = base.get(part)
    return {part: {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value}
