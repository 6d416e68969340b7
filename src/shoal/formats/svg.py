"""Draws SVG: pictures that stand alone, follow the light or dark page they are on, and load nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, inf, log10
from typing import TypeVar

LabelT = TypeVar("LabelT", float, tuple[str, str])


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished picture. `name` is what its file is called."""

    name: str
    title: str
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True, slots=True)
class Axis:
    """Turns values between `low` and `high` into places between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)

    def ticks(self, about: int = 4) -> list[float]:
        """Return round values between the ends."""
        step = choose_step(self.high - self.low, about)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def choose_step(span: float, about: int = 4) -> float:
    """Choose 1, 2 or 5 times a power of ten, so that about that many steps fill a span."""
    rough = max(span, 1e-9) / about
    power = 10.0 ** floor(log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)


def draw_text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    of_class = f' class="{style}"' if style else ""
    return f'<text{of_class} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def draw_line(points: Iterable[tuple[float, float]], style: str) -> str:
    return f'<polyline class="{style}" points="{join_points(points)}"/>'


def join_points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def spread_labels(
    labels: Iterable[tuple[float, LabelT]], line_height: float, bottom: float, top: float = -inf
) -> list[tuple[float, LabelT]]:
    """Move labels of nearly the same height apart, so that each can be read, and none out of the chart."""
    placed: list[tuple[float, LabelT]] = []
    for y, label in sorted(labels):
        placed.append((max(y, placed[-1][0] + line_height) if placed else y, label))
    too_low = max(placed[-1][0] - bottom, 0.0) if placed else 0.0
    return [(max(y - too_low, top), label) for y, label in placed]


def draw_circle(at: tuple[float, float], radius: float, style: str, title: str) -> str:
    """Draw a circle that says what it is when a pointer rests on it. `style` is its attributes."""
    x, y = at
    return f'<circle {style} cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{escape(title)}</title></circle>'


def wrap_svg(parts: Sequence[str], size: tuple[int, int], label: str, css: str) -> str:
    """Make a whole SVG of its parts, with the style sheet inside."""
    (width, height), body = size, "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(label, quote=True)}">\n<style>\n{css}</style>\n{body}\n</svg>\n'
    )
