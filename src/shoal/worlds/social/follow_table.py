"""The follow graph: one big sorted table, and the few changes since it was last rebuilt."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.types import FollowGraph

#: Changes are merged into the table when there are more of them than this share of it, within these bounds.
_MERGE_SHARE = 0.05
_MERGE_LEAST, _MERGE_MOST = 4096, 100_000


class FollowTable:
    """A follow graph that can change. Reading a row costs what is in it; a change costs a constant, amortised."""

    def __init__(self, graph: FollowGraph) -> None:
        #: The table as it was when last merged.
        self.starts, self.targets = graph.starts, graph.targets
        self._people = len(graph.starts) - 1
        self._added: set[int] = set()
        self._removed: set[int] = set()
        self._changes: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        #: Agents that unfollowed another one since the last merge; the others need not be looked at.
        self.has_removed = np.zeros(self._people, np.bool_)
        self.followings = np.diff(graph.starts).astype(np.int32)
        self.followers = np.bincount(graph.targets, minlength=self._people).astype(np.int32)

    def has(self, follower: int, followee: int) -> bool:
        key = follower * self._people + followee
        if key in self._added or key in self._removed:
            return key in self._added
        row = self.targets[self.starts[follower] : self.starts[follower + 1]]
        place = int(np.searchsorted(row, followee))
        return place < len(row) and int(row[place]) == followee

    def add(self, follower: int, followee: int) -> None:
        self._change(follower, followee, 1)

    def remove(self, follower: int, followee: int) -> None:
        self._change(follower, followee, -1)

    def list_ties(self, agent: int) -> list[tuple[int, int]]:
        """Return the pairs of follower and followee that an agent is part of. It looks through the whole table."""
        places = np.flatnonzero(self.targets == agent)
        followers = np.searchsorted(self.starts, places, "right") - 1
        followees = self.targets[self.starts[agent] : self.starts[agent + 1]]
        inside = {(one, agent) for one in followers.tolist()} | {(agent, one) for one in followees.tolist()}
        added = {divmod(key, self._people) for key in self._added}
        return sorted({tie for tie in inside | added if agent in tie and self.has(*tie)})

    def _change(self, follower: int, followee: int, by: int) -> None:
        key = follower * self._people + followee
        undone, done = (self._removed, self._added) if by > 0 else (self._added, self._removed)
        if key in undone:
            undone.remove(key)
        else:
            done.add(key)
            self.has_removed[follower] |= by < 0
        self._changes = None
        self.followings[follower] += by
        self.followers[followee] += by

    def settle(self) -> None:
        """Merge the changes into the table when they have become many."""
        changes = len(self._added) + len(self._removed)
        if changes > min(max(_MERGE_LEAST, _MERGE_SHARE * len(self.targets)), _MERGE_MOST):
            self.merge()

    def changes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs added and pairs removed since the last merge, as sorted keys `follower * people + followee`."""
        if self._changes is None:
            self._changes = (_sort_keys(self._added), _sort_keys(self._removed))
        return self._changes

    def are(self, followers: NDArray[np.int64], followees: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return `has` for many pairs at once."""
        found = self._search(followers, followees)
        keys = followers * self._people + followees
        added, removed = self.changes()
        if len(removed):
            found &= ~_contains(removed, keys)
        if len(added):
            found |= _contains(added, keys)
        return found

    def merge(self) -> None:
        """Rebuild the table with the changes in it."""
        rows = np.repeat(np.arange(self._people, dtype=np.int64), np.diff(self.starts))
        keys = rows * self._people + self.targets
        added, removed = self.changes()
        keys = keys[~_contains(removed, keys)] if len(removed) else keys
        keys = np.sort(np.concatenate([keys, added]))
        self.targets = (keys % self._people).astype(np.int32)
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(keys // self._people, minlength=self._people))])
        self._added, self._removed, self._changes = set(), set(), None
        self.has_removed[:] = False

    def _search(self, followers: NDArray[np.int64], followees: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Search many rows at once, by halving."""
        if not len(self.targets):
            return np.zeros(followers.shape, np.bool_)
        low, high = self.starts[followers], self.starts[followers + 1]
        end = high
        while (open_ := low < high).any():
            middle = (low + high) >> 1
            below = open_ & (self.targets[np.minimum(middle, len(self.targets) - 1)] < followees)
            low = np.where(below, middle + 1, low)
            high = np.where(open_ & ~below, middle, high)
        inside = low < end
        return np.asarray(inside & (self.targets[np.minimum(low, len(self.targets) - 1)] == followees))


def _sort_keys(keys: set[int]) -> NDArray[np.int64]:
    array = np.fromiter(keys, np.int64, len(keys))
    array.sort()
    return array


def _contains(sorted_keys: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.asarray(sorted_keys[places] == keys)
