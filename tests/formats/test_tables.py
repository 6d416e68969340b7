"""A table comes out as it went in, in every format."""

from __future__ import annotations

import csv
import json
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

from shoal.errors import RunRefused
from shoal.formats.tables import FORMATS, ExportTable, Format, Row, choose_writer, write_csv

COLUMNS = ("number", "share", "words", "truth", "nothing")
ROWS: list[Row] = [
    (1, 0.5, 'a "quoted", word', True, None),
    (2, None, "two\nlines & <more>", False, None),
    (3, -1.25, "Zoë 🌊", None, None),
]


def read(path: Path, format: Format) -> list[dict[str, Any]]:
    if format == "parquet":
        return polars.read_parquet(path).to_dicts()
    if format == "jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as file:
        return [{name: _value(name, text) for name, text in row.items()} for row in csv.DictReader(file)]


def _value(name: str, text: str) -> Any:
    if text == "":
        return None
    return text if name == "words" else json.loads(text)


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_is_read_back_as_it_was_written(tmp_path: Path, format: Format) -> None:
    count = choose_writer(format)(ExportTable("t", COLUMNS, iter(ROWS)), tmp_path / "t")
    assert count == 3
    assert read(tmp_path / "t", format) == [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_table_has_its_columns_where_the_format_has_any(tmp_path: Path, format: Format) -> None:
    assert choose_writer(format)(ExportTable("t", COLUMNS, []), tmp_path / "t") == 0
    assert read(tmp_path / "t", format) == []
    if format == "parquet":
        assert polars.read_parquet(tmp_path / "t").columns == list(COLUMNS)


def test_bytes_are_hexadecimal_in_text(tmp_path: Path) -> None:
    choose_writer("csv")(ExportTable("t", ("raw",), [(b"\x00\xff",)]), tmp_path / "t")
    assert (tmp_path / "t").read_text().splitlines() == ["raw", "00ff"]


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_big_table_is_never_held_at_once(tmp_path: Path, format: Format) -> None:
    def rows() -> Iterator[Row]:
        for number in range(100_000):
            yield (number, f"a text that takes some room, number {number}")

    tracemalloc.start()
    try:
        assert choose_writer(format)(ExportTable("t", ("number", "text"), rows()), tmp_path / "t") == 100_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000 < (tmp_path / "t").stat().st_size


# Parquet


def test_a_column_of_many_kinds_becomes_text(tmp_path: Path) -> None:
    choose_writer("parquet")(ExportTable("t", ("mixed", "number"), [(1, 1), ("one", 1.5), (None, 2)]), tmp_path / "t")
    frame = polars.read_parquet(tmp_path / "t")
    assert frame["mixed"].to_list() == ["1", "one", None]
    assert frame["number"].to_list() == [1.0, 1.5, 2.0]


def test_chunks_that_look_different_are_joined(tmp_path: Path) -> None:
    """A column may be empty for fifty thousand rows before its first value comes."""

    def rows() -> Iterator[Row]:
        for number in range(50_000):
            yield (None, number, number)
        yield ("late", 0.5, "words")

    assert choose_writer("parquet")(ExportTable("t", ("empty", "number", "mixed"), rows()), tmp_path / "t") == 50_001
    frame = polars.read_parquet(tmp_path / "t")
    assert frame.row(-1) == ("late", 0.5, "words")
    assert frame.row(3) == (None, 3.0, "3")


def test_without_polars_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(RunRefused, match=r"pip install 'shoal\[analysis\]'"):
        choose_writer("parquet")
    assert choose_writer("csv") is not None


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"]


def test_texts_that_a_spreadsheet_would_run_are_quoted(tmp_path: Path) -> None:
    rows = [(text, -1, -0.5, None, "plain") for text in FORMULAS]
    table = ExportTable("t", ("=a", "b", "c", "d", "e"), rows)
    write_csv(table, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        head, *cells = csv.reader(file)
    assert head[0] == "'=a"
    assert cells == [[f"'{text}", "-1", "-0.5", "", "plain"] for text in FORMULAS]
    write_csv(table, tmp_path / "raw.csv", raw=True)
    with (tmp_path / "raw.csv").open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["=a", *FORMULAS]
