"""Finding out how many at once, from the terminal."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from shoal.rehearsal.server import start
from shoal.rehearsal.settings import PlannedOutage, RehearsalSettings, SettingChange
from tests.cli.commands.test_plan import run_on_terminal
from tests.cli.terminal import call, start_command

MODEL = ("--model", "openai/gpt-4.1-mini")
SHORT = ("--prompt-tokens", "60", "--seed", "1")
CAPPED = RehearsalSettings(latency_seconds=0.02, cap=4, retry_after_seconds=0.02)
STUDY = """\
name: study
rounds: 2
population: {count: 6}
worlds: {hall: {kind: room, turns: parallel}}
mind: {kind: language, model: openai/gpt-4.1-mini}  # a real one
max_workers: 64  # a guess
"""

Tune = Callable[..., Awaitable[Result]]


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "study.yaml").write_text(STUDY)
    return folder


@pytest.fixture
def tune(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Tune:
    """The command, with a server there as long as it takes."""

    async def tuned(*args: str, settings: RehearsalSettings = CAPPED) -> Result:
        async with start(settings) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            return await asyncio.to_thread(call, "tune", *args)

    return tuned


def rows(output: str) -> list[list[str]]:
    """The table, without its head."""
    lines = output.split("\n\n")[1].splitlines()
    return [line.replace("▶", " ▶ ").split() for line in lines[1:]]


async def test_a_table_shows_every_level_and_marks_the_best(tune: Tune, folder: Path) -> None:
    result = await tune(*MODEL, *SHORT)
    assert result.exit_code == 0, result.output
    made = folder / "tune-openai-gpt-4.1-mini-1"
    assert sorted(path.name for path in made.iterdir()) == ["setting.yaml", "tune.json", "tune.svg"]
    kept = json.loads((made / "tune.json").read_text())
    best, table = str(kept["knee"]["at_once"]), rows(result.stdout)
    assert [row[row[0] == "▶"] for row in table] == [str(level["at_once"]) for level in kept["levels"]]
    assert [row[1] for row in table if row[0] == "▶"] == [best]
    assert f"best     {best} call" in result.stdout
    assert kept["knee"]["reason"] in result.stdout
    assert (made / "setting.yaml").read_text().endswith(f"max_workers: {best}\n")


async def test_without_a_terminal_each_level_is_a_line_of_progress(tune: Tune) -> None:
    result = await tune(*MODEL, *SHORT, "--up-to", "2")
    assert [line.partition(":")[0] for line in result.stderr.splitlines()] == ["1 at once", "2 at once"]
    assert "\x1b" not in result.output


async def test_json_holds_every_figure_and_where_it_was_written(tune: Tune) -> None:
    result = await tune(*MODEL, *SHORT, "--up-to", "2", "--json", "--out", "here")
    found = json.loads(result.stdout)
    assert [level["at_once"] for level in found["levels"]] == [1, 2]
    assert found["written"] == ["here/tune.json", "here/tune.svg", "here/setting.yaml"]
    assert found["spent"]["cost"] > 0
    assert json.loads(Path("here/tune.json").read_text())["levels"] == found["levels"]


async def test_quiet_says_only_where_it_is(tune: Tune) -> None:
    result = await tune(*MODEL, *SHORT, "--up-to", "2", "--quiet")
    assert result.output == "tune-openai-gpt-4.1-mini-1\n"


# With a scenario


async def test_the_setting_is_written_into_a_scenario_whose_comments_stay(tune: Tune, folder: Path) -> None:
    result = await tune("study.yaml", "--write", "--up-to", "4")
    assert result.exit_code == 0, result.output
    best = json.loads((folder / "tune-study-1" / "tune.json").read_text())["knee"]["at_once"]
    assert best < 64
    assert (folder / "study.yaml").read_text() == STUDY.replace("64", str(best))
    assert f"max_workers: {best}   written into study.yaml" in result.stdout


async def test_a_file_that_cannot_be_changed_safely_is_left_and_the_line_is_told(tune: Tune, folder: Path) -> None:
    text = "{population: {count: 4}, rounds: 2, worlds: {hall: {kind: room, turns: parallel}}}\n"
    (folder / "flow.yaml").write_text(text)
    result = await tune("flow.yaml", *MODEL, "--write", "--up-to", "2")
    assert result.exit_code == 0, result.output
    assert (folder / "flow.yaml").read_text() == text
    assert "could not be put safely into flow.yaml" in result.stdout


async def test_changes_of_the_scenario_are_heeded(tune: Tune) -> None:
    result = await tune("study.yaml", "--set", "mind.model=openai/other", "--up-to", "1", "--json", "--quiet")
    assert json.loads(result.stdout)["name"] == "openai/other"


async def test_a_scenario_that_asks_nobody_is_run_side_by_side(folder: Path) -> None:
    result = await asyncio.to_thread(call, "tune", "small.yaml", "--up-to", "1", "--seconds", "2")
    assert result.exit_code == 0, result.output
    assert "simulations at once" in result.stdout
    assert "agent-steps/s" in result.stdout
    assert not list((folder / "tune-small-1").glob("setting*"))


# What goes wrong


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "Give a SCENARIO"),
        ((*MODEL, "--write"), "--write is about a SCENARIO"),
        ((*MODEL, "--set", "rounds=3"), "--set is about a SCENARIO"),
        (("small.yaml", "--write"), "asks none"),
        (("nowhere.yaml",), "no such file"),
    ],
)
def test_wrong_usage_is_said(folder: Path, args: tuple[str, ...], said: str) -> None:
    result = call("tune", *args)
    assert result.exit_code == 2
    assert said in result.stderr


def test_without_a_key_nothing_is_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    result = call("tune", *MODEL)
    assert result.exit_code == 3
    assert "OPENAI_API_KEY is not set" in result.stderr
    assert not list(folder.glob("tune-*"))


async def test_a_directory_that_is_taken_is_refused_before_anything_is_asked(tune: Tune, folder: Path) -> None:
    result = await tune(*MODEL, "--out", ".")
    assert result.exit_code == 3
    assert "not empty" in result.stderr


async def test_where_nothing_can_be_measured_no_directory_is_left(tune: Tune, folder: Path) -> None:
    result = await tune(*MODEL, settings=RehearsalSettings(context_tokens=20))
    assert result.exit_code == 3
    assert "context length" in result.stderr
    assert not list(folder.glob("tune-*"))


async def test_where_most_fails_even_one_at_a_time_that_is_said(tune: Tune, folder: Path) -> None:
    soon_out = RehearsalSettings(latency_seconds=0.05, outages=(PlannedOutage(0.03, 60.0),))
    result = await tune(*MODEL, *SHORT, settings=soon_out)
    assert result.exit_code == 3
    assert "even one at a time" in result.stderr
    assert "setting" not in result.stdout


async def test_who_sits_at_the_terminal_is_asked_before_much_is_spent(folder: Path) -> None:
    many = ("--max-calls", "5000", "--up-to", "1024")
    code, shown = await asyncio.to_thread(
        run_on_terminal, "tune", "--model", "ollama/some", *many, typed="n\n", cwd=folder
    )
    assert code == 3
    assert "5,000 calls for free" in shown
    assert "nothing was spent" in shown
    assert not list(folder.glob("tune-*"))


async def test_an_interrupt_ends_it_with_what_was_measured(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The first call and the nine of the first level are answered, so the second level cannot end before the signal.
    silence = SettingChange("latency_seconds", 3600.0, after_answers=10)
    async with start(RehearsalSettings(changes=(silence,))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        process = start_command("tune", *MODEL, *SHORT, cwd=folder)
        assert process.stderr is not None
        first: Any = await asyncio.to_thread(process.stderr.readline)
        process.send_signal(signal.SIGINT)
        shown, _ = await asyncio.to_thread(process.communicate)
    assert first.startswith("1 at once")
    assert process.returncode == 130
    assert "stopped" in shown
    assert json.loads((folder / "tune-openai-gpt-4.1-mini-1" / "tune.json").read_text())["levels"]
