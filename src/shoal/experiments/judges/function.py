"""Judges by a Python function of the user's own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from pathlib import Path

from shoal.experiments.judges.base import JudgedRun, JudgeFailed, describe_threshold, is_within
from shoal.experiments.metrics import digest_file, load_module, locate_failure
from shoal.experiments.results import Judgement
from shoal.text import hint

#: The function that is called where none is named.
DEFAULT_FUNCTION = "judge"


@dataclass(frozen=True)
class FunctionJudge:
    """Passes a run for which a function says so: it returns true or false, or a number, or either with a reason."""

    name: str
    file: Path
    function: str = DEFAULT_FUNCTION
    at_least: float | None = None
    at_most: float | None = None

    @property
    def identity(self) -> object:
        return (str(self.file.name), digest_file(self.file), self.function, self.at_least, self.at_most)

    def check(self) -> str | None:
        """Load the function, and return what is wrong with it; QueryFailed where the file cannot be run."""
        module = load_module(self.file)
        if callable(getattr(module, self.function, None)):
            return None
        known = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        return f"there is no function {self.function!r} in {self.file}{hint(self.function, known)}"

    async def judge(self, run: JudgedRun) -> Judgement:
        """Call the function in a thread, with the run."""
        return await asyncio.to_thread(self._call, run)

    def _call(self, run: JudgedRun) -> Judgement:
        function = getattr(load_module(self.file), self.function)
        try:
            said = function(run)
        except JudgeFailed:
            raise
        except Exception as error:
            # The function is the user's own code, and may fail in any way.
            raise JudgeFailed(locate_failure(error, self.file)) from error
        value, reason = said if isinstance(said, tuple) and len(said) == 2 else (said, "")
        if isinstance(value, bool):
            return Judgement(self.name, value, None, str(reason))
        if isinstance(value, Real) and isfinite(value):
            score = float(value)
            threshold = describe_threshold(self.at_least, self.at_most)
            passed = is_within(score, self.at_least, self.at_most) if threshold else None
            return Judgement(
                self.name, passed, score, str(reason) or (f"{score:g}, {threshold} passes" if threshold else "")
            )
        raise JudgeFailed(
            f"{self.file}: {self.function} must return true, false or a number, and it returned {value!r}"
        )
