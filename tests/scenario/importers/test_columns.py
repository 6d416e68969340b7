"""Files of people as a population: which column fills what, what a cell becomes, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.population import PersonEntry, count_people, number_own_names
from shoal.scenario.loading import load, override, validate
from shoal.scenario.sampling.sampler import sample
from tests.scenario.importers.people_files import find_problems, notes, people, scenario, write_file

EVERYTHING = """name,username,bio,persona,age,gender,country,profession,interests,stance,activity,active_hours,shoe size
Ada,ada,Counts.,Ada counts bridges.,36,female,UK,engineer,bridges;maths,supportive,0.9,8-10,38
Ben,,,,,,,,,,,,
Cem,,,,,M,Turkey,,"[""tea"", 'x']",-0.25,0,22-1,44.5
"""
HOURS_8_TO_10, HOURS_22_TO_1 = 0b111 << 8, 1 << 22 | 1 << 23 | 0b11


def test_every_field_of_a_person_can_be_a_column(tmp_path: Path) -> None:
    found = people(write_file(tmp_path, "p.csv", EVERYTHING.replace('"[""tea"", \'x\']"', "tea")))
    ada, cem = found[0], found[2]
    assert (ada.name, ada.username, ada.bio, ada.persona) == ("Ada", "ada", "Counts.", "Ada counts bridges.")
    assert (ada.interests, ada.stance, ada.activity) == (("bridges", "maths"), 0.7, 0.9)
    assert ada.traits == {
        "age": 36,
        "gender": "female",
        "country": "UK",
        "profession": "engineer",
        "shoe size": 38,
    }
    assert (cem.stance, cem.activity, cem.interests) == (-0.25, 0.0, ("tea",))
    assert cem.traits == {"gender": "male", "country": "Turkey", "shoe size": 44.5}
    assert found.active_hours.tolist()[::2] == [HOURS_8_TO_10, HOURS_22_TO_1]


def test_fields_that_a_row_leaves_open_are_as_for_a_declared_person(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "name\nBen\n")
    by_hand = sample(validate({"topic": "tea", "population": [{"name": "Ben"}]}))[0]
    from_file = sample(validate({"topic": "tea", "population": [{"file": str(path)}]}))[0]
    assert from_file == by_hand


def test_a_person_with_an_opinion_cares_about_the_topic(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "name,interests,stance\nA,tea,0.5\nB,tea,0\n")
    found = sample(validate({"topic": "rain", "population": {"file": str(path)}}))
    assert [found[0].interests, found[1].interests] == [("rain", "tea"), ("tea",)]


@pytest.mark.parametrize(
    ("column", "field"),
    [
        ("Full Name", "name"),
        ("screen_name", "username"),
        ("Description", "bio"),
        ("occupation", "profession"),
        ("nationality", "country"),
        ("Sentiment-Bias", "sentiment"),
    ],
)
def test_columns_are_taken_under_common_names(tmp_path: Path, column: str, field: str) -> None:
    value = "0.5" if field == "sentiment" else "Xyz"
    [file] = scenario(write_file(tmp_path, "p.csv", f"{column},z\n{value},1\n")).population
    assert list(file.roster.fields) == [field]  # type: ignore[union-attr]


def test_a_field_is_filled_from_the_requested_column(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "who,name,years,likes\nAda,x,36,tea and rain and sun\n")
    columns = {"name": "who", "age": "years", "interests": {"column": "likes", "separator": " and "}}
    [ada] = [people(path, columns=columns)[0]]
    assert (ada.name, ada.traits["age"], ada.interests) == ("Ada", 36, ("tea", "rain", "sun"))
    assert ada.traits["name"] == "x", "a column that is not asked for any more stays as a trait"


def test_a_column_can_be_kept_from_filling_a_field(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "name,age\nAda,old\n")
    assert find_problems(path) == ["p.csv:2: column 'age': expected a whole number, found 'old'"]
    assert people(path, columns={"age": None})[0].traits["age"] == "old"


def test_a_column_that_only_sounds_like_a_field_becomes_a_trait(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "name,activity_level\nAda,\"['active', 'off_line']\"\nBo,\n")
    assert people(path)[0].traits["activity_level"] == "['active', 'off_line']"
    [note] = notes(path)
    assert note.startswith("column 'activity_level' is a trait and not read as activity: expected a number")


def test_a_bad_cell_of_a_column_that_was_matched_says_how_to_undo_the_match(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "name,activity_level\nAda,0.5\nBo,often\nCy,never\n")
    first, second = find_problems(path)
    assert first == (
        "p.csv:3: column 'activity_level': expected a number, found 'often' "
        "(to keep the column out of activity: --map activity=, or columns: {activity: null})"
    )
    assert second == "p.csv:4: column 'activity_level': expected a number, found 'never'"
    assert people(path, columns={"activity": None})[1].traits["activity_level"] == "often"


@pytest.mark.parametrize("name", ["می\u200cنا", "🐻\u200d❄️ Holly", "Neale 🏴\U000e0067\U000e0062\U000e007f"])
def test_a_name_may_have_letters_that_join_others(tmp_path: Path, name: str) -> None:
    assert people(write_file(tmp_path, "p.csv", f"name\n{name}\n")).names == [name]


@pytest.mark.parametrize("name", ["\u200dAda", "A\u202eda", "A\x1bda"])
def test_a_name_has_no_letters_that_hide_or_turn_others(tmp_path: Path, name: str) -> None:
    [problem] = find_problems(write_file(tmp_path, "p.csv", f"name\n{name}\n"))
    assert "expected a name without line breaks" in problem


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"name": "nme"}, "p.csv: no column 'nme'; did you mean 'name'?"),
        ({"name": "zzzzz"}, "p.csv: no column 'zzzzz'; there is 'name', 'age'"),
        ({"nmae": "name"}, "people have no field 'nmae'; did you mean 'name'?"),
        ({"name": "age", "age": "age"}, "p.csv: column 'age' is asked for by name and by age"),
    ],
)
def test_a_wrong_mapping_is_answered(tmp_path: Path, columns: dict[str, str], problem: str) -> None:
    assert find_problems(write_file(tmp_path, "p.csv", "name,age\nAda,3\n"), columns=columns) == [problem]


@pytest.mark.parametrize(
    ("column", "cell", "problem"),
    [
        ("age", "abc", "expected a whole number, found 'abc'"),
        ("age", "34.5", "expected a whole number, found 34.5"),
        ("age", "150", "must be at most 120, found 150"),
        ("stance", "7", "must be at most 1, found 7"),
        ("stance", "suportive", "did you mean 'supportive'?"),
        ("activity", "nan%", "expected a number, found 'nan%'"),
        ("gender", "femal", "did you mean 'female'?"),
        ("active_hours", "8-30", "expected hours from 0 to 23"),
        ("name", "most_followed", "stands for somebody else"),
        ("name", "x" * 101, "at most 100 characters are possible"),
        ("interests", "[1, 2]]", "expected a list"),
        ("traits", "[1]", "expected a mapping, found a list"),
        ("response_delay", "30-5", "expected the least first"),
    ],
)
def test_a_bad_cell_is_answered_with_line_and_column(tmp_path: Path, column: str, cell: str, problem: str) -> None:
    path = write_file(tmp_path, "p.csv", f'{column},z\n\n"{cell}",1\n')
    [found] = find_problems(path)
    assert found.startswith(f"p.csv:3: column '{column}': ")
    assert problem in found


@pytest.mark.parametrize(
    ("column", "cell", "expected"),
    [
        ("age", "34.0", 34),
        ("age", "NA", None),
        ("gender", "Woman", "female"),
        ("gender", "unknown", None),
        ("stance", "Opposing", -0.7),
        ("interests", "a | b|a", ("a", "b")),
        ("interests", "['a', 'b']", ("a", "b")),
        ("response_delay", "5-30", (5, 30)),
        ("response_delay", "7", (7, 7)),
        ("posts_per_hour", "0.25", 0.25),
        ("username", "4711", "4711"),
    ],
)
def test_a_cell_is_read_as_its_field_needs_it(tmp_path: Path, column: str, cell: str, expected: object) -> None:
    [file] = scenario(write_file(tmp_path, "p.tsv", f"{column}\tz\n{cell}\t1\n")).population
    assert file.roster.column(column)[0] == expected  # type: ignore[union-attr]


def test_the_first_twenty_bad_cells_and_the_number_of_the_others_are_reported(tmp_path: Path) -> None:
    rows = "".join(f"P{n},x\n" for n in range(50))
    problems = find_problems(write_file(tmp_path, "p.csv", "name,age\n" + rows))
    assert len(problems) == 21
    assert problems[19] == "p.csv:21: column 'age': expected a whole number, found 'x'"
    assert problems[20] == "... and 30 more problems like these"


def test_traits_that_are_numbers_are_numbers_and_codes_stay_text(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "name,income,postcode,mixed,nothing\nA,1000,01234,1,\nB,2.5,99999,x,\n")
    found = people(path)
    assert found[0].traits == {"income": 1000, "postcode": "01234", "mixed": "1"}
    assert found[1].traits == {"income": 2.5, "postcode": "99999", "mixed": "x"}


def test_a_column_of_mappings_becomes_traits(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.jsonl", '{"name": "A", "traits": {"mbti": "INTP"}, "dog": {"age": 3}}\n')
    assert people(path)[0].traits == {"mbti": "INTP", "dog": {"age": 3}}


def test_more_interests_than_there_is_room_for_are_kept_as_a_trait(tmp_path: Path) -> None:
    many = [f"i{n}" for n in range(12)]
    path = write_file(tmp_path, "p.csv", f"name,interests\nA,{';'.join(many)}\nB,x\n")
    found = people(path)
    assert found[0].interests == tuple(many[:8])
    assert found[0].traits == {"all_interests": many}
    assert found[1].traits == {}
    assert any("more than 8 interests: 1" in note for note in notes(path))


# names


def test_repeated_names_get_a_number(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "name\nAda\nAda 2\nAda\nAda\nada\n")
    assert list(people(path).names) == ["Ada", "Ada 2", "Ada 3", "Ada 4", "ada"]
    assert notes(path) == ("names that somebody else has already: 2; they became 'Ada 3', 'Ada 4'",)


def test_repeated_usernames_get_a_number_whatever_their_case(tmp_path: Path) -> None:
    found = people(write_file(tmp_path, "p.csv", "name,username\nA,x\nB,X\nC,\n"))
    assert [found[n].username for n in range(3)] == ["x", "X_2", "c"]


def test_usernames_made_from_names_are_different(tmp_path: Path) -> None:
    found = people(write_file(tmp_path, "p.csv", "name\nJosé\nJose\nJo-se\n李\n"))
    assert [found[n].username for n in range(4)] == ["jose", "jose_1", "jo_se", "user_3"]


def test_people_in_files_give_way_to_people_written_by_hand(tmp_path: Path) -> None:
    path = str(write_file(tmp_path, "p.csv", "name,username\nAda,ada\nBen,\n"))
    population = [{"file": path}, {"file": path}, {"name": "Ada", "username": "ADA"}, {"count": 1}]
    made = validate({"population": population})
    found = sample(made)
    assert list(found.names)[:5] == ["Ada 2", "Ben", "Ada 3", "Ben 2", "Ada"]
    assert [found[n].username for n in range(5)] == ["ada_2", "ben", "ada_3", "ben_2", "ADA"]
    assert number_own_names(made.population) == {"Ada 2": 0, "Ben": 1, "Ada 3": 2, "Ben 2": 3, "Ada": 4}
    assert count_people(made.population) == 6
    assert found[5].persona.startswith(found.names[5]), "who comes after a file is drawn again"


def test_without_a_column_of_names_they_are_drawn(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "gender\nfemale\nmale\n")
    drawn = sample(validate({"population": {"count": 2, "gender": {"female": 1}}})).names
    assert people(path).names[0] == drawn[0]
    assert notes(path) == ("no column with names: names are drawn, as they are for groups",)


def test_a_drawn_name_is_unique(tmp_path: Path) -> None:
    first = sample(validate({"population": {"count": 1, "gender": {"female": 1}}})).names[0]
    path = write_file(tmp_path, "p.csv", f"gender,name\nfemale,\nfemale,{first}\n")
    assert list(people(path).names) == [f"{first} Jr.", first]


def test_events_can_call_people_in_files_by_name(tmp_path: Path) -> None:
    path = str(write_file(tmp_path, "p.csv", "name\nAda\nBen\n"))
    validate({"population": {"file": path}, "events": [{"post": "Hello.", "by": "Ben"}]})
    with pytest.raises(ScenarioInvalid, match="unknown person 'Bem'; did you mean 'Ben'"):
        validate({"population": {"file": path}, "events": [{"post": "Hello.", "by": "Bem"}]})


# the entry


def test_a_group_can_be_named_and_only_the_first_taken(tmp_path: Path) -> None:
    found = people(write_file(tmp_path, "p.csv", "name\nA\nB\nC\n"), limit=2, group="panel")
    assert len(found) == 2
    assert found[1].traits["group"] == "panel"


def test_paths_are_seen_from_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "study").mkdir()
    write_file(tmp_path / "study", "p.csv", "name\nAda\n")
    write_file(tmp_path / "study", "s.yaml", "population: {file: p.csv}\n")
    loaded = load(tmp_path / "study" / "s.yaml")
    monkeypatch.chdir(tmp_path / "study")
    assert loaded == validate({"population": {"file": "p.csv"}})


def test_a_changed_value_leaves_the_people_as_they_were(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", "name,who\nx,Ada\n")
    before = scenario(path, columns={"name": "who"})
    path.unlink()
    with pytest.raises(ScenarioInvalid, match="no such file"):
        override(before, ["rounds=3"])
    write_file(tmp_path, "p.csv", "name,who\nx,Ada\n")
    assert override(before, ["rounds=3"]).population == before.population
    write_file(tmp_path, "p.csv", "name,who\nx,Eve\n")
    assert override(before, ["rounds=3"]).population != before.population
    assert list(sample(before).names) == ["Ada"]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"file": "p.cvs", "x": 1}, "population.0.x: unknown field 'x'"),
        ({"file": "missing.csv"}, "no such file; did you mean 'missing2.csv'?"),
        ({"file": "p.xlsx"}, "expected a file that ends in .csv, .tsv"),
        ({"file": "missing2.csv", "format": "cvs"}, "expected csv, jsonl, json, parquet"),
        ({"file": "missing2.csv", "count": 3}, "not several of them"),
        ({"fille": "p.csv"}, "unknown field 'fille'; did you mean 'file'?"),
        ({"file": "missing2.csv", "limit": 0}, "must be at least 1"),
        ({"file": "missing2.csv", "fragments": ["missing2.csv"]}, "fragments are merged into TinyTroupe's"),
    ],
)
def test_a_wrong_entry_is_answered(tmp_path: Path, entry: dict[str, object], problem: str) -> None:
    write_file(tmp_path, "missing2.csv", "name\nA\n")
    write_file(tmp_path, "p.xlsx", "PK")
    with pytest.raises(ScenarioInvalid) as caught:
        validate({"population": [entry]}, folder=tmp_path)
    assert problem in str(caught.value)


def test_a_file_that_cannot_be_read_makes_no_name_unknown(tmp_path: Path) -> None:
    scenario = {"population": [{"file": "no.csv"}, {"count": 1}], "events": [{"post": "Hm.", "by": "Ada"}]}
    with pytest.raises(ScenarioInvalid) as caught:
        validate(scenario, folder=tmp_path)
    assert len(caught.value.problems) == 1


def test_every_field_of_a_person_can_be_asked_for(tmp_path: Path) -> None:
    fields = [field for field in PersonEntry.model_fields if field != "interests_from"]
    path = write_file(tmp_path, "p.csv", ",".join(fields) + ",z\n" + "," * len(fields) + "1\n")
    [file] = scenario(path, columns={field: field for field in fields}).population
    assert set(file.roster.fields) | {"traits"} == set(fields)  # type: ignore[union-attr]


def test_decimal_commas_are_read_in_files_with_semicolons(tmp_path: Path) -> None:
    text = (
        "name;stance;interests;pay;code;note\nAda;-0,4;tea,rain;1.234,50;1.234;yes, no\nBo;supportive;films;7;5,5;1,5\n"
    )
    path = write_file(tmp_path, "p.csv", text)
    ada, bo = people(path)[0], people(path)[1]
    assert people(path).stances[0] == pytest.approx(-0.4)
    assert ada.interests == ("tea", "rain")
    assert (ada.traits["pay"], bo.traits["pay"]) == (1234.5, 7)
    assert (ada.traits["note"], bo.traits["note"]) == ("yes, no", "1,5")


def test_commas_in_other_files_are_no_decimals(tmp_path: Path) -> None:
    path = write_file(tmp_path, "p.csv", 'name,pay\nAda,"1,5"\nBo,"2,5"\n')
    assert people(path)[0].traits["pay"] == "1,5"
