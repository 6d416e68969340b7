"""How people react to a post: chances by attitude, and what the crowd and a claim change about them."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import NamedTuple

from shoal.agents.heuristic.opinion import UNDECIDED
from shoal.worlds.social import PostView

Chances = Mapping[str, float]

#: What to do about a post, by attitude towards it, with relative chances: in runs of Shoal 0.2.
FIRST_CHANCES: Mapping[int, Chances] = {
    1: {
        "LIKE_POST": 56, "REPOST": 17, "QUOTE_POST": 5, "CREATE_COMMENT": 17, "FOLLOW": 9, "LIKE_COMMENT": 5,
        "DO_NOTHING": 3,
    },
    0: {
        "LIKE_POST": 56, "REPOST": 11, "QUOTE_POST": 3, "CREATE_COMMENT": 18, "FOLLOW": 5, "LIKE_COMMENT": 5,
        "DO_NOTHING": 8,
    },
    -1: {
        "CREATE_COMMENT": 42, "QUOTE_POST": 18, "DISLIKE_POST": 15, "DISLIKE_COMMENT": 6, "MUTE": 2, "REPORT_POST": 2,
        "UNFOLLOW": 3, "DO_NOTHING": 12,
    },
}  # fmt: skip
#: The same since edition 2: people like and pass on what their own side says, and seldom anything else.
CHANCES: Mapping[int, Chances] = {
    1: {
        "LIKE_POST": 56, "REPOST": 17, "QUOTE_POST": 5, "CREATE_COMMENT": 17, "FOLLOW": 9, "LIKE_COMMENT": 5,
        "DO_NOTHING": 3,
    },
    0: {
        "LIKE_POST": 19, "REPOST": 8, "QUOTE_POST": 3, "CREATE_COMMENT": 18, "FOLLOW": 2, "LIKE_COMMENT": 4,
        "DO_NOTHING": 49,
    },
    -1: {
        "CREATE_COMMENT": 40, "QUOTE_POST": 12, "DISLIKE_POST": 22, "DISLIKE_COMMENT": 6, "MUTE": 4, "REPORT_POST": 2,
        "UNFOLLOW": 3, "DO_NOTHING": 20,
    },
}  # fmt: skip
#: Opinions at least this far away provoke.
PROVOCATION = 0.9
#: A first vote up makes the next 32 % likelier (Muchnik and others, 2013); many votes up, at most twice that.
HERDING = 0.64
#: A vote down is corrected by some and followed by fewer, as in the same experiment.
CORRECTION, PILING_ON = 0.6, 0.3
_RATINGS_UP = frozenset({"LIKE_POST"})
_RATINGS_DOWN = frozenset({"DISLIKE_POST"})
_PASSING_ON = frozenset({"REPOST", "QUOTE_POST"})


class Crowd(NamedTuple):
    """What the reactions of others change about a person's chances to rate a post."""

    up: float
    down: float

    @classmethod
    def around(cls, post: PostView) -> Crowd:
        """Weigh the votes so far: likes draw likes; dislikes draw likes that correct them, and more dislikes."""
        net = post.likes - post.dislikes
        if net >= 0:
            return cls(1.0 + HERDING * net / (net + 1), 1.0)
        pressure = net / (net - 1)
        return cls(1.0 + CORRECTION * pressure, 1.0 + PILING_ON * pressure)


def take_side(own: float, said: float) -> int:
    """Return 1 for a person's own side, -1 for the other side if it is far away, 0 for the rest."""
    if -UNDECIDED < own < UNDECIDED:
        return 0
    if own * said > 0:
        return 1
    return -1 if abs(own - said) >= PROVOCATION else 0


def weigh_reactions(chances: Chances, post: PostView, appeal: float) -> dict[str, float]:
    """Return the chances of reactions to this post: the crowd draws people along, an appealing claim is passed on."""
    crowd = Crowd.around(post)
    factors = {**dict.fromkeys(_RATINGS_UP, crowd.up), **dict.fromkeys(_RATINGS_DOWN, crowd.down)}
    factors |= dict.fromkeys(_PASSING_ON, appeal)
    return {kind: chance * factors.get(kind, 1.0) for kind, chance in chances.items()}


def draw_reaction(chances: Chances, draw: Callable[[], float]) -> str:
    """Draw one of the reactions."""
    bounds = list(accumulate(chances.values()))
    return list(chances)[bisect(bounds, draw() * bounds[-1])]
