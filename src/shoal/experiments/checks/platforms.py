"""Published results on platforms: cascades, herding, inequality and luck, camps, and what suspending accounts does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from itertools import combinations
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.experiments.checks.base import Laboratory, ValidationCheck, query_values
from shoal.runs.reports import read_cascades
from shoal.seeds import derive, uniforms
from shoal.worlds import measure_inequality

_TOPIC = "the old bridge"
#: First votes of three arms: what they are, and how many.
_UP_OR_DOWN = {"up": ("liked_by", 1), "down": ("disliked_by", 1), "none": ("liked_by", 0)}
_ONE_OR_FOUR = {"one": ("liked_by", 1), "four": ("liked_by", 4), "none": ("liked_by", 0)}
#: The same songs in every world.
_SONGS = 40
_REACH = "SELECT value FROM figure WHERE name = 'reach' AND about = 'rumour' ORDER BY round DESC LIMIT 1"
_FIRST = "FROM post WHERE original_post_id IS NULL AND content LIKE"
_SCORES = f"SELECT content, num_likes - num_dislikes {_FIRST} 'Case %'"
_LIKES = f"SELECT num_likes {_FIRST} 'Song %' ORDER BY content"
_BUSY = {"daily_rhythm": False}
#: Worlds whose success is compared, as in the published experiment.
_WORLDS = 8

Shares = NDArray[np.float64]


#: Lengths of cascades by claim and by size.
Depths = Mapping[str, Mapping[int, list[int]]]


def _compare_shapes(laboratory: Laboratory, graph: str) -> float:
    """Return how much deeper cascades of the likelier shared claim are than others of the same size, as a share."""
    depths = _measure_depths(laboratory, graph)
    shared = depths["plain"].keys() & depths["juicy"].keys()
    if not shared:
        return nan
    weights = [min(len(depths["plain"][size]), len(depths["juicy"][size])) for size in shared]
    means = {claim: [float(np.mean(depths[claim][size])) for size in shared] for claim in depths}
    plain, juicy = (float(np.average(means[claim], weights=weights)) for claim in ("plain", "juicy"))
    return juicy / plain - 1


def _compare_depths(laboratory: Laboratory, graph: str) -> float:
    """Return how much deeper cascades of the likelier shared claim are than all others, as a share."""
    depths = _measure_depths(laboratory, graph)
    plain, juicy = (np.concatenate([*depths[claim].values(), []]) for claim in ("plain", "juicy"))
    return float(juicy.mean() / plain.mean() - 1) if len(plain) and len(juicy) else nan


def _measure_depths(laboratory: Laboratory, graph: str) -> Depths:
    """Let forty posts each of two claims spread, one of which is passed on as much more readily as false news is."""
    claims = [
        {"id": "plain", "text": "The council will repair the old bridge", "appeal": 1},
        {"id": "juicy", "text": "The council will sell the old bridge", "appeal": 1.7},
    ]
    posts = [
        {"post": claim["text"], "by": "random", "supports": claim["id"], "round": 1 + number // 5}
        for number in range(40)
        for claim in claims
    ]
    scenario = {
        "topic": _TOPIC, "claims": claims, "follows": graph, "population": {"count": 1000, "activity": 1},
        "rounds": 16, "time": _BUSY, "events": posts,
        # Posts come through people only, so that every share has a path.
        "worlds": {"twitter": {"kind": "twitter", "feed": {"recommended": 0}}},
    }  # fmt: skip
    depths: dict[str, dict[int, list[int]]] = {"plain": defaultdict(list), "juicy": defaultdict(list)}
    with laboratory.run(scenario, "twitter") as database:
        for cascade in read_cascades(database, 1000):
            if cascade[0].claim in depths:
                depths[cascade[0].claim][len(cascade)].append(max(share.depth for share in cascade))
    return depths


def _vote_first(laboratory: Laboratory, arms: Mapping[str, tuple[str, int]]) -> dict[str, float]:
    """Return the mean final score of posts that began with different votes, without those votes."""
    people, names = 900, list(arms)
    posts = []
    for number in range(300):
        kind, votes = arms[names[number % 3]]
        vote = {kind: [(number + 150 * other) % 600 for other in range(votes)]} if votes else {}
        words = f"Case {number}: what should happen to {_TOPIC}?"
        posts.append({"post": words, "by": people - 1 - number, "round": 1, **vote})
    scenario = {
        "topic": _TOPIC, "population": {"count": people, "activity": 1}, "rounds": 10, "time": _BUSY, "events": posts,
        "worlds": {"reddit": {"kind": "reddit", "feed": {"recommendation": "random", "popularity": 0}}},
    }  # fmt: skip
    scores: dict[str, list[float]] = defaultdict(list)
    with laboratory.run(scenario, "reddit") as database:
        for content, score in database.execute(_SCORES):
            arm = names[int(content.split(":")[0].removeprefix("Case ")) % 3]
            kind, votes = arms[arm]
            scores[arm].append(score - (votes if kind == "liked_by" else -votes))
    return {arm: float(np.mean(scores[arm])) for arm in arms}


def _herd_up(laboratory: Laboratory, arms: Mapping[str, tuple[str, int]], arm: str) -> float:
    """Return how much higher posts of an arm end than those that began without a vote, as a share."""
    found = _vote_first(laboratory, arms)
    return found[arm] / found["none"] - 1 if found["none"] > 0 else nan


def _compare_votes(laboratory: Laboratory) -> float:
    """Return how much further a first vote up raises the score than a first vote down lowers it."""
    found = _vote_first(laboratory, _UP_OR_DOWN)
    return (found["up"] + found["down"]) / found["none"] - 2 if found["none"] > 0 else nan


def _sell(laboratory: Laboratory, feed: Mapping[str, Any], seed: int) -> Shares:
    """Return the shares of likes of the same forty posts in one world; not numbers where none was liked."""
    # Which song is found first is left to chance in each world.
    order = np.argsort(uniforms(derive(seed, "songs"), np.arange(_SONGS))).tolist()
    posts = [{"post": f"Song {song:02}: listen to this", "by": place, "round": 1} for place, song in enumerate(order)]
    scenario = {
        "topic": _TOPIC, "population": {"count": 120, "activity": 1}, "rounds": 10, "time": _BUSY, "events": posts,
        "worlds": {"reddit": {"kind": "reddit", "feed": {"recency": 0, "relevance": 0, "echo_chamber": 0, **feed}}},
        "mind": {"talkativeness": 0},
    }  # fmt: skip
    with laboratory.run(scenario, "reddit", seed) as database:
        likes = query_values(database, _LIKES)
    counts = np.array(likes, np.float64)
    shares: Shares = counts / (counts.sum() or nan)
    return shares


_HIDDEN = {"recommendation": "random", "popularity": 0, "counts": False}
_SHOWN = {"recommendation": "random", "popularity": 0}
_RANKED = {"recommendation": "hot", "popularity": 1}


def _compare_inequality(laboratory: Laboratory, less: Mapping[str, Any], more: Mapping[str, Any]) -> float:
    gini = [measure_inequality(_sell(laboratory, feed, laboratory.seed)) for feed in (less, more)]
    return gini[1] - gini[0]


def _compare_luck(laboratory: Laboratory, less: Mapping[str, Any], more: Mapping[str, Any]) -> float:
    """Return how much more the shares of a post differ between worlds with one feed than with the other."""

    def differ(feed: Mapping[str, Any]) -> float:
        worlds = [_sell(laboratory, feed, laboratory.seed * 100 + number) for number in range(_WORLDS)]
        return float(np.mean([np.abs(one - other).mean() for one, other in combinations(worlds, 2)]))

    return differ(more) / (differ(less) or nan) - 1


def _prefer_own_camp(laboratory: Laboratory) -> float:
    """Return how many times likelier likes stay within a camp than if camps did not matter."""
    scenario = {
        "topic": _TOPIC, "follows": "small-world", "rounds": 16, "time": _BUSY, "worlds": ["twitter"],
        "population": [
            {"count": 60, "group": "for", "stance": 0.7, "activity": 1},
            {"count": 60, "group": "against", "stance": -0.7, "activity": 1},
        ],
    }  # fmt: skip
    with laboratory.run(scenario, "twitter") as database:
        likes = database.execute(
            'SELECT l.user_id < 60, p.user_id < 60 FROM "like" l JOIN post p USING (post_id) WHERE p.claim IS NOT NULL '
            "OR p.lean != 0"
        ).fetchall()
    if not likes:
        return nan
    within = np.mean([liker == author for liker, author in likes])
    likers, authors = (np.mean([like[side] for like in likes]) for side in (0, 1))
    return float(within / (likers * authors + (1 - likers) * (1 - authors)))


def _suspend_or_cut(laboratory: Laboratory) -> float:
    """Return how much further a rumour reaches if its believers lose all ties in round 3 than if they are suspended."""
    believers = [f"Believer {number}" for number in range(1, 9)]
    claim = {"id": "rumour", "text": "The old bridge is poisoned", "truth": False, "appeal": 3}

    def reach(kind: str) -> float:
        first = {"post": "The old bridge is poisoned!", "supports": "rumour", "round": 1}
        scenario = {
            "topic": _TOPIC, "claims": [claim], "follows": "scale-free", "rounds": 24, "time": _BUSY,
            "population": [*({"name": name, "stance": 0.9, "activity": 1} for name in believers), {"count": 200}],
            "worlds": ["twitter"],
            "events": [{kind: believers, "round": 3}, *({**first, "by": name} for name in believers)],
        }  # fmt: skip
        with laboratory.run(scenario, "twitter") as database:
            return float(query_values(database, _REACH)[0])

    return reach("cut") - reach("suspend")


CHECKS = (
    ValidationCheck(
        "cascade-depth", "false news, 1.7 times as likely to be passed on, goes deeper", "false news goes deeper",
        "Vosoughi and others 2018", partial(_compare_depths, graph="scale-free"),
        "depth of all likelier shared cascades against all others", 0.0,
    ),
    ValidationCheck(
        "cascade-shape", "cascades of true and false news have one shape once sizes are matched", "no difference",
        "Juul and Ugander 2021", partial(_compare_shapes, graph="small-world"),
        "depth of likelier shared cascades against others of their size", -0.1, 0.1,
    ),
    ValidationCheck(
        "cascade-shape-hubs", "the same among people of whom few have most followers", "no difference",
        "Juul and Ugander 2021", partial(_compare_shapes, graph="scale-free"),
        "depth of likelier shared cascades against others of their size", -0.1, 0.1,
    ),
    ValidationCheck(
        "herding-up", "a first vote up raises the final score", "+25 % (another site: +11 %)",
        "Muchnik 2013; Glenski 2016", partial(_herd_up, arms=_UP_OR_DOWN, arm="up"),
        "score with a first vote up against none", 0.05, 0.45,
    ),
    ValidationCheck(
        "herding-four", "four first votes up raise the score far less than four times as much",
        "more first success, little more later", "van de Rijt 2014", partial(_herd_up, arms=_ONE_OR_FOUR, arm="four"),
        "score with four first votes up against none", 0.05, 1.0,
    ),
    ValidationCheck(
        "herding-asymmetry", "a first vote down is corrected, a vote up is not", "up moves more than down",
        "Muchnik 2013", _compare_votes, "shift by a vote up less that by a vote down", 0.0,
    ),
    ValidationCheck(
        "inequality-shown", "shown counts make success more unequal", "higher Gini with counts", "Salganik 2006",
        partial(_compare_inequality, less=_HIDDEN, more=_SHOWN), "Gini with counts less Gini without", 0.0,
    ),
    ValidationCheck(
        "inequality-ranked", "ranking by counts makes it more unequal still", "higher Gini when ranked",
        "Salganik 2006", partial(_compare_inequality, less=_SHOWN, more=_RANKED), "Gini ranked less Gini shown", 0.0,
    ),
    ValidationCheck(
        "luck-shown", "shown counts make success less predictable", "worlds differ more with counts", "Salganik 2006",
        partial(_compare_luck, less=_HIDDEN, more=_SHOWN), "difference between worlds, shown against hidden", 0.0,
    ),
    ValidationCheck(
        "luck-ranked", "ranking by counts makes it less predictable still", "worlds differ more when ranked",
        "Salganik 2006", partial(_compare_luck, less=_SHOWN, more=_RANKED),
        "difference between worlds, ranked against shown", 0.0,
    ),
    ValidationCheck(
        "homophily", "people like what their own side says", "more likes within a camp than by chance",
        "studies of political platforms; the sign", _prefer_own_camp, "likes within a camp as a multiple of chance",
        1.05,
    ),
    ValidationCheck(
        "suspension", "suspending accounts curbs a rumour more than cutting their ties", "suspension curbs more",
        "AgentSociety", _suspend_or_cut, "reach with ties cut less reach with accounts suspended", 0.0,
    ),
)  # fmt: skip
