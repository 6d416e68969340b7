"""Conditions of interventions: what they can ask about a history, and which ones are refused."""

from __future__ import annotations

from collections import Counter

import pytest

from shoal.engine.facts import Facts
from shoal.scenario.declared.interventions import FACTS, QUESTIONS, compile_condition
from shoal.scenario.expressions import MAX_DEPTH, MAX_LENGTH, UnreadableExpression
from shoal.types import Event


def make_facts() -> Facts:
    """Three rounds: Ada posts twice and is quiet then, Ben is refused, Cid speaks of the bridge in the last."""
    facts = Facts()
    facts.track_words(["bridge"])
    facts.set_opinions(lambda: (0.5, -0.25, 0.5), lambda: {"closing": (0.5, float("nan"), 0.0)})
    facts.set_figures({("reach", "closing"): 0.4})

    def event(round: int, name: str, kind: str, success: bool = True, **args: object) -> Event:
        return Event(round, 0, name, kind, dict(args), success, None, "", "")

    facts.add_round(0, 0.0, [])
    facts.add_round(1, 0.5, [event(1, "Ada", "CREATE_POST", content="The bridge!"), event(1, "Ada", "CREATE_POST")])
    lost = [event(2, name, "DO_NOTHING", success=False) for name in ("Dan", "Eve", "Fay")]
    failures = Counter(timeout=2, unusable=1)
    facts.add_round(2, 1.0, [event(2, "Ben", "LIKE_POST", success=False), *lost], failures)
    lost = [event(3, "Dan", "DO_NOTHING", success=False)]
    refused = event(3, "Ben", "LIKE_POST", success=False)
    facts.add_round(3, 1.5, [event(3, "Cid", "TALK", content="a bridge"), refused, *lost], Counter(timeout=1))
    return facts


HOLDS = [
    "round == 3",
    "hours == 1.5",
    "actions == 1",
    "total_actions == 3",
    "rejected == 1",
    "total_rejected == 2",
    "errors == 0",
    "total_errors == 1",
    "timeouts == 1",
    "total_timeouts == 3",
    "mean_opinion == 0.25",
    "opinion_spread > 0.35 and opinion_spread < 0.36",
    'count("TALK") == 1',
    'count("CREATE_POST") == 0',
    'total("CREATE_POST") == 2',
    "total('CREATE_POST') == 2",
    'by("Ada") == 2',
    'by("Ben") == 0',
    'quiet("Ada") == 2',
    'quiet("Cid") == 0',
    'said("BRIDGE") == 1',
    'total_said("bridge") == 2',
    'reach("closing") == 0.4 and reach("other") == 0',
    'belief("closing") == 0.25 and belief("other") == 0',
    "round >= 3 and not hours > 2",
    "round > 5 or hours > 1",
    "not (round > 5 or hours > 2)",
    "1 < round <= 3",
    "round != 2",
    "mean_opinion > -1",
    "-mean_opinion < 0",
    'total("CREATE_POST") - by("Ada") == 0',
    "round * 2 + 1 == 7",
    "2 * (round + hours) > 8.9",
    "  round\n  == 3  ",
]


@pytest.mark.parametrize("text", HOLDS)
def test_a_true_condition_holds_and_its_negation_does_not(text: str) -> None:
    assert compile_condition(text).holds(make_facts()) is True
    assert compile_condition(f"not ({text.strip()})").holds(make_facts()) is False


def test_every_fact_and_question_is_covered_above() -> None:
    text = "\n".join(HOLDS)
    assert [name for name in (*FACTS, *QUESTIONS) if name not in text] == []
    assert all(hasattr(Facts(), name) for name in (*FACTS, *QUESTIONS))


def test_a_condition_lists_its_questions_and_facts() -> None:
    condition = compile_condition(
        'total_said("a") > 1 and quiet("Ada") > 1 or total_said("b") + total_said("a") > mean_opinion'
    )
    assert condition.asked == {"total_said": ("a", "b"), "quiet": ("Ada",)}
    assert condition.facts == {"mean_opinion"}


NO_PLACE = "has no place in a condition"
WRONG = [
    ("", "cannot be read"),
    ("round >", "cannot be read"),
    ("round > 3 and", "cannot be read"),
    ("round = 3", "cannot be read at '= 3'"),
    ("when round > 3", "cannot be read at 'round > 3'"),
    ("import os", "cannot be read at 'import os'"),
    ("round > 3\0", "cannot be read"),
    ("(" * 300 + "round" + ")" * 300 + " > 1", "cannot be read"),
    ("1" * 999 + "999999", f"must be at most {MAX_LENGTH} characters, found 1005"),
    ("round > " + " + ".join(["1"] * (MAX_DEPTH + 1)), "is too deeply nested; say it more simply"),
    ("not " * 200 + "round > 1", "is too deeply nested; say it more simply"),
    ("-" * 400 + "round > 1", "is too deeply nested; say it more simply"),
    ("round", "'round' is not a question; compare it with something, for example round >= 5"),
    ("3", "'3' is not a question; compare it with something, for example round >= 5"),
    ("round + 1", "'round + 1' is not a question; compare it with something, for example round >= 5"),
    ("round > 3 and actions", "'actions' is not a question; compare it with something, for example round >= 5"),
    ("not actions", "'actions' is not a question; compare it with something, for example round >= 5"),
    ("true", "unknown fact 'true'; there is round, hours, actions, total_actions"),
    ("True", f"True {NO_PLACE}"),
    ("round == None", f"None {NO_PLACE}"),
    ("round > '3'", f"\"'3'\" {NO_PLACE}"),
    ("round > 3j", f"'3j' {NO_PLACE}"),
    ("rounds > 3", "unknown fact 'rounds'; did you mean 'round'?"),
    ("mean_opinon > 0", "unknown fact 'mean_opinon'; did you mean 'mean_opinion'?"),
    ("weather > 3", "unknown fact 'weather'; there is round, hours, actions, total_actions, rejected, total_rejected,"),
    ("total > 3", 'total needs something in quotes, for example total("...")'),
    ("total() > 3", 'total needs one text in quotes, for example total("...")'),
    ("total('') > 3", 'total needs one text in quotes, for example total("...")'),
    ("total(3) > 3", 'total needs one text in quotes, for example total("...")'),
    ("total(CREATE_POST) > 3", 'total needs one text in quotes, for example total("...")'),
    ("total('A', 'B') > 3", 'total needs one text in quotes, for example total("...")'),
    ("total(kind='A') > 3", 'total needs one text in quotes, for example total("...")'),
    ("total(*'A') > 3", 'total needs one text in quotes, for example total("...")'),
    ("tottal('A') > 3", "unknown question 'tottal'; did you mean 'total'?"),
    ("print('A') > 3", "unknown question 'print'; there is count, total, by, quiet, said, total_said, reach or belief"),
    ("round in 3", "'round in 3': compare with <, <=, >, >=, == or !="),
    ("round is 3", "'round is 3': compare with <, <=, >, >=, == or !="),
    ("round / 2 > 3", f"'round / 2' {NO_PLACE}"),
    ("round ** 9999999999 > 3", f"'round ** 9999999999' {NO_PLACE}"),
    ("9 ** 9 ** 9 ** 9 > 3", f"'9 ** 9 ** 9 ** 9' {NO_PLACE}"),
    ("1 << 99999999999 > 3", f"'1 << 99999999999' {NO_PLACE}"),
    ("round % 2 == 0", f"'round % 2' {NO_PLACE}"),
    ("+round > 3", f"'+round' {NO_PLACE}"),
    ("~round > 3", f"'~round' {NO_PLACE}"),
    ("(round > 3) > 0", f"'round > 3' {NO_PLACE}"),
    ("(round > 3 or hours > 1) == 1", NO_PLACE),
    ("round.__class__ == 3", f"'round.__class__' {NO_PLACE}"),
    ("round.real > 3", f"'round.real' {NO_PLACE}"),
    ("count('A').real > 3", NO_PLACE),
    ("().__class__.__bases__[0].__subclasses__() > 1", NO_PLACE),
    ("__import__('os') > 3", "unknown question '__import__'; there is count"),
    ("eval('1') > 3", "unknown question 'eval'; there is count"),
    ("facts > 3", "unknown fact 'facts'"),
    ("_said > 3", "unknown fact '_said'"),
    ("__class__ > 3", "unknown fact '__class__'"),
    ("take_in('A') > 3", "unknown question 'take_in'"),
    ("set_opinions('A') > 3", "unknown question 'set_opinions'"),
    ("(lambda: 1)() > 3", NO_PLACE),
    ("(lambda facts: 1) > 3", NO_PLACE),
    ("[1, 2] > 3", f"'[1, 2]' {NO_PLACE}"),
    ("[x for x in 'abc'] > 3", NO_PLACE),
    ("{'a': 1}['a'] > 3", NO_PLACE),
    ("f'{round}' > 3", NO_PLACE),
    ("(x := 3) > 2", NO_PLACE),
    ("3 if round else 4", NO_PLACE),
    ("await round > 3", NO_PLACE),
    ("round > 3, hours > 2", NO_PLACE),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text[:40] for text, _ in WRONG])
def test_an_invalid_condition_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(UnreadableExpression) as caught:
        compile_condition(text)
    assert message in str(caught.value)


def test_the_deepest_allowed_sum_can_be_evaluated() -> None:
    text = "round > " + " + ".join(["1"] * (MAX_DEPTH - 4))
    assert compile_condition(text).holds(make_facts()) is False
