"""Published results on opinions: bounded confidence, a committed minority, a correction."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.experiments.checks.base import Laboratory, ValidationCheck, query_values

#: Opinions this near to one another belong to one camp; camps of a smaller part of the people are stragglers.
GAP, STRAGGLERS = 0.02, 0.05
_LAST_SAID = "SELECT opinion FROM utterance WHERE created_at = (SELECT max(created_at) FROM utterance)"
_BELIEF = "SELECT value FROM figure WHERE name = 'mean' AND about = 'closing' ORDER BY round DESC LIMIT 1"
_TOPIC = "the old bridge"

#: Settings of the room, and of the mind.
OpinionModel = tuple[dict[str, Any], dict[str, Any]]

DEFFUANT: OpinionModel = {"hearing": "pairs"}, {"influence_rule": "pull", "persuasion": 0.5}
HEGSELMANN_KRAUSE: OpinionModel = {"hearing": "everyone"}, {"influence_rule": "average"}


def count_camps(opinions: NDArray[np.float64]) -> int:
    """Count groups of people who think nearly the same."""
    ordered = np.sort(opinions)
    parts = np.split(ordered, np.flatnonzero(np.diff(ordered) > GAP) + 1)
    return sum(len(part) > STRAGGLERS * len(ordered) for part in parts)


def _settle(laboratory: Laboratory, model: OpinionModel, epsilon: float, people: int, rounds: int) -> int:
    """Let people talk until they move no more, and count the camps. Our scale is twice as long as the literature's."""
    room, rule = model
    scenario = {
        "topic": _TOPIC,
        "rounds": rounds,
        "population": {"count": people, "stance": {"uniform": [-1, 1]}},
        "worlds": {"room": {"kind": "room", **room}},
        "mind": {"confidence": 2 * epsilon, "outspoken": True, "attention": people, **rule},
    }
    with laboratory.run(scenario, "room") as database:
        return count_camps(np.array(query_values(database, _LAST_SAID)))


def _compare_camps(laboratory: Laboratory) -> float:
    """Return how many camps there are, as a multiple of 1/(2 epsilon), over three values of epsilon."""
    camps = {epsilon: _settle(laboratory, DEFFUANT, epsilon, 300, round(20 / epsilon)) for epsilon in (0.1, 0.15, 0.25)}
    return float(np.mean([2 * epsilon * count for epsilon, count in camps.items()]))


def _find_threshold(laboratory: Laboratory) -> float:
    """Return the smallest epsilon at which people who hear all others agree."""
    for epsilon in (0.16, 0.18, 0.20, 0.22, 0.24, 0.26, 0.28):
        if _settle(laboratory, HEGSELMANN_KRAUSE, epsilon, 500, 25) == 1:
            return epsilon
    return 0.30


def _tip(laboratory: Laboratory) -> float:
    """Return how much further a large committed minority moves the others than a small one, of the way to its side."""
    return _move_by_minority(laboratory, 0.3) - _move_by_minority(laboratory, 0.05)


def _move_by_minority(laboratory: Laboratory, share: float) -> float:
    people = 100
    committed = round(people * share)
    scenario = {
        "topic": _TOPIC,
        "rounds": 40,
        "population": [
            {"count": people - committed, "group": "crowd", "stance": {"uniform": [-0.6, 0.2]}},
            {"count": committed, "group": "committed", "stance": 0.9},
        ],
        "worlds": {"room": {"kind": "room", "hearing": "pairs"}},
        "mind": {"confidence": 1.6, "persuasion": 0.15, "outspoken": True, "attention": 3},
        # The committed do not change their minds: they are set back each round.
        "events": [
            {"change": {"stance": 0.9}, "to": list(range(people - committed, people)), "round": round_}
            for round_ in range(1, 41)
        ],
    }
    with laboratory.run(scenario, "room") as database:
        said = database.execute(
            "SELECT avg(opinion) FROM utterance WHERE created_at = 40 AND user_id < ?", (people - committed,)
        ).fetchone()[0]
    return float((said - -0.2) / (0.9 - -0.2))


def _find_tipping_point(laboratory: Laboratory, people: int, rounds: int, moved: float, first: int) -> float:
    """Return the smallest share of committed people that brings this share of all others to their word."""
    for committed in range(first, people // 3):
        if spread_word(laboratory, people, committed, rounds) >= moved:
            return committed / people
    return 1 / 3


def spread_word(laboratory: Laboratory, people: int, committed: int, rounds: int) -> float:
    """Return the share of all others who say the word of the committed in the end. They begin with the other word."""
    scenario = {
        "topic": _TOPIC,
        "rounds": rounds,
        "population": [{"count": people - committed, "stance": -0.9}, {"count": committed, "stance": 1.0}],
        "worlds": {"room": {"kind": "room", "hearing": "pairs"}},
        "mind": {"influence_rule": "naming", "outspoken": True},
    }
    with laboratory.run(scenario, "room") as database:
        said = database.execute(
            "SELECT avg(opinion > 0) FROM utterance WHERE created_at = ? AND user_id < ?", (rounds, people - committed)
        ).fetchone()[0]
    return float(said)


def _correct(laboratory: Laboratory) -> float:
    """Return how much lower belief in a false claim ends with a fact-check than without, on the scale from -1 to 1."""
    claim = {"id": "closing", "text": "The old bridge will be closed for good", "truth": False}
    rumour = {"post": "They say the old bridge will be closed for good!", "by": "most_followed", "supports": "closing"}
    check = {"broadcast": "Not true. The old bridge stays open.", "round": 6, "denies": "closing"}

    def believe(events: list[dict[str, Any]]) -> float:
        scenario = {
            "topic": _TOPIC,
            "claims": [claim],
            "follows": "scale-free",
            "population": {"count": 100},
            "rounds": 16,
            "time": {"daily_rhythm": False},
            "worlds": ["twitter"],
            "events": events,
        }
        with laboratory.run(scenario, "twitter") as database:
            return float(query_values(database, _BELIEF)[0])

    return believe([rumour]) - believe([rumour, check])


CHECKS = (
    ValidationCheck(
        "deffuant-camps", "opinions gather in camps, fewer the wider the confidence", "about 1/(2ε) camps",
        "Deffuant and others 2000", _compare_camps, "camps as a multiple of 1/(2ε), at ε 0.1, 0.15, 0.25", 0.75, 1.25,
        is_offline_only=True,
    ),
    ValidationCheck(
        "deffuant-consensus", "with a wide confidence all agree", "one camp above ε 0.5", "Fortunato 2004",
        partial(_settle, model=DEFFUANT, epsilon=0.6, people=300, rounds=30), "camps at ε 0.6", 1, 1.05,
        is_offline_only=True,
    ),
    ValidationCheck(
        "hegselmann-krause", "averaging agrees above a threshold", "ε about 0.2 in large groups", "Fortunato 2005",
        _find_threshold, "smallest ε with one camp, 500 people", 0.17, 0.27, is_offline_only=True,
    ),
    ValidationCheck(
        "minority", "a large committed minority moves a group much further than a small one",
        "large minorities win, small ones do not", "Centola and others 2018; the ordering", _tip,
        "shift by 30 % committed less that by 5 %", 0.3, 1, is_offline_only=True,
    ),
    ValidationCheck(
        "tipping-names", "above a critical share a committed minority wins the naming game",
        "critical share about 10 %", "Xie and others 2011",
        partial(_find_tipping_point, people=200, rounds=100, moved=0.9, first=8),
        "smallest share that brings 90 % of the others to its word, 200 people", 0.07, 0.13, is_offline_only=True,
    ),
    ValidationCheck(
        "tipping-people", "the same in groups of people who play for money", "critical share about 25 %",
        "Centola and others 2018", partial(_find_tipping_point, people=24, rounds=40, moved=0.5, first=1),
        "smallest share that brings half of the others to its word, 24 people", 0.2, 0.3, is_offline_only=True,
    ),
    ValidationCheck(
        "correction", "a fact-check lowers belief in a false claim", "lower belief after a correction",
        "reviews of corrections; the sign", _correct, "belief without less belief with a fact-check", 0.0,
    ),
)  # fmt: skip
