from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import RunRefused
from shoal.models.local import ModelHeader
from tests.models.local.tiny_model import write_tiny_model


def test_the_header_tells_context_and_memory(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", context=2048)

    header = ModelHeader.read(path)

    assert header.context == 2048
    assert header.size == path.stat().st_size
    # One layer, keys and values of 32 numbers each, two bytes a number.
    assert header.token_bytes == 2 * 32 * 2


@pytest.mark.parametrize("kept", [0.05, 0.9])
def test_a_file_that_was_cut_short_is_refused(tmp_path: Path, kept: float) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])

    with pytest.raises(RunRefused, match=r"tiny\.gguf is broken"):
        ModelHeader.read(path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.gguf"
    path.write_bytes(b"These are notes, and no model at all.")

    with pytest.raises(RunRefused, match="it is no GGUF file"):
        ModelHeader.read(path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.gguf").touch()

    with pytest.raises(RunRefused, match="is broken"):
        ModelHeader.read(tmp_path / "empty.gguf")
