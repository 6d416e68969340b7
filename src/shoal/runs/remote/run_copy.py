"""What a session needs where another machine keeps the run: everything it writes is sent there, too."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from shoal.engine import Gate
from shoal.runs.store import InterviewLog, RoundPlans, Store
from shoal.types import WorldProtocol


class RunCopy(Protocol):
    """Sends what a session writes to where the run is kept."""

    async def keep_lines(self, text: bytes) -> None:
        """Make lines of the journal durable there."""
        ...

    def open_store(self, directory: Path, world: WorldProtocol, plans: RoundPlans, agents: int, by: str) -> Store:
        """Open a store whose rounds are committed there as well."""
        ...

    def open_interviews(self, directory: Path) -> InterviewLog:
        """Open a log whose interviews are kept there as well."""
        ...

    def slow_down(self, gate: Gate) -> None:
        """Hold the gate while more was written than could be sent."""
        ...
