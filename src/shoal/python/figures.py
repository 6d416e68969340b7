"""The figures that a run measured: speed, latencies, errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.engine import Metrics
from shoal.python import display
from shoal.runs import RunState
from shoal.text import hint


class Figures(Mapping[str, Any]):
    """Measured figures by name: `metrics.speedup` is `metrics["speedup"]`. None: there was nothing to measure."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    @classmethod
    def of(cls, state: RunState | None) -> Figures:
        """Take the figures of a run; errors and timeouts are counted also where steps are not timed."""
        if state is None:
            return cls(Metrics().as_dict())
        return cls({**state.metrics.as_dict(), "errors": state.errors, "timeouts": state.timeouts})

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no figure {name!r}{hint(name, self.__dict__.get('_values', ()))}")
        return self._values[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        width = max(map(len, self._values))
        return "\n".join(f"{name.ljust(width)}  {_format_figure(value)}" for name, value in self._values.items())

    def _repr_html_(self) -> str:
        return display.table((name.replace("_", " "), _format_figure(value)) for name, value in self._values.items())


def _format_figure(value: object) -> str:
    if value is None:
        return "not measured"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_format_figure(below)}" for name, below in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
