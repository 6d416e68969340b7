"""The questions that servers are measured with."""

from __future__ import annotations

import pytest

from shoal.errors import RunRefused
from shoal.models.tokens import estimate
from shoal.runs.tuning.probes import make_scenario_probes, make_synthetic_probes
from shoal.scenario.loading import validate

TALKING = {
    "name": "talk",
    "rounds": 3,
    "population": {"count": 6},
    "worlds": {"hall": {"kind": "room", "turns": "parallel"}},
    "mind": {"kind": "language", "model": "some/model", "max_tokens": 77},
}


@pytest.mark.parametrize("tokens", [50, 400, 1500])
def test_synthetic_prompts_are_about_as_long_as_was_asked_for(tokens: int) -> None:
    question = make_synthetic_probes("some/model", 1, tokens, 32)(5)
    assert sum(estimate(message.content) for message in question.messages) == pytest.approx(tokens, abs=60)
    assert (question.model, question.max_tokens) == ("some/model", 32)


def test_no_two_synthetic_prompts_are_alike_though_they_begin_alike() -> None:
    probes = make_synthetic_probes("some/model", 1)
    asked = [probes(number) for number in range(200)]
    assert len({question.digest for question in asked}) == 200
    assert len({question.messages[0] for question in asked}) == 1


def test_another_seed_asks_other_questions_and_the_same_one_the_same() -> None:
    assert (
        make_synthetic_probes("m", 1)(3).digest
        == make_synthetic_probes("m", 1)(3).digest
        != make_synthetic_probes("m", 2)(3).digest
    )


async def test_a_scenario_is_measured_with_what_its_agents_would_ask() -> None:
    probes = await make_scenario_probes(validate(TALKING), 1)
    question = probes(0)
    assert (question.model, question.max_tokens) == ("some/model", 77)
    assert question.schema is not None
    assert "What do you do? Reply in JSON." in question.messages[-1].content


async def test_after_the_last_question_of_a_scenario_they_come_again_and_are_still_not_alike() -> None:
    probes = await make_scenario_probes(validate(TALKING), 1)
    assert len({probes(number).digest for number in range(100)}) == 100


async def test_where_nobody_asks_the_model_that_is_said() -> None:
    people = [{"name": "Ada", "activity": 0.0}]
    quiet = {"name": "quiet", "rounds": 2, "population": people, "worlds": ["twitter"], "mind": TALKING["mind"]}
    with pytest.raises(RunRefused, match="nobody would ask some/model"):
        await make_scenario_probes(validate(quiet), 1)
