"""Writes a table of word vectors of a few words, in the files that the real one has."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from shoal.models.local import WordTable

#: Words with the direction in which each points; a word that is not here is spelled in bytes, which point nowhere.
WIDTH = 256
WORDS = {"bridge": (1, 0, 0), "river": (3, 1, 0), "bread": (0, 1, 0), "cake": (0, 3, 1), "the": (0, 0, 0.125)}


def write_small_table(folder: Path) -> WordTable:
    """Write both files and open them."""
    pieces = {f"<0x{byte:02X}>": byte for byte in range(256)}
    merges, rows = list[str](), [(0.0, 0.0, 0.0)] * 256
    for word, row in WORDS.items():
        made = "\u2581"
        for letter in word:
            merge = f"{made} {letter}"
            merges += [merge] if merge not in merges else []
            made += letter
            pieces.setdefault(made, len(rows))
            rows += [(0.0, 0.0, 0.0)] if pieces[made] == len(rows) else []
        rows[pieces[made]] = row
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, vectors = folder / "tokenizer.json", folder / "vectors.safetensors"
    tokenizer.write_text(json.dumps({"model": {"vocab": pieces, "merges": merges}}))
    numbers = np.pad(np.array(rows, "<f2"), ((0, 0), (0, WIDTH - 3))).tobytes()
    header = json.dumps({"weight": {"dtype": "F16", "shape": [len(rows), WIDTH], "data_offsets": [0, len(numbers)]}})
    vectors.write_bytes(len(header).to_bytes(8, "little") + header.encode() + numbers)
    return WordTable(vectors, tokenizer)
