"""Demographic tables as files: what is read out of them, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.population import PersonEntry
from shoal.scenario.importers.marginals import MarginalTable, parse_ages, read_marginals


def read(folder: Path, text: str, name: str = "t.csv") -> tuple[MarginalTable, ...]:
    (folder / name).write_text(text, encoding="utf-8")
    return read_marginals([folder / name], PersonEntry)


def test_a_table_has_a_share_for_each_combination(tmp_path: Path) -> None:
    [table] = read(tmp_path, "sex,Region,people\nwomen,north,30\nmen,north,20\nwomen,south,50\n")
    assert table.attributes == ("gender", "Region")
    assert table.shares == {("female", "north"): 0.3, ("male", "north"): 0.2, ("female", "south"): 0.5}
    assert table.sum_over(["gender"]) == pytest.approx({("female",): 0.8, ("male",): 0.2})


def test_a_file_holds_several_tables_where_rows_leave_attributes_empty(tmp_path: Path) -> None:
    tables = read(tmp_path, "age,region,count\n18-34,,1\n35+,,3\n,north,2\n,south,2\n")
    assert [table.attributes for table in tables] == [("age",), ("region",)]
    assert tables[0].shares == {("18-34",): 0.25, ("35+",): 0.75}


def test_the_long_form_holds_tables_of_one_attribute_each(tmp_path: Path) -> None:
    tables = read(tmp_path, "Attribute,Value,percent\ngender,female,51 %\ngender,male,49\nclub,yes,10\nclub,no,90\n")
    assert [dict(table.shares) for table in tables] == [
        {("female",): 0.51, ("male",): 0.49},
        {("yes",): 0.1, ("no",): 0.9},
    ]


def test_numbers_are_read_as_people_write_them(tmp_path: Path) -> None:
    [table] = read(tmp_path, 'region,count\nnorth,"1,500"\nsouth,500\n')
    assert table.shares == {("north",): 0.75, ("south",): 0.25}
    [table] = read(tmp_path, "region;share\nnorth;0,75\nsouth;0,25\n")
    assert table.shares == {("north",): 0.75, ("south",): 0.25}


@pytest.mark.parametrize(
    ("text", "ages"),
    [
        ("18-34", (18, 34)),
        ("18 – 34", (18, 34)),
        ("65+", (65, 90)),
        ("85 and over", (85, 95)),
        ("under 18", (0, 17)),
        ("<18", (0, 17)),
        ("over 80", (81, 91)),
        ("40", (40, 40)),
        ("115+", (115, 120)),
        ("34-18", None),
        ("130-140", None),
        ("young", None),
    ],
)
def test_age_groups_are_read_in_their_usual_forms(text: str, ages: tuple[int, int] | None) -> None:
    assert parse_ages(text) == ages


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("age,region\n18-34,north\n", "no column says how many; one column is called count, share or percent"),
        ("age,count,share\n18-34,1,1\n", "the columns count or share all say how many"),
        ("age,count\nyoung,1\n", "t.csv:2: age: expected ages such as 18-34, 65+, under 18 or 40, found 'young'"),
        ("gender,count\nrobot,1\n", "t.csv:2: gender: expected female, male or other, found 'robot'"),
        ("stance,count\nangry,1\n", "t.csv:2: stance: expected supportive, opposing, neutral or observer"),
        ("region,count\nnorth,-1\n", "t.csv:2: expected how many, a number not below 0, found '-1'"),
        ("region,count\nnorth,many\n", "t.csv:2: expected how many, a number not below 0, found 'many'"),
        ("region,count\nnorth,nan\n", "found 'nan'"),
        ("region,count\nnorth,1\nnorth,2\n", "t.csv:3: north is there twice"),
        ("region,count\nnorth,1\nTotal,1\n", "t.csv:3: region: expected a value and no sum of others; remove this row"),
        ("region,count\nnorth,0\n", "the table of region has nobody in it"),
        ("region,share\nnorth,0.4\nsouth,0.4\n", "the shares of region add up to 0.8; they are parts of 1 or of 100"),
        ("region,count\n,1\n", "t.csv:2: no attribute has a value in this row"),
        ("name,count\nBo,1\n", "'name' cannot be an attribute of a table"),
        ("sex,gender,count\nmale,male,1\n", "two columns say the same"),
    ],
)
def test_a_wrong_table_is_answered_with_what_to_do(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        read(tmp_path, text)
    assert problem in str(caught.value)


def test_two_tables_of_the_same_attributes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("region,count\nnorth,1\n")
    (tmp_path / "b.csv").write_text("region,count\nnorth,1\n")
    with pytest.raises(ScenarioInvalid, match=r"two tables of region \(b.csv\) and a.csv"):
        read_marginals([tmp_path / "a.csv", tmp_path / "b.csv"], PersonEntry)
