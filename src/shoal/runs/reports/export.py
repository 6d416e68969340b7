"""Exports a run as files for other tools: every table, the stream of actions, the people, the metrics, and graphs.

The files are written to a folder beside the final one, which is then renamed, so that an export is never half there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

import shoal
from shoal.errors import RunRefused
from shoal.formats import ExportTable, Format, choose_writer, write_graphml
from shoal.runs.directory import RunDirectory, read_outcome
from shoal.runs.files import replace_json, storage_errors
from shoal.runs.reports.database import open_database
from shoal.runs.reports.tables import ExportedPeople, read_graphs, read_metrics, read_tables
from shoal.runs.store import database_path
from shoal.scenario import sample

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
    #: A run that is not completed has only what was committed.
    status: str
    digest: str
    rounds: int
    shoal_version: str
    written_by: str
    format: Format
    files: list[ExportedFile]


def export_run(
    directory: RunDirectory,
    out: Path,
    format: Format = "csv",
    graphs: Graphs = "all",
    force: bool = False,
    raw: bool = False,
) -> Manifest:
    """Write all files of an export. The run is only read, also while it goes on.

    In CSV, texts that a spreadsheet would run as formulas are quoted, unless they are wanted `raw`.
    """
    config, outcome, scenario = directory.config, read_outcome(directory), directory.scenario_versions.first
    write = choose_writer(format, raw)
    files: list[ExportedFile] = []
    with _write_in_place(out, force) as folder:

        def add_tables(world: str, tables: Iterable[ExportTable]) -> None:
            for table in tables:
                path = PurePosixPath(world, f"{table.name}.{format}")
                files.append(ExportedFile(str(path), "table", write(table, folder / path)))

        people = ExportedPeople(sample(scenario))
        add_tables("", [people.table(), read_metrics(directory)])
        for world in scenario.worlds:
            with open_database(database_path(directory.path, world)) as database:
                if database is None:
                    continue
                (folder / world).mkdir()
                add_tables(world, read_tables(database, directory, world))
                for name, graph in read_graphs(database, directory, world, people):
                    if graphs in (name, "all"):
                        path = PurePosixPath(world, f"{name}.graphml")
                        files.append(ExportedFile(str(path), "graph", write_graphml(graph, folder / path)))
        manifest = Manifest(
            run=config.simulation_id,
            status=outcome.status,
            digest=outcome.digest,
            rounds=outcome.rounds,
            shoal_version=config.shoal_version,
            written_by=shoal.__version__,
            format=format,
            files=files,
        )
        replace_json(folder / MANIFEST, msgspec.to_builtins(manifest))
    return manifest


def _find_foreign_file(out: Path) -> Path | None:
    """Find something in the folder of an export that its manifest does not name. Only folders hold more."""
    try:
        manifest = msgspec.json.decode((out / MANIFEST).read_bytes(), type=Manifest)
    except msgspec.DecodeError:
        return out / MANIFEST
    made = {MANIFEST, *(file.path for file in manifest.files)}
    found = sorted(out.rglob("*"))
    is_made = {path: path.relative_to(out).as_posix() in made and not path.is_symlink() for path in found}
    return next((path for path in found if not is_made[path] and (path.is_symlink() or not path.is_dir())), None)


@contextmanager
def _write_in_place(out: Path, force: bool) -> Iterator[Path]:
    """Yield a folder to write into. It becomes `out` when everything is written, and is removed if that fails.

    An earlier export is replaced on request. Nothing else is ever removed.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        if not (out / MANIFEST).is_file():
            raise RunRefused(f"{out} is there and is not an export.\nChoose another folder with --out.")
        if foreign := _find_foreign_file(out):
            raise RunRefused(f"{out} holds {foreign}, which no export made.\nMove it, or choose another with --out.")
        if not force:
            raise RunRefused(f"{out} holds an export already.\nReplace it with --force, or choose another with --out.")
    beside = out.absolute().with_name(f".{out.absolute().name}.{os.getpid()}")
    with storage_errors(out):
        beside.mkdir(parents=True)
        try:
            yield beside
            if out.exists():
                old = beside.with_name(f"{beside.name}.old")
                out.replace(old)
                beside.replace(out)
                shutil.rmtree(old)
            else:
                beside.replace(out)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
