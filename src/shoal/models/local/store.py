"""The models of a user: a folder with one folder for each, in the user's cache."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shoal.errors import RunRefused
from shoal.models.local.catalog import CATALOG, DEFAULT_MODEL, LOCAL, KnownModel
from shoal.text import nearest

_GGUF = b"GGUF"


@dataclass(frozen=True, slots=True)
class ModelStore:
    """Where downloaded models are kept. A folder that is there is complete: it is renamed when it is."""

    folder: Path

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> ModelStore:
        """Return the folder that SHOAL_MODELS names, or the one in the user's cache."""
        if chosen := environ.get("SHOAL_MODELS"):
            return cls(Path(chosen).expanduser().absolute())
        base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "."), ".cache")
        return cls(Path(base).absolute() / "shoal" / "models")

    def place(self, known: KnownModel) -> Path:
        """Return the folder of a model, which carries the version: another version is another model."""
        return self.folder / f"{known.name}-{known.requirement.rpartition('=')[2]}"

    def has(self, known: KnownModel) -> bool:
        place = self.place(known)
        return all((place / file.name).is_file() for file in known.files)

    def remove(self, known: KnownModel) -> bool:
        """Delete a model, and return whether it was there. A server that has it open goes on."""
        was_there = self.place(known).exists()
        if was_there:
            shutil.rmtree(self.place(known))
        return was_there

    def find_files(self, known: KnownModel) -> tuple[Path, ...]:
        """Return the files of a model; raise RunRefused where it was not downloaded, or is damaged."""
        place = self.place(known)
        for file in known.files:
            path = place / file.name
            if not path.is_file():
                raise RunRefused(f"the model {known.name} is not here yet: `shoal model get {known.name}` downloads it")
            if path.stat().st_size != file.size:
                raise RunRefused(
                    f"{path} is damaged: it has {path.stat().st_size:,} bytes instead of {file.size:,}.\n"
                    f"`shoal model get {known.name} --force` downloads it again."
                )
        return tuple(place / file.name for file in known.files)

    def find_chat_model(self, model: str) -> Path:
        """Return the file of a language model as scenarios name it; raise RunRefused where it cannot be used."""
        if model.startswith(f"{LOCAL}:"):
            return _check_own_file(model, Path(model.removeprefix(f"{LOCAL}:")).expanduser())
        name = model.partition("/")[2] or DEFAULT_MODEL
        known = CATALOG.get(name)
        if known is None:
            near = nearest(name, CATALOG)
            hint = f"Did you mean {LOCAL}/{near}? " if near else ""
            raise RunRefused(
                f"{model}: no model is called {name!r}. {hint}Known are {', '.join(CATALOG)}.\n"
                f"For a model file of your own, write {LOCAL}:PATH.gguf."
            )
        path = self.find_files(known)[0]
        if path.suffix != ".gguf":
            raise RunRefused(f"{model} embeds texts, and answers no questions; `{LOCAL}` is a model that does")
        return path


def _check_own_file(model: str, path: Path) -> Path:
    if not path.is_file():
        raise RunRefused(f"{model}: there is no file {path.absolute()}")
    try:
        with path.open("rb") as file:
            head = file.read(len(_GGUF))
    except OSError as error:
        raise RunRefused(f"{model}: {path} cannot be read: {error.strerror}") from error
    if head != _GGUF:
        raise RunRefused(f"{model}: {path} is no GGUF file, the format of llama.cpp")
    return path.absolute()
