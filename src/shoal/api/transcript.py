"""What happened, told line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shoal.api import display
from shoal.types import Event, Notice

#: What is not worth a line.
_NOTHING = ("DO_NOTHING", "DONE", "REFRESH")
_SAID = {"TALK": "", "SAY": "", "THINK": " (thinking)"}
#: A message to more people than this says how many.
_NAMED = 3


class Transcript(str):
    """A text that looks like one in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return display.preformatted(self)


class Teller:
    """Tells the lines of a stream; of one person only what it did and what it was told, where that is asked for."""

    def __init__(self, names: Mapping[int, str], person: str | None = None) -> None:
        self._names = names
        self._person = person

    def told(self, lines: Iterable[Event | Notice]) -> Iterator[str]:
        """The lines to be read, with the round where a new one begins."""
        round = -1
        for line in lines:
            text = self._of_notice(line) if isinstance(line, Notice) else _of_event(line)
            if text is None or not self._concerns(line):
                continue
            if line.round != round:
                round = line.round
                yield f"-- round {round}, {line.timestamp[:16].replace('T', ' ')}"
            yield text

    def _concerns(self, line: Event | Notice) -> bool:
        if self._person is None:
            return True
        if isinstance(line, Event):
            return line.agent_name == self._person
        return not line.to or self._person in (self._names.get(agent) for agent in line.to)

    def _of_notice(self, notice: Notice) -> str:
        to = [self._names.get(agent, str(agent)) for agent in notice.to[:_NAMED]]
        more = f" and {len(notice.to) - _NAMED} more" if len(notice.to) > _NAMED else ""
        return f"[{notice.event_type}{' to ' if to else ''}{', '.join(to)}{more}] {notice.content}"


def _of_event(event: Event) -> str | None:
    if event.action_type in _NOTHING:
        return None if event.success else f"{event.agent_name} did nothing ({event.result})"
    refused = "" if event.success else f" [refused: {event.result}]"
    args = event.action_args
    target = f" to {args['target']}" if isinstance(args.get("target"), str) else ""
    if event.action_type in _SAID:
        return f"{event.agent_name}{target}{_SAID[event.action_type]}: {args.get('content', '')}{refused}"
    content = args.get("content") or args.get("quote_content")
    what = event.action_type.lower().replace("_", " ")
    rest = f": {content}" if content else "".join(f" {name}={value}" for name, value in args.items())
    return f"{event.agent_name} ({what}){rest}{refused}"
