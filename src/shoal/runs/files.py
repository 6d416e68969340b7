"""Writes files so that readers never see half of one, and maps errors of the system to ours."""

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
    """Return whether this is a temporary file left by an interrupted `replace_json` of this name."""
    return path.name.startswith(f".{name}.")


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Map errors of the operating system while a file is written."""
    try:
        yield
    except OSError as error:
        raise StorageFailed.writing(path, error.strerror or error) from error


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Map errors of SQLite while a database is written."""
    try:
        yield
    except sqlite3.Error as error:
        raise StorageFailed.writing(path, error) from error
