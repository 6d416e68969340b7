"""Servers as formulas: what would be measured at each level."""

from __future__ import annotations

from collections.abc import Callable

from shoal.runs.tuning.knee import MeasuredLevel, next_level

Server = Callable[[int], MeasuredLevel]


def level(at_once: int, per_second: float, **more: object) -> MeasuredLevel:
    fields = {"tried": 3 * at_once + 8, "p50": 1.0, "p95": 2.0, **more}
    return MeasuredLevel(at_once=at_once, per_second=per_second, **fields)  # type: ignore[arg-type]


def refusing(cap: int, usual_failures: float = 0.0) -> Server:
    """Refuses what is above its cap; besides, some calls fail however few there are."""

    def answer(at_once: int) -> MeasuredLevel:
        tried = 3 * at_once + 8
        failures = {"429 concurrency": round(tried * max(at_once - cap, 0) / at_once)}
        failures["500 transient"] = round(tried * usual_failures)
        found = {name: count for name, count in failures.items() if count}
        return level(at_once, min(at_once, cap), tried=tried, failures=found)

    return answer


def queueing(cap: int) -> Server:
    """Lets everybody wait; answers come no faster for it."""
    return lambda at_once: level(at_once, min(at_once, cap), p50=max(1.0, at_once / cap), p95=max(2.0, at_once / cap))


def measure_all(server: Server, up_to: int = 256) -> list[MeasuredLevel]:
    levels: list[MeasuredLevel] = []
    while (at_once := next_level(levels, up_to)) is not None:
        levels.append(server(at_once))
    return levels
