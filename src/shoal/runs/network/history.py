"""The network of one world over its rounds: ties, opinions and influence.

Each look reads only the rounds since the last one, and no more of them than it may: people, ties and opinions are
then known as of the last round, and influence and the paths of claims as of the round that was read last. So the first
look at a long run takes hardly longer than that at a short one.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from shoal.engine import TOPIC
from shoal.errors import ArgumentInvalid
from shoal.runs.directory import RunDirectory
from shoal.runs.network.communities import find_communities
from shoal.runs.network.contacts import Cause, Contacts, Tie, open_contacts
from shoal.runs.network.layout import arrange
from shoal.runs.network.paths import ClaimPath, NetworkSubject, count_subjects, find_post, trace_path
from shoal.runs.reports import find_opinions, open_world
from shoal.text import clip, one_of

#: Smaller changes in a round are noise.
_LEAST_CHANGE = 0.01
#: The picture is arranged anew when ties have grown by this part since.
_GROWTH = 0.25
_SUBJECT_CHARS = 120
_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
_LAST_ROUND = "SELECT max(round) FROM shoal_round"
_NAMES = "SELECT coalesce(agent_id, user_id), name FROM user"
_POST = "SELECT coalesce(quote_content, content, '') FROM post WHERE post_id = ?"
_ROUNDS = "SELECT round, actions FROM shoal_round WHERE round > ? ORDER BY round"
_CHANGES = "SELECT rowid, about, round, agent_id, value FROM opinion_change WHERE rowid > ? ORDER BY rowid"

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Move:
    """An opinion moved in the round in which its holder noticed something that an author had said."""

    round: int
    author: int
    agent: int
    subject: str
    #: How far, and in which direction.
    amount: float
    #: The action that shows that it was noticed, where there is one.
    event: str


class OpinionChanges:
    """What people think of one thing, as changes in the order of the rounds."""

    def __init__(self) -> None:
        self._rounds = array("i")
        self._agents = array("i")
        self._values = array("d")
        self.held: dict[int, float] = {}

    def add(self, round: int, agent: int, value: float) -> float | None:
        """Add a change, and return how far it goes; None where nothing was known before."""
        before = self.held.get(agent)
        self.held[agent] = value
        self._rounds.append(round)
        self._agents.append(agent)
        self._values.append(value)
        return None if before is None else value - before

    def at(self, round: int, people: int) -> Floats:
        """Return what each person thinks after a round; NaN where it is not known."""
        found = np.full(people, np.nan)
        until = int(np.searchsorted(np.array(self._rounds), round, "right"))
        # Of several changes of one person, the last one is kept.
        found[np.array(self._agents)[:until]] = np.array(self._values)[:until]
        return found

    def of(self, agent: int) -> list[tuple[int, float]]:
        """Return the changes of one person: rounds and values."""
        return [
            (round, value)
            for round, who, value in zip(self._rounds, self._agents, self._values, strict=True)
            if who == agent
        ]


class NetworkHistory:
    """One world of a run. `refresh` reads what was committed since."""

    def __init__(self, run: RunDirectory, world: str) -> None:
        if world not in run.worlds:
            raise ArgumentInvalid("world", f"there is no world {world!r}; there is {one_of(run.worlds)}")
        self._run = run
        self.world = world
        self._claims = {claim.id: claim.text for claim in run.scenario.claims}
        self.last_round = 0
        #: The last round of which influence and the paths of claims are known.
        self.counted_until = -1
        self.names: list[str] = []
        self.contacts = Contacts()
        self.opinions: dict[str, OpinionChanges] = {}
        self.moves: list[Move] = []
        self._is_open = False
        self._last_change = 0
        #: Round and agent -> how its opinions changed, and what it noticed: of rounds that are not joined yet.
        self._changes: dict[tuple[int, int], list[tuple[str, float, float]]] = defaultdict(list)
        self._causes: dict[tuple[int, int], list[Cause]] = defaultdict(list)
        #: Round, author, agent and amount of each movement, one column each.
        self._move_columns = np.zeros((4, 0))
        self._subjects: list[NetworkSubject] = []
        #: All ties in order, unless more have been read since.
        self._ties: list[Tie] = []
        self._paths: dict[str, ClaimPath] = {}
        self._communities = np.zeros(0, np.int32)
        self._places = np.zeros((0, 2))
        self._arranged_ties = -1
        #: Guards the lists while they are extended, and while several of them are read together.
        self.lock = RLock()

    def refresh(self, most_actions: int | None = None) -> None:
        """Read on to the last committed round, or to the end of the round in which `most_actions` are reached."""
        with self.lock, open_world(self._run, self.world) as database:
            if database is None:
                return
            (last,) = database.execute(_LAST_ROUND).fetchone()
            if last is None:
                # The tables are there before the people are in them.
                return
            self._open(database)
            if last > self.last_round or self.counted_until < 0:
                self.contacts.read_ties(database, last)
            self.last_round = last
            until = last if most_actions is None else self._find_part_end(database, last, most_actions)
            for row, about, round, agent, value in database.execute(_CHANGES, (self._last_change,)):
                if round > until:
                    break
                self._last_change = row
                change = self.opinions.setdefault(about, OpinionChanges()).add(round, agent, value)
                if change is not None and abs(change) >= _LEAST_CHANGE:
                    self._changes[round, agent].append((about, value - change, value))
            for cause in self.contacts.read_on(database, until):
                turn = cause.round, cause.agent
                # Most that people notice changes nothing; what is noticed in a round may be felt in the next one.
                if turn in self._changes or cause.round > until:
                    self._causes[turn].append(cause)
            self.moves += self._join(self.contacts.read_until)
            if self.contacts.read_until > self.counted_until:
                self.counted_until = self.contacts.read_until
                self._paths.clear()
                self._subjects = list(self._name_subjects(database))

    def _find_part_end(self, database: Connection, last: int, most_actions: int) -> int:
        total = 0
        for round, actions in database.execute(_ROUNDS, (self.contacts.read_until,)):
            total += actions
            if total >= most_actions:
                return int(round)
        return last

    def arrange(self) -> tuple[Floats, Integers]:
        """Return the place and the community of each person. Both stay the same until there are many more ties."""
        with self.lock:
            ties = self.list_ties()
            if len(ties) > self._arranged_ties * (1 + _GROWTH) or len(self._places) != len(self.names):
                edges = np.array([(tie.one, tie.other) for tie in ties if tie.one != tie.other], np.int32).reshape(
                    -1, 2
                )
                self._communities = find_communities(len(self.names), edges)
                self._places = arrange(len(self.names), edges, self._communities, self.main_opinions(0))
                self._arranged_ties = len(ties)
            return self._places, self._communities

    def list_ties(self) -> list[Tie]:
        """List all ties, also those that no longer hold, in an order that does not depend on when they were read."""
        if len(self._ties) != len(self.contacts.ties) + len(self.contacts.past_ties):
            found = [*self.contacts.ties.values(), *self.contacts.past_ties]
            self._ties = sorted(found, key=lambda tie: (tie.since, tie.one, tie.other))
        return self._ties

    def choose_subject(self, wanted: str | None = None) -> str | None:
        """Return what opinions are shown about: the wanted claim, or else the topic, or else the first claim."""
        choices = (wanted, TOPIC, *self.opinions)
        return next((subject for subject in choices if subject in self.opinions), None)

    def main_opinions(self, round: int, wanted: str | None = None) -> Floats:
        """Return what each person thinks after a round; NaN where it is not known."""
        subject, people = self.choose_subject(wanted), len(self.names)
        if subject is None:
            return np.full(people, np.nan)
        if round <= self.counted_until:
            return self.opinions[subject].at(round, people)
        with open_world(self._run, self.world) as database:
            known = {} if database is None else find_opinions(database, subject, round)
        return np.array([known.get(agent, np.nan) for agent in range(people)])

    def list_subjects(self) -> list[NetworkSubject]:
        """List the claims and posts whose path can be shown."""
        return self._subjects

    def check_claim(self, claim: str | None) -> str | None:
        """Return a claim or post if it can have a path; ArgumentInvalid if it is unknown."""
        known = dict.fromkeys(subject.id for subject in self._subjects) | dict.fromkeys(self._claims)
        if claim is None or claim in known:
            return claim
        choices = one_of(known) if known else "none yet"
        raise ArgumentInvalid("claim", f"there is no claim {claim!r} in {self.world}; there is {choices}")

    def trace(self, subject: str) -> ClaimPath:
        """Return the path of a claim or post through all rounds."""
        if subject not in self._paths:
            self._paths[subject] = trace_path(self.contacts, subject)
        return self._paths[subject]

    def sum_influence(self, round: int) -> Floats:
        """Return how far each person has moved others up to a round, in all."""
        authors, _, amounts = self._list_moves(round)
        moved: Floats = np.bincount(authors, np.abs(amounts), len(self.names)).astype(float)
        return moved

    def list_strongest_moves(self, round: int, most: int) -> list[tuple[int, int, float]]:
        """List the largest movements up to a round: author, agent, and signed amount."""
        authors, agents, amounts = self._list_moves(round)
        pairs, which = np.unique(authors * len(self.names) + agents, return_inverse=True)
        sums = np.bincount(which, amounts, len(pairs))
        best = np.argsort(-np.abs(sums), kind="stable")[:most]
        return [
            (*divmod(pair, len(self.names)), amount)
            for pair, amount in zip(pairs[best].tolist(), sums[best].round(3).tolist(), strict=True)
        ]

    def _list_moves(self, round: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return author, agent and amount of each movement up to a round."""
        if len(self._move_columns[0]) != len(self.moves):
            rows = [(move.round, move.author, move.agent, move.amount) for move in self.moves]
            self._move_columns = np.array(rows, dtype=float).reshape(-1, 4).T
        _, authors, agents, amounts = self._move_columns[:, self._move_columns[0] <= round]
        return authors.astype(np.int64), agents.astype(np.int64), amounts

    def _name_subjects(self, database: Connection) -> Iterator[NetworkSubject]:
        """Name what people spoke of: posts by the beginning of their text, claims by their own."""
        for subject, times in count_subjects(self.contacts):
            post = find_post(subject)
            row = None if post is None else database.execute(_POST, (post,)).fetchone()
            text = self._claims.get(subject, subject) if row is None else str(row[0])
            yield NetworkSubject(subject, clip(text, _SUBJECT_CHARS), times)

    def _open(self, database: Connection) -> None:
        if self._is_open:
            return
        tables = {name for (name,) in database.execute(_TABLES)}
        names: Mapping[int, str] = dict(database.execute(_NAMES).fetchall()) if "user" in tables else {}
        self.names = [names.get(agent, f"agent {agent}") for agent in range(max(names, default=-1) + 1)]
        self.contacts = open_contacts(self._run, self.world, tables)
        self._is_open = True

    def _join(self, until: int) -> Iterator[Move]:
        """Share each change of opinion among the authors of what the person noticed in its round.

        Only what lies in the direction of the change counts. This shows what went together, not what caused what.
        """
        for turn in sorted(key for key in self._changes if key[0] <= until):
            for about, before, after in self._changes.pop(turn):
                causes = [
                    cause
                    for cause in self._causes.get(turn, ())
                    if cause.subject == about
                    and cause.author != cause.agent
                    and (cause.lean - before) * (after - before) > 0
                ]
                for cause in causes:
                    share = (after - before) / len(causes)
                    yield Move(cause.round, cause.author, cause.agent, about, share, cause.event)
        for turn in [key for key in self._causes if key[0] <= until]:
            del self._causes[turn]
