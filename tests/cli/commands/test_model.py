from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shoal.cli.main import cli
from shoal.models.local import CATALOG, ModelStore
from tests.models.local.tiny_model import write_tiny_model


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    monkeypatch.setenv("SHOAL_MODELS", str(tmp_path / "models"))
    return ModelStore(tmp_path / "models")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def keep(store: ModelStore, name: str) -> None:
    """Keep files of the right size where those of a model belong."""
    known = CATALOG[name]
    store.place(known).mkdir(parents=True)
    for file in known.files:
        with (store.place(known) / file.name).open("wb") as written:
            written.truncate(file.size)


def test_models_are_listed_with_size_and_licence(store: ModelStore) -> None:
    keep(store, "wordllama")

    shown = invoke("model", "list").output
    listed = json.loads(invoke("model", "list", "--json").output)

    assert "98 MB" in shown
    assert "Apache-2.0" in shown
    assert {model["name"]: model["here"] for model in listed["models"]} == {"smollm2": False, "wordllama": True}
    assert listed["folder"] == str(store.folder)


def test_a_model_that_is_here_is_not_downloaded_again(store: ModelStore) -> None:
    keep(store, "smollm2")

    assert "smollm2 is here already" in invoke("model", "get", "smollm2").output


def test_removing_a_model_deletes_its_files(store: ModelStore) -> None:
    keep(store, "smollm2")

    assert "removed" in invoke("model", "remove", "smollm2").output
    assert "is not here" in invoke("model", "remove", "smollm2").output
    assert not store.has(CATALOG["smollm2"])


def test_an_unknown_model_is_a_wrong_usage() -> None:
    result = invoke("model", "get", "gpt-9")

    assert result.exit_code == 2
    assert "smollm2" in result.output


def test_a_run_with_a_model_that_is_not_here_is_refused_before_it_begins(tmp_path: Path) -> None:
    scenario = tmp_path / "town.yaml"
    scenario.write_text("name: town\nrounds: 1\npopulation: [{name: Ana}]\n")

    result = invoke("run", str(scenario), "--model", "local", "--out", str(tmp_path / "run"))
    planned = invoke("plan", str(scenario), "--model", "local")

    assert result.exit_code == planned.exit_code == 3
    assert "shoal model get smollm2" in result.output
    assert "shoal model get smollm2" in planned.output
    assert not (tmp_path / "run").exists()


def test_the_doctor_knows_how_a_model_on_this_machine_is_served(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = write_tiny_model(tmp_path / "tiny.gguf")

    result = invoke("doctor", "--model", f"local:{path}")

    assert "it needs no key and costs nothing" in result.output
    assert "answers at once of up to 6,144 tokens" in result.output


def test_a_plan_knows_that_a_model_on_this_machine_costs_nothing(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    scenario = tmp_path / "town.yaml"
    scenario.write_text("name: town\nrounds: 2\npopulation: [{name: Ana}, {name: Bo}]\n")

    planned = json.loads(invoke("plan", str(scenario), "--model", f"local:{path}", "--json").output)

    assert planned["cost"] == 0
    assert planned["unpriced"] == []
    assert planned["seconds_per_call"] < 1
