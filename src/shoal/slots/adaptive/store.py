"""Stores what adaptive pools learned: one small JSON file for all runs of a user."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shoal.slots.broker import SlotPool
from shoal.slots.leases import Learnable

T = TypeVar("T")
_log = logging.getLogger(__name__)
_FORMAT = 1
#: Limits change with time and with the plan that is paid for: older entries are worse than none.
_MAX_AGE_SECONDS = 30 * 24 * 3600.0


class StoredLimit(msgspec.Struct, frozen=True):
    """What was learned about one pool."""

    #: When it was learned, in seconds since 1970.
    at: float
    learned: Any


class _LimitsFile(msgspec.Struct, frozen=True):
    format: int
    pools: dict[str, StoredLimit]


class LimitStore:
    """The limits file. It is read once and written when something changed; if that fails, runs go on without it."""

    def __init__(self, path: Path, now: float) -> None:
        self._path = path
        self._known = {name: entry for name, entry in _read(path).items() if entry.at > now - _MAX_AGE_SECONDS}
        self._fresh: dict[str, StoredLimit] = {}
        self._failed = False

    @property
    def entries(self) -> dict[str, StoredLimit]:
        return {**self._known, **self._fresh}

    def of(self, pool: str, kind: type[T]) -> T | None:
        """Return what was learned about this pool."""
        known = self._plain(pool)
        try:
            return None if known is None else msgspec.convert(known, kind)
        except msgspec.ValidationError as error:
            _log.warning("what is kept of %s cannot be read (%s): its limit is learned anew", pool, error)
            return None

    def _plain(self, pool: str) -> Any | None:
        entry = self._fresh.get(pool) or self._known.get(pool)
        return None if entry is None else entry.learned

    def keep(self, pools: Iterable[SlotPool], now: float) -> None:
        """Write what these pools learned, if it is new."""
        changed = False
        for pool in pools:
            learned = msgspec.to_builtins(pool.control.get_learned()) if isinstance(pool.control, Learnable) else None
            if learned is not None and learned != self._plain(pool.name):
                self._fresh[pool.name] = StoredLimit(now, learned)
                changed = True
        if changed or (self._failed and self._fresh):
            self._write(now)

    def put(self, pool: str, learned: Any, now: float) -> None:
        """Write what was learned in another way than by running."""
        self._fresh[pool] = StoredLimit(now, msgspec.to_builtins(learned))
        self._write(now)

    def _write(self, now: float) -> None:
        # Another broker of this user, at another socket, may have written since: keep its entries.
        known = {name: entry for name, entry in _read(self._path).items() if entry.at > now - _MAX_AGE_SECONDS}
        try:
            _replace(self._path, _LimitsFile(_FORMAT, {**known, **self._fresh}))
            self._failed = False
        except OSError as error:
            if not self._failed:
                _log.warning("cannot keep what was learned about limits: %s", error)
            self._failed = True


def _read(path: Path) -> dict[str, StoredLimit]:
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_LimitsFile)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        _log.warning("%s cannot be read (%s): limits are learned anew", path, error)
        return {}
    if kept.format != _FORMAT:
        _log.warning("%s was written by another version: limits are learned anew", path)
        return {}
    return kept.pools


def forget_limits(path: Path, pool: str | None) -> list[str]:
    """Remove a pool, or all of them (None), and return the names of what was removed."""
    known = _read(path)
    gone = [name for name in known if pool in (None, name)]
    if gone:
        _replace(path, _LimitsFile(_FORMAT, {name: entry for name, entry in known.items() if name not in gone}))
    return gone


def _replace(path: Path, content: _LimitsFile) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
