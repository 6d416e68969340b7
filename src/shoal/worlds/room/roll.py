"""Who is called what."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from shoal.worlds.base import Rejected


class Roll:
    """Finds people by name: as it is written, or else in capitals or small letters."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._exact: dict[str, int] = {}
        self._loose: dict[str, int] = {}
        for agent, name in enumerate(names):
            self._exact.setdefault(name, agent)
            self._loose.setdefault(name.casefold(), agent)

    def number(self, name: str) -> int | None:
        found = self._exact.get(name)
        return self._loose.get(name.strip().casefold()) if found is None else found

    def other(self, agent: int, name: str) -> int:
        """The number of somebody else; refused where nobody, or the agent itself, is called so."""
        found = self.number(name)
        if found is None:
            raise Rejected(f"nobody is called {name!r}{self._hint(name)}")
        if found == agent:
            raise Rejected(f"{self._names[agent]} cannot be the target of their own action")
        return found

    def _hint(self, name: str) -> str:
        wanted = name.strip().casefold()
        part_of = [known for known in self._loose if wanted and wanted in known.split()]
        near = part_of[:1] or get_close_matches(wanted, self._loose, n=1)
        return f"; did you mean {self._names[self._loose[near[0]]]!r}?" if near else ""
