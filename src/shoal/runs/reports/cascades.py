"""Cascades: how posts were passed on, as trees.

A platform records the first post of a cascade only, and not the way it took. As in studies of real platforms, a
share came through the latest sharer that the person follows, and else from the first post.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from sqlite3 import Connection
from typing import Any

import numpy as np

#: Smaller ones are no trees.
_MIN_SHARES = 2
_FOLLOWS = "SELECT follower_id, followee_id FROM follow"
_ROOTS = f"""SELECT original_post_id FROM post WHERE original_post_id IS NOT NULL
GROUP BY 1 HAVING count(*) >= {_MIN_SHARES} ORDER BY count(*) DESC, 1 LIMIT ?"""
_SHARES = """SELECT user_id, coalesce(quote_content, content), quote_content IS NOT NULL, num_likes, claim
FROM post WHERE post_id = ?1 OR original_post_id = ?1 ORDER BY post_id = ?1 DESC, post_id"""
_ALL_SHARES = """SELECT coalesce(original_post_id, post_id) AS root, created_at, user_id, {claim} FROM post
WHERE original_post_id IS NOT NULL OR post_id IN (SELECT original_post_id FROM post)
ORDER BY root, original_post_id IS NOT NULL, post_id"""


@dataclass(frozen=True, slots=True)
class SharedPost:
    """One post of a cascade: the first, or a repost or quote of it."""

    agent: int
    text: str
    is_quote: bool
    likes: int
    #: The claim that it speaks of, if any.
    claim: str | None
    #: Position of the post in the cascade through which it came; None for the first.
    parent: int | None
    depth: int


@dataclass(frozen=True, slots=True)
class Cascade:
    """One post and all that passed it on, in order: the first post is at place 0 of every list."""

    #: The claim that the first post speaks of, if any.
    claim: str | None
    #: When each was posted, as the platform dates it.
    dates: list[Any]
    #: The place of the post through which each came; -1 for the first.
    parents: list[int]
    #: How many steps each is away from the first.
    depths: list[int]


class _Followed:
    """The people that each person follows. Edges are kept as numbers, so that millions of them fit into memory."""

    def __init__(self, edges: Iterable[tuple[int, int]]) -> None:
        pairs = np.fromiter(edges, np.dtype((np.int32, 2))).reshape(-1, 2)
        self._followees = pairs[np.argsort(pairs[:, 0], kind="stable"), 1]
        #: Person -> where their followees begin, and end where those of the next one begin.
        self._starts = np.concatenate(([0], np.bincount(pairs[:, 0]).cumsum())).tolist()

    def find_source(self, agent: int, places: dict[int, int]) -> int:
        """Return the latest place of any sharer that the person follows, and else the first."""
        if agent + 1 >= len(self._starts):
            return 0
        followees = self._followees[self._starts[agent] : self._starts[agent + 1]].tolist()
        return max((places[other] for other in followees if other in places), default=0)


def read_cascades(database: Connection, most: int) -> list[list[SharedPost]]:
    """Read the largest cascades of a platform, with their texts."""
    followed = _Followed(database.execute(_FOLLOWS))
    cascades = []
    for (root,) in database.execute(_ROOTS, (most,)).fetchall():
        rows = database.execute(_SHARES, (root,)).fetchall()
        parents, depths = _trace_sources([row[0] for row in rows], followed)
        cascades.append(
            [
                SharedPost(agent, text or "", bool(is_quote), likes or 0, claim, parent if parent >= 0 else None, depth)
                for (agent, text, is_quote, likes, claim), parent, depth in zip(rows, parents, depths, strict=True)
            ]
        )
    return cascades


def read_all_cascades(database: Connection) -> Iterator[Cascade]:
    """Read the cascades of all posts that were passed on, one after the other, by the number of the first post."""
    followed = _Followed(database.execute(_FOLLOWS))
    has_claims = any(column[1] == "claim" for column in database.execute("PRAGMA table_info(post)"))
    rows = database.execute(_ALL_SHARES.format(claim="claim" if has_claims else "NULL"))
    for _, shares in groupby(rows, key=itemgetter(0)):
        _, dates, agents, claims = (list(column) for column in zip(*shares, strict=True))
        yield Cascade(claims[0], dates, *_trace_sources(agents, followed))


def _trace_sources(agents: list[int], followed: _Followed) -> tuple[list[int], list[int]]:
    """Return through which place each share came, and how many steps away from the first it is."""
    parents, depths, places = [-1], [0], {agents[0]: 0}
    for place, agent in enumerate(agents[1:], 1):
        parents.append(followed.find_source(agent, places))
        depths.append(depths[parents[-1]] + 1)
        places[agent] = place
    return parents, depths
