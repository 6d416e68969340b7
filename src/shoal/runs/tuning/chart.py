"""Draws measurements of how many at once as SVG, for light and dark pages, without other files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from math import ceil, log2

from shoal.formats import choose_step, draw_text, wrap_svg
from shoal.runs.tuning.knee import Knee, MeasuredLevel

WIDTH, HEIGHT = 720, 520
LEFT, RIGHT = 76, 690
#: Top and bottom of the two panels.
UPPER, LOWER = (116, 290), (338, 460)
#: The opacity of the shade behind levels with few and with many failures.
FAINT, DARK = 0.10, 0.45
TICKS = 4
#: Texts whose centres are closer than this would touch.
_TEXT_WIDTH = 26

STYLE = resources.files(__package__).joinpath("chart.css").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Scales:
    """The horizontal axis of both panels."""

    levels: Sequence[MeasuredLevel]
    knee: Knee | None

    def x(self, at_once: float) -> float:
        low, high = log2(self.levels[0].at_once), log2(self.levels[-1].at_once)
        inset = 18
        return LEFT + inset + (log2(at_once) - low) / max(high - low, 1e-9) * (RIGHT - LEFT - 2 * inset)

    def ticks(self) -> list[int]:
        """Return powers of two and the knee, without those whose text would touch the knee's."""
        powers = [level.at_once for level in self.levels if level.at_once.bit_count() == 1]
        if self.knee is None or self.knee.at_once in powers:
            return powers
        at = self.knee.at_once
        return [*(power for power in powers if abs(self.x(power) - self.x(at)) > _TEXT_WIDTH), at]


def draw_chart(levels: Iterable[MeasuredLevel], knee: Knee | None, titles: tuple[str, str, str]) -> str:
    """Draw the picture; empty if nothing was measured. Titles: of the whole, and of each of its panels."""
    ordered = sorted(levels, key=lambda level: level.at_once)
    if not ordered:
        return ""
    scales = _Scales(ordered, knee)
    title, what, took = titles
    much = _Panel.up_to(scales, UPPER, max(level.per_second for level in ordered))
    slow = _Panel.up_to(scales, LOWER, max(level.p95 for level in ordered))
    parts = [
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10"/>',
        draw_text(LEFT - 50, 36, title, "title"),
        *_draw_failures(scales),
        *_draw_knee(scales),
        *much.draw_frame(what),
        *slow.draw_frame(f"{took}, for 95% of them and (dotted) for half"),
        *much.draw_line(lambda level: level.per_second, "much", area=True),
        *slow.draw_line(lambda level: level.p50, "half"),
        *slow.draw_line(lambda level: level.p95, "slow"),
        *(draw_text(scales.x(tick), LOWER[1] + 20, f"{tick:,}", anchor="middle") for tick in scales.ticks()),
        draw_text((LEFT + RIGHT) / 2, LOWER[1] + 42, "at once", anchor="middle"),
    ]
    return wrap_svg(parts, (WIDTH, HEIGHT), title, STYLE)


@dataclass(frozen=True, slots=True)
class _Panel:
    """One of the two panels, with a vertical axis from 0 to a round number."""

    scales: _Scales
    span: tuple[int, int]
    #: Between two lines, and how many lines there are above the axis.
    step: float
    steps: int

    @classmethod
    def up_to(cls, scales: _Scales, span: tuple[int, int], most: float) -> _Panel:
        """Choose a round step, for about four lines."""
        step = choose_step(most, TICKS)
        return cls(scales, span, step, ceil(max(most, 1e-9) / step - 1e-9))

    def y(self, value: float) -> float:
        top, bottom = self.span
        return bottom - value / (self.step * self.steps) * (bottom - top)

    def draw_frame(self, title: str) -> Iterator[str]:
        yield draw_text(LEFT - 50, self.span[0] - 14, title, "head")
        for number in range(self.steps + 1):
            value = number * self.step
            y = self.y(value)
            yield f'<line class="{"grid" if number else "axis"}" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield draw_text(LEFT - 10, y + 4, f"{value:,.4g}", anchor="end")

    def draw_line(self, of: Callable[[MeasuredLevel], float], style: str, *, area: bool = False) -> Iterator[str]:
        points = [(self.scales.x(level.at_once), self.y(of(level))) for level in self.scales.levels]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        if area:
            bottom = self.span[1]
            yield f'<polygon class="area" points="{points[0][0]:.1f},{bottom} {path} {points[-1][0]:.1f},{bottom}"/>'
        yield f'<polyline class="{style}" points="{path}"/>'
        if style != "half":
            yield from (f'<circle class="dot-{style}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points)


def _draw_failures(scales: _Scales) -> Iterator[str]:
    """Draw a band for each level with failures, half way to its neighbours."""
    places = [scales.x(level.at_once) for level in scales.levels]
    middles = [(one + other) / 2 for one, other in pairwise(places)]
    for level, left, right in zip(scales.levels, [LEFT, *middles], [*middles, RIGHT], strict=True):
        if level.failed:
            shade = FAINT + (DARK - FAINT) * min(level.failed_share * 2, 1.0)
            for top, bottom in (UPPER, LOWER):
                yield (
                    f'<rect class="fails" opacity="{shade:.2f}" x="{left:.1f}" y="{top}" '
                    f'width="{right - left:.1f}" height="{bottom - top}"/>'
                )
            if right - left > 2 * _TEXT_WIDTH or level is scales.levels[-1]:
                middle = min((left + right) / 2, RIGHT - _TEXT_WIDTH)
                yield draw_text(middle, UPPER[1] - 8, f"{level.failed_share:.0%} fail", "failing", "middle")


def _draw_knee(scales: _Scales) -> Iterator[str]:
    """Draw the knee over both panels."""
    if scales.knee is None:
        return
    x, words = scales.x(scales.knee.at_once), f"{scales.knee.at_once:,} at once"
    half = 4.2 * len(words) + 6
    middle = min(max(x, LEFT + half), RIGHT - half)
    yield f'<line class="knee" x1="{x:.1f}" x2="{x:.1f}" y1="{UPPER[0] - 48}" y2="{LOWER[1]}"/>'
    yield f'<rect class="pill" x="{middle - half:.1f}" y="{UPPER[0] - 64}" width="{2 * half:.1f}" height="23" rx="11"/>'
    yield draw_text(middle, UPPER[0] - 48, words, "pill-text", "middle")
