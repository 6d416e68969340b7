"""Which agents are meant."""

from __future__ import annotations

import pytest

from shoal.errors import QueryFailed
from shoal.runs.interviews.selection import AgentSelection
from shoal.scenario.expressions import MAX_LENGTH
from shoal.scenario.loading import validate
from shoal.scenario.sampling.people import People
from shoal.scenario.sampling.sampler import sample

PEOPLE = [
    {"name": "Ada", "age": 36, "profession": "baker", "stance": 0.5, "interests": ["rain"], "traits": {"pet": "cat"}},
    {"name": "Ben", "age": 52, "profession": "nurse", "stance": -0.5, "interests": ["snow"]},
    {"name": "Cid", "age": 70, "profession": "nurse", "traits": {"home town": "Ulm", "pet": "dog", "vegan": True}},
    {"name": "Dan"},
]


def people() -> People:
    return sample(validate({"population": PEOPLE}))


def select(where: str) -> list[str]:
    everybody = people()
    return [everybody.names[agent] for agent in AgentSelection(where=where).numbers(everybody, 0)]


def test_an_empty_selection_means_all_agents() -> None:
    assert AgentSelection().numbers(people(), 0) == [0, 1, 2, 3]


def test_people_are_named_by_name_or_number_each_once_and_in_order() -> None:
    assert AgentSelection("cid, 0,Ada").numbers(people(), 0) == [0, 2]


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("age > 40", ["Ben", "Cid"]),
        ("40 < age <= 52", ["Ben"]),
        ("age > 40 and profession == 'nurse' and stance < 0", ["Ben"]),
        ("age < 40 or age > 60", ["Ada", "Cid"]),
        ("not age > 40", ["Ada", "Dan"]),
        ("'rain' in interests", ["Ada"]),
        ("profession in ('baker', 'smith')", ["Ada"]),
        ("profession not in ['baker']", ["Ben", "Cid"]),
        ("pet != 'cat'", ["Cid"]),
        ("trait('home town') == \"Ulm\"", ["Cid"]),
        ("vegan == True", ["Cid"]),
        ("stance == -0.5", ["Ben"]),
        ("number >= 2", ["Cid", "Dan"]),
        ("name == 'Dan'", ["Dan"]),
    ],
)
def test_people_are_found_by_what_they_are_like(where: str, names: list[str]) -> None:
    """No comparison holds for an agent without the trait."""
    assert select(where) == names


def test_those_named_have_to_be_like_that_too() -> None:
    assert AgentSelection("Ada,Ben", "age > 40").numbers(people(), 0) == [1]


def test_a_sample_is_random_and_the_same_each_time() -> None:
    crowd = sample(validate({"population": {"count": 200}}))
    one, other = AgentSelection(sample=10).numbers(crowd, 1), AgentSelection(sample=10).numbers(crowd, 2)
    assert one == AgentSelection(sample=10).numbers(crowd, 1)
    assert len(one) == len(set(one)) == 10
    assert one == sorted(one)
    assert one != other


def test_a_larger_sample_holds_the_smaller_one() -> None:
    crowd = sample(validate({"population": {"count": 200}}))
    assert set(AgentSelection(sample=10).numbers(crowd, 1)) < set(AgentSelection(sample=20).numbers(crowd, 1))


def test_a_sample_larger_than_all_is_all() -> None:
    assert AgentSelection(sample=50).numbers(people(), 0) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("whom", "complaint"),
    [
        (AgentSelection("Adda"), "did you mean 'Ada'"),
        (AgentSelection("9"), "no agent '9'"),
        (AgentSelection(" , "), "nobody is meant"),
        (AgentSelection(where="age > 900"), "nobody is meant"),
        (AgentSelection(where="agee > 40"), "nobody has a trait 'agee'; did you mean 'age'"),
        (AgentSelection(where="age >"), "cannot be read"),
        (AgentSelection(where="age"), "not a question"),
        (AgentSelection(where="age is 3"), "compare with"),
        (AgentSelection(where="age > 'x'"), "cannot be compared"),
        (AgentSelection(where="age + 1 > 40"), "has no place"),
        (AgentSelection(where="__import__('os').system('true') == 0"), "has no place"),
        (AgentSelection(where="name.upper() == 'ADA'"), "has no place"),
        (AgentSelection(where="[x for x in interests] == 1"), "has no place"),
        (AgentSelection(where="a" * (MAX_LENGTH + 1)), "at most"),
        (AgentSelection(where="not " * 60 + "age > 1"), "nested"),
    ],
)
def test_a_selection_of_no_agents_is_refused_with_the_reason(whom: AgentSelection, complaint: str) -> None:
    with pytest.raises(QueryFailed, match=complaint):
        whom.numbers(people(), 0)
