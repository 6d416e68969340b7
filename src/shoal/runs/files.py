"""Files that readers never see half of."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from shoal.errors import StorageFailed


def replace_json(path: Path, content: object, *, sync: bool = True) -> None:
    """Write the file anew and put it in place in one step. Without `sync`, a power cut may undo or empty it."""
    text = msgspec.json.format(msgspec.json.encode(content), indent=2)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with storage_errors(path):
        try:
            with beside.open("wb") as file:
                file.write(text + b"\n")
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            beside.replace(path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise


def is_half_written(path: Path, name: str) -> bool:
    """Whether this is what a process leaves behind that was killed while it replaced the file of this name."""
    return path.name.startswith(f".{name}.")


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """What the operating system refuses, in words."""
    try:
        yield
    except OSError as error:
        raise StorageFailed.writing(path, error.strerror or error) from error


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """What SQLite refuses, in words."""
    try:
        yield
    except sqlite3.Error as error:
        raise StorageFailed.writing(path, error) from error
