"""Reads the header of a GGUF file: the size of a model, and whether all of it is there."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import RunRefused

_MAGIC = b"GGUF"
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _LIST = 8, 9
#: Bytes of a number in the cache of keys and values, which is kept in half precision.
_CACHED_NUMBER_BYTES = 2
#: What models without an own statement are taken for.
_USUAL_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class ModelHeader:
    """What the header of a model file says about its size."""

    #: Bytes of the file, which are its weights in memory, too.
    size: int
    #: Tokens that the model was trained to see at once.
    context: int
    #: Bytes that one token of context takes while it is worked on.
    token_bytes: int

    @classmethod
    def read(cls, path: Path) -> ModelHeader:
        """Read the header of a file; raise RunRefused where the file is broken or cut short."""
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                reader = _Reader(whole)
                fields, last_offset = reader.read_fields()
                size = len(whole)
        except OSError as error:
            raise RunRefused(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, struct.error, KeyError, IndexError) as error:
            raise RunRefused(f"{path} is broken: its header cannot be read ({error})") from error
        if last_offset >= size:
            raise RunRefused(f"{path} is broken: it ends before its weights do, as after a download that was cut short")
        return cls(size, *_measure(fields))


def _measure(fields: dict[str, Any]) -> tuple[int, int]:
    """Return the context of a model and the bytes of one token in it."""
    kind = fields.get("general.architecture", "")

    def field(name: str, otherwise: int) -> int:
        value = fields.get(f"{kind}.{name}", otherwise)
        # Some models have a number for each layer.
        return max(value, default=otherwise) if isinstance(value, list) else int(value)

    width, heads, layers = field("embedding_length", 4096), field("attention.head_count", 32), field("block_count", 32)
    head = width // max(heads, 1)
    keys, values = field("attention.key_length", head), field("attention.value_length", head)
    numbers = layers * field("attention.head_count_kv", heads) * (keys + values)
    return field("context_length", _USUAL_CONTEXT), numbers * _CACHED_NUMBER_BYTES


class _Reader:
    """Reads values one after another."""

    def __init__(self, whole: mmap.mmap) -> None:
        self._whole = whole
        self._at = 0

    def read_fields(self) -> tuple[dict[str, Any], int]:
        """Return the fields of the header, and where the data of the last tensor begin."""
        if self._whole[: len(_MAGIC)] != _MAGIC:
            raise ValueError("it is no GGUF file")
        self._at = len(_MAGIC) + 4
        tensors, count = self._read("<Q"), self._read("<Q")
        fields = {self._read_text(): self._read_value(self._read("<I")) for _ in range(count)}
        last = 0
        for _ in range(tensors):
            self._read_text()
            dimensions = self._read("<I")
            self._at += 8 * dimensions + 4
            last = max(last, self._read("<Q"))
        return fields, self._at + last

    def _read(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self._whole, self._at)
        self._at += struct.calcsize(form)
        return value

    def _read_text(self) -> str:
        length = self._read("<Q")
        begin, self._at = self._at, self._at + length
        if self._at > len(self._whole):
            raise ValueError("a text goes past its end")
        return self._whole[begin : self._at].decode(errors="replace")

    def _read_value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self._read_text()
        if kind != _LIST:
            return self._read(_NUMBERS[kind])
        kind, count = self._read("<I"), self._read("<Q")
        if kind in (_TEXT, _LIST):
            return [self._read_value(kind) for _ in range(count)]
        form = f"<{count}{_NUMBERS[kind][1]}"
        values = struct.unpack_from(form, self._whole, self._at)
        self._at += struct.calcsize(form)
        return list(values)
