"""The vectors of the texts of a run, kept with it: whoever runs it again needs no table."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from shoal.errors import RunRefused, StorageFailed
from shoal.models.local.catalog import TABLE
from shoal.models.local.word_table import Vectors, WordTable

_KEY_BYTES = 16
#: Numbers of a vector, as the table has them.
_WIDTH = 256
_RECORD = np.dtype([("key", np.void, _KEY_BYTES), ("vector", np.int8, (_WIDTH,))])


class VectorFile:
    """Embeds each text once. A record is the digest of a text, and its vector."""

    def __init__(self, path: Path, table: WordTable | None) -> None:
        self._path = path
        self._table = table
        self._known: dict[bytes, Vectors] | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text; raise RunRefused for a new text without a table."""
        known = self._known = self._read() if self._known is None else self._known
        keys = [blake2b(text.encode(), digest_size=_KEY_BYTES).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if new:
            if self._table is None:
                raise RunRefused(f"this run compares texts by meaning: `shoal model get {TABLE}` brings what it needs")
            vectors = self._table.embed(new.values())
            known.update(zip(new, vectors, strict=True))
            records = np.array(list(zip(new, vectors, strict=True)), _RECORD)
            try:
                with self._path.open("ab") as file:
                    file.write(records.tobytes())
            except OSError as error:
                raise StorageFailed.writing(self._path, error.strerror) from error
        return np.array([known[key] for key in keys], np.int8).reshape(len(keys), -1)

    def _read(self) -> dict[bytes, Vectors]:
        """Read all whole records. One that was cut off when its writer was killed is found anew."""
        if not self._path.exists():
            return {}
        content = self._path.read_bytes()
        whole = len(content) - len(content) % _RECORD.itemsize
        if whole < len(content) and self._table is not None:
            with self._path.open("r+b") as file:
                file.truncate(whole)
        records = np.frombuffer(content[:whole], _RECORD)
        return dict(zip((key.tobytes() for key in records["key"]), records["vector"], strict=True))
