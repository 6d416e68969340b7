"""What the prompts of examples/rumour.yaml weigh, and how much of them a server has seen before."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import mean

import pytest

from shoal.agents.language.mind import LanguageMind
from shoal.scenario.build import Simulation
from shoal.scenario.loading import load
from tests.agents.language.minds import Regular, build_mind, build_simulation, run_worlds
from tests.engine.harness import crowd

RUMOUR = Path(__file__).parents[3] / "examples" / "rumour.yaml"
ROUNDS, PEOPLE = 30, 200


@pytest.fixture(scope="module")
def rumour(tmp_path_factory: pytest.TempPathFactory) -> tuple[Simulation, Regular]:
    model = Regular()
    made = build_simulation(model, load(RUMOUR))
    run_worlds(made, ROUNDS, tmp_path_factory.mktemp("rumour"))
    return made, model


def by_round(model: Regular) -> dict[int, float]:
    sizes = defaultdict(list)
    for round, size in model.sent:
        sizes[round].append(size)
    return {round: mean(found) for round, found in sizes.items()}


def test_thirty_rounds_send_at_most_330_kb_per_agent(rumour: tuple[Simulation, Regular]) -> None:
    _, model = rumour
    assert sum(size for _, size in model.sent) / PEOPLE < 330_000
    assert max(size for _, size in model.sent) < 13_000


def test_a_call_weighs_the_same_in_every_round(rumour: tuple[Simulation, Regular]) -> None:
    sizes = by_round(rumour[1])
    assert mean(sizes[round] for round in range(26, 31)) < 1.15 * mean(sizes[round] for round in range(8, 13))


def test_most_of_the_prompts_repeats_an_earlier_prefix(rumour: tuple[Simulation, Regular]) -> None:
    for mind in rumour[0].minds.values():
        assert isinstance(mind, LanguageMind)
        shares = mind.prefixes.total
        # What is offered is only what makes sense, so less is sent, and a smaller share of it is the same for all.
        assert shares.any_share > 0.58
        assert shares.characters * (1 - shares.any_share) / shares.prompts < 2900
        # In its first turn an agent has no previous prompt.
        assert shares.own_share > 0.5


def test_the_prompt_of_round_100_is_at_most_a_tenth_longer_than_that_of_round_10(tmp_path: Path) -> None:
    model = Regular()
    _, made = build_mind(model, crowd(12))
    run_worlds(made, 100, tmp_path)
    sizes = by_round(model)
    assert mean(sizes[round] for round in range(96, 101)) <= 1.1 * mean(sizes[round] for round in range(8, 13))
