"""Observations as text: for prompts, for memory, for the terminal, and for a person who plays an agent.

A kind of world overrides what it knows better. The defaults serve worlds of the user's own, which show plain values.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from shoal.text import clip, format_moment, join_words, nearest, outline, quote
from shoal.types import Action, Observation
from shoal.worlds.base import ViewObservation

MAX_NEWS_CHARS = 400
MAX_POST_CHARS = 280
#: For small models: of one post, and of all posts in a feed, which is what they have to read anew in each turn.
BRIEF_POST_CHARS, BRIEF_FEED_CHARS = 100, 450
MAX_SPEECH_CHARS = 400
MAX_NAMES = 24
_MAX_PENDING, _MAX_NEWS = 8, 5
#: An agent is reminded by the beginnings of this many posts, or of things said last.
CUE_ITEMS, CUE_CHARS = 5, 80
_MAX_VIEW_CUE_CHARS = 600
#: In memory, other people's words are cut to the first of these, the agent's own to the second.
MAX_SEEN_CHARS = 48
MAX_WRITTEN_CHARS = 100
#: Arguments of actions in which an agent writes something.
_WRITTEN = ("content", "quote_content", "message")

#: Fields that every observation has.
_HEAD = frozenset(Observation.__struct_fields__)

NO_ACTION = Action("DO_NOTHING")

#: Says how long ago something was, from the round and the rounds since.
Ago = Callable[[int, int], str]
S = TypeVar("S", bound=Observation)


class PromptWriter:
    """Lines of a prompt within a budget of characters. `room` is what is left of it."""

    def __init__(
        self, observation: Observation, budget_chars: int, ago: Ago, speech_chars: int, *, is_brief: bool
    ) -> None:
        self.round = observation.round
        self.ago = ago
        self.room = budget_chars
        #: How many characters of one remark are shown.
        self.speech_chars = speech_chars
        #: Whether only who said what is told, and nothing that changes from round to round.
        self.is_brief = is_brief
        self.lines: list[str] = []
        self._agent = observation.agent
        self._holders = {observation.name: observation.agent}

    def add(self, line: str) -> None:
        """Add a line if it fits; where one does not, the room stays used up."""
        self.room -= len(line) + 1
        if self.room >= 0:
            self.lines.append(line)

    def name(self, agent: int, name: str) -> str:
        """Return what the prompt calls a person. A number distinguishes two people of one name."""
        if agent == self._agent:
            return "you"
        holder = self._holders.setdefault(name, agent)
        return name if holder == agent else f"{name} ({agent})"

    def add_news(self, announcements: Sequence[str]) -> None:
        for news in announcements[-_MAX_NEWS:]:
            self.add(f"Announcement: {quote(news, MAX_NEWS_CHARS)}")

    def add_pending(self, actions: Sequence[Action]) -> None:
        """Add actions of the agent that no one can have reacted to yet."""
        if actions:
            done = (one.kind + "".join(f" {quote(str(value), 80)}" for value in one.args.values()) for one in actions)
            self.add(f"Just now you did, and nobody has seen it yet: {join_words(done, _MAX_PENDING)}.")

    def add_latest(self, title: str, lines: Sequence[str], nothing: str) -> None:
        """Add the newest lines that fit, oldest first."""
        if not lines:
            self.add(nothing)
            return
        self.add(title)
        first = len(lines)
        while first and self.room >= len(lines[first - 1]) + 1:
            first -= 1
            self.room -= len(lines[first]) + 1
        if first:
            self.lines.append(f"({first} earlier left out)")
        self.lines += lines[first:]


@dataclass(frozen=True, slots=True)
class ViewLine:
    """One line on the terminal: who, what they said, and facts about it."""

    text: str
    who: str = ""
    facts: str = ""
    is_reply: bool = False
    is_query: bool = False
    #: What an action calls it that is about it: argument -> number.
    named: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ViewRow:
    """A label on the terminal and what stands beside it: lines, or else a plain value."""

    label: str
    lines: tuple[ViewLine, ...] = ()
    value: Any = None


def list_lines(label: str, lines: Iterable[ViewLine]) -> Iterator[ViewRow]:
    """Yield a row with these lines, unless there are none."""
    listed = tuple(lines)
    if listed:
        yield ViewRow(label, listed)


class ObservationRenderer(Generic[S]):
    """Turns the observations of one kind of world into text, and what a person types into actions."""

    def render_prompt(
        self,
        seen: S,
        budget_chars: int,
        ago: Ago,
        *,
        is_past: bool = False,
        speech_chars: int = MAX_SPEECH_CHARS,
        is_brief: bool = False,
    ) -> str:
        """Return the last part of a prompt: the moment, and everything to be seen in it.

        Of the past, it says `It was ...` and leaves the heading out.
        """
        writer = PromptWriter(seen, budget_chars, ago, speech_chars, is_brief=is_brief)
        now = format_moment(seen.time, is_brief=is_brief)
        writer.lines.append(f"It was {now}." if is_past else f"# Now\nIt is {now}.")
        # Nothing of it is left out, however little room there is.
        writer.lines += [f"The situation: {text}" for text in seen.context or ()]
        self.write_prompt(writer, seen)
        return "\n".join(writer.lines)

    def write_prompt(self, writer: PromptWriter, seen: S) -> None:
        if isinstance(seen, ViewObservation):
            writer.add_news(seen.announcements)
            writer.add_pending(seen.pending)
            writer.lines.append(outline(seen.view, max(writer.room, 0), quoted=True))
        else:
            writer.add_pending(seen.pending)

    def cue(self, seen: S) -> Iterator[str]:
        """Yield what others say in the observation, which reminds the agent of what it remembers."""
        if isinstance(seen, ViewObservation):
            yield outline(seen.view, _MAX_VIEW_CUE_CHARS)

    #: Kinds of action that often make no sense.
    occasional: frozenset[str] = frozenset()

    def find_senseless(self, seen: S, done: Collection[str]) -> frozenset[str]:
        """Return the kinds of action that would have no effect now; `done` are those that the agent has carried out."""
        return frozenset()

    def list_said(self, seen: S) -> Iterator[tuple[bool, str]]:
        """Yield what the two in a conversation said, oldest first, and whether it was the agent itself."""
        yield from ()

    # Names in a reply that stand for something the prompt showed

    def users(self, seen: S) -> Iterator[tuple[int, str]]:
        """Yield the numbers and names of users in sight."""
        yield from ()

    def people(self, seen: S) -> Iterator[str]:
        """Yield the names of people in sight, in worlds whose actions call people by name."""
        yield from ()

    def things(self, seen: S, what: str) -> Iterator[tuple[int, str]]:
        """Yield numbers of posts or groups in sight, with the names that may stand for them."""
        yield from ()

    def choices(self, seen: S, argument: str, names: str) -> Iterator[tuple[int | str, str]]:
        """Yield what a person may choose for an argument of an action, each with words for it.

        `names` is what the argument names: a `user`, a `person`, a `post` or a `group`. Nothing to choose from means
        that anything may be written.
        """
        if names == "user":
            yield from ((agent, name) for agent, name in dict(self.users(seen)).items() if agent != seen.agent)
        elif names == "person":
            yield from ((name, name) for name in dict.fromkeys(self.people(seen)) if name != seen.name)
        elif names:
            yield from dict(self.things(seen, names)).items()

    # Memory

    def recall_sight(self, seen: S) -> str:
        """Return what stood out, in a sentence that an agent remembers."""
        if not isinstance(seen, ViewObservation):
            return ""
        view = "; ".join(outline(seen.view, 2 * MAX_WRITTEN_CHARS, quoted=True).split("\n"))
        return f"You saw {view}." if view else ""

    def recall_post(self, seen: S, post_id: int) -> str:
        """Return what an agent remembers of a post that it acted on."""
        return ""

    def recall_action(self, action: Action, verb: str, seen: S, names: Sequence[str]) -> str:
        """Return what an agent remembers to have done. `names` says who the people are that actions give by number."""
        args, parts = action.args, [verb]
        if "post_id" in args:
            parts.append(self.recall_post(seen, args["post_id"]))
        parts.append(quote(written, MAX_WRITTEN_CHARS) if (written := find_written(action)) else "")
        for name, value in args.items():
            if name in ("followee_id", "mutee_id"):
                parts.append(names[value] if 0 <= value < len(names) else f"user {value}")
            elif name == "group_id" and written:
                parts.append(f"in group {value}")
            elif name not in _WRITTEN and name != "post_id":
                parts.append(f"to {value}" if name == "target" else clip(str(value), MAX_SEEN_CHARS))
        return " ".join(part for part in parts if part)

    # The terminal

    def view(self, seen: S) -> Iterator[ViewRow]:
        """Yield everything that was there to be seen, as labelled rows."""
        for name in seen.__struct_fields__:
            if name not in _HEAD and (value := msgspec.to_builtins(getattr(seen, name))):
                told = value if name == "view" and isinstance(value, Mapping) else {name: value}
                yield from (ViewRow(str(key), value=part) for key, part in told.items())

    # A person who plays an agent

    help = """\
  KIND name=value ...   do something, as in: BID price=3 note="a last word"
  nothing               do nothing"""

    def show(self, seen: S) -> Iterable[str]:
        """Yield the lines that show an observation."""
        for name in seen.__struct_fields__:
            value = getattr(seen, name)
            if name not in _HEAD and name != "announcements":
                for key, part in (value if isinstance(value, Mapping) else {name: value}).items():
                    yield f"  {key}: {part if isinstance(part, str) else msgspec.json.encode(part).decode()}"

    def read(self, line: str, seen: S) -> Action:
        """Return the action that a typed line means, given what the person sees."""
        return read_action(line)


def find_written(action: Action) -> str:
    """Return the words that an action writes or says, if any."""
    for name in _WRITTEN:
        if name in action.args and isinstance(text := action.args[name], str):
            return text
    return ""


# What a person types


class Mistake(Exception):
    """What was typed makes no sense here; the message says why."""


def split_word(line: str) -> tuple[str, str]:
    """Return the first word and the rest."""
    first, _, rest = line.strip().partition(" ")
    return first, rest.strip()


def need_text(words: str) -> str:
    if not words:
        raise Mistake("some words are missing")
    return words


def choose_verb(verb: str, verbs: Mapping[str, Callable[[], Action]], mark: str = "") -> Callable[[], Action]:
    """Return what a verb does. `mark` is what the person types before it."""
    if verb in verbs:
        return verbs[verb]
    near = nearest(verb, verbs)
    raise Mistake(f"there is no {mark}{verb}{f'; did you mean {mark}{near}?' if near else ''}")


def read_action(line: str) -> Action:
    """Read `BID price=3 note="a last word"`."""
    try:
        kind, *rest = shlex.split(line.removeprefix("/"))
    except ValueError as error:
        raise Mistake(f"a quotation mark is missing ({error})") from error
    if kind.lower() == "nothing":
        return NO_ACTION
    pairs = [word.partition("=") for word in rest]
    if not all(name and equals for name, equals, _ in pairs):
        raise Mistake("after the action come name=value pairs, as in: BID price=3")
    args: dict[str, Any] = {}
    for name, _, value in pairs:
        try:
            args[name] = json.loads(value)
        except ValueError:
            args[name] = value
    return Action(kind.upper(), args)
