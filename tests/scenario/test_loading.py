"""Loading of scenarios from files, texts and plain values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.population import GroupEntry, PersonEntry
from shoal.scenario.loading import load, parse, validate
from shoal.scenario.sampling.follow_graph import choose_graph
from shoal.scenario.scenario import Scenario

RICH = """
name: rich
topic: the old bridge
seed: 9
time: {start: 2026-03-02T08:00, minutes_per_round: 30}
population:
  - {name: Bo, age: 30, gender: male, interests: [chess], stance: opposing, active_hours: 22-4, traits: {pets: [cat]}}
  - name: Ann
    follows: [Bo]
    active_hours: 8-9,20
  - count: 20
    group: crowd
    age: {choice: {18: 1, 30.5: 2}}
    stance: {choice: {supportive: 2, opposing: 1}}
    activity: {beta: [2, 3], min: 0.1}
    gender: {other: 1, female: 3}
    country: no
    profession: [nurse, nurse, cook]
    interests: {pick: 2, from: {music: 1, books: 3}}
    traits: {income: {normal: [3, 1]}, vote: {left: 1, right: 2}}
  - {count: 5, interests: [sport], stance: neutral}
follows: {graph: homophilous, edges: [[Bo, Ann], [3, Bo]]}
worlds: {twitter: , square: {kind: reddit, feed: {recency: 1}}}
mind: {kind: scripted, turns: [{round: 1, agent: Bo, action: CREATE_POST, args: {content: hi}}]}
events:
  - {post: hello, by: most_followed}
  - {broadcast: attention, to: [Bo, 4], round: 3, world: square}
"""


def get_group(scenario: Scenario, index: int = 0) -> GroupEntry:
    group = scenario.population[index]
    assert isinstance(group, GroupEntry)
    return group


def test_one_line_is_a_valid_scenario() -> None:
    scenario = parse("population: {count: 200}", "f.yaml")
    assert get_group(scenario).count == 200
    assert list(scenario.worlds) == ["twitter"]
    assert (scenario.rounds, scenario.seed, choose_graph(scenario)) == (24, 1, "scale-free")


def test_a_stored_scenario_reads_back_equal_in_any_order_of_keys() -> None:
    scenario = parse(RICH, "f.yaml")
    stored = json.dumps(scenario.model_dump(mode="json"), sort_keys=True)
    assert Scenario.model_validate(json.loads(stored)) == scenario
    assert parse(stored, "f.json") == scenario
    assert json.dumps(validate(json.loads(stored)).model_dump(mode="json"), sort_keys=True) == stored


def test_short_forms_are_expanded() -> None:
    scenario = parse(RICH, "f.yaml")
    bo, ann = scenario.population[:2]
    assert isinstance(bo, PersonEntry)
    assert isinstance(ann, PersonEntry)
    assert bo.active_hours == (0, 1, 2, 3, 4, 22, 23)
    assert ann.active_hours == (8, 9, 20)
    assert bo.stance == -0.7
    crowd = get_group(scenario, 2)
    assert crowd.profession == {"cook": 1.0, "nurse": 2.0}
    assert crowd.interests is not None
    assert crowd.interests.pick == (2, 2)
    assert scenario.worlds["twitter"].kind == "twitter"
    assert scenario.worlds["square"].kind == "reddit"


def test_words_with_a_meaning_in_yaml_1_1_stay_text() -> None:
    group = get_group(parse("population: {count: 1, country: no, profession: on, group: 12:30}", "f.yaml"))
    assert (group.country, group.profession, group.group) == ({"no": 1.0}, {"on": 1.0}, "12:30")


@pytest.mark.parametrize(
    "start", ["2026-03-02T08:00", "'2026-03-02 08:00'", "2026-03-02T08:00:00Z", "2026-03-02 08:00"]
)
def test_dates_may_be_quoted_or_not(start: str) -> None:
    found = parse(f"population: {{count: 1}}\ntime: {{start: {start}}}", "f.yaml").time.start
    assert found.replace(tzinfo=UTC) == datetime(2026, 3, 2, 8, tzinfo=UTC)


def test_aliases_repeat_what_they_stand_for() -> None:
    scenario = parse("population:\n- &crowd {count: 3}\n- *crowd", "f.yaml")
    assert [get_group(scenario, index).count for index in (0, 1)] == [3, 3]


def test_json_problems_have_positions_and_any_character_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"topic": "bridges 😀", "population": {"count": 3}}, indent="\t"))
    assert load(path).topic == "bridges 😀"
    path.write_text(json.dumps({"population": {"count": 3}, "rounds": "x"}, indent=2))
    with pytest.raises(ScenarioInvalid, match=r"s\.json:5:13: rounds: expected a whole number, found 'x'"):
        load(path)


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "s.yml"
    path.write_bytes(b"\xef\xbb\xbfpopulation: {count: 3}\r\nrounds: 7\r\n")
    assert load(path).rounds == 7


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("s.yaml", b"", "s.yaml: nothing in it; the shortest scenario is"),
        ("s.yaml", b"# only a comment\n", "s.yaml: nothing in it"),
        ("s.yaml", b"\x00\x01\x02", "s.yaml: not a text file"),
        ("s.yaml", b"topic: caf\xe9", r"s.yaml: not UTF-8 text \(byte 11 is 0xe9\); save it as UTF-8"),
        ("s.txt", b"population: {count: 3}", "expected a file that ends in .yaml, .yml or .json"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ScenarioInvalid, match=expected):
        load(path)


def test_a_missing_file_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "rumour.yaml").write_text("population: {count: 3}")
    with pytest.raises(ScenarioInvalid, match=r"rumor\.yaml: no such file; did you mean 'rumour\.yaml'\?"):
        load(tmp_path / "rumor.yaml")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioInvalid, match="a directory; a scenario is a YAML or JSON file"):
        load(tmp_path)


def test_plain_values_are_checked_like_files() -> None:
    with pytest.raises(ScenarioInvalid, match="request: rounds: must be at least 1, found 0"):
        validate({"population": {"count": 3}, "rounds": 0}, "request")


WORDS = st.sampled_from(
    (
        "population count name age events post by round worlds twitter mind kind turns follows graph edges normal "
        "choice stance interests from pick time start traits"
    ).split()
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 30) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(WORDS, below, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(WORDS, VALUES, max_size=6))
def test_any_declared_value_is_accepted_or_refused_with_a_message(value: dict[str, Any]) -> None:
    scenario, problems = try_to_parse(json.dumps(value))
    assert (scenario is None) == bool(problems)
    assert not any("Input should" in problem for problem in problems)
    if scenario is not None:
        assert Scenario.model_validate(scenario.model_dump(mode="json")) == scenario


def try_to_parse(text: str) -> tuple[Scenario | None, list[str]]:
    try:
        return parse(text, "f.json"), []
    except ScenarioInvalid as invalid:
        return None, invalid.problems


@given(st.text(max_size=60))
def test_any_text_is_accepted_or_refused_with_a_message(text: str) -> None:
    with pytest.raises(ScenarioInvalid):
        parse(text, "f.yaml")
