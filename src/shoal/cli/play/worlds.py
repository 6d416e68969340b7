"""What a person who plays a part sees of each kind of world, and what they may type."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from shoal.text import nearest, printable
from shoal.types import Action, Observation
from shoal.worlds.dialogue.observations import DialogueObservation
from shoal.worlds.room.observations import RoomObservation, Stimulus
from shoal.worlds.social.observations import PostView, SocialObservation

NOTHING = Action("DO_NOTHING")
#: Lines of a conversation; what was said before has been read before.
LINES_SHOWN = 6


class Mistake(Exception):
    """What was typed makes no sense here; the message says why."""


@dataclass(frozen=True, slots=True)
class PlayAdapter:
    """One kind of world, to a person."""

    #: The lines that say what there is to see.
    show: Callable[[Any], Iterable[str]]
    #: What somebody who sees this means by a line.
    read: Callable[[str, Any], Action]
    help: str


def part_of(observation: Observation) -> PlayAdapter:
    """How this is shown and answered."""
    return next((part for kind, part in _PARTS.items() if isinstance(observation, kind)), _ANYTHING)


def picture(observation: Observation) -> str:
    """What an agent sees, for a person to read."""
    head = f"{observation.name} in {observation.world}, round {observation.round}, {observation.time[:16]}"
    news = [f"News: {text}" for text in getattr(observation, "announcements", ())]
    lines = [f"── {head} ──", *news, *part_of(observation).show(observation)]
    return "".join(f"{printable(line)}\n" for line in lines)


# Conversations

_DIALOGUE_HELP = """\
  any text            say it
  /think TEXT         think it; nobody hears that
  /leave              end the scene for both
  /rate 7 TEXT        when the scene is over: 0 to 10, and why
  /nothing            stay silent"""


def _show_dialogue(seen: DialogueObservation) -> Iterable[str]:
    about = f" ({seen.partner_bio.rstrip('.')})" if seen.partner_bio else ""
    yield f"You talk to {seen.partner}{about}. Scene {seen.scene}, turn {seen.turn} of at most {seen.turns}."
    if seen.setting:
        yield f"Scene: {seen.setting}"
    if seen.turning_point:
        yield f"Then: {seen.turning_point}"
    for line in seen.lines[-LINES_SHOWN:]:
        yield f"  {'You' if line.speaker_id == seen.agent else line.speaker}: {line.content}"
    if seen.rating:
        yield "The scene is over. How did it go? /rate 0 to 10, and why."


def _read_dialogue(line: str, seen: DialogueObservation) -> Action:
    if not line.startswith("/"):
        if not seen.rating:
            return Action("SAY", {"content": line})
        line = f"/rate {line}"
    verb, rest = _split(line[1:])
    verbs: Mapping[str, Callable[[], Action]] = {
        "say": lambda: Action("SAY", {"content": _text(rest)}),
        "think": lambda: Action("THINK", {"content": _text(rest)}),
        "leave": lambda: Action("LEAVE"),
        "rate": lambda: _rate(rest),
        "nothing": lambda: NOTHING,
    }
    act = _chosen(verb, verbs, "/")
    if verb in ("say", "leave") and seen.rating:
        raise Mistake("the scene is over; /rate it")
    if verb == "rate" and not seen.rating:
        raise Mistake("a scene is rated when it is over")
    return act()


def _rate(rest: str) -> Action:
    score, reason = _split(rest)
    if not score.isdecimal() or int(score) > 10:
        raise Mistake("rate with a whole number from 0 to 10, as in: /rate 7 a good talk")
    return Action("RATE", {"score": int(score), **({"reason": reason} if reason else {})})


# Rooms

_ROOM_HELP = """\
  any text            say it to everybody who is here
  /to NAME: TEXT      say it to one of them (without the colon, the first word is the name)
  /think TEXT         think it; nobody hears that
  /reach NAME         ask for somebody's attention
  /attend TEXT        turn to something
  /go PLACE           go somewhere else
  /done               be done for this turn
  /nothing            do nothing"""


def _show_room(seen: RoomObservation) -> Iterable[str]:
    here = ", ".join(seen.present) or "nobody"
    yield f"You are {'in ' + seen.location if seen.location else 'here'} with {here}."
    for goal in seen.goals:
        yield f"You want: {goal}"
    for relation in seen.relations:
        yield f"{relation.agent}: {relation.relation}"
    for stimulus in seen.stimuli:
        yield f"  {_stimulus(stimulus)}"


def _stimulus(stimulus: Stimulus) -> str:
    if stimulus.kind == "hear" and stimulus.source:
        return f"{stimulus.source}{' (to you)' if stimulus.addressed else ''}: {stimulus.content}"
    source = f" {stimulus.source}" if stimulus.source else ""
    return f"[{stimulus.kind.replace('_', ' ')}{source}] {stimulus.content}".rstrip()


def _read_room(line: str, seen: RoomObservation) -> Action:
    if not line.startswith("/"):
        return Action("TALK", {"content": line})
    verb, rest = _split(line[1:])
    verbs: Mapping[str, Callable[[], Action]] = {
        "say": lambda: Action("TALK", {"content": _text(rest)}),
        "to": lambda: _talk_to(rest, seen),
        "think": lambda: Action("THINK", {"content": _text(rest)}),
        "reach": lambda: Action("REACH_OUT", {"target": _name(_text(rest), seen.present)}),
        "attend": lambda: Action("ATTEND", {"content": _text(rest)}),
        "go": lambda: Action("MOVE_TO", {"location": _text(rest)}),
        "done": lambda: Action("DONE"),
        "nothing": lambda: NOTHING,
    }
    return _chosen(verb, verbs, "/")()


def _talk_to(rest: str, seen: RoomObservation) -> Action:
    name, colon, words = rest.partition(":")
    if not colon:
        name, words = _split(rest)
    return Action("TALK", {"content": _text(words.strip()), "target": _name(name.strip(), seen.present)})


def _name(wanted: str, names: Sequence[str]) -> str:
    """Somebody's whole name, where a part of it was typed that only one of them has."""
    if wanted in names:
        return wanted
    found = [name for name in names if wanted.casefold() in name.casefold().split()]
    if len(found) == 1:
        return found[0]
    raise Mistake(f"{'there are several' if found else 'nobody here is'} called {wanted!r}: {', '.join(names) or '-'}")


# Platforms

_SOCIAL_HELP = """\
  post TEXT           write a post
  like 3              like post 3 of those above; dislike, repost, follow and mute go the same way
  comment 3 TEXT      comment on post 3
  quote 3 TEXT        share post 3 with a word of your own
  search TEXT         look for posts; what is found is shown in your next turn
  trend               see what many talk about, in your next turn
  JOIN_GROUP group_id=2   any other action, by its name
  nothing             do nothing"""
#: Verb -> kind of action, for those that take the number of a post and nothing else.
_ON_POSTS = {
    "like": "LIKE_POST",
    "unlike": "UNLIKE_POST",
    "dislike": "DISLIKE_POST",
    "repost": "REPOST",
}


def posts_in(seen: SocialObservation) -> list[PostView]:
    """The posts in the order in which they are numbered, from 1."""
    found = [post for answer in seen.answers for post in answer.posts]
    return [*seen.followed, *seen.recommended, *found]


def _show_social(seen: SocialObservation) -> Iterable[str]:
    yield f"{seen.followers} follow you, you follow {seen.following}."
    for number, post in enumerate(posts_in(seen), start=1):
        yield from _show_post(number, post)
    for answer in seen.answers:
        people = ", ".join(name for _, name in answer.users)
        yield f"{answer.action.lower()} {answer.query}: {len(answer.posts)} posts{'; ' + people if people else ''}"
    for group in seen.groups:
        joined = ", you are in it" if group.joined else ""
        yield f"Group {group.group_id}, {group.name}, {group.members} members{joined}"
        for message in group.messages:
            yield f"       {message.author}: {message.content}"


def _show_post(number: int, post: PostView) -> Iterable[str]:
    counts = {"likes": post.likes, "dislikes": post.dislikes, "shares": post.shares, "comments": post.comments}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    words = post.content if post.quote is None else f"{post.quote} | {post.content}"
    origin = f" (by {post.original_author})" if post.original_author else ""
    yield f"{number:>3}. {post.author}{origin}: {words}{f'  [{told}]' if told else ''}"
    for reply in post.replies:
        yield f"       {reply.author}: {reply.content}"


def _read_social(line: str, seen: SocialObservation) -> Action:
    verb, rest = _split(line.removeprefix("/"))
    if verb.isupper() and "_" in verb:
        return _read_anything(line, seen)
    verbs: Mapping[str, Callable[[], Action]] = {
        "post": lambda: Action("CREATE_POST", {"content": _text(rest)}),
        "comment": lambda: _on_post("CREATE_COMMENT", rest, seen, "content"),
        "quote": lambda: _on_post("QUOTE_POST", rest, seen, "quote_content"),
        "follow": lambda: Action("FOLLOW", {"followee_id": _post(rest, seen).author_id}),
        "mute": lambda: Action("MUTE", {"mutee_id": _post(rest, seen).author_id}),
        "search": lambda: Action("SEARCH_POSTS", {"query": _text(rest)}),
        "trend": lambda: Action("TREND"),
        "nothing": lambda: NOTHING,
        **{name: partial(_react, kind, rest, seen) for name, kind in _ON_POSTS.items()},
    }
    return _chosen(verb.lower(), verbs, "")()


def _react(kind: str, number: str, seen: SocialObservation) -> Action:
    return Action(kind, {"post_id": _post(number, seen).post_id})


def _on_post(kind: str, rest: str, seen: SocialObservation, argument: str) -> Action:
    number, words = _split(rest)
    return Action(kind, {"post_id": _post(number, seen).post_id, argument: _text(words)})


def _post(number: str, seen: SocialObservation) -> PostView:
    posts = posts_in(seen)
    if not number.isdecimal() or not 1 <= int(number) <= len(posts):
        raise Mistake(f"which post? {f'a number from 1 to {len(posts)}' if posts else 'there is none to see'}")
    return posts[int(number) - 1]


# Worlds of any other kind

_ANYTHING_HELP = """\
  KIND name=value ...   do something, as in: BID price=3 note="a last word"
  nothing               do nothing"""
_HEAD = frozenset(Observation.__struct_fields__)


def _show_anything(seen: Observation) -> Iterable[str]:
    fields = {name: getattr(seen, name) for name in seen.__struct_fields__ if name not in _HEAD | {"announcements"}}
    for name, value in fields.items():
        told = value if isinstance(value, Mapping) else {name: value}
        for key, part in told.items():
            yield f"  {key}: {part if isinstance(part, str) else msgspec.json.encode(part).decode()}"


def _read_anything(line: str, seen: Observation) -> Action:
    try:
        kind, *rest = shlex.split(line.removeprefix("/"))
    except ValueError as error:
        raise Mistake(f"a quotation mark is missing ({error})") from error
    if kind.lower() == "nothing":
        return NOTHING
    pairs = [word.partition("=") for word in rest]
    if not all(name and equals for name, equals, _ in pairs):
        raise Mistake("after the action come name=value pairs, as in: BID price=3")
    return Action(kind.upper(), {name: _value(value) for name, _, value in pairs})


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


# What all have in common


def _split(line: str) -> tuple[str, str]:
    first, _, rest = line.strip().partition(" ")
    return first, rest.strip()


def _text(words: str) -> str:
    if not words:
        raise Mistake("some words are missing")
    return words


def _chosen(verb: str, verbs: Mapping[str, Callable[[], Action]], mark: str) -> Callable[[], Action]:
    if verb in verbs:
        return verbs[verb]
    near = nearest(verb, verbs)
    raise Mistake(f"there is no {mark}{verb}{f'; did you mean {mark}{near}?' if near else ''}")


_PARTS: Mapping[type[Observation], PlayAdapter] = {
    DialogueObservation: PlayAdapter(_show_dialogue, _read_dialogue, _DIALOGUE_HELP),
    RoomObservation: PlayAdapter(_show_room, _read_room, _ROOM_HELP),
    SocialObservation: PlayAdapter(_show_social, _read_social, _SOCIAL_HELP),
}
_ANYTHING = PlayAdapter(_show_anything, _read_anything, _ANYTHING_HELP)
