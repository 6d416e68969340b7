"""The report of a run as Markdown, and as one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from importlib import resources

from shoal.runs.narrative.narrative import NarrativeSection, RunNarrative

#: What Markdown would take for more than a letter, in texts of agents.
_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>#|"})


def render_markdown(narrative: RunNarrative) -> str:
    """Return the report as Markdown, with the evidence at the end."""
    numbers = number_evidence(narrative)
    lines = [f"# {narrative.title.translate(_SPECIAL)}", ""]
    for section in narrative.sections:
        if section.statements:
            lines += [f"## {section.heading.translate(_SPECIAL)}", ""]
            for statement in section.statements:
                marks = [str(numbers[event]) for event in statement.events if event in numbers]
                sources = [*([f"evidence {', '.join(marks)}"] if marks else []), *statement.figures]
                lines.append(
                    f"- {statement.text.translate(_SPECIAL)}" + (f" ({'; '.join(sources)})" if sources else "")
                )
            lines.append("")
    lines += ["## Evidence", ""]
    for event, number in numbers.items():
        episode = narrative.evidence[event]
        lines.append(f"{number}. `{event}`, round {episode.round}: {episode.text.translate(_SPECIAL)}")
    return "\n".join([*lines, ""])


def number_evidence(narrative: RunNarrative) -> dict[str, int]:
    """Number the actions in the order in which the sentences name them."""
    named = (event for section in narrative.sections for each in section.statements for event in each.events)
    known = [event for event in dict.fromkeys(named) if event in narrative.evidence]
    return {event: number for number, event in enumerate(known, 1)}


def render_html(narrative: RunNarrative) -> str:
    """Return the report as a page. Texts of agents are escaped, and nothing in the page can run."""
    css = resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    numbers = number_evidence(narrative)
    body = "\n".join(part for section in narrative.sections for part in _render_section(section, numbers))
    evidence = "\n".join(
        f'<li id="e{number}" value="{number}"><code>{escape(event)}</code> <span>round {episode.round}</span> '
        f"{escape(episode.text)}</li>"
        for event, number in numbers.items()
        for episode in (narrative.evidence[event],)
    )
    title = escape(narrative.title)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>\n{css}</style></head>\n'
        f"<body><main><h1>{title}</h1>\n{body}\n<h2>Evidence</h2>\n<ol>\n{evidence}\n</ol></main></body></html>\n"
    )


def _render_section(section: NarrativeSection, numbers: Mapping[str, int]) -> Iterator[str]:
    yield f"<h2>{escape(section.heading)}</h2>"
    items = []
    for each in section.statements:
        links = [f'<a href="#e{numbers[event]}">{numbers[event]}</a>' for event in each.events if event in numbers]
        sources = [*([f"evidence {', '.join(links)}"] if links else []), *map(escape, each.figures)]
        shown = f' <span class="sources">{"; ".join(sources)}</span>' if sources else ""
        items.append(f"<li>{escape(each.text)}{shown}</li>")
    if items:
        yield f"<ul>{''.join(items)}</ul>"
    if section.drawings:
        yield '<div class="grid">' + "".join(drawing.svg for drawing in section.drawings) + "</div>"
