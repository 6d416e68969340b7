"""Committed actions as sentences about people, and what each of them makes true.

Sinks take over sentences, so that none of them has to know the actions of a world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.text import clip, format_kind
from shoal.types import Event, Notice

#: As much of a text is quoted in the sentence about it.
_QUOTED_CHARS = 400
#: How much a text must lean on something to count as for or against it.
_LEANING = 0.2
#: Actions that say nothing about anybody.
_SILENT = frozenset({"DO_NOTHING", "REFRESH", "TREND", "LISTEN_FROM_GROUP", "DONE", "SEARCH_POSTS", "SEARCH_USER"})

#: Events without words for people.
_UNHEARD = frozenset({"intervention", "change", "skip", "mute", "stop", "seat", "give_back"})

#: Finds the number of the person that an action names.
FindPerson = Callable[[str], int | None]


class Entity(msgspec.Struct, frozen=True, gc=False):
    """A person or a thing that facts are about."""

    #: `person`, `post`, `comment`, `group`, `product`, `claim`, `topic` or `world`.
    kind: str
    #: Names it among its kind: the number of a person, world and number of a post, the id of a claim.
    key: str
    name: str


class Fact(msgspec.Struct, frozen=True, gc=False):
    """What an action makes true of two entities."""

    source: Entity
    relation: str
    target: Entity
    #: Whether it holds until another action ends it, as following does; else it only happened.
    lasting: bool = False
    #: Relations between the two that it ends.
    ends: tuple[str, ...] = ()
    #: How a text leans on what it is about, -1 to 1.
    lean: float | None = None


class Narration(msgspec.Struct, frozen=True, gc=False):
    """One action or event as a sentence, with what it makes true."""

    #: The action's id in the stream.
    id: str
    world: str
    round: int
    time: str
    agent: int | None
    text: str
    facts: tuple[Fact, ...]
    #: What the agent made: a post, a comment or a group.
    made: Entity | None = None


#: Kind of action -> the sentence about it, of the fields of `_describe`.
_SENTENCES: Mapping[str, str] = {
    "CREATE_POST": "{who} posted {content}",
    "CREATE_COMMENT": "{who} commented {content} on a post of {author}: {about}",
    "REPOST": "{who} shared a post of {author}: {about}",
    "QUOTE_POST": "{who} quoted a post of {author}, {about}, with the words {content}",
    "LIKE_POST": "{who} liked a post of {author}: {about}",
    "UNLIKE_POST": "{who} took back a like for a post of {author}: {about}",
    "DISLIKE_POST": "{who} disliked a post of {author}: {about}",
    "UNDO_DISLIKE_POST": "{who} took back a dislike for a post of {author}: {about}",
    "REPORT_POST": "{who} reported a post of {author}, {about}, because of {reason}",
    "LIKE_COMMENT": "{who} liked a comment of {author}: {about}",
    "UNLIKE_COMMENT": "{who} took back a like for a comment of {author}: {about}",
    "DISLIKE_COMMENT": "{who} disliked a comment of {author}: {about}",
    "UNDO_DISLIKE_COMMENT": "{who} took back a dislike for a comment of {author}: {about}",
    "FOLLOW": "{who} followed {person}",
    "UNFOLLOW": "{who} unfollowed {person}",
    "MUTE": "{who} muted {person}",
    "UNMUTE": "{who} no longer muted {person}",
    "CREATE_GROUP": "{who} opened the group {group}",
    "JOIN_GROUP": "{who} joined the group {group}",
    "LEAVE_GROUP": "{who} left the group {group}",
    "SEND_TO_GROUP": "{who} wrote {content} to the group {group}",
    "PURCHASE_PRODUCT": "{who} bought {product}",
    "TALK": "{who} said {content}",
    "SPEAK": "{who} said {content}",
    "SAY": "{who} said {content} to {person}",
    "THINK": "{who} thought {content}",
    "REACH_OUT": "{who} went to {person}",
    "RELATE": "{who} saw {person} as {relation}",
    "ATTEND": "{who} turned to {content}",
    "MOVE_TO": "{who} went to {place}",
    "LEAVE": "{who} left",
    "RATE": "{who} gave the talk {score}",
}

#: Kind of action -> (relation, whether it lasts, relations that it ends).
_RELATIONS: Mapping[str, tuple[str, bool, tuple[str, ...]]] = {
    "CREATE_POST": ("POSTED", False, ()),
    "CREATE_COMMENT": ("COMMENTED_ON", False, ()),
    "REPOST": ("SHARED", False, ()),
    "QUOTE_POST": ("QUOTED", False, ()),
    "REPORT_POST": ("REPORTED", False, ()),
    "LIKE_POST": ("LIKES", True, ()),
    "UNLIKE_POST": ("UNLIKED", False, ("LIKES",)),
    "DISLIKE_POST": ("DISLIKES", True, ()),
    "UNDO_DISLIKE_POST": ("UNDISLIKED", False, ("DISLIKES",)),
    "LIKE_COMMENT": ("LIKES", True, ()),
    "UNLIKE_COMMENT": ("UNLIKED", False, ("LIKES",)),
    "DISLIKE_COMMENT": ("DISLIKES", True, ()),
    "UNDO_DISLIKE_COMMENT": ("UNDISLIKED", False, ("DISLIKES",)),
    "FOLLOW": ("FOLLOWS", True, ()),
    "UNFOLLOW": ("UNFOLLOWED", False, ("FOLLOWS",)),
    "MUTE": ("MUTES", True, ()),
    "UNMUTE": ("UNMUTED", False, ("MUTES",)),
    "CREATE_GROUP": ("MEMBER_OF", True, ()),
    "JOIN_GROUP": ("MEMBER_OF", True, ()),
    "LEAVE_GROUP": ("LEFT", False, ("MEMBER_OF",)),
    "SEND_TO_GROUP": ("WROTE_TO", False, ()),
    "PURCHASE_PRODUCT": ("BOUGHT", False, ()),
    "SAY": ("SPOKE_TO", False, ()),
    "TALK": ("SPOKE_TO", False, ()),
    "REACH_OUT": ("WENT_TO", False, ()),
}
#: Kind of action -> what it makes, and the argument with its number.
_MADE: Mapping[str, tuple[str, str]] = {
    "CREATE_POST": ("post", "post_id"),
    "REPOST": ("post", "new_post_id"),
    "QUOTE_POST": ("post", "new_post_id"),
    "CREATE_COMMENT": ("comment", "comment_id"),
    "CREATE_GROUP": ("group", "group_id"),
}
#: What a text makes of the person who wrote it, by how it leans; each ends the others.
_VIEWS = ("SUPPORTS", "DOUBTS", "OPPOSES")

#: Arguments that hold what the agent wrote, the numbers of what it concerns, and whose that is.
_WRITTEN = ("content", "quote_content", "message")
_PERSONS = ("followee_id", "mutee_id", "to_agent_id")
_PERSON_NAMES = ("target_user_name", "to_agent_name", "target")
_AUTHORS = ("post_author_name", "original_author_name", "comment_author_name")
_ABOUT = ("comment_content", "original_content", "post_content")


@dataclass(frozen=True, slots=True)
class Narrator:
    """Tells what happened in one world as episodes."""

    world: str
    topic: str | None
    #: Id of a claim -> what it says.
    claims: Mapping[str, str]
    find_person: FindPerson

    def tell(self, event: Event) -> Narration | None:
        """Return an action as an episode; None where it failed, or says nothing about anybody."""
        if not event.success or event.action_type in _SILENT:
            return None
        args = event.action_args
        who = Entity("person", str(event.agent_id), event.agent_name)
        made = _find_made(event, self.world)
        target = made if event.action_type == "CREATE_POST" else _find_target(event, self.world, self.find_person)
        facts: list[Fact] = []
        if target is not None and event.action_type == "RELATE":
            relation = str(args.get("relation", "knows")).upper().replace(" ", "_")
            facts.append(Fact(who, relation, target, lasting=True))
        elif target is not None:
            relation, lasting, ends = _RELATIONS.get(event.action_type, (event.action_type, False, ()))
            facts.append(Fact(who, relation, target, lasting, ends))
        if (view := self._read_view(who, args)) is not None:
            facts.append(view)
        return Narration(
            event.id, self.world, event.round, event.timestamp, event.agent_id, _describe(event), tuple(facts), made
        )

    def tell_notice(self, notice: Notice, id: str) -> Narration | None:
        """Return an event of the scenario as an episode; None where it has no words for people."""
        if not notice.content or notice.event_type in _UNHEARD:
            return None
        heard = f"{len(notice.to)} people" if len(notice.to) > 1 else "One person" if notice.to else "Everybody"
        facts: tuple[Fact, ...] = ()
        if notice.mention:
            place = Entity("world", self.world, self.world)
            facts = (Fact(place, "TOLD_OF", self._name_claim(notice.mention.claim), lean=notice.mention.lean),)
        text = f"{heard} heard {_quote(notice.content)}."
        return Narration(id, self.world, notice.round, notice.timestamp, None, text, facts)

    def _read_view(self, who: Entity, args: Mapping[str, Any]) -> Fact | None:
        """Return what the agent's words make of it: for or against a claim, or else the topic."""
        lean, claim = args.get("lean", args.get("opinion")), args.get("claim")
        if not isinstance(lean, int | float) or _first(args, _WRITTEN) is None:
            return None
        if isinstance(claim, str):
            about = self._name_claim(claim)
        elif self.topic is not None:
            about = Entity("topic", self.topic, self.topic)
        else:
            return None
        view = _VIEWS[1] if abs(lean) < _LEANING else _VIEWS[0] if lean > 0 else _VIEWS[2]
        return Fact(who, view, about, lasting=True, ends=_VIEWS, lean=float(lean))

    def _name_claim(self, id: str) -> Entity:
        return Entity("claim", id, self.claims.get(id, id))


def _find_made(event: Event, world: str) -> Entity | None:
    """Return what the action brought into the world."""
    args = event.action_args
    if (kind := _MADE.get(event.action_type)) is None or (number := args.get(kind[1])) is None:
        return None
    return Entity(kind[0], f"{world}:{number}", clip(str(args.get("group_name") or _first(args, _WRITTEN) or ""), 80))


def _find_target(event: Event, world: str, find_person: FindPerson) -> Entity | None:
    """Return the person or thing that the action concerns."""
    args, kind = event.action_args, event.action_type
    name = _first(args, _PERSON_NAMES)
    for field in _PERSONS:
        if isinstance(number := args.get(field), int):
            return Entity("person", str(number), str(name or number))
    if name is not None and (found := find_person(str(name))) is not None:
        return Entity("person", str(found), str(name))
    about = clip(str(_first(args, _ABOUT) or ""), 80)
    if "COMMENT" in kind and kind != "CREATE_COMMENT":
        return Entity("comment", f"{world}:{args.get('comment_id')}", about)
    number = args.get("quoted_id", args.get("post_id"))
    if isinstance(number, int):
        return Entity("post", f"{world}:{number}", about)
    if "group_id" in args:
        return Entity("group", f"{world}:{args['group_id']}", str(args.get("group_name", args["group_id"])))
    if "product_name" in args:
        return Entity("product", str(args["product_name"]), str(args["product_name"]))
    return None


def _describe(event: Event) -> str:
    args = event.action_args
    fields = {
        "who": event.agent_name,
        "content": _quote(_first(args, _WRITTEN)),
        "author": _first(args, _AUTHORS) or "somebody",
        "about": _quote(_first(args, _ABOUT)),
        "person": _first(args, _PERSON_NAMES) or "somebody",
        "group": _quote(args.get("group_name", "")),
        "product": args.get("product_name", ""),
        "reason": _quote(args.get("report_reason", "")),
        "relation": args.get("relation", ""),
        "place": _quote(args.get("location", "")),
        "score": args.get("score", ""),
    }
    if sentence := _SENTENCES.get(event.action_type):
        return sentence.format_map(fields) + "."
    # An action of a world of the user's own.
    details = ", ".join(f"{name} {clip(str(value), 120)}" for name, value in args.items())
    return f"{event.agent_name} did {format_kind(event.action_type)}" + (f": {details}." if details else ".")


def _first(args: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((args[name] for name in names if args.get(name) not in (None, "")), None)


def _quote(text: Any) -> str:
    return f"“{clip(str(text or ''), _QUOTED_CHARS)}”"
