"""Files of people, made where a test needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.population import FileEntry
from shoal.scenario.loading import validate
from shoal.scenario.sampling.people import People
from shoal.scenario.sampling.sampler import sample
from shoal.scenario.scenario import Scenario


def scenario(path: Path, **more: Any) -> Scenario:
    return validate({"population": [{"file": str(path), **more}]})


def people(path: Path, **more: Any) -> People:
    return sample(scenario(path, **more))


def notes(path: Path, **more: Any) -> tuple[str, ...]:
    [file] = scenario(path, **more).population
    assert isinstance(file, FileEntry)
    return file.roster.notes


def find_problems(path: Path, **more: Any) -> list[str]:
    """The problems with a file, without where the scenario speaks of it."""
    with pytest.raises(ScenarioInvalid) as caught:
        scenario(path, **more)
    return [problem.partition("population.0.file: ")[2] or problem for problem in caught.value.problems]


def write_file(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
