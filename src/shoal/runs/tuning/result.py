"""What tuning found, as it is kept: all figures, a picture of them, and the setting to use."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

import shoal
from shoal.models.openai.endpoints import Endpoint
from shoal.runs.files import replace_json, storage_errors
from shoal.runs.model_limits import name_pool
from shoal.runs.state import wall_clock
from shoal.runs.tuning.chart import draw_chart
from shoal.runs.tuning.knee import Knee, MeasuredLevel, as_dict, is_found, knee
from shoal.slots.adaptive.limiter import Learned
from shoal.slots.adaptive.store import LimitStore

FIGURES = "tune.json"
PICTURE = "tune.svg"
SETTING = "setting.yaml"

CALLS, SIMULATIONS = "calls", "simulations"


class TuneResult(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of how many at once."""

    #: Whether calls or whole simulations were made at once.
    kind: str
    #: The model, or the scenario.
    name: str
    #: Where the model is served, or how many cores there are.
    where: str
    levels: tuple[MeasuredLevel, ...]
    #: Why no more was measured; empty: enough is known.
    ended: str = ""
    spent: dict[str, Any] = {}
    seed: int = 0
    measured_at: str = msgspec.field(default_factory=wall_clock)

    @property
    def is_of_calls(self) -> bool:
        return self.kind == CALLS

    @property
    def knee(self) -> Knee | None:
        return knee(self.levels, self.ended, CALLS if self.is_of_calls else "rounds")

    @property
    def setting(self) -> str | None:
        """The line of a scenario, where it is one's business."""
        found = self.knee
        return f"max_workers: {found.at_once}" if found is not None and self.is_of_calls else None

    def as_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        levels = [as_dict(level) for level in sorted(self.levels, key=lambda level: level.at_once)]
        return {**plain, "levels": levels, "knee": msgspec.to_builtins(self.knee), "shoal_version": shoal.__version__}

    def write(self, folder: Path) -> list[Path]:
        """Into a folder that is there; the files that were written."""
        replace_json(folder / FIGURES, self.as_dict())
        written = [folder / FIGURES]
        for name, text in ((PICTURE, draw_chart(self.levels, self.knee, self._title())), (SETTING, self._fragment())):
            if text:
                with storage_errors(folder / name):
                    (folder / name).write_text(text, encoding="utf-8")
                written.append(folder / name)
        return written

    def _title(self) -> tuple[str, str, str]:
        what = "answers per second" if self.is_of_calls else "agent-steps per second"
        took = "seconds per answer" if self.is_of_calls else "seconds per round"
        return f"{self.name}: {self.kind} at once", what, took

    def _fragment(self) -> str:
        if self.setting is None or self.knee is None:
            return ""
        told = f"# Measured by shoal tune on {self.measured_at[:16]}, with {self.name} at {self.where}:\n"
        return f"{told}# {self.knee.reason}.\n{self.setting}\n"


def save_result(endpoint: Endpoint, found: TuneResult, memory: Path) -> None:
    """Let the next runs begin with what was found; with less than that, if the limit itself was not met."""
    if found.knee is None:
        return
    level = next(level for level in found.levels if level.at_once == found.knee.at_once)
    learned = Learned(in_flight=found.knee.at_once, is_wall=is_found(found.levels), answer_seconds=level.p50)
    now = time.time()
    LimitStore(memory, now).put(name_pool(endpoint), learned, now)
