"""Where a new run goes when nobody said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from shoal.runs.directory import RunDirectory
from shoal.runs.files import storage_errors

RUNS = Path("runs")


@contextmanager
def place_for(out: Path | None, folder: Path, name: str) -> Iterator[Path]:
    """The directory that was asked for, or the first free one in the folder; one that stays empty is taken back."""
    path = _free(folder, name) if out is None else _named(out)
    try:
        yield path
    except BaseException:
        _take_back(path)
        raise


def _free(folder: Path, name: str) -> Path:
    """Making the directory is what claims it, so two commands at once never get the same."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for n in count(1):
            path = folder / f"{name}-{n}"
            try:
                path.mkdir()
            except FileExistsError:
                continue
            return path
    raise AssertionError("there is always a next number")


def _named(path: Path) -> Path:
    """A run is called what its directory is called, and `.` is called nothing."""
    return path if path.name not in ("", "..") else path.resolve()


def _take_back(path: Path) -> None:
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()


def fork_folder(parent: RunDirectory) -> Path:
    """Beside the parent."""
    return _named(parent.path).parent
