"""The documentation tells the truth: its commands run, as written and in order, and its links lead somewhere.

A line `$ shoal ...` of a console or bash block is run; the commands of one page share one folder, which holds a copy of
examples/. It must exit with 0, or with the code that a trailing comment states: `$ shoal run wrong.yaml  # exit 2`.
`shoal` is the installed script in README.md, and elsewhere a fork that needs no second to import it.
The python blocks of a page are run as one script in such a folder; blocks marked `py` are other people's code. A yaml
block is a scenario, a part of one, or a list of events, and must be a right one.
Links between pages of docs/ are checked by `zensical build --strict`.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from shoal.experiments.design import load_experiment
from shoal.scenario.loading import validate

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
COMMAND_TIMEOUT_SECONDS = 300
#: A page has up to forty commands. Each has its own timeout; this one bounds them together on a busy machine.
PAGE_TIMEOUT_SECONDS = 1200

#: Setting up a checkout is not for a test that runs inside one.
NOT_RUN = ("scripts/", "git ", "cd ")

page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())


@dataclass(frozen=True)
class Command:
    line: str
    exit_code: int


def commands(text: str) -> Iterator[Command]:
    """The commands of a page that are to be run, in order."""
    for block in re.findall(r"^ *```(?:console|bash)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        for line in re.findall(r"^ *\$ (.*(?:(?<=\\)\n.*)*)", block, re.MULTILINE):
            if not line.startswith(NOT_RUN):
                stated = re.search(r"# exit (\d+)\s*$", line)
                yield Command(line, int(stated[1]) if stated else 0)


def environment(folder: Path, *more: Path) -> dict[str, str]:
    path = os.pathsep.join([*map(str, more), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "HOME": str(folder)}


@pytest.fixture(scope="session")
def command_forks() -> Iterator[Path]:
    """A folder with a command `shoal` that takes milliseconds to start; see tests/commands/client.py."""
    # The path of a socket must be short, which pytest's own folders are not.
    with TemporaryDirectory(prefix="shoal-") as folder, socket.socket(socket.AF_UNIX) as listener:
        client = Path(folder, "shoal")
        client.write_text(f"#!{sys.executable} -IS\n{(ROOT / 'tests/commands/client.py').read_text()}")
        client.chmod(0o755)
        listener.bind(str(client.with_name("server.sock")))
        listener.listen()
        command = [sys.executable, "-m", "tests.commands.server", str(listener.fileno())]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[listener.fileno()]):
            yield client.parent


@page
@pytest.mark.timeout(PAGE_TIMEOUT_SECONDS)
def test_the_commands_of_a_page_do_what_it_says(path: Path, tmp_path: Path, command_forks: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    environ = environment(tmp_path, *([] if path.name == "README.md" else [command_forks]))
    for command in commands(path.read_text()):
        result = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.line],
            cwd=tmp_path,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_SECONDS,
            check=False,
        )
        assert result.returncode == command.exit_code, f"$ {command.line}\n{result.stdout}{result.stderr}"


def script(text: str) -> str:
    """The python blocks of a page, each line where it stands on the page, so that a traceback leads there."""
    lines, inside = [], False
    for line in text.splitlines():
        fence = line.startswith("```")
        lines.append(line if inside and not fence else "")
        inside = line == "```python" if fence else inside
    return "\n".join(lines)


@pytest.mark.timeout(PAGE_TIMEOUT_SECONDS)
@pytest.mark.parametrize(
    "path", [path for path in PAGES if script(path.read_text()).strip()], ids=lambda path: path.stem
)
def test_the_python_of_a_page_runs(path: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    page = tmp_path / f"{path.stem}.py"
    page.write_text(script(path.read_text()))
    result = subprocess.run(
        [sys.executable, "-W", "error", page.name],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


#: Who is spoken of in scenarios of which a page shows only a part.
SOMEBODY = {"population": [{"name": "Ada"}, {"name": "Ben"}, {"count": 5}], "rounds": 48}


def scenarios(text: str) -> list[dict[str, Any]]:
    """The yaml blocks of a page, each made whole."""
    blocks = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)]
    parts = [{"events": block} if isinstance(block, list) else block for block in blocks]
    return [part if "population" in part else {**SOMEBODY, **part} for part in parts]


@page
def test_the_scenarios_of_a_page_are_right(path: Path) -> None:
    for scenario in scenarios(path.read_text()):
        if "experiment" in scenario:
            load_experiment(scenario)
        else:
            validate(scenario, path.name)


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.md")), ids=lambda path: path.name)
def test_the_links_of_a_page_outside_the_site_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", path.read_text())
    assert [target for target in targets if not (path.parent / target).exists()] == []


@page
def test_the_files_that_a_page_names_exist(path: Path) -> None:
    named = re.findall(r"`((?:src|tests|bench|examples|docs)/[\w/.-]+)`", path.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


@page
def test_the_modules_that_a_page_names_exist(path: Path) -> None:
    named = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", path.read_text())
    assert [name for name in named if not any((base / name).exists() for base in (ROOT, ROOT / "src/shoal"))] == []


def test_the_pages_that_the_code_names_exist() -> None:
    sources = [path for folder in ("src", "tests", "bench", "examples") for path in (ROOT / folder).rglob("*.py")]
    named = {page for path in sources for page in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text())}
    assert named
    assert [page for page in sorted(named) if not (ROOT / page).exists()] == []


def test_commands_are_read_as_a_reader_would() -> None:
    text = """
```console
$ shoal run a.yaml  # exit 2
it says no
$ shoal run b.yaml \\
    --seed 7
$ scripts/demo
```
```python
$ not this
```
"""
    assert list(commands(text)) == [
        Command("shoal run a.yaml  # exit 2", 2),
        Command("shoal run b.yaml \\\n    --seed 7", 0),
    ]


def test_python_is_read_as_a_reader_would() -> None:
    text = "Text\n```python\nx = 1\n```\nmore\n```py\nnot this\n```\n```python\nassert x == 1\n```"
    assert script(text) == "\n\nx = 1\n\n\n\n\n\n\nassert x == 1\n"
