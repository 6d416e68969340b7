"""How much of the prompts a server has seen before, and need not read again.

A server that caches prefixes keeps a prompt in blocks and finds those that begin like an earlier one. Measured is what
such a server could save: in whole blocks, so never too much.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

BLOCK_CHARS = 128
#: Beginnings that are kept in mind; those not seen for long are forgotten, as servers do.
_MAX_BLOCKS = 250_000

Blocks: TypeAlias = "array[int]"
_NONE: Blocks = array("q")


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
        """For summaries and metrics."""
        shares = {"own_share": round(self.own_share, 4), "any_share": round(self.any_share, 4)}
        return {**msgspec.to_builtins(self), **shares}


def total_share(shares: Iterable[PrefixShare]) -> PrefixShare:
    """Of several worlds."""
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
        self.total = PrefixShare()
        self._lately: set[int] = set()
        self._before: set[int] = set()
        self._latest: dict[int, Blocks] = {}

    def add(self, agent: int, shared: str, own: str) -> None:
        """A prompt that begins with what all share, and goes on with what only this agent is told."""
        blocks = _blocks(shared, own)
        total = self.total
        total.prompts += 1
        total.characters += len(shared) + len(own)
        total.own += _characters(shared, _common(blocks, self._latest.get(agent, _NONE)))
        total.any += _characters(shared, self._known(blocks))
        self._latest[agent] = blocks
        self._remember(blocks)

    def _known(self, blocks: Blocks) -> int:
        known = 0
        for block in blocks:
            if block not in self._lately and block not in self._before:
                break
            known += 1
        return known

    def _remember(self, blocks: Blocks) -> None:
        self._lately.update(blocks)
        if len(self._lately) > _MAX_BLOCKS:
            self._lately, self._before = set(), self._lately


def _blocks(shared: str, own: str) -> Blocks:
    """Each whole block together with all before it; what is shared is one block, however long it is."""
    before = hash(shared)
    chained = [before]
    for end in range(BLOCK_CHARS, len(own) + 1, BLOCK_CHARS):
        before = hash((before, own[end - BLOCK_CHARS : end]))
        chained.append(before)
    return array("q", chained)


def _characters(shared: str, blocks: int) -> int:
    return len(shared) + BLOCK_CHARS * (blocks - 1) if blocks else 0


def _common(blocks: Blocks, others: Blocks) -> int:
    common = 0
    for one, other in zip(blocks, others, strict=False):
        if one != other:
            break
        common += 1
    return common
