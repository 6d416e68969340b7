"""A run as files for other tools: every table, the stream of actions, the people, the metrics, and graphs.

Written beside where it goes and put in place in one step, so that nobody ever finds half of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection
from typing import Literal

import msgspec

import shoal
from shoal.errors import RunRefused
from shoal.formats.graphml import write_graphml
from shoal.formats.tables import ExportTable, Format, choose_writer
from shoal.runs.directory import RunDirectory
from shoal.runs.files import replace_json, storage_errors
from shoal.runs.reports import tables as exported
from shoal.runs.reports.summary import open_database
from shoal.runs.reports.tables import ExportedPeople
from shoal.runs.worker import outcome_of
from shoal.scenario.sampling.sampler import sample

MANIFEST = "manifest.json"

Graphs = Literal["follows", "talk", "all", "none"]


class ExportedFile(msgspec.Struct, frozen=True):
    """One file of the export."""

    path: str
    #: `table`, or `graph`: then rows are its edges.
    kind: str
    rows: int


class Manifest(msgspec.Struct, frozen=True):
    """What an export holds."""

    run: str
    #: As `shoal show` says: a run that is not completed has only what was committed.
    status: str
    digest: str
    rounds: int
    shoal_version: str
    written_by: str
    format: Format
    files: list[ExportedFile]


def export_run(
    directory: RunDirectory, out: Path, format: Format = "csv", graphs: Graphs = "all", force: bool = False
) -> Manifest:
    """Write everything; the run itself is only read, also while it goes on."""
    config, outcome = directory.config(), outcome_of(directory)
    write = choose_writer(format)
    with _in_place(out, force) as folder:
        sheets = _Sheets(folder, format, graphs)
        roster = ExportedPeople(sample(directory.history().first))
        sheets.add(write, "", [roster.table(), exported.metrics(directory)])
        for world in directory.history().first.worlds:
            with open_database(directory.file(f"{world}_simulation.db")) as database:
                if database is not None:
                    sheets.add(write, world, exported.tables(database, directory, world))
                    sheets.draw(world, database, directory, roster)
        manifest = Manifest(
            run=config.simulation_id,
            status=outcome.status,
            digest=outcome.digest,
            rounds=outcome.rounds,
            shoal_version=config.shoal_version,
            written_by=shoal.__version__,
            format=format,
            files=sheets.files,
        )
        replace_json(folder / MANIFEST, msgspec.to_builtins(manifest))
    return manifest


@dataclass(slots=True)
class _Sheets:
    """The files of an export, as they come."""

    folder: Path
    format: Format
    graphs: Graphs
    files: list[ExportedFile] = field(default_factory=list)

    def add(self, write: exported.Write, world: str, tables: Iterable[ExportTable]) -> None:
        for table in tables:
            path = self._path(world, f"{table.name}.{self.format}")
            self._note(path, "table", write(table, path))

    def draw(self, world: str, database: Connection, directory: RunDirectory, roster: ExportedPeople) -> None:
        for name, graph in exported.graphs(database, directory, world, roster):
            if self.graphs in (name, "all"):
                path = self._path(world, f"{name}.graphml")
                self._note(path, "graph", write_graphml(graph, path))

    def _path(self, world: str, name: str) -> Path:
        (self.folder / world).mkdir(exist_ok=True)
        return self.folder / world / name

    def _note(self, path: Path, kind: str, rows: int) -> None:
        self.files.append(ExportedFile(path.relative_to(self.folder).as_posix(), kind, rows))


@contextmanager
def _in_place(out: Path, force: bool) -> Iterator[Path]:
    """A folder to write into, which becomes `out` when all is written and is removed when it is not."""
    _check_free(out, force)
    beside = out.absolute().with_name(f".{out.absolute().name}.{os.getpid()}")
    with storage_errors(out):
        beside.mkdir(parents=True)
        try:
            yield beside
            _replace(out, beside)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _check_free(out: Path, force: bool) -> None:
    """An earlier export may be replaced on request; anything else is never removed."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / MANIFEST).is_file():
        raise RunRefused(f"{out} is there and is not an export.\nChoose another folder with --out.")
    if not force:
        raise RunRefused(f"{out} holds an export already.\nReplace it with --force, or choose another with --out.")


def _replace(out: Path, beside: Path) -> None:
    if out.exists():
        old = beside.with_name(f"{beside.name}.old")
        out.replace(old)
        beside.replace(out)
        shutil.rmtree(old)
    else:
        beside.replace(out)
