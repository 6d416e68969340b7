"""What happened in a run, as lines to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shoal.python import display
from shoal.types import Event, Notice

#: Actions that get no line where they succeed.
_SILENT = ("DO_NOTHING", "DONE", "REFRESH")
_SPOKEN = {"TALK": "", "SAY": "", "THINK": " (thinking)"}
#: A notice to more people than this names these and counts the others.
_MAX_NAMES = 3


class Transcript(str):
    """A text that keeps its lines in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return display.preformat(self)


def render_lines(lines: Iterable[Event | Notice], names: Mapping[int, str], person: str | None = None) -> Iterator[str]:
    """Render the lines of a stream, with a heading for each round; for one person only its actions and notices."""
    round = -1
    for line in lines:
        if isinstance(line, Event):
            text, concerns = _render_event(line), person in (None, line.agent_name)
        else:
            text = _render_notice(line, names)
            concerns = person is None or not line.to or person in (names.get(agent) for agent in line.to)
        if text is None or not concerns:
            continue
        if line.round != round:
            round = line.round
            yield f"-- round {round}, {line.timestamp[:16].replace('T', ' ')}"
        yield text


def _render_notice(notice: Notice, names: Mapping[int, str]) -> str:
    to = [names.get(agent, str(agent)) for agent in notice.to[:_MAX_NAMES]]
    more = f" and {len(notice.to) - _MAX_NAMES} more" if len(notice.to) > _MAX_NAMES else ""
    return f"[{notice.event_type}{' to ' if to else ''}{', '.join(to)}{more}] {notice.content}"


def _render_event(event: Event) -> str | None:
    if event.action_type in _SILENT:
        return None if event.success else f"{event.agent_name} did nothing ({event.result})"
    refused = "" if event.success else f" [refused: {event.result}]"
    args = event.action_args
    if event.action_type in _SPOKEN:
        target = f" to {args['target']}" if isinstance(args.get("target"), str) else ""
        return f"{event.agent_name}{target}{_SPOKEN[event.action_type]}: {args.get('content', '')}{refused}"
    content = args.get("content") or args.get("quote_content")
    what = event.action_type.lower().replace("_", " ")
    rest = f": {content}" if content else "".join(f" {name}={value}" for name, value in args.items())
    return f"{event.agent_name} ({what}){rest}{refused}"
