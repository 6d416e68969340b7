"""Embeds texts with a table of word vectors. All of it is whole numbers, so that every machine finds the same.

A text is cut into the pieces that the table knows, and the vectors of its pieces are added up. There is no network to
compute, so that ten thousand texts take about as long as one call to a server.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.errors import RunRefused
from shoal.models.local.catalog import CATALOG, TABLE
from shoal.models.local.store import ModelStore

#: One row for each text, each number between -127 and 127.
Vectors = NDArray[np.int8]

_MAX_LEVEL = 127
#: Half precision has no finer steps than this, so that its numbers times this are whole.
_STEPS = 1 << 24
_SPACE = "\u2581"
#: Words whose vectors are remembered before the memory is emptied.
_MAX_WORDS = 100_000
#: A longer word is no word; it is cut, as finding its pieces takes the square of its length.
_MAX_WORD_CHARS = 64


class _Pieces(msgspec.Struct):
    vocab: dict[str, int]
    #: Pairs of pieces that are joined, the most frequent first.
    merges: list[str]


class _TokenizerFile(msgspec.Struct):
    model: _Pieces


class WordTable:
    """A table of vectors, and the pieces of words that they belong to."""

    def __init__(self, vectors: Path, tokenizer: Path) -> None:
        self._paths = vectors, tokenizer
        self._words: dict[str, NDArray[np.int64]] = {}

    # Both files are read at the first text: many commands come across none.

    @cached_property
    def _rows(self) -> NDArray[np.float16]:
        path = self._paths[0]
        with _report_damage(path):
            # The format safetensors: the length of a header, the header, the numbers.
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                header = msgspec.json.decode(file.read(length))
            (matrix,) = (field for name, field in header.items() if name != "__metadata__")
            if matrix["dtype"] != "F16":
                raise ValueError(f"{path} holds no numbers in half precision")
            begin = 8 + length + matrix["data_offsets"][0]
            return np.memmap(path, np.dtype("<f2"), "r", begin, tuple(matrix["shape"]))

    @cached_property
    def _pieces(self) -> tuple[dict[str, int], dict[tuple[str, ...], int]]:
        """The numbers of known pieces, and how soon two of them are joined."""
        with _report_damage(self._paths[1]):
            pieces = msgspec.json.decode(self._paths[1].read_bytes(), type=_TokenizerFile).model
        return pieces.vocab, {tuple(pair.split(" ", 1)): rank for rank, pair in enumerate(pieces.merges)}

    @classmethod
    def of_user(cls, store: ModelStore) -> WordTable:
        """Open the table that was downloaded; raise RunRefused if it is missing or damaged."""
        return cls(*store.find_files(CATALOG[TABLE]))

    def embed(self, texts: Iterable[str]) -> Vectors:
        """Return a row for each text; a text without words has a row of zeros."""
        return np.array([self._embed_text(text) for text in texts], np.int8).reshape(-1, self._rows.shape[1])

    def compare(self, left: str, right: str) -> float:
        """Return how alike two texts are, -1 to 1."""
        return float(compare_texts(self.embed([left]), self.embed([right]))[0, 0])

    def _embed_text(self, text: str) -> Vectors:
        total = np.zeros(self._rows.shape[1], np.int64)
        for word in text.split():
            known = self._words.get(word)
            if known is None:
                if len(self._words) >= _MAX_WORDS:
                    self._words.clear()
                ids = self.find_pieces(word[:_MAX_WORD_CHARS])
                vectors = self._rows[ids].astype(np.float64) * _STEPS
                known = self._words[word] = vectors.astype(np.int64).sum(axis=0)
            total += known
        most = int(np.abs(total).max())
        if not most:
            return total.astype(np.int8)
        # Rounded to the nearest level in whole numbers.
        return ((total * (2 * _MAX_LEVEL) + most) // (2 * most)).astype(np.int8)

    def find_pieces(self, word: str) -> list[int]:
        """Cut a word into known pieces: from single characters on, the most frequent pair is joined first."""
        vocab, joined = self._pieces
        parts = [_SPACE, *word]
        while len(parts) > 1:
            ranks = [joined.get((left, right)) for left, right in pairwise(parts)]
            known = [rank for rank in ranks if rank is not None]
            if not known:
                break
            place = ranks.index(min(known))
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        ids: list[int] = []
        for part in parts:
            known_id = vocab.get(part)
            # Texts without a piece in the table are spelled in bytes.
            ids += [vocab[f"<0x{byte:02X}>"] for byte in part.encode()] if known_id is None else [known_id]
        return ids


@contextmanager
def _report_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, struct.error, msgspec.MsgspecError) as error:
        raise RunRefused(f"{path} is damaged ({error}): `shoal model get {TABLE} --force` mends it") from error


def compare_texts(left: Vectors, right: Vectors) -> NDArray[np.float64]:
    """Return how alike texts are: a line for each of the left, -1 to 1, the same on every machine."""
    # Sums of this size are whole numbers that floating point holds exactly, whatever the order.
    dots = left.astype(np.float32) @ right.astype(np.float32).T
    lengths = np.outer(*(np.square(rows.astype(np.int64)).sum(axis=1) for rows in (left, right)))
    alike: NDArray[np.float64] = dots.astype(np.float64) / np.sqrt(np.maximum(lengths, 1))
    return alike


def find_table(store: ModelStore) -> WordTable | None:
    """Open the table if it was downloaded."""
    return WordTable.of_user(store) if store.has(CATALOG[TABLE]) else None
