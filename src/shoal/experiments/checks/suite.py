"""Runs the checks: every check with every seed, side by side in processes, and the results as they come in."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from shoal.errors import RunRefused
from shoal.experiments.checks.base import CheckResult, Laboratory, ValidationCheck
from shoal.experiments.checks.opinions import CHECKS as OPINION_CHECKS
from shoal.experiments.checks.platforms import CHECKS as PLATFORM_CHECKS
from shoal.runs import RunResources
from shoal.text import hint

#: Checks are judged by seeds from here on. Designs and bounds were chosen with seeds below, so they cannot fit these.
#: A design that is changed after it was judged needs seeds that it was not judged by: raise this with the change.
FIRST_SEED = 3001

ALL_CHECKS: Mapping[str, ValidationCheck] = {check.id: check for check in (*OPINION_CHECKS, *PLATFORM_CHECKS)}


def choose_checks(ids: Sequence[str], is_offline: bool) -> list[ValidationCheck]:
    """Return the checks of these ids, or all that apply to the mind."""
    for unknown in (one for one in ids if one not in ALL_CHECKS):
        near = hint(unknown, ALL_CHECKS) or "; `shoal check --list` shows those there are"
        raise RunRefused(f"there is no check {unknown!r}{near}")
    chosen = [ALL_CHECKS[one] for one in ids] or list(ALL_CHECKS.values())
    return [check for check in chosen if is_offline or not check.is_offline_only]


def run_checks(
    checks: Sequence[ValidationCheck], seeds: int, *, jobs: int = 1, mind: Mapping[str, Any] | None = None
) -> Iterator[tuple[ValidationCheck, int, CheckResult | None]]:
    """Run all checks, and yield how many seeds of a check are done, with its result once all are."""
    values: dict[str, dict[int, float]] = {check.id: {} for check in checks}
    trials = [(check, seed) for check in checks for seed in range(FIRST_SEED, FIRST_SEED + seeds)]
    with ProcessPoolExecutor(jobs, get_context("spawn"), end_with_parent) as pool:
        pending = {pool.submit(measure_trial, check.id, seed, mind): (check, seed) for check, seed in trials}
        try:
            for future in as_completed(pending):
                check, seed = pending[future]
                found = values[check.id]
                found[seed] = future.result()
                # The order in which seeds finish is left to chance, so they are sorted before they are resampled.
                is_done = len(found) == seeds
                yield check, len(found), check.judge([found[one] for one in sorted(found)]) if is_done else None
        finally:
            pool.shutdown(cancel_futures=True)


def end_with_parent() -> None:
    """End this process when the one that started it has ended; one that was killed cannot say so."""
    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def measure_trial(check: str, seed: int, mind: Mapping[str, Any] | None) -> float:
    """Return the figure of one check with one seed. Its runs are thrown away."""
    resources = RunResources() if mind is None else RunResources.of_user(os.environ)
    with tempfile.TemporaryDirectory(prefix="shoal-check-") as folder:
        return ALL_CHECKS[check].measure(Laboratory(Path(folder), seed, mind, resources))
