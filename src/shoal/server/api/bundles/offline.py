"""Writes bundles without a server: the application is asked in this process."""

from __future__ import annotations

from pathlib import Path

from shoal.server.api.app import build_app
from shoal.server.api.bundles.writer import BundleNote, write_bundle
from shoal.server.api.settings import ServerSettings


def bundle_folder(source: Path, out: Path) -> BundleNote:
    """Write the run or the experiment in a folder as static files."""
    folder = source.resolve().parent
    settings = ServerSettings(runs=folder, results=folder)
    return write_bundle(build_app(settings).app, settings.pages / "bundle", source, out)
