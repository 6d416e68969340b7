"""The command `prepare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shoal.cli.main import cli
from tests.preparation.texts import ASKED_TOWN, TOWN


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("town.md").write_text(TOWN)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["prepare", *arguments])


def test_it_says_what_it_made_and_how_to_run_it() -> None:
    result = invoke(ASKED_TOWN, "town.md", "--out", "bridge", "--people", "50")
    assert result.exit_code == 0, result.output
    assert "14 people from the texts, 36 drawn around them" in result.output
    assert result.output.rstrip().endswith("run it with: shoal run bridge/scenario.yaml")
    assert CliRunner().invoke(cli, ["plan", "bridge/scenario.yaml"]).exit_code == 0


def test_the_folder_is_named_after_the_requirement() -> None:
    assert invoke("A tax on sugar").exit_code == 0
    assert Path("a-tax-on-sugar/scenario.yaml").is_file()


def test_a_whole_paragraph_is_a_requirement() -> None:
    assert invoke(f"{ASKED_TOWN} " * 10, "--out", "bridge").exit_code == 0


def test_a_document_alone_is_a_requirement() -> None:
    result = invoke("town.md", "--topic", "the closure", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["topic"], found["profiles"]) == ("the closure", 14)


def test_again_it_goes_on_and_another_request_is_refused() -> None:
    assert invoke(ASKED_TOWN, "town.md", "--out", "bridge").exit_code == 0
    assert invoke("--out", "bridge").exit_code == 0
    refused = invoke("Something else", "--out", "bridge")
    assert refused.exit_code == 3
    assert "holds a preparation of something else" in refused.output


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "say in plain words what is to be simulated"),
        (("x", "missing.md"), 2, "no such file"),
        (("x", "--worlds", "mars"), 2, "there is no world 'mars'"),
        (("x", "--marginals", "town.md"), 2, "expected a table"),
        (("x", "--model", "openai/gpt-4.1-mini"), 3, "OPENAI_API_KEY"),
    ],
)
def test_wrong_use_is_answered_with_a_sentence(arguments: tuple[str, ...], code: int, says: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert says in " ".join(result.output.split())
    assert "Traceback" not in result.output
