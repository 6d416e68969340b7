"""The result of a measurement and its files: all figures, a picture of them, and the setting to use."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

import shoal
from shoal.models.openai import Endpoint
from shoal.runs.files import replace_json, storage_errors
from shoal.runs.model_limits import name_pool
from shoal.runs.state import wall_clock
from shoal.runs.tuning.chart import draw_chart
from shoal.runs.tuning.knee import Knee, MeasuredLevel, find_knee, is_end_found
from shoal.slots.adaptive import Learned, LimitStore

FIGURES = "tune.json"
PICTURE = "tune.svg"
SETTING = "setting.yaml"

CALLS, SIMULATIONS = "calls", "simulations"


class TuneResult(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of how many at once is best."""

    #: `calls` or `simulations`.
    kind: str
    #: The name of the model or of the scenario.
    name: str
    #: The address of the server, or the number of cores.
    where: str
    levels: tuple[MeasuredLevel, ...]
    #: Why no more was measured; empty if enough is known.
    ended: str = ""
    spent: dict[str, Any] = {}
    seed: int = 0
    measured_at: str = msgspec.field(default_factory=wall_clock)

    @property
    def knee(self) -> Knee | None:
        return find_knee(self.levels, self.ended, CALLS if self.kind == CALLS else "rounds")

    @property
    def setting(self) -> str | None:
        """The line for a scenario; None for simulations, whose number is no setting."""
        found = self.knee
        return f"max_workers: {found.at_once}" if found is not None and self.kind == CALLS else None

    def as_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        levels = [level.as_dict() for level in sorted(self.levels, key=lambda level: level.at_once)]
        return {**plain, "levels": levels, "knee": msgspec.to_builtins(self.knee), "shoal_version": shoal.__version__}

    def write(self, folder: Path) -> list[Path]:
        """Write the files into a folder that exists, and return their paths."""
        replace_json(folder / FIGURES, self.as_dict())
        written = [folder / FIGURES]
        what, took = ("answers", "answer") if self.kind == CALLS else ("agent-steps", "round")
        titles = f"{self.name}: {self.kind} at once", f"{what} per second", f"seconds per {took}"
        setting = ""
        if self.setting is not None and self.knee is not None:
            measured = f"# Measured by shoal tune on {self.measured_at[:16]}, with {self.name} at {self.where}:\n"
            setting = f"{measured}# {self.knee.reason}.\n{self.setting}\n"
        for name, text in ((PICTURE, draw_chart(self.levels, self.knee, titles)), (SETTING, setting)):
            if text:
                with storage_errors(folder / name):
                    (folder / name).write_text(text, encoding="utf-8")
                written.append(folder / name)
        return written


def save_result(endpoint: Endpoint, found: TuneResult, memory: Path) -> None:
    """Store what was found as the learned limit of the model, so that the next runs begin with it."""
    if found.knee is None:
        return
    level = next(level for level in found.levels if level.at_once == found.knee.at_once)
    learned = Learned(in_flight=found.knee.at_once, is_wall=is_end_found(found.levels), answer_seconds=level.p50)
    now = time.time()
    LimitStore(memory, now).put(name_pool(endpoint), learned, now)
