"""How opinions move, and that a thousand people do with them what the literature says they do."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from examples.opinions import SHOWN, Trial, camps, live, plot
from shoal.agents.heuristic.opinion import persuade
from shoal.agents.settings import HeuristicSettings

Histories = Mapping[Trial, NDArray[np.float64]]
opinions = st.floats(-1, 1)


def settings(**given: Any) -> HeuristicSettings:
    return HeuristicSettings.model_validate(given)


def test_an_opinion_within_confidence_pulls_a_part_of_the_way() -> None:
    assert persuade(0.0, [0.5], settings(confidence=0.5, persuasion=0.2)) == 0.1
    assert persuade(0.5, [-0.5], settings(confidence=1.0, persuasion=0.5)) == 0.0


def test_an_opinion_beyond_confidence_changes_nothing() -> None:
    assert persuade(0.0, [0.5, -0.9], settings(confidence=0.4, persuasion=0.5)) == 0.0
    assert persuade(0.0, [0.5, -0.9], settings(confidence=0.4, influence_rule="average")) == 0.0


@pytest.mark.parametrize(
    ("own", "heard", "expected"),
    [
        (-0.9, [0.9], 0.0),
        (-0.9, [0.9, 0.9], 0.9),
        (-0.9, [0.9, -0.9], -0.9),
        (0.0, [-0.9], -0.9),
        (0.9, [0.9], 0.9),
        (1.0, [-0.9, -0.9], 1.0),
        (-1.0, [0.9], -1.0),
        (0.9, [0.0], 0.9),
    ],
)
def test_in_the_naming_game_people_take_up_the_word_that_they_hear(
    own: float, heard: list[float], expected: float
) -> None:
    assert persuade(own, heard, settings(influence_rule="naming")) == expected


def test_pulling_happens_one_after_another() -> None:
    rule = settings(confidence=0.5, persuasion=1.0)
    # The first brings the second within reach; the other way round it stays out of it.
    assert persuade(0.0, [0.5, 0.9], rule) == 0.9
    assert persuade(0.0, [0.9, 0.5], rule) == 0.5


def test_the_average_counts_ones_own_opinion_and_all_near_ones_alike() -> None:
    rule = settings(confidence=0.5, influence_rule="average")
    assert persuade(0.0, [0.3, 0.3, 0.9], rule) == pytest.approx(0.2)
    assert persuade(0.3, [], rule) == 0.3


@given(own=opinions, heard=st.lists(opinions, max_size=80), confidence=st.floats(0, 2), persuasion=st.floats(0, 1))
def test_an_opinion_never_leaves_the_range_of_what_was_heard(
    own: float, heard: list[float], confidence: float, persuasion: float
) -> None:
    for rule in ("pull", "average"):
        given = settings(confidence=confidence, persuasion=persuasion, influence_rule=rule)
        after = persuade(own, heard, given)
        assert min(own, *heard, own) - 1e-9 <= after <= max(own, *heard, own) + 1e-9
        assert abs(after - own) <= (confidence if rule == "average" else 2) + 1e-9


@given(own=opinions, heard=st.lists(opinions, min_size=40, max_size=60))
def test_many_opinions_are_averaged_like_few(own: float, heard: list[float]) -> None:
    near = [opinion for opinion in heard if abs(opinion - own) <= 0.6]
    expected = (own + sum(near)) / (len(near) + 1)
    assert persuade(own, heard, settings(confidence=0.6, influence_rule="average")) == pytest.approx(expected)


# The models, in a room


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Histories:
    """The thousand people of the example, in each of its trials."""
    return {trial: live(trial, tmp_path_factory.mktemp("runs") / str(n)) for n, trial in enumerate(SHOWN)}


def ends(histories: Histories, model: str) -> dict[float, list[float]]:
    return {trial.confidence: camps(rows[-1]) for trial, rows in histories.items() if trial.model == model}


def test_a_thousand_people_start_all_over_the_scale(histories: Histories) -> None:
    for rows in histories.values():
        assert rows.shape[1] == 1_000
        assert np.histogram(rows[0], bins=10, range=(-1, 1))[0].min() > 60
        assert abs(float(rows[0].mean())) < 0.05


def test_pairs_end_in_consensus_for_a_wide_confidence_and_in_camps_for_a_narrow_one(histories: Histories) -> None:
    found = ends(histories, "Deffuant")
    # On the literature's scale from 0 to 1: consensus above 0.5, and about 1 / (2 * confidence) camps below.
    assert found[1.2] == [pytest.approx(0.0, abs=0.05)]
    assert len(found[0.4]) == 2
    assert found[0.4] == [pytest.approx(-0.5, abs=0.15), pytest.approx(0.5, abs=0.15)]


def test_averaging_ends_in_consensus_for_a_wide_confidence_and_in_camps_for_a_narrow_one(histories: Histories) -> None:
    found = ends(histories, "Hegselmann-Krause")
    # On the literature's scale from 0 to 1: consensus at 0.3, two or three camps at 0.15.
    assert len(found[0.6]) == 1
    assert len(found[0.3]) in (2, 3)


@pytest.mark.parametrize(
    ("model", "confidence", "least", "most"),
    [
        ("Deffuant", 0.2, 4, 5),
        ("Deffuant", 0.3, 3, 4),
        ("Deffuant", 0.5, 2, 2),
        ("Deffuant", 1.1, 1, 1),
        ("Hegselmann-Krause", 0.2, 3, 5),
        ("Hegselmann-Krause", 0.36, 2, 3),
        ("Hegselmann-Krause", 0.56, 1, 1),
    ],
)
def test_the_number_of_camps_falls_with_confidence_as_published(
    tmp_path: Path, model: str, confidence: float, least: int, most: int
) -> None:
    rounds = round(20 / confidence) if model == "Deffuant" else 20
    history = live(Trial(model, confidence, rounds, people=300, seed=2), tmp_path / "run")
    assert least <= len(camps(history[-1])) <= most


def test_pairs_meet_halfway_so_the_mean_opinion_stays(tmp_path: Path, histories: Histories) -> None:
    first, second = live(Trial("Deffuant", 2.0, rounds=2, people=200), tmp_path / "run")
    # Two agents that meet end up at the same opinion: two hundred opinions have become a hundred.
    assert sorted(np.unique(second.round(4), return_counts=True)[1].tolist()) == [2] * 100
    for trial, rows in histories.items():
        if trial.model == "Deffuant":
            assert np.allclose(rows.mean(axis=1), rows[0].mean(), atol=1e-4)
    assert not np.allclose(first, second)


def test_averaging_is_one_step_of_the_published_rule(tmp_path: Path) -> None:
    # Opinions are said with six decimals: this confidence lies between two distances, so that no agent is on the edge.
    confidence = 0.5123455
    rows = live(Trial("Hegselmann-Krause", confidence, rounds=4, people=150), tmp_path / "run")
    for before, after in pairwise(rows):
        near = np.abs(before[:, None] - before[None, :]) <= confidence
        assert np.allclose(after, (near * before).sum(axis=1) / near.sum(axis=1), atol=1e-5)


def test_the_plot_is_a_picture_with_a_panel_for_each_trial(histories: Histories) -> None:
    picture = ElementTree.fromstring(plot(list(histories.items())))
    titles = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text") if node.get("font-size") == "13"]
    assert titles[0] == "Deffuant, confidence 1.2: consensus"
    assert titles[1] == "Deffuant, confidence 0.4: 2 camps"
    assert len(titles) == len(SHOWN)
