"""Draws all pictures of runs, and writes them as SVG files and as one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

from shoal.errors import RunRefused
from shoal.formats import Drawing
from shoal.runs.directory import RunDirectory, read_outcome
from shoal.runs.files import storage_errors
from shoal.runs.plots.cascades import draw_cascades
from shoal.runs.plots.curves import MAX_RUNS, draw_curves
from shoal.runs.plots.history import WorldHistory, read_history
from shoal.runs.plots.network import draw_network
from shoal.runs.plots.ridges import draw_ridges
from shoal.text import format_count

PAGE = "index.html"


@dataclass(frozen=True, slots=True)
class PlotSection:
    """Pictures of one kind in one world, of all runs together or of a single one."""

    world: str
    heading: str
    drawings: Sequence[Drawing]
    #: The single run that the pictures show; None where they show all runs.
    run: str | None = None


@dataclass(frozen=True, slots=True)
class PlotPage:
    """All pictures of some runs. Notebooks show it as it is."""

    runs: Sequence[str]
    sections: Sequence[PlotSection]
    html: str

    def _repr_html_(self) -> str:
        # A separate frame keeps the style of the page away from that of the notebook.
        return f'<iframe srcdoc="{escape(self.html, quote=True)}" style="width:100%;height:820px;border:0"></iframe>'

    def save(self, folder: Path) -> list[Path]:
        """Write the page and every picture into a folder, and return the paths. Files of these names are replaced."""
        written = []
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for section in self.sections:
                for drawing in section.drawings:
                    of_run = f"-{self.runs.index(section.run) + 1}" if section.run and len(self.runs) > 1 else ""
                    written.append(folder / f"{section.world}-{drawing.name}{of_run}.svg")
                    written[-1].write_text(drawing.svg, encoding="utf-8")
            written.append(folder / PAGE)
            written[-1].write_text(self.html, encoding="utf-8")
        return written


def plot_runs(runs: Sequence[RunDirectory]) -> PlotPage:
    """Draw what is committed of some runs. Figures of several runs are lines in the same charts."""
    if len(runs) > MAX_RUNS:
        raise RunRefused(f"{len(runs)} runs in one picture cannot be told apart.\nGive at most {MAX_RUNS}.")
    names = [run.path.absolute().name for run in runs]
    labels = [str(run.path) if names.count(name) > 1 else name for run, name in zip(runs, names, strict=True)]
    sections: list[PlotSection] = []
    for world in dict.fromkeys(world for run in runs for world in run.worlds):
        read = (read_history(run, world, label) for run, label in zip(runs, labels, strict=True) if world in run.worlds)
        sections += _draw_world([history for history in read if history is not None])
    if not sections:
        paths = ", ".join(str(run.path) for run in runs)
        raise RunRefused(f"{paths}: nothing is recorded that could be drawn.\nRun it again with this version of Shoal.")
    facts = []
    for run in runs:
        outcome, scenario = read_outcome(run), run.scenario_versions.first
        topic = f", on {scenario.topic}" if scenario.topic else ""
        facts.append(f"{outcome.status}, {format_count(outcome.rounds, 'round')}, seed {scenario.seed}{topic}")
    return PlotPage(labels, sections, _write_page(labels, facts, sections))


def _draw_world(histories: Sequence[WorldHistory]) -> Iterator[PlotSection]:
    if not any(history.figures for history in histories):
        return
    world = histories[0].world
    yield PlotSection(world, "Figures over rounds", list(draw_curves(histories)))
    for heading, draw in (
        ("Opinions over time", draw_ridges),
        ("Cascades: how the posts spread that were passed on most", draw_cascades),
    ):
        for history in histories:
            if drawings := list(draw(history)):
                yield PlotSection(world, heading, drawings, history.label)
    for history in histories:
        if (drawing := draw_network(history)) is not None:
            yield PlotSection(world, "Who is connected", [drawing], history.label)


def _write_page(labels: Sequence[str], facts: Sequence[str], sections: Sequence[PlotSection]) -> str:
    css = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    rows = "".join(
        f'<li><svg width="34" height="10"><polyline class="run{number}" points="0,5 34,5"/></svg> '
        f"<b>{escape(label)}</b> <span>{escape(fact)}</span></li>"
        for number, (label, fact) in enumerate(zip(labels, facts, strict=True))
    )
    parts = []
    world, heading = None, None
    for section in sections:
        if section.world != world:
            world, heading = section.world, None
            parts.append(f"<h2>{escape(world)}</h2>")
        if section.heading != heading:
            heading = section.heading
            parts.append(f"<h3>{escape(heading)}</h3>")
        if section.run is not None and len(labels) > 1:
            parts.append(f'<p class="of">{escape(section.run)}</p>')
        parts.append('<div class="grid">' + "".join(drawing.svg for drawing in section.drawings) + "</div>")
    title = escape(" and ".join(labels))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>\n{css}</style></head>\n'
        f'<body><main><h1>{title}</h1><ul class="runs">{rows}</ul>\n' + "\n".join(parts) + "\n</main></body></html>\n"
    )
