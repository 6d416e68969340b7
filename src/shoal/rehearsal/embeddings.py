"""Embeddings without a model, and the prefix cache of a provider.

Each word adds to a few places of a vector, so that texts with common words are near each other.
"""

from __future__ import annotations

import base64
import math
import re
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np

_WORD = re.compile(r"\w+")
_DIMENSIONS = 256
_PLACES = 4


class EmbeddingsRequest(msgspec.Struct, gc=False):
    model: str
    input: str | list[str]
    dimensions: int | None = None
    encoding_format: str = "float"

    @property
    def texts(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input


def embed_text(text: str, size: int) -> list[float]:
    """Return a vector of length 1, also for an empty text."""
    sums = [0.0] * size
    for word in _WORD.findall(text.lower()) or [""]:
        for place, sign in _hash_word(word, size):
            sums[place] += sign
    length = math.sqrt(sum(value * value for value in sums)) or 1.0
    return [round(value / length, 6) for value in sums]


@lru_cache(maxsize=65536)
def _hash_word(word: str, size: int) -> tuple[tuple[int, float], ...]:
    drawn = blake2b(word.encode(), digest_size=4 * _PLACES).digest()
    numbers = [int.from_bytes(drawn[at : at + 4], "little") for at in range(0, len(drawn), 4)]
    return tuple(((number >> 1) % size, 1.0 if number & 1 else -1.0) for number in numbers)


def build_embeddings(request: EmbeddingsRequest, tokens: int) -> dict[str, Any]:
    """Build the body of a response."""
    vectors = [embed_text(text, request.dimensions or _DIMENSIONS) for text in request.texts]
    found: list[list[float] | str] = [*vectors]
    if request.encoding_format == "base64":
        found = [base64.b64encode(np.array(one, np.float32).tobytes()).decode() for one in vectors]
    return {
        "object": "list",
        "model": request.model,
        "data": [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(found)],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


_BLOCK_TOKENS = 128
_BLOCK_CHARACTERS = 4 * _BLOCK_TOKENS
_MAX_BLOCKS = 1_000_000


class PrefixCache:
    """Remembers the blocks of prompts, each together with all blocks before it."""

    def __init__(self, from_tokens: int) -> None:
        self._from = from_tokens
        self._seen: set[int] = set()

    def count_cached(self, prompt: str) -> int:
        """Return the number of tokens at the beginning of a prompt that were seen before. Remember the prompt."""
        if len(self._seen) > _MAX_BLOCKS:
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
