"""Files of records in all their shapes: what is read, and what is said about those that cannot be."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import polars
import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.loading import validate
from tests.scenario.importers.people_files import find_problems, notes, people, write_file

ROWS = [{"name": "Ada", "age": 36, "note": "a; b"}, {"name": "Ben", "age": None, "note": "Ω"}]
CSV = "name,age,note\nAda,36,a; b\nBen,,Ω\n"
JSONL = '{"name": "Ada", "age": 36, "note": "a; b"}\n\n{"name": "Ben", "note": "Ω"}\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.csv", CSV.encode()),
        ("p.csv", CSV.encode("utf-8-sig")),
        ("p.csv", CSV.encode("utf-16")),
        ("p.csv", CSV.encode("utf-32")),
        ("p.CSV", CSV.replace("\n", "\r\n").encode()),
        ("p.csv", CSV.replace("a; b", '"a; b"').replace(",", "|").encode()),
        ("p.csv", b"name,age,note,,\nAda,36,a; b,,\nBen,,\xce\xa9\n".replace(b"\xce\xa9\n", b"\xce\xa9,,\n")),
        ("p.tsv", CSV.replace(",", "\t").encode()),
        ("p.jsonl", JSONL.encode()),
        ("p.ndjson", JSONL.encode()),
        ("p.json", f"[{JSONL.replace(chr(10) * 2, ',')}]".encode()),
        ("p.json", f'{{"people": [{JSONL.replace(chr(10) * 2, ",")}], "version": 3}}'.encode()),
    ],
)
def test_the_same_people_come_out_of_every_format(tmp_path: Path, name: str, content: bytes) -> None:
    found = people(write_file(tmp_path, name, content))
    assert [found[n].name for n in range(len(found))] == ["Ada", "Ben"]
    assert dict(found[0].traits) == {"age": 36, "note": "a; b"}
    assert dict(found[1].traits) == {"note": "Ω"}


def test_parquet_is_read_with_dates_as_text(tmp_path: Path) -> None:
    frame = polars.DataFrame({"name": ["Ada", "Ben"], "interests": [["a", "b"], None], "age": [36.0, None]})
    frame = frame.with_columns(polars.Series("born", ["1990-01-02", "1991-02-03"]).str.to_date())
    frame.write_parquet(tmp_path / "p.parquet")
    found = people(tmp_path / "p.parquet")
    assert (found[0].interests, found[0].traits) == (("a", "b"), {"age": 36, "born": "1990-01-02"})
    assert "age" not in found[1].traits
    assert len(people(tmp_path / "p.parquet", limit=1)) == 1


def test_a_bad_cell_of_parquet_is_answered_with_its_row(tmp_path: Path) -> None:
    polars.DataFrame({"name": ["A", "B"], "age": [3, 130]}).write_parquet(tmp_path / "p.parquet")
    assert find_problems(tmp_path / "p.parquet") == ["p.parquet: row 2: column 'age': must be at most 120, found 130"]


def test_without_polars_the_problem_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    polars.DataFrame({"name": ["Zoe"]}).write_parquet(tmp_path / "p.parquet")
    monkeypatch.setitem(sys.modules, "polars", None)
    [problem] = find_problems(tmp_path / "p.parquet")
    assert problem.endswith("reading Parquet needs polars; install it with: pip install 'shoal[analysis]'")


@pytest.mark.parametrize(
    ("name", "content", "problems"),
    [
        ("p.csv", b"", ["p.csv: nothing in it"]),
        ("p.csv", b" \n\n", ["p.csv: nothing in it"]),
        ("p.csv", b"name,age\n", ["p.csv: nobody in it"]),
        ("p.csv", b"name\nAda\nJos\xe9\n", ["p.csv:3: not UTF-8 text (byte 0xe9); save it as UTF-8"]),
        ("p.csv", b"name\n\0\n", ["p.csv: not a text file: it contains zero bytes"]),
        (
            "p.csv",
            b"name,age\nA,1,2\n\nB\n",
            ["p.csv:2: 3 cells, but the header has 2", "p.csv:4: 1 cells, but the header has 2"],
        ),
        ("p.csv", b"a,b, a\n1,2,3\n", ["p.csv:1: columns 1 and 3 are both called 'a'; rename one of them"]),
        ("p.csv", b'name,b\n"' + b"x" * 200_000, None),
        ("p.jsonl", b'{"name": "A"}\n{"name": \n[1]\n', None),
        ("p.json", b"[", None),
        ("p.json", b"[]", ["p.json: nobody in it"]),
        ("p.json", b"3", ["p.json: expected a list of objects, found 3"]),
        ("p.json", b'[{"name": "A"}, 3]', ["p.json: record 2: expected an object, found 3"]),
        ("p.json", b'{"a": 1}', ["p.json: expected a list of objects, found an object with 0 such lists"]),
        ("p.json", b"[" * 100_000, None),
        ("p.parquet", b"PAR1 not really", None),
    ],
)
def test_files_that_cannot_be_read_are_reported(
    tmp_path: Path, name: str, content: bytes, problems: list[str] | None
) -> None:
    found = find_problems(write_file(tmp_path, name, content))
    assert all(problem.startswith(name) for problem in found)
    if problems is not None:
        assert found == problems


def test_an_open_quote_is_suspected_where_a_cell_never_ends(tmp_path: Path) -> None:
    [problem] = find_problems(write_file(tmp_path, "p.csv", 'name\nA\n"B\n' + "x\n" * 100_000))
    assert problem.startswith("p.csv:3: ")
    assert problem.endswith("perhaps a quote is not closed")


def test_lines_are_those_of_the_file_also_after_cells_with_line_breaks(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", 'bio,age\n"two\nlines",3\n\nx,y\n')
    assert find_problems(path) == ["p.csv:5: column 'age': expected a whole number, found 'y'"]


def test_the_index_that_pandas_writes_is_kept(tmp_path: Path) -> None:
    assert people(write_file(tmp_path, "p.csv", ",name\n0,Ada\n1,Ben\n"))[1].traits == {"column 1": 1}


def test_guesses_are_noted(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "name;age\nAda;3\n ; \n")
    assert notes(path) == ("empty rows: 1, left out", "cells are separated by ';'")
    listed = write_file(tmp_path, "p.json", '{"v": 1, "agents": [{"name": "A"}]}')
    assert notes(listed) == ("people are the list under 'agents'",)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.csv")
    [problem] = find_problems(tmp_path / "p.csv")
    assert "not a plain file" in problem


def test_a_folder_without_specifications_is_not_a_source_of_people(tmp_path: Path) -> None:
    with pytest.raises(ScenarioInvalid, match="a folder without any"):
        validate({"population": {"file": str(tmp_path)}})
