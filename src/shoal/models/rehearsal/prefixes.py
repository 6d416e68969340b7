"""The prefix cache of a provider: which beginnings of prompts it has seen."""

from __future__ import annotations

_BLOCK_TOKENS = 128
_BLOCK_CHARACTERS = 4 * _BLOCK_TOKENS
_MOST_BLOCKS = 1_000_000


class Prefixes:
    """Remembers prompts block by block, each block together with all before it."""

    def __init__(self, from_tokens: int) -> None:
        self._from = from_tokens
        self._seen: set[int] = set()

    def cached(self, prompt: str) -> int:
        """Tokens at the beginning of this prompt that were seen before; remembers the prompt."""
        if len(self._seen) > _MOST_BLOCKS:
            self._seen.clear()
        key, known, blocks = 0, 0, len(prompt) // _BLOCK_CHARACTERS
        for at in range(blocks):
            key = hash((key, prompt[at * _BLOCK_CHARACTERS : (at + 1) * _BLOCK_CHARACTERS]))
            if known == at and key in self._seen:
                known += 1
            else:
                self._seen.add(key)
        tokens = known * _BLOCK_TOKENS
        return tokens if tokens >= self._from else 0
