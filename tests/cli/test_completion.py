"""What a shell proposes after Tab."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.terminal import COMMAND, call, environment

PEOPLE = """\
name: town
rounds: 1
population: [{name: Ann Lee}, {name: Ben O'Hara}, {name: Lee Ray}]
worlds: [room]
"""


@pytest.fixture
def town(folder: Path) -> Path:
    (folder / "town.yaml").write_text(PEOPLE)
    call("run", "town.yaml", "--quiet")
    call("run", "town.yaml", "--quiet", "--out", "studies/first")
    return folder


def propose(folder: Path, line: str, shell: str = "bash") -> list[str]:
    """What a shell gets for the last word of a line."""
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_SHOAL_COMPLETE": f"{shell}_complete"}
    result = subprocess.run(
        [COMMAND], cwd=folder, env=environment(**asked), capture_output=True, text=True, timeout=60, check=True
    )
    return [proposal.partition(",")[2] for proposal in result.stdout.split("\n") if proposal]


def test_runs_are_proposed_wherever_they_are(town: Path) -> None:
    assert propose(town, "shoal show ") == ["runs/town-1"]
    assert propose(town, "shoal resume studies/") == ["studies/first"]
    assert propose(town, "shoal diff runs/town-1 stud") == ["stud"]


def test_people_of_the_run_are_proposed_by_any_part_of_their_names(town: Path) -> None:
    assert propose(town, "shoal explain runs/town-1 ") == [r"Ann\ Lee", r"Ben\ O\'Hara", r"Lee\ Ray"]
    assert propose(town, "shoal explain runs/town-1 lee") == [r"Ann\ Lee", r"Lee\ Ray"]
    assert propose(town, "shoal ask runs/town-1 --who 1,be") == [r"1\,Ben\ O\'Hara"]
    assert propose(town, "shoal explain nothing ") == []


def test_commands_are_proposed(town: Path) -> None:
    assert propose(town, "shoal re") == ["resume", "replay", "report", "rehearse"]


@pytest.mark.skipif(not os.path.exists("/bin/bash"), reason="needs bash")  # noqa: PTH110
def test_bash_takes_the_script(town: Path) -> None:
    script = f'eval "$(_SHOAL_COMPLETE=bash_source {COMMAND})"; complete -p shoal'
    result = subprocess.run(["/bin/bash", "-c", script], cwd=town, capture_output=True, text=True, check=True)
    assert "_shoal_completion" in result.stdout
