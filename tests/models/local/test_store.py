from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import RunRefused
from shoal.models.local import CATALOG, ModelStore, is_local
from shoal.models.openai import resolve_endpoint
from tests.models.local.tiny_model import write_tiny_model


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("local", True),
        ("local/smollm2", True),
        ("local:a/b.gguf", True),
        ("locally/a", False),
        ("ollama/local", False),
        ("openai/gpt-4.1-mini", False),
    ],
)
def test_models_on_this_machine_are_known_by_name(model: str, expected: bool) -> None:
    assert is_local(model) is expected


def test_models_are_kept_in_the_users_cache_unless_a_folder_is_chosen() -> None:
    assert ModelStore.of_user({"HOME": "/people/ada"}).folder == Path("/people/ada/.cache/shoal/models")
    assert ModelStore.of_user({"XDG_CACHE_HOME": "/cache"}).folder == Path("/cache/shoal/models")
    assert ModelStore.of_user({"SHOAL_MODELS": "/models", "HOME": "/people/ada"}).folder == Path("/models")


def test_a_model_that_was_not_downloaded_is_refused_with_the_command_that_gets_it(tmp_path: Path) -> None:
    with pytest.raises(RunRefused, match="`shoal model get smollm2` downloads it"):
        ModelStore(tmp_path).find_chat_model("local")


def test_a_damaged_model_is_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    store, known = ModelStore(tmp_path), CATALOG["smollm2"]
    store.place(known).mkdir()
    (store.place(known) / known.files[0].name).write_bytes(b"GGUF")

    with pytest.raises(RunRefused, match=r"is damaged: it has 4 bytes(.|\n)*--force"):
        store.find_chat_model("local/smollm2")


def test_an_unknown_name_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(RunRefused, match="Did you mean local/smollm2"):
        ModelStore(tmp_path).find_chat_model("local/smolm2")


def test_a_file_that_is_not_there_or_no_model_is_refused(tmp_path: Path) -> None:
    store = ModelStore(tmp_path)
    with pytest.raises(RunRefused, match=r"there is no file .*missing\.gguf"):
        store.find_chat_model(f"local:{tmp_path}/missing.gguf")
    (tmp_path / "text.gguf").write_text("a text")
    with pytest.raises(RunRefused, match="is no GGUF file"):
        store.find_chat_model(f"local:{tmp_path}/text.gguf")


def test_an_own_file_is_an_endpoint_without_key_and_price(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "own.gguf")

    endpoint = resolve_endpoint(f"local:{path}", base_url=None, key_variable=None, environ={})

    assert (endpoint.model, endpoint.file, endpoint.key) == ("own", path, None)
    assert endpoint.server.startswith(str(path))


def test_removing_says_whether_something_was_there(tmp_path: Path) -> None:
    store, known = ModelStore(tmp_path), CATALOG["smollm2"]
    assert not store.remove(known)
    store.place(known).mkdir()
    assert store.remove(known)
    assert not store.place(known).exists()
