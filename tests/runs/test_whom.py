"""Which agents are meant."""

from __future__ import annotations

import pytest

from shoal.errors import QueryFailed
from shoal.runs.whom import Whom
from shoal.scenario.conditions import MAX_LENGTH
from shoal.scenario.files import validate
from shoal.scenario.people import People
from shoal.scenario.population import sample

PEOPLE = [
    {"name": "Ada", "age": 36, "profession": "baker", "stance": 0.5, "interests": ["rain"], "traits": {"pet": "cat"}},
    {"name": "Ben", "age": 52, "profession": "nurse", "stance": -0.5, "interests": ["snow"]},
    {"name": "Cid", "age": 70, "profession": "nurse", "traits": {"home town": "Ulm", "pet": "dog", "vegan": True}},
    {"name": "Dan"},
]


def people() -> People:
    return sample(validate({"population": PEOPLE}))


def meant(where: str) -> list[str]:
    everybody = people()
    return [everybody.names[agent] for agent in Whom(where=where).numbers(everybody, 0)]


def test_nothing_said_means_everybody() -> None:
    assert Whom().numbers(people(), 0) == [0, 1, 2, 3]


def test_people_are_named_by_name_or_number_each_once_and_in_order() -> None:
    assert Whom("cid, 0,Ada").numbers(people(), 0) == [0, 2]


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
    """Of somebody about whom something is not known no comparison holds."""
    assert meant(where) == names


def test_those_named_have_to_be_like_that_too() -> None:
    assert Whom("Ada,Ben", "age > 40").numbers(people(), 0) == [1]


def test_a_sample_is_drawn_by_lot_and_is_the_same_again() -> None:
    crowd = sample(validate({"population": {"count": 200}}))
    one, other = Whom(sample=10).numbers(crowd, 1), Whom(sample=10).numbers(crowd, 2)
    assert one == Whom(sample=10).numbers(crowd, 1)
    assert len(one) == len(set(one)) == 10
    assert one == sorted(one)
    assert one != other


def test_a_larger_sample_holds_the_smaller_one() -> None:
    crowd = sample(validate({"population": {"count": 200}}))
    assert set(Whom(sample=10).numbers(crowd, 1)) < set(Whom(sample=20).numbers(crowd, 1))


def test_a_sample_larger_than_all_is_all() -> None:
    assert Whom(sample=50).numbers(people(), 0) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("whom", "complaint"),
    [
        (Whom("Adda"), "did you mean 'Ada'"),
        (Whom("9"), "no agent '9'"),
        (Whom(" , "), "nobody is meant"),
        (Whom(where="age > 900"), "nobody is meant"),
        (Whom(where="agee > 40"), "nobody has a trait 'agee'; did you mean 'age'"),
        (Whom(where="age >"), "cannot be read"),
        (Whom(where="age"), "not a question"),
        (Whom(where="age is 3"), "compare with"),
        (Whom(where="age > 'x'"), "cannot be compared"),
        (Whom(where="age + 1 > 40"), "has no place"),
        (Whom(where="__import__('os').system('true') == 0"), "has no place"),
        (Whom(where="name.upper() == 'ADA'"), "has no place"),
        (Whom(where="[x for x in interests] == 1"), "has no place"),
        (Whom(where="a" * (MAX_LENGTH + 1)), "at most"),
        (Whom(where="not " * 60 + "age > 1"), "nested"),
    ],
)
def test_a_question_that_means_nobody_says_why(whom: Whom, complaint: str) -> None:
    with pytest.raises(QueryFailed, match=complaint):
        whom.numbers(people(), 0)
