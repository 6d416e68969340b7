"""What is recorded of one world of a run, as metrics read it.

Each part is read when it is first needed, and kept as numbers: about twenty bytes for an action, so that a run of
millions fits into memory. Texts are read again each time and never kept.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from sqlite3 import Connection
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from shoal.engine import TOPIC
from shoal.runs import RunDirectory
from shoal.runs.reports import Cascade, read_all_cascades
from shoal.types import Action, Event
from shoal.worlds import TextReader, find_written

T = TypeVar("T")

#: Kinds of world by the table that only they have.
PLATFORM, ROOM, DIALOGUE, OWN = "platform", "room", "dialogue", "own"
_KIND_TABLES = {"post": PLATFORM, "utterance": ROOM, "line": DIALOGUE}
#: Actions that only look on, and rows of the trace that are no actions.
LOOKING_ON = frozenset({"do_nothing", "refresh", "done", "sign_up", "interview"})
_CHUNK_ROWS = 10_000

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_LAST_ROUND = "SELECT max(round) FROM shoal_round"
_FIGURES = "SELECT name, about, round, value FROM figure ORDER BY rowid"
_CHANGES = "SELECT about, round, agent_id, value FROM opinion_change ORDER BY round, rowid"
_ACTS = f"""SELECT created_at, user_id FROM trace WHERE action NOT IN ({", ".join(map(repr, sorted(LOOKING_ON)))})"""
_FOLLOWS = "SELECT created_at, follower_id, followee_id FROM follow"
_ACTION_COUNTS = "SELECT created_at, action, count(*) FROM trace GROUP BY 1, 2"
#: Posts with words of their own, and when another person first reacted to each that anybody reacted to.
_POSTS = "SELECT created_at FROM post p WHERE (original_post_id IS NULL OR quote_content IS NOT NULL)"
_FIRST_REACTIONS = """WITH reaction AS (
    SELECT post_id, user_id, created_at FROM "like" UNION ALL SELECT post_id, user_id, created_at FROM dislike
    UNION ALL SELECT post_id, user_id, created_at FROM comment
    UNION ALL SELECT original_post_id, user_id, created_at FROM post WHERE original_post_id IS NOT NULL)
SELECT min(r.created_at) FROM reaction r JOIN post p USING (post_id)
WHERE r.user_id != p.user_id AND (p.original_post_id IS NULL OR p.quote_content IS NOT NULL) GROUP BY p.post_id"""
_REMARKS = "SELECT created_at, user_id, target_id FROM utterance WHERE target_id IS NOT NULL ORDER BY rowid DESC"
#: Interactions between people: likes, comments, reposts and quotes of posts; remarks to a person; lines to a partner.
_INTERACTIONS = {
    PLATFORM: """
SELECT l.created_at, l.user_id, p.user_id FROM "like" l JOIN post p USING (post_id) WHERE l.user_id != p.user_id
UNION ALL SELECT c.created_at, c.user_id, p.user_id FROM comment c JOIN post p USING (post_id)
WHERE c.user_id != p.user_id
UNION ALL SELECT s.created_at, s.user_id, p.user_id FROM post s JOIN post p ON p.post_id = s.original_post_id
WHERE s.user_id != p.user_id""",
    ROOM: "SELECT created_at, user_id, target_id FROM utterance WHERE target_id IS NOT NULL",
    DIALOGUE: """SELECT round, agent_id, CASE agent_id WHEN first_id THEN second_id ELSE first_id END
FROM line JOIN pair USING (pair_id)""",
}


class Ties(NamedTuple):
    """Ties between people, by round."""

    rounds: NDArray[np.int32]
    sources: NDArray[np.int32]
    targets: NDArray[np.int32]

    def until(self, round: int) -> Ties:
        end = np.searchsorted(self.rounds, round, side="right")
        return Ties(*(column[:end] for column in self))


class SpokenTexts(NamedTuple):
    """What people wrote or said, as numbers, by round."""

    rounds: NDArray[np.int32]
    agents: NDArray[np.int32]
    words: NDArray[np.int32]
    #: Identifies the words of a text, whatever their case and the spaces between them.
    marks: NDArray[np.int64]

    def until(self, round: int) -> SpokenTexts:
        end = np.searchsorted(self.rounds, round, side="right")
        return SpokenTexts(self.rounds[:end], self.agents[:end], self.words[:end], self.marks[:end])


@dataclass(slots=True)
class _Opinions:
    """What people think of one thing: the changes, and how it was after the round that was asked for last."""

    rounds: list[int]
    agents: list[int]
    values: list[float]
    now: NDArray[np.float64]
    read: int = 0

    def advance(self, round: int) -> NDArray[np.float64]:
        end = bisect_right(self.rounds, round)
        if end < self.read:
            self.now[:], self.read = np.nan, 0
        self.now[self.agents[self.read : end]] = self.values[self.read : end]
        self.read = end
        return self.now


class WorldRecord:
    """One world of a run, as it was recorded. What is asked for `until` a round is as it was when that round ended."""

    def __init__(self, run: RunDirectory, world: str, database: Connection) -> None:
        self.run = run
        self.world = world
        self._database = database
        self._tables = {name for (name,) in database.execute(_TABLES)}
        #: `platform`, `room`, `dialogue`, or `own` for a world of the user's own.
        self.kind: str = next((kind for table, kind in _KIND_TABLES.items() if table in self._tables), OWN)
        (last,) = self.query(_LAST_ROUND)
        #: The last committed round.
        self.last_round: int = last[0] or 0
        self._round_of_date: dict[Any, int] = {}
        self._kept: dict[str, Any] = {}

    def keep(self, name: str, make: Callable[[], T]) -> T:
        """Return what was made under a name, and make it where it was not: what a metric needs for each round again."""
        if name not in self._kept:
            self._kept[name] = make()
        return cast(T, self._kept[name])

    @cached_property
    def topic(self) -> str | None:
        """The topic of the scenario."""
        return self.run.scenario.topic

    def query(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Ask the world's database."""
        return iter(self._database.execute(sql, values))

    @cached_property
    def people(self) -> int:
        """How many people there are, also people who joined late or left."""
        return next(self.query("SELECT count(*) FROM user"))[0]  # type: ignore[no-any-return]

    def find_round(self, created_at: int | str) -> int:
        """Return the round of a row. Some platforms date their rows by round, others by simulated time."""
        if isinstance(created_at, int):
            return created_at
        if created_at not in self._round_of_date:
            date = datetime.fromisoformat(created_at).replace(tzinfo=UTC)
            rounds = range(self.last_round + 1)
            self._round_of_date[created_at] = max(bisect_right(rounds, date, key=self._clock.at) - 1, 0)
        return self._round_of_date[created_at]

    @cached_property
    def _clock(self) -> Any:
        return self.run.clock

    # What is recorded for each round

    @cached_property
    def figures(self) -> Mapping[tuple[str, str], Sequence[tuple[int, float]]]:
        """Name of a figure and what it is about -> its rounds and values."""
        found: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
        for name, about, round, value in self.query(_FIGURES) if "figure" in self._tables else ():
            found[name, about].append((round, value))
        return found

    @cached_property
    def _opinions(self) -> dict[str, _Opinions]:
        found: dict[str, _Opinions] = {}
        for about, round, agent, value in self.query(_CHANGES) if "opinion_change" in self._tables else ():
            if about not in found:
                found[about] = _Opinions([], [], [], np.full(self.people, np.nan))
            opinions = found[about]
            opinions.rounds.append(round)
            opinions.agents.append(agent)
            opinions.values.append(value)
        return found

    @property
    def subjects(self) -> tuple[str, ...]:
        """What opinions are about: `topic`, and claims."""
        return tuple(self._opinions)

    def opinions(self, about: str = TOPIC, until: int | None = None) -> NDArray[np.float64]:
        """Return what each person thinks of the topic or a claim, -1 to 1; NaN where it is not known."""
        known = self._opinions.get(about)
        if known is None:
            return np.full(self.people, np.nan)
        return known.advance(self.last_round if until is None else until).copy()

    # What people did

    def actions(self) -> Iterator[Event]:
        """Read all actions in their order, refused ones too."""
        return self.run.open_stream(self.world).read_actions()

    def texts(self) -> Iterator[tuple[int, int, str]]:
        """Read round, agent and text of everything that people wrote or said, in order."""
        for event in self.actions():
            if event.success and event.action_type != "ATTEND":
                text = find_written(Action("", event.action_args))
                if text:
                    yield event.round, event.agent_id, text

    @cached_property
    def spoken(self) -> SpokenTexts:
        """Round, author and length of everything that people wrote or said."""
        columns = [array("i"), array("i"), array("i"), array("q")]
        for round, agent, text in self.texts():
            words = text.lower().split()
            mark = int.from_bytes(blake2b(" ".join(words).encode(), digest_size=8).digest(), "little", signed=True)
            for column, value in zip(columns, (round, agent, len(words), mark), strict=True):
                column.append(value)
        rounds, agents, lengths = (np.array(column, np.int32) for column in columns[:3])
        return SpokenTexts(rounds, agents, lengths, np.array(columns[3], np.int64))

    @cached_property
    def reader(self) -> TextReader:
        """Reads texts in terms of the scenario."""
        return TextReader((), self.topic)

    @cached_property
    def acts(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Round and agent of every action but looking on, by round."""
        rounds, agents = self._read_columns(_ACTS, 1)
        return rounds, agents

    def count_acts(self, until: int) -> NDArray[np.int64]:
        """Count the actions of each person."""
        rounds, agents = self.acts
        return np.bincount(agents[: np.searchsorted(rounds, until, side="right")], minlength=self.people)

    @cached_property
    def action_counts(self) -> Sequence[tuple[int, str, int]]:
        """Round, kind and number of actions, but of looking on."""
        rows = ((self.find_round(date), kind.upper(), count) for date, kind, count in self.query(_ACTION_COUNTS))
        return [row for row in rows if row[1].lower() not in LOOKING_ON]

    @cached_property
    def answers(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The rounds of texts that could be answered, and the rounds in which those that were answered first were.

        A post is answered by a reaction of another person, and a remark to a person by a later one of theirs.
        """
        if self.kind == PLATFORM:
            (posted,), (answered,) = self._read_columns(_POSTS, 0), self._read_columns(_FIRST_REACTIONS, 0)
            return posted, answered
        made, replies = array("i"), array("i")
        latest: dict[tuple[int, int], int] = {}
        for round, speaker, target in self.query(_REMARKS) if self.kind == ROOM else ():
            made.append(round)
            if (reply := latest.get((target, speaker))) is not None:
                replies.append(reply)
            latest[speaker, target] = round
        return np.sort(np.array(made, np.int32)), np.sort(np.array(replies, np.int32))

    @cached_property
    def partners(self) -> Mapping[int, int]:
        """Person -> the number of their conversation, in a world of dialogues."""
        pairs = self.query("SELECT pair_id, first_id, second_id FROM pair") if self.kind == DIALOGUE else ()
        return {agent: pair for pair, *agents in pairs for agent in agents}

    @cached_property
    def follows(self) -> Ties:
        """Follows by the round in which they began. One that was taken back is not in it."""
        return Ties(*self._read_columns(_FOLLOWS, 2)) if self.kind == PLATFORM else Ties(*[np.zeros(0, np.int32)] * 3)

    @cached_property
    def interactions(self) -> Ties:
        """Interactions: likes, comments, reposts and quotes; remarks and lines to a person."""
        sql = _INTERACTIONS.get(self.kind)
        return Ties(*self._read_columns(sql, 2)) if sql else Ties(*[np.zeros(0, np.int32)] * 3)

    @cached_property
    def cascades(self) -> Sequence[Cascade]:
        """The cascades of all posts that were passed on; their dates are rounds."""
        if self.kind != PLATFORM:
            return ()
        found = []
        for cascade in read_all_cascades(self._database):
            cascade.dates[:] = map(self.find_round, cascade.dates)
            found.append(cascade)
        return found

    def _read_columns(self, sql: str, others: int) -> list[NDArray[np.int32]]:
        """Return the rounds of rows, and their other columns, which are numbers of people, by round."""
        rows = self.query(sql)
        chunks = []
        while chunk := [(self.find_round(date), *rest) for date, *rest in islice(rows, _CHUNK_ROWS)]:
            chunks.append(np.array(chunk, np.int32))
        whole = np.concatenate(chunks) if chunks else np.zeros((0, others + 1), np.int32)
        whole = whole[np.argsort(whole[:, 0], kind="stable")]
        return [np.ascontiguousarray(column) for column in whole.T]


def take_every(items: Iterable[T], most: int, total: int) -> Iterator[T]:
    """Yield at most `most` of the items, evenly spread: all of them, or every second, every third, and so on."""
    return islice(items, 0, None, max(-(-total // most), 1))
