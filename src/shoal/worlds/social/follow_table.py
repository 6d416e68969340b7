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
        self._starts = graph.starts
        self._targets = graph.targets
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
        row = self._targets[self._starts[follower] : self._starts[follower + 1]]
        place = int(np.searchsorted(row, followee))
        return place < len(row) and int(row[place]) == followee

    def add(self, follower: int, followee: int) -> None:
        key = follower * self._people + followee
        if key in self._removed:
            self._removed.remove(key)
        else:
            self._added.add(key)
        self._count(follower, followee, 1)

    def remove(self, follower: int, followee: int) -> None:
        key = follower * self._people + followee
        if key in self._added:
            self._added.remove(key)
        else:
            self._removed.add(key)
            self.has_removed[follower] = True
        self._count(follower, followee, -1)

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return starts and targets as they were when last merged."""
        return self._starts, self._targets

    def settle(self) -> None:
        """Merge the changes into the table when they have become many."""
        changes = len(self._added) + len(self._removed)
        if changes > min(max(_MERGE_LEAST, _MERGE_SHARE * len(self._targets)), _MERGE_MOST):
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
        rows = np.repeat(np.arange(self._people, dtype=np.int64), np.diff(self._starts))
        keys = rows * self._people + self._targets
        added, removed = self.changes()
        keys = keys[~_contains(removed, keys)] if len(removed) else keys
        keys = np.sort(np.concatenate([keys, added]))
        self._targets = (keys % self._people).astype(np.int32)
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(keys // self._people, minlength=self._people))])
        self._added, self._removed, self._changes = set(), set(), None
        self.has_removed[:] = False

    def _count(self, follower: int, followee: int, change: int) -> None:
        self._changes = None
        self.followings[follower] += change
        self.followers[followee] += change

    def _search(self, followers: NDArray[np.int64], followees: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Search many rows at once, by halving."""
        if not len(self._targets):
            return np.zeros(followers.shape, np.bool_)
        low, high = self._starts[followers], self._starts[followers + 1]
        end = high
        while True:
            open_ = low < high
            if not open_.any():
                break
            middle = (low + high) >> 1
            below = open_ & (self._targets[np.minimum(middle, len(self._targets) - 1)] < followees)
            low = np.where(below, middle + 1, low)
            high = np.where(open_ & ~below, middle, high)
        inside = low < end
        return np.asarray(inside & (self._targets[np.minimum(low, len(self._targets) - 1)] == followees))


def _sort_keys(keys: set[int]) -> NDArray[np.int64]:
    array = np.fromiter(keys, np.int64, len(keys))
    array.sort()
    return array


def _contains(sorted_keys: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.asarray(sorted_keys[places] == keys)
