from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shoal.errors import RunRefused
from shoal.models.local import ModelStore, WordTable, compare_texts, find_table
from tests.models.local.small_table import write_small_table


@pytest.fixture
def table(tmp_path: Path) -> WordTable:
    return write_small_table(tmp_path)


def test_a_word_is_joined_from_its_letters(table: WordTable) -> None:
    assert len(table.find_pieces("bridge")) == 1
    assert len(table.find_pieces("bread")) == 1


def test_what_has_no_piece_is_spelled_in_bytes(table: WordTable) -> None:
    # The sign for the space before a word has three bytes.
    assert table.find_pieces("é") == [0xE2, 0x96, 0x81, 0xC3, 0xA9]


def test_texts_are_alike_where_their_words_are(table: WordTable) -> None:
    assert table.compare("the bridge", "bridge over the river") > 0.9
    assert table.compare("bread", "cake") > 0.9
    assert abs(table.compare("bridge", "cake")) < 0.1
    assert table.compare("bridge", "bridge") == 1


def test_vectors_are_whole_numbers_that_use_the_whole_range(table: WordTable) -> None:
    vectors = table.embed(["bridge", "the bridge and the river", ""])

    assert vectors.dtype == np.int8
    assert np.abs(vectors[:2]).max(axis=1).tolist() == [127, 127]
    assert not vectors[2].any()


def test_a_text_without_words_is_like_nothing(table: WordTable) -> None:
    assert table.compare("", "bridge") == 0
    assert compare_texts(table.embed([]), table.embed(["bridge"])).shape == (0, 1)


def test_a_table_that_is_damaged_is_reported_with_the_command_that_mends_it(tmp_path: Path) -> None:
    table = write_small_table(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")

    with pytest.raises(RunRefused, match=r"tokenizer\.json is damaged.*shoal model get wordllama --force"):
        table.embed(["bridge"])


def test_a_table_that_was_not_downloaded_is_not_found(tmp_path: Path) -> None:
    assert find_table(ModelStore(tmp_path)) is None
    with pytest.raises(RunRefused, match="shoal model get wordllama"):
        WordTable.of_user(ModelStore(tmp_path))
