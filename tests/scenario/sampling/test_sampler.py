"""Sampling of people: distributions, determinism, names and personas."""

from __future__ import annotations

import json

import numpy as np
import pytest

from shoal.scenario.declared.distributions import GENDERS
from shoal.scenario.loading import parse, validate
from shoal.scenario.sampling.people import Labels, People
from shoal.scenario.sampling.profiles import FEMALE, LAST, MALE
from shoal.scenario.sampling.sampler import sample
from shoal.types import Population


def sample_people(text: str) -> People:
    return sample(parse(text, "f.yaml"))


def test_people_are_a_population() -> None:
    found: Population = sample_people("population: {count: 3}")
    assert len(found) == len(found.names) == 3


def test_a_count_alone_gives_plausible_people() -> None:
    found = sample_people("population: {count: 5000}")
    assert 16 <= found.ages.min() <= 20
    assert found.ages.max() <= 85
    assert found.ages.mean() == pytest.approx(40, abs=2)
    assert {GENDERS[code] for code in np.unique(found.genders)} == set(GENDERS)
    assert (found.stances < -0.3).mean() == pytest.approx(0.32, abs=0.05)
    assert (found.stances > 0.3).mean() == pytest.approx(0.32, abs=0.05)
    assert (np.abs(found.stances) < 0.2).mean() > 0.2
    assert found.activity.mean() == pytest.approx(0.4, abs=0.02)
    assert found.activity.std() > 0.15
    assert len(set(found.professions)) > 15
    assert len(found.topics) == 12


def test_a_stored_scenario_gives_the_same_people() -> None:
    text = "{topic: tea, population: [{name: Bo, stance: 0.2}, {name: Al, interests: [x]}, {count: 50}]}"
    first, again = (
        sample_people(text),
        sample(validate(json.loads(json.dumps(parse(text, "f").model_dump(mode="json"))))),
    )
    assert [first[agent] for agent in range(52)] == [again[agent] for agent in range(52)]
    assert np.array_equal(first.active_hours, again.active_hours)


def test_another_seed_gives_other_people() -> None:
    first, other = sample_people("{population: {count: 50}}"), sample_people("{population: {count: 50}, seed: 2}")
    assert set(first.names) != set(other.names)
    assert not np.array_equal(first.stances, other.stances)


def test_a_group_added_at_the_end_does_not_change_the_people_before_it() -> None:
    few = sample_people("{topic: tea, population: [{name: Bo}, {count: 40, interests: [a, b, c]}]}")
    more = sample_people(
        "{topic: tea, population: [{name: Bo}, {count: 40, interests: [a, b, c]}, {count: 30, traits: {x: 1}}]}"
    )
    assert [few[agent] for agent in range(41)] == [more[agent] for agent in range(41)]
    assert np.array_equal(few.active_hours, more.active_hours[:41])


def test_changing_one_distribution_does_not_redraw_the_others() -> None:
    one, other = (
        sample_people("population: {count: 99}"),
        sample_people("population: {count: 99, stance: {uniform: [-1, 1]}}"),
    )
    assert not np.array_equal(one.stances, other.stances)
    assert np.array_equal(one.ages, other.ages)
    assert one.names == other.names


@pytest.mark.parametrize(
    ("age", "mean", "deviation"),
    [
        ("30", 30, 0),
        ("{normal: [40, 12]}", 40, 12),
        ("{uniform: [20, 60]}", 40, 11.55),
        ("{beta: [2, 6], min: 20, max: 100}", 40, 11.55),
        ("{choice: {20: 3, 60: 1}}", 30, 17.32),
    ],
)
def test_ages_follow_their_distribution(age: str, mean: float, deviation: float) -> None:
    found = sample_people(f"population: {{count: 20000, age: {age}}}").ages
    assert found.mean() == pytest.approx(mean, abs=0.4)
    assert found.std() == pytest.approx(deviation, abs=0.4)


def test_a_bell_curve_is_cut_off_and_does_not_pile_up_at_its_ends() -> None:
    found = sample_people("population: {count: 20000, age: {normal: [20, 10], min: 18, max: 30}}").ages
    assert (found.min(), found.max()) == (18, 30)
    assert (found == 18).mean() < 0.1


def test_words_are_drawn_by_their_weights() -> None:
    found = sample_people("population: {count: 10000, country: {Kenya: 3, Peru: 1}, profession: cook, gender: female}")
    countries = list(found.countries)
    assert countries.count("Kenya") / 10000 == pytest.approx(0.75, abs=0.02)
    assert set(found.professions) == {"cook"}
    assert set(found.genders.tolist()) == {GENDERS.index("female")}


def test_people_have_the_requested_number_of_different_interests() -> None:
    found = sample_people("population: {count: 3000, interests: {pick: [2, 3], from: {a: 1, b: 1, c: 1, d: 9}}}")
    counts = (found.interests >= 0).sum(axis=1)
    assert set(counts.tolist()) == {2, 3}
    rows = [[code for code in row if code >= 0] for row in found.interests.tolist()]
    assert all(len(set(row)) == len(row) for row in rows)
    chosen = [found.topics[code] for row in rows for code in row]
    assert chosen.count("d") > 1.5 * chosen.count("a")


def test_most_people_care_about_the_topic() -> None:
    found = sample_people("{topic: the old bridge, population: {count: 5000, interests: [music, tea]}}")
    assert "the old bridge" in found.topics
    code = list(found.topics).index("the old bridge")
    assert (found.interests == code).any(axis=1).mean() == pytest.approx(0.6, abs=0.03)


def test_waking_hours_are_stored_as_bits() -> None:
    found = sample_people("population: [{name: Bo, active_hours: 22-1}, {count: 200}]")
    assert int(found.active_hours[0]) == 1 << 22 | 1 << 23 | 1 << 0 | 1 << 1
    assert {int(hours).bit_count() for hours in found.active_hours[1:]} == {16}


def test_traits_are_columns_of_numbers_or_of_words() -> None:
    found = sample_people(
        "population: [{name: Bo, traits: {income: 4, pet: cat, list: [1]}},"
        " {count: 500, traits: {income: {normal: [3, 1]}, vote: [left, right]}}]"
    )
    income, vote, pet = found.traits["income"], found.traits["vote"], found.traits["pet"]
    assert isinstance(income, np.ndarray)
    assert income[0] == 4
    assert income[1:].mean() == pytest.approx(3, abs=0.2)
    assert isinstance(vote, Labels)
    assert (vote[0], {vote[agent] for agent in range(1, 501)}) == (None, {"left", "right"})
    assert isinstance(pet, Labels)
    assert (pet[0], pet[1]) == ("cat", None)
    assert found[0].traits == {"income": 4, "pet": "cat", "list": [1]}
    assert set(found[1].traits) == {"age", "gender", "profession", "income", "vote"}


def test_groups_are_labelled() -> None:
    found = sample_people("population: [{count: 2, group: old}, {name: Bo}, {count: 1, group: new}]")
    assert list(found.groups) == ["old", "old", None, "new"]


def test_names_and_usernames_are_unique_in_a_large_population() -> None:
    found = sample_people("population: {count: 120000}")
    assert len(set(found.names)) == 120_000
    sample_of_usernames = [found[agent].username for agent in range(0, 120_000, 40)]
    assert len(set(sample_of_usernames)) == 3000


def test_first_names_agree_with_genders() -> None:
    found = sample_people("population: {count: 500}")
    lists = {"female": FEMALE, "male": MALE, "other": (*FEMALE, *MALE)}
    assert all(found.names[agent].split()[0] in lists[GENDERS[found.genders[agent]]] for agent in range(500))
    assert not set(FEMALE) & set(MALE)
    assert len(set(LAST)) == len(LAST)


def test_sampled_names_differ_from_names_written_by_hand() -> None:
    plain = sample_people("population: {count: 30}")
    name = plain.names[4]
    found = sample_people(
        f"population: [{{count: 30}}, {{name: {name}}}, {{name: Zed, username: {plain[7].username}}}]"
    )
    assert found.names[30] == name
    assert len(set(found.names)) == 32
    assert found[31].username == plain[7].username
    assert len({found[agent].username for agent in range(32)}) == 32


def test_people_written_by_hand_keep_their_fields() -> None:
    found = sample_people(
        "population: [{name: Ana Ruiz, username: ana, bio: Hi., persona: A quiet one., age: 44, gender: female,"
        " country: Peru, profession: baker, interests: [bread], stance: supportive, activity: 0.25}]"
    )[0]
    assert (found.name, found.username, found.bio, found.persona) == ("Ana Ruiz", "ana", "Hi.", "A quiet one.")
    assert (found.interests, found.stance, found.activity) == (("bread",), 0.7, 0.25)
    assert found.traits == {"age": 44, "gender": "female", "country": "Peru", "profession": "baker"}


def test_a_persona_is_a_few_readable_sentences() -> None:
    found = sample_people(
        "{topic: the old bridge, population: [{name: Ana Ruiz, age: 18, gender: female, country: Peru,"
        " profession: baker, interests: [bread, tea], stance: opposing, activity: 0.9}, {name: 李}]}"
    )
    assert found[0].persona == (
        "Ana Ruiz is an 18-year-old baker from Peru. She cares about the old bridge, bread and tea. "
        "She is strongly against the old bridge. She writes online often."
    )
    assert found[0].bio == "Baker from Peru. The old bridge, bread and tea."
    assert found[1].username == "user_1"


def test_a_number_beyond_the_last_person_is_an_error() -> None:
    with pytest.raises(IndexError, match="no person 3: people are numbered 0 to 2"):
        sample_people("population: {count: 3}")[3]
