"""Changing one value of a scenario file and leaving the rest of it as its author wrote it, comments included."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from shoal.errors import ScenarioInvalid, StorageFailed
from shoal.scenario import document

_WHOLE = re.compile(r"\d+")


def amended(text: str, field: str, value: int) -> str | None:
    """The text with a whole number changed, or added, at its top level; None where that cannot be done safely.

    Whatever was done is read again: everything else in it must still mean the same.
    """
    try:
        changed = _replaced(text, field, value) or _added(text, field, value)
        before, after = (document.read(each, "").value for each in (text, changed))
    except ScenarioInvalid:
        return None
    return changed if isinstance(before, dict) and after == {**before, field: value} else None


def amend(path: Path, field: str, value: int) -> bool:
    """Change the file; False where that cannot be done safely, and nothing was touched."""
    try:
        text = path.read_bytes().decode()
        changed = amended(text, field, value)
        if changed is None:
            return False
        _replace(Path(os.path.realpath(path)), changed.encode())
    except UnicodeDecodeError:
        return False
    except OSError as error:
        raise StorageFailed(f"cannot write {path}: {error.strerror}") from error
    return True


def _replaced(text: str, field: str, value: int) -> str | None:
    """With another number where the field stands already."""
    line, column = document.read(text, "").values.get((field,), (0, 0))
    lines = text.splitlines(keepends=True)
    found = _WHOLE.match(lines[line - 1], column - 1) if 0 < line <= len(lines) else None
    if found is None:
        return None
    start, end = found.span()
    lines[line - 1] = f"{lines[line - 1][:start]}{value}{lines[line - 1][end:]}"
    return "".join(lines)


def _added(text: str, field: str, value: int) -> str:
    ending = "\r\n" if "\r\n" in text else "\n"
    gap = "" if text.endswith("\n") else ending
    return f"{text}{gap}{field}: {value}{ending}"


def _replace(path: Path, content: bytes) -> None:
    """In one step, with the rights that the file had."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        shutil.copymode(path, beside)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
