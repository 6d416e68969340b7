"""Contacts of people in each kind of world: ties, posts, reactions, and causes of changed opinions.

Each reader goes on where it stopped, so a run that goes on is not read again from its beginning.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from sqlite3 import Connection
from typing import ClassVar

import msgspec

from shoal.engine import TOPIC
from shoal.runs.directory import RunDirectory
from shoal.runs.stream import RoundEnd, parse_line
from shoal.scenario import count_by_round
from shoal.types import Event
from shoal.worlds.social import IS_TIE_CHANGE, TurnNumbers, find_round

#: Kinds of action with which people react to a post, and the argument that names it.
REACTIONS = {
    "LIKE_POST": "post_id",
    "REPOST": "post_id",
    "QUOTE_POST": "quoted_id",
    "CREATE_COMMENT": "post_id",
}
_WANTED = re.compile(
    rb'"action_type":"(?:CREATE_POST|REPOST|QUOTE_POST|LIKE_POST|CREATE_COMMENT)"'
    rb'|^{"event_type":"round_end"'
)
_FOLLOWS = "SELECT follower_id, followee_id FROM follow"
#: The database has an index of these two kinds alone, so it takes no longer in a long run.
_TIE_CHANGES = f"""SELECT user_id, created_at, action, info FROM trace
WHERE {IS_TIE_CHANGE} AND rowid > ? AND rowid <= ? ORDER BY rowid"""
_LAST_TRACE = "SELECT coalesce(max(rowid), 0) FROM trace"
_POSTS = """SELECT post_id, user_id, coalesce(original_post_id, post_id), claim, lean FROM post
WHERE post_id > ? AND post_id < ?"""
_UTTERANCES = """SELECT rowid, created_at, user_id, target_id, location, opinion FROM utterance
WHERE rowid > ? AND created_at <= ? ORDER BY rowid"""
_RELATIONS = "SELECT created_at, user_id, other_id FROM relation"
_PAIRS = "SELECT pair_id, first_id, second_id FROM pair"
_LINES = """SELECT line_id, round, pair_id, agent_id, slant FROM line
WHERE line_id > ? AND round <= ? ORDER BY line_id"""


@dataclass(slots=True)
class Tie:
    """A connection of two people: the first follows, speaks to or knows the second."""

    one: int
    other: int
    #: The first round in which it holds, and the first in which it no longer does.
    since: int = 0
    until: int | None = None
    #: How often something passed through it, where that is counted.
    times: int = 1


@dataclass(frozen=True, slots=True)
class SharedText:
    """A post, in the round in which it was written or passed on."""

    round: int
    agent: int
    post: int
    #: The first post of the cascade; the post itself where it is the first.
    root: int
    claim: str | None
    lean: float | None


@dataclass(frozen=True, slots=True)
class Cause:
    """A post or remark that a person noticed in a round and that may have changed the opinion."""

    round: int
    agent: int
    author: int
    #: The claim that it speaks of, or `topic`.
    subject: str
    lean: float
    #: The action that shows that it was noticed.
    event: str = ""


class Contacts:
    """Reads the contacts in one world. A world of the user's own has none."""

    #: What connects people: `follow`, `talk` or `pair`.
    tie: ClassVar[str] = ""

    def __init__(self) -> None:
        self.ties: dict[tuple[int, int], Tie] = {}
        #: Those that no longer hold.
        self.past_ties: list[Tie] = []
        self.posts: dict[int, SharedText] = {}
        #: Claims, and first posts of cascades -> the posts that speak of them or pass them on.
        self.by_claim: defaultdict[str, list[SharedText]] = defaultdict(list)
        self.by_root: defaultdict[int, list[SharedText]] = defaultdict(list)
        #: How often each post without a claim was passed on.
        self.shares: Counter[int] = Counter()
        #: Post -> rounds and people of the reactions to it.
        self.reactions: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        #: The last round of which everything was read.
        self.read_until = -1

    def read_ties(self, database: Connection, last: int) -> None:
        """Read the ties that the database keeps as such, up to the last round: those of platforms, at once."""

    def read_on(self, database: Connection, until: int) -> Iterable[Cause]:
        """Read the rounds since the last look, up to a committed one, and return causes of changed opinions."""
        self.read_until = until
        return ()


class FollowContacts(Contacts):
    """People on a platform: they follow one another, and react to posts and pass them on."""

    tie = "follow"

    def __init__(self, run: RunDirectory, world: str) -> None:
        super().__init__()
        self._stream, self._clock = run.open_stream(world), run.clock
        self._numbers = TurnNumbers(count_by_round(run.scenario_versions))
        self._last_post, self._last_trace = -1, 0
        self._waiting: list[Event] = []
        self._has_follows = False

    def read_ties(self, database: Connection, last: int) -> None:
        since = self._last_trace
        (self._last_trace,) = database.execute(_LAST_TRACE).fetchone()
        for agent, date, action, told in database.execute(_TIE_CHANGES, (since, self._last_trace)):
            pair, round = (agent, msgspec.json.decode(told)["followee_id"]), find_round(date, self._clock, last)
            if action == "follow":
                self.ties.setdefault(pair, Tie(*pair, since=round))
            else:
                tie = self.ties.pop(pair, None) or Tie(*pair)
                tie.until = round
                self.past_ties.append(tie)
        if not self._has_follows:
            # Ties that the scenario declares are in no action.
            self._has_follows = True
            known = {(tie.one, tie.other) for tie in self.ties.values()}
            for pair in database.execute(_FOLLOWS):
                if pair not in known:
                    self.ties[pair] = Tie(*pair)

    def read_on(self, database: Connection, until: int) -> list[Cause]:
        events: list[Event] = []
        for text in self._stream.read_texts(until):
            if _WANTED.search(text, 0, 400):
                line = parse_line(text)
                if isinstance(line, RoundEnd):
                    # Only events of whole rounds count.
                    events += self._waiting
                    self._waiting, self.read_until = [], line.round
                elif isinstance(line, Event) and line.success:
                    self._waiting.append(line)
        # Rows of the database are there before the lines of the stream.
        end = self._numbers.find_end(self.read_until)
        rows = {row[0]: row for row in database.execute(_POSTS, (self._last_post, end))}
        self._last_post = max(rows, default=self._last_post)
        causes: list[Cause] = []
        for event in events:
            self._add_post(event, rows)
            post = self.posts.get(event.action_args.get(REACTIONS.get(event.action_type, ""), -1))
            if post is not None and post.agent != event.agent_id:
                self.reactions[post.post].append((event.round, event.agent_id))
                if post.lean is not None:
                    cause = Cause(event.round, event.agent_id, post.agent, post.claim or TOPIC, post.lean, event.id)
                    causes.append(cause)
        return causes

    def _add_post(self, event: Event, rows: dict[int, tuple[int, int, int, str | None, float | None]]) -> None:
        if event.action_type not in ("CREATE_POST", "REPOST", "QUOTE_POST"):
            return
        number = event.action_args.get("new_post_id", event.action_args.get("post_id"))
        if number in rows:
            post, author, root, claim, lean = rows[number]
            text = self.posts[post] = SharedText(event.round, author, post, root, claim, lean)
            self.by_root[root].append(text)
            if claim is not None:
                self.by_claim[claim].append(text)
            elif root != post:
                self.shares[root] += 1


class RoomContacts(Contacts):
    """Contacts in a room: a tie joins speaker and addressee or previous speaker, or people with a relation."""

    tie = "talk"

    def __init__(self) -> None:
        super().__init__()
        self._last_row = 0
        #: Place -> who spoke there last, and what was said there in the last two rounds: round, speaker, opinion.
        self._last_speakers: dict[str, int] = {}
        self._said: dict[str, list[tuple[int, int, float]]] = {}
        self._places: dict[int, str] = {}

    def read_on(self, database: Connection, until: int) -> Iterator[Cause]:
        self.read_until = until
        for round, one, other in database.execute(_RELATIONS).fetchall():
            self.ties.setdefault((one, other), Tie(one, other, round, times=0))
        for row, round, speaker, target, place, opinion in database.execute(_UTTERANCES, (self._last_row, until)):
            self._last_row = row
            answered = self._last_speakers.get(place) if target is None else target
            if answered is not None and answered != speaker:
                tie = self.ties.setdefault((speaker, answered), Tie(speaker, answered, round, times=0))
                tie.times += 1
            self._last_speakers[place] = speaker
            self._places[speaker] = place
            if opinion is not None:
                # All people who have spoken in a place hear what is said there.
                for agent, where in self._places.items():
                    if where == place and agent != speaker:
                        yield Cause(round, agent, speaker, TOPIC, opinion)
                        yield Cause(round + 1, agent, speaker, TOPIC, opinion)


class PairContacts(Contacts):
    """Conversations of two."""

    tie = "pair"

    def __init__(self) -> None:
        super().__init__()
        self._last_line = 0
        self._pairs: dict[int, tuple[int, int]] = {}

    def read_on(self, database: Connection, until: int) -> Iterator[Cause]:
        self.read_until = until
        for number, one, other in database.execute(_PAIRS).fetchall():
            self._pairs[number] = one, other
            self.ties.setdefault((one, other), Tie(one, other, times=0))
        for line, round, pair, speaker, slant in database.execute(_LINES, (self._last_line, until)):
            self._last_line = line
            one, other = self._pairs[pair]
            self.ties[one, other].times += 1
            if slant is not None:
                hearer = other if speaker == one else one
                yield Cause(round, hearer, speaker, TOPIC, slant)
                yield Cause(round + 1, hearer, speaker, TOPIC, slant)


def open_contacts(run: RunDirectory, world: str, tables: Set[str]) -> Contacts:
    """Return the reader for a world, by the tables that it has."""
    if "post" in tables:
        return FollowContacts(run, world)
    if "utterance" in tables:
        return RoomContacts()
    return PairContacts() if "line" in tables else Contacts()
