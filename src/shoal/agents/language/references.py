"""Whom and what a name stands for, by what the agent was shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

from shoal.types import Observation
from shoal.worlds.names import NameIndex
from shoal.worlds.room.observations import RoomObservation
from shoal.worlds.social.observations import PostView, SocialObservation

#: `Ada Lund (17)`: how two people of one name are told apart.
_NUMBERED = re.compile(r".*\((\d+)\)")
T = TypeVar("T")

_EVERYBODY = frozenset({"everyone", "everybody", "all", "the room", "room", "group", "the group", "anyone"})


class Finder:
    """Knows the names in one picture, and those of everybody. Looks only when asked, which is seldom."""

    def __init__(self, observation: Observation, index: NameIndex) -> None:
        self._observation = observation
        self._index = index

    def user(self, name: str) -> int | None:
        """The number of somebody on a platform: of those in sight, or else of the only one of that name."""
        name = _plain(name)
        numbered = _NUMBERED.fullmatch(name)
        if numbered:
            return int(numbered[1])
        shown = [(known.casefold(), agent) for agent, known in self._users()]
        found = [agent for known, agent in shown if known == name]
        found = found or _only(agent for known, agent in shown if name in known.split())
        found = found or _only(self._index.namesakes(name))
        return found[0] if found else None

    def person(self, name: str) -> str | None:
        """The full name of somebody in a room; None for nobody in particular. Unknown names stay as they are."""
        plain = _plain(name)
        if plain in _EVERYBODY:
            return None
        shown = list(dict.fromkeys(self._people()))
        found = [known for known in shown if known.casefold() == plain]
        found = found or _only(known for known in shown if plain in known.casefold().split())
        return found[0] if found else name.strip()

    def thing(self, kind: str, name: str) -> int | None:
        """The number of a group by its name, or of the only post that somebody in sight wrote."""
        name, seen = _plain(name), self._observation
        if not isinstance(seen, SocialObservation):
            return None
        if kind == "group":
            found = _only(group.group_id for group in seen.groups if group.name.casefold() == name)
        else:
            found = _only(post.post_id for post in _posts(seen) if post.author.casefold() == name)
        return found[0] if found else None

    def _users(self) -> Iterator[tuple[int, str]]:
        seen = self._observation
        if isinstance(seen, SocialObservation):
            for post in _posts(seen):
                yield post.author_id, post.author
                for reply in post.replies:
                    yield reply.author_id, reply.author
            for answer in seen.answers:
                yield from answer.users
                yield from ((message.author_id, message.author) for message in answer.messages)
            for group in seen.groups:
                yield from ((message.author_id, message.author) for message in group.messages)

    def _people(self) -> Iterator[str]:
        seen = self._observation
        if isinstance(seen, RoomObservation):
            yield from seen.present
            yield from (relation.agent for relation in seen.relations)
            yield from (stimulus.source for stimulus in seen.stimuli if stimulus.source is not None)


def _posts(seen: SocialObservation) -> Iterator[PostView]:
    yield from seen.followed
    yield from seen.recommended
    for answer in seen.answers:
        yield from answer.posts


def _plain(name: str) -> str:
    return name.strip().strip("@*\"'«»“”").casefold()


def _only(found: Iterable[T]) -> list[T]:
    """What was found if it is one and the same, and else nothing."""
    different = list(dict.fromkeys(found))
    return different if len(different) == 1 else []
