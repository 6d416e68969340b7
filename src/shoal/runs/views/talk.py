"""What was said and done in a room, in dialogues or in a world of the user's own, the newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shoal.runs.directory import RunDirectory
from shoal.runs.reports import ReadBudget, read_backwards
from shoal.runs.stream import parse_line
from shoal.runs.views.pages import ViewPage, check_world, parse_cursor
from shoal.types import Event, Notice
from shoal.worlds import DO_NOTHING

#: More is not read for one page; a page of a world in which hardly anybody speaks may then be short.
_MAX_READ_BYTES = 16 << 20
#: Stands for the author of announcements, which have none.
NO_AUTHOR = -1
_LOOKING_ON = frozenset({DO_NOTHING, "REFRESH", "DONE"})
#: Where the words of an action stand, and the names of receivers, in the order in which they are looked for.
_WORDS = ("content", "quote_content", "reason", "relation", "location", "query", "post_content", "score")
_RECEIVERS = ("to_agent_name", "target", "followee_name", "post_author_name")


@dataclass(frozen=True, slots=True)
class TalkTurn:
    """Something that a person said or did, or an announcement, whose `agent_id` is -1."""

    round: int
    agent_id: int
    name: str
    #: The kind of action in small letters, such as `talk`, or of the announcement, such as `broadcast`.
    kind: str
    text: str
    to: str | None
    opinion: float | None
    time: str | None


def read_talk(
    run: RunDirectory, world: str, until: int | None = None, limit: int = 50, before: str | None = None
) -> ViewPage[TalkTurn]:
    """Read a page of what was said, the newest first: from the end of a round backwards."""
    check_world(run, world)
    end = run.open_stream(world).size() if until is None else run.open_stream(world, until + 1).offset
    place = parse_cursor(before)
    budget, turns, rest = ReadBudget(_MAX_READ_BYTES), list[TalkTurn](), 0
    stop = end if place is None else min(place, end)
    for position, line in read_backwards(run.open_stream(world).path, 0, stop, budget):
        rest = position
        if (turn := _read_turn(line)) is not None:
            turns.append(turn)
        if len(turns) == limit:
            break
    is_more = rest > 0 and (len(turns) == limit or budget.is_spent)
    return ViewPage(turns, None, str(rest) if is_more else None)


def _read_turn(line: bytes) -> TalkTurn | None:
    found = parse_line(line)
    match found:
        case Event() if found.success and found.action_type not in _LOOKING_ON:
            args = found.action_args
            opinion = args.get("opinion")
            return TalkTurn(
                found.round,
                found.agent_id,
                found.agent_name,
                found.action_type.lower(),
                _pick(args, _WORDS) or "",
                _pick(args, _RECEIVERS),
                opinion if isinstance(opinion, float | int) else None,
                found.timestamp,
            )
        case Notice():
            return TalkTurn(found.round, NO_AUTHOR, "", found.event_type, found.content, None, None, found.timestamp)
        case _:
            return None


def _pick(args: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((str(args[name]) for name in names if args.get(name) not in (None, "")), None)
