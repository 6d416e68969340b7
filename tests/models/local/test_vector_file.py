from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import RunRefused
from shoal.models.local import VectorFile
from tests.models.local.small_table import write_small_table

TEXTS = ["the bridge", "cake", "the bridge"]


def test_vectors_are_kept_and_need_no_table_afterwards(tmp_path: Path) -> None:
    table, path = write_small_table(tmp_path), tmp_path / "vectors.bin"
    first = VectorFile(path, table).embed(TEXTS)

    again = VectorFile(path, None).embed(list(reversed(TEXTS)))

    assert (first == table.embed(TEXTS)).all()
    assert (again == first[::-1]).all()


def test_a_new_text_without_a_table_is_refused_with_the_command_that_gets_it(tmp_path: Path) -> None:
    with pytest.raises(RunRefused, match="shoal model get wordllama"):
        VectorFile(tmp_path / "vectors.bin", None).embed(["bridge"])


def test_a_record_that_was_cut_off_is_written_anew(tmp_path: Path) -> None:
    table, path = write_small_table(tmp_path), tmp_path / "vectors.bin"
    VectorFile(path, table).embed(TEXTS)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])

    VectorFile(path, table).embed(TEXTS)

    assert path.read_bytes() == whole
