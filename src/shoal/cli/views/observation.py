"""What somebody saw, all of it, on the terminal; and any other plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shoal.text import format_count, printable
from shoal.types import Action, Observation
from shoal.worlds.dialogue.observations import DialogueObservation
from shoal.worlds.room.observations import RoomObservation, Stimulus
from shoal.worlds.social.observations import MessageView, PostView, SocialObservation

_LABEL_WIDTH = 15
#: Up to this a cell of a table is not broken.
_CELL_WIDTH = 9
_HEAD = frozenset(Observation.__struct_fields__)

#: A label, and what is to be read beside it.
Row = tuple[str, RenderableType]


def picture(observation: Observation) -> Table:
    """Everything that was there to be seen."""
    show = next((show for kind, show in _SHOWN.items() if isinstance(observation, kind)), _anything)
    pending = [_line(action.kind, _args(action.args)) for action in observation.pending]
    rows = [*show(observation), *_listed("own, unseen yet", pending)]
    return rows_of(rows or [("", Text("nothing", "dim"))])


def values(told: Mapping[str, Any]) -> RenderableType:
    """Plain values by name: short ones in a line, lists of records as tables over the whole width."""
    parts: list[RenderableType] = []
    for name, value in told.items():
        if _are_records(value):
            parts += [Text(_words(name), "dim"), Padding(_records(value), (0, 0, 0, 2))]
        else:
            parts.append(rows_of([(_words(name), _value(value))]))
    return Group(*parts)


def action(done: Action) -> Text:
    return _line(done.kind, _args(done.args))


def rows_of(rows: Iterable[Row]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", min_width=_LABEL_WIDTH, no_wrap=True)
    table.add_column(overflow="fold")
    for label, content in rows:
        table.add_row(Text(label), content)
    return table


def _line(who: str, words: str, more: str = "") -> Text:
    line = Text.assemble((printable(who), "bold"), f": {printable(words)}" if words else "")
    return line.append(f"  {more}", "dim") if more else line


def _listed(label: str, lines: Sequence[RenderableType]) -> Iterator[Row]:
    if lines:
        yield label, Group(*lines)


# Platforms


def _social(seen: SocialObservation) -> Iterator[Row]:
    yield from _listed("news", [Text(printable(text)) for text in seen.announcements])
    yield from _listed("followed", [_post(post, seen) for post in seen.followed])
    yield from _listed("recommended", [_post(post, seen) for post in seen.recommended])
    for answer in seen.answers:
        users = [Text(printable(name)) for _, name in answer.users]
        found = [*(_post(post, seen) for post in answer.posts), *users, *_messages(answer.messages)]
        yield f"{answer.action.lower()}", Group(Text(printable(answer.query), "italic"), *found)
    for group in seen.groups:
        joined = ", joined" if group.joined else ""
        told = f"{printable(group.name)} ({group.group_id}), {format_count(group.members, 'member')}{joined}"
        yield "group", Group(Text(told), *_messages(group.messages))
    if seen.products:
        yield "on sale", Text(", ".join(f"{name} ({sold} sold)" for name, sold in seen.products))
    yield "connections", Text(f"{format_count(seen.followers, 'follower')}, follows {seen.following}")


def _post(post: PostView, seen: SocialObservation) -> RenderableType:
    words = post.content if post.quote is None else f"{post.quote} | {post.content}"
    who = f"{post.author} (by {post.original_author})" if post.original_author else post.author
    counts = {"like": post.likes, "dislike": post.dislikes, "share": post.shares, "comment": post.comments}
    facts = [f"post {post.post_id}", f"{format_count(post.age, 'round')} old"]
    facts += [format_count(count, name) for name, count in counts.items() if count]
    facts += ["reported"] * post.flagged + ["reacted before"] * (post.post_id in seen.reacted)
    replies = [_line(reply.author, reply.content, _liked(reply.likes)) for reply in post.replies]
    return Group(_line(who, words, f"[{', '.join(facts)}]"), *(Padding(reply, (0, 0, 0, 4)) for reply in replies))


def _liked(likes: int) -> str:
    return f"[{format_count(likes, 'like')}]" if likes else ""


def _messages(messages: Sequence[MessageView]) -> Iterator[Text]:
    for message in messages:
        yield _line(message.author, message.content)


# Rooms and conversations


def _room(seen: RoomObservation) -> Iterator[Row]:
    if seen.location:
        yield "where", Text(printable(seen.location))
    yield "within hearing", Text(printable(", ".join(seen.present)) or "nobody")
    yield from _listed("came in", [_stimulus(stimulus) for stimulus in seen.stimuli])
    yield from _listed("goals", [Text(printable(goal)) for goal in seen.goals])
    if seen.attention:
        yield "attention", Text(printable(seen.attention))
    yield from _listed("relations", [_line(tie.agent, tie.relation) for tie in seen.relations])


def _stimulus(stimulus: Stimulus) -> Text:
    facts = [] if stimulus.kind == "hear" else [stimulus.kind.replace("_", " ")]
    facts += ["addressed"] * stimulus.addressed
    return _line(stimulus.source or "(nobody)", stimulus.content, f"[{', '.join(facts)}]" if facts else "")


def _dialogue(seen: DialogueObservation) -> Iterator[Row]:
    yield from _listed("news", [Text(printable(text)) for text in seen.announcements])
    yield "partner", _line(seen.partner, seen.partner_bio)
    yield "scene", Text(printable(f"{seen.scene}, turn {seen.turn} of {seen.turns}. {seen.setting}".strip()))
    if seen.turning_point:
        yield "turning point", Text(printable(seen.turning_point))
    yield from _listed("said so far", [_line(line.speaker, line.content) for line in seen.lines])
    if seen.rating:
        yield "asked", Text("to rate the scene")


# Anything else


def _anything(seen: Observation) -> Iterator[Row]:
    for name in seen.__struct_fields__:
        value = msgspec.to_builtins(getattr(seen, name))
        if name not in _HEAD and value:
            told = value if name == "view" and isinstance(value, Mapping) else {name: value}
            yield from ((_words(key), _value(part)) for key, part in told.items())


def _value(value: Any) -> RenderableType:
    if isinstance(value, Mapping) and all(map(_is_short, value.values())):
        return Text(_args(value))
    if isinstance(value, Mapping):
        return values(value)
    return _records(value) if _are_records(value) else Text(_plain(value))


def _is_short(value: Any) -> bool:
    return not isinstance(value, Mapping | list | tuple)


def _are_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(_is_record(item) for item in value)


def _is_record(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_short, value.values()))


def _records(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    columns = list(dict.fromkeys(name for record in records for name in record))
    for column in columns:
        widest = max(len(_plain(record.get(column))) for record in records)
        table.add_column(Text(_words(column)), overflow="fold", min_width=min(widest, _CELL_WIDTH))
    for record in records:
        table.add_row(*(Text(_plain(record.get(column))) for column in columns))
    return table


def _args(args: Mapping[str, Any]) -> str:
    return ", ".join(f"{_words(name)} {_plain(value)}" for name, value in args.items())


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ((), [], {}):
        return "-"
    text = value if isinstance(value, str) else msgspec.json.encode(_rounded(value)).decode()
    return "\n".join(map(printable, text.splitlines()))


def _rounded(value: Any) -> Any:
    """Numbers as people read them; `--json` has all digits."""
    if isinstance(value, float):
        return round(value, 4)
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value


def _words(name: object) -> str:
    """A name as people write it; kinds of actions stay as they are."""
    text = printable(str(name))
    return text if text.isupper() else text.replace("_", " ")


_SHOWN: Mapping[type[Observation], Callable[[Any], Iterable[Row]]] = {
    SocialObservation: _social,
    RoomObservation: _room,
    DialogueObservation: _dialogue,
}
