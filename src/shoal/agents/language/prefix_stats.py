"""How much of the prompts a server has seen before, and need not read again.

A server that caches prefixes keeps a prompt in blocks and finds those that begin like an earlier one. The meter counts
what such a server could save. It counts whole blocks, so it never counts too much.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import partial
from itertools import takewhile
from typing import Any

import msgspec

from shoal.event_loop import IdleQueue

BLOCK_CHARS = 128
#: Blocks that are kept; blocks not seen for long are forgotten, as servers do.
_MAX_BLOCKS = 250_000
_MAX_SHARED = 64


class PrefixShare(msgspec.Struct):
    """Characters of all prompts so far, and how many of them repeated the beginning of an earlier one."""

    prompts: int = 0
    characters: int = 0
    #: With the same agent's previous prompt.
    own: int = 0
    #: With any earlier prompt of the same world.
    any: int = 0

    @property
    def own_share(self) -> float:
        return self.own / self.characters if self.characters else 0.0

    @property
    def any_share(self) -> float:
        return self.any / self.characters if self.characters else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and shares for summaries and metrics."""
        shares = {"own_share": round(self.own_share, 4), "any_share": round(self.any_share, 4)}
        return {**msgspec.to_builtins(self), **shares}


def total_share(shares: Iterable[PrefixShare]) -> PrefixShare:
    """Add up the shares of several worlds."""
    total = PrefixShare()
    for share in shares:
        total.prompts += share.prompts
        total.characters += share.characters
        total.own += share.own
        total.any += share.any
    return total


class PrefixMeter:
    """Measures prompts as they are sent."""

    def __init__(self) -> None:
        self._total = PrefixShare()
        self._idle = IdleQueue()
        self._lately: set[int] = set()
        self._before: set[int] = set()
        self._latest: dict[int, array[int]] = {}
        self._shared: dict[str, array[int]] = {}
        #: What was counted in other processes, by their numbers. They do not know one another's prompts.
        self.elsewhere: dict[int, PrefixShare] = {}

    @property
    def total(self) -> PrefixShare:
        self._idle.finish()
        return total_share([self._total, *self.elsewhere.values()])

    def add_later(self, agent: int, shared: str, own: str) -> None:
        """Measure a prompt when the event loop is idle, or when the total is asked for."""
        self._idle.add(partial(self.add, agent, shared, own))

    def add(self, agent: int, shared: str, own: str) -> None:
        """Measure a prompt that has a part that all agents share, and then a part for this agent alone."""
        # Each block is hashed together with all before it. The last of the shared part may be shorter.
        begun = self._hash_shared(shared)
        blocks = array("q", begun)
        block = begun[-1] if begun else 0
        for end in range(BLOCK_CHARS, len(own) + 1, BLOCK_CHARS):
            block = hash((block, own[end - BLOCK_CHARS : end]))
            blocks.append(block)
        latest = self._latest.get(agent, ())
        repeated = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(blocks, latest, strict=False)))
        known = sum(1 for _ in takewhile(lambda block: block in self._lately or block in self._before, blocks))
        self._total.prompts += 1
        self._total.characters += len(shared) + len(own)
        self._total.own += _count_chars(len(shared), len(begun), repeated)
        self._total.any += _count_chars(len(shared), len(begun), known)
        self._latest[agent] = blocks
        self._lately.update(blocks)
        if len(self._lately) > _MAX_BLOCKS:
            self._lately, self._before = set(), self._lately

    def _hash_shared(self, shared: str) -> array[int]:
        """Hash the blocks of a shared part. There are few different ones, so they are kept."""
        blocks = self._shared.get(shared)
        if blocks is None:
            if len(self._shared) >= _MAX_SHARED:
                self._shared.clear()
            block, blocks = 0, array("q")
            for start in range(0, len(shared), BLOCK_CHARS):
                block = hash((block, shared[start : start + BLOCK_CHARS]))
                blocks.append(block)
            self._shared[shared] = blocks
        return blocks


def _count_chars(shared_chars: int, shared_blocks: int, blocks: int) -> int:
    return min(blocks * BLOCK_CHARS, shared_chars) + BLOCK_CHARS * max(blocks - shared_blocks, 0)
