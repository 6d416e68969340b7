"""A room: people who talk, think, reach out, turn to things, form relationships, move, and are done.

Turns are parallel (all act on one picture; what is said is heard in the next round, in the order in which the turns
were carried out) or sequential (each sees what the one before did, in the same round). docs/rooms.md puts the two side
by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from shoal.errors import ScenarioInvalid
from shoal.seeds import derive, hashes
from shoal.types import Action, Decision, Event, Happening, Notice, Versioned
from shoal.worlds.base import DO_NOTHING, BaseWorld, Needs, Rejected
from shoal.worlds.context import WorldContext
from shoal.worlds.names import NameIndex
from shoal.worlds.room.hearing import Inboxes
from shoal.worlds.room.observations import Relation, RoomObservation, Stimulus
from shoal.worlds.room.settings import RelationSettings, RoomSettings

#: What is always possible, whatever actions the scenario allows.
ALWAYS = (DO_NOTHING, "DONE")
#: What can be made to reach people.
STIMULI = ("hear", "see", "think", "goal", "location")

_UTTERANCE = "INSERT INTO utterance VALUES (?,?,?,?,?,?,?)"
_RELATION = "INSERT INTO relation VALUES (?,?,?,?)"
_STIMULUS = "INSERT INTO stimulus VALUES (?,?,?,?,?)"


class Room(BaseWorld):
    """People who hear one another."""

    actions: ClassVar[Mapping[str, Needs]] = {
        "TALK": {"content": str},
        "THINK": {"content": str},
        "REACH_OUT": {"target": str},
        "ATTEND": {"content": str},
        "RELATE": {"target": str, "relation": str},
        "MOVE_TO": {"location": str},
        "DONE": {},
    }
    tables = """
CREATE TABLE utterance (created_at INTEGER, user_id INTEGER, target_id INTEGER, location TEXT, content TEXT,
    opinion REAL, num_hearers INTEGER);
CREATE TABLE relation (created_at INTEGER, user_id INTEGER, other_id INTEGER, relation TEXT);
CREATE TABLE stimulus (created_at INTEGER, kind TEXT, user_id INTEGER, source_id INTEGER, content TEXT);
"""

    def __init__(self, name: str, settings: Versioned[RoomSettings], given: WorldContext) -> None:
        super().__init__(name, given, settings)
        self._settings = settings.first
        self._index = NameIndex(self.names)
        self._ears = Inboxes(len(self.people), settings.first.location)
        self._goals: dict[int, tuple[str, ...]] = {}
        self._attention: dict[int, str] = {}
        #: What people are to one another, from both sides, and how each sees it.
        self._ties: dict[int, dict[int, str]] = {}
        self._relations: dict[int, tuple[Relation, ...]] = {}
        self._neighbours: dict[int, list[int]] | None = None
        self._partners: tuple[int, dict[int, int]] = (-1, {})
        self._round = self._last_spoken = 0
        self._done = False
        for version in settings.versions():
            for relation in version.relations:
                self._between(relation)
        for agent in self.people:
            self._tie_known(agent, given.population[agent].traits.get("relationships"))
        for relation in settings.first.relations:
            self._tie(0, *self._between(relation), relation.relation)

    @property
    def over(self) -> bool:
        """Whether the room has emptied: nobody spoke for as many rounds as the scenario says."""
        quiet = self._settings.quiet_rounds
        return quiet is not None and self._round - self._last_spoken >= quiet

    def turns(self, round: int) -> Sequence[Sequence[int]]:
        self._enter(round)
        acting = self.unmuted(round, self.people)
        settings = self._settings
        if settings.turns == "parallel":
            return [acting] if acting else []
        if settings.order == "random":
            key = derive(self.given.seed, self.name, round, "turns")
            everyone = np.asarray(acting, np.int64)
            acting = everyone[np.argsort(hashes(key, everyone), kind="stable")].tolist()
        return [[agent] for agent in acting]

    def observe(self, round: int, agents: Sequence[int]) -> Sequence[RoomObservation]:
        time = self.timestamp(round)
        return [
            RoomObservation(
                world=self.name,
                round=round,
                agent=agent,
                name=self.names[agent],
                time=time,
                location=self._ears.where(agent),
                stimuli=self._ears.heard(agent),
                present=tuple(map(self.names.__getitem__, self._hearers(round, agent))),
                goals=self._goals.get(agent, ()),
                attention=self._attention.get(agent, ""),
                relations=self._relations.get(agent, ()),
            )
            for agent in agents
        ]

    def begin(self, round: int) -> None:
        super().begin(round)
        self._enter(round)
        self._round = round
        if round and self._settings.turns == "parallel":
            # All have looked by now, and what they hear from here on is for the next round.
            for agent in self.unmuted(round, self.people):
                self._ears.perceived(agent)
        self._ears.clear()

    def _enter(self, round: int) -> None:
        """Let the settings of the round hold; relations that a fork adds hold from here on."""
        before, self._settings = self._settings, self.settings.at(round)
        for relation in self._settings.relations:
            if relation not in before.relations:
                self._tie(round, *self._between(relation), relation.relation)

    def happen(self, round: int, happening: Happening) -> Sequence[Event | Notice]:
        kind = "hear" if happening.kind == "broadcast" else happening.kind
        if kind not in STIMULI:
            return super().happen(round, happening)
        said_to_some = happening.agent is not None and bool(happening.to)
        stimulus = self._stimulus(kind, happening.content, happening.agent, said_to_some)
        for agent in happening.to or (other for other in self.people if other != happening.agent):
            self._affect(agent, stimulus)
            self._ears.tell(agent, stimulus)
        for whom in happening.to or (None,):
            self.add(_STIMULUS, round, kind, whom, happening.agent, happening.content)
        return [happening.notice(round, self.timestamp(round))]

    def apply(self, round: int, agent: int, decision: Decision) -> Sequence[Event]:
        self._done = False
        if self._settings.turns == "sequential":
            self._ears.perceived(agent)
        return super().apply(round, agent, decision)

    def act(self, round: int, agent: int, action: Action) -> dict[str, Any] | None:
        match action.kind:
            case "TALK":
                return self._talk(round, agent, action.args)
            case "THINK":
                return {"content": _words(action, "content")}
            case "REACH_OUT":
                return self._reach_out(round, agent, action.args["target"])
            case "ATTEND":
                self._attention[agent] = _words(action, "content")
                return {"content": self._attention[agent]}
            case "RELATE":
                return self._relate(round, agent, action.args["target"], _words(action, "relation"))
            case "MOVE_TO":
                self._ears.move(agent, _words(action, "location"))
                return {"location": self._ears.where(agent)}
        self._done = True
        return {}

    def _try(self, round: int, agent: int, n: int, action: Action) -> dict[str, Any]:
        if self._done:
            raise Rejected("the turn ended with DONE")
        allowed = self._settings.actions
        if allowed is not None and action.kind in self.actions and action.kind not in (*allowed, *ALWAYS):
            raise Rejected(f"{action.kind} is not possible here")
        return super()._try(round, agent, n, action)

    # Talking

    def _talk(self, round: int, agent: int, args: Mapping[str, Any]) -> dict[str, Any]:
        told = {"content": _words(Action("TALK", dict(args)), "content")}
        opinion = _opinion(args.get("opinion"))
        target = self._hearing_target(round, agent, args.get("target"))
        stimulus = self._stimulus("hear", told["content"], agent, target is not None, opinion)
        hearers = self._deliver(round, agent, target, stimulus)
        self._last_spoken = round
        self.add(_UTTERANCE, round, agent, target, self._ears.where(agent), stimulus.content, opinion, hearers)
        if target is not None:
            told["target"] = self.names[target]
        return told if opinion is None else {**told, "opinion": opinion}

    def _hearing_target(self, round: int, agent: int, name: object) -> int | None:
        if name is None:
            return None
        if type(name) is not str:
            raise Rejected("the target of TALK is somebody's name (a text)")
        target = self._find_other(agent, name)
        if not self._hears(round, agent, target):
            raise Rejected(f"{self.names[target]} cannot hear {self.names[agent]}")
        return target

    def _deliver(self, round: int, agent: int, target: int | None, stimulus: Stimulus) -> int:
        """Returns how many hear it."""
        if target is not None:
            self._ears.tell(target, stimulus)
            return 1
        hearers = self._hearers(round, agent)
        if self._settings.hearing == "everyone":
            self._ears.say(agent, stimulus)
        else:
            for hearer in hearers:
                self._ears.tell(hearer, stimulus)
        return len(hearers)

    def _stimulus(
        self, kind: str, content: str, source: int | None, addressed: bool = False, opinion: float | None = None
    ) -> Stimulus:
        reader = self.given.reader
        return Stimulus(
            kind,
            content,
            source,
            None if source is None else self.names[source],
            addressed,
            tuple([reader.vocabulary[topic] for topic in reader.topics(content)]),
            reader.slant(content) if opinion is None else opinion,
            opinion,
        )

    # Who can hear whom

    def _hearers(self, round: int, agent: int) -> Sequence[int]:
        """Who hears the agent when it speaks to nobody in particular, in order of their numbers."""
        hearing = self.settings.at(round).hearing
        if hearing == "everyone":
            return self._ears.others(agent)
        return [other for other in self._within_earshot(round, agent, hearing) if self._ears.together(agent, other)]

    def _within_earshot(self, round: int, agent: int, hearing: str) -> Sequence[int]:
        if hearing == "neighbours":
            return self._neighbours_of(agent)
        if hearing == "relations":
            return sorted(self._ties.get(agent, ()))
        partner = self._partner(round, agent)
        return [] if partner is None else [partner]

    def _hears(self, round: int, agent: int, other: int) -> bool:
        hearing = self.settings.at(round).hearing
        within = hearing == "everyone" or other in self._within_earshot(round, agent, hearing)
        return within and self._ears.together(agent, other)

    def _neighbours_of(self, agent: int) -> list[int]:
        """Who follows the agent or is followed by it."""
        if self._neighbours is None:
            graph = self.given.graph
            followers = np.repeat(np.arange(len(self.people)), np.diff(graph.starts)).tolist()
            links: dict[int, set[int]] = {}
            for follower, followed in zip(followers, graph.targets.tolist(), strict=True):
                links.setdefault(follower, set()).add(followed)
                links.setdefault(followed, set()).add(follower)
            self._neighbours = {one: sorted(others - {one}) for one, others in links.items()}
        return self._neighbours.get(agent, [])

    def _partner(self, round: int, agent: int) -> int | None:
        """Whom the agent meets in this round: everybody is drawn into a pair; an odd one out meets nobody."""
        if self._partners[0] != round:
            key = derive(self.given.seed, self.name, round, "pairs")
            drawn = np.argsort(hashes(key, np.arange(len(self.people))), kind="stable").tolist()
            pairs = list(zip(drawn[::2], drawn[1::2], strict=False))
            self._partners = (round, dict(chain(pairs, ((second, first) for first, second in pairs))))
        return self._partners[1].get(agent)

    # Relationships

    def _find_other(self, agent: int, name: str) -> int:
        """Return the number of the person with this name, who must not be the agent itself."""
        found = self._index.find(name)
        if found is None:
            raise Rejected(f"nobody is called {name!r}{self._index.suggest(name)}")
        if found == agent:
            raise Rejected(f"{self.names[agent]} cannot be the target of their own action")
        return found

    def _reach_out(self, round: int, agent: int, name: str) -> dict[str, Any]:
        target = self._find_other(agent, name)
        if not self._hears(round, agent, target) and target not in self._ties.get(agent, ()):
            raise Rejected(f"{self.names[target]} is out of reach: neither within hearing nor related")
        content = f"{self.names[agent]} wants a word with you."
        self._ears.tell(target, self._stimulus("reach_out", content, agent, addressed=True))
        return {"target": self.names[target]}

    def _relate(self, round: int, agent: int, name: str, relation: str) -> dict[str, Any]:
        target = self._find_other(agent, name)
        if not self._ears.together(agent, target) and target not in self._ties.get(agent, ()):
            raise Rejected(f"{self.names[target]} is out of reach: neither here nor related")
        self._tie(round, agent, target, relation)
        self._ears.tell(target, self._stimulus("relate", relation, agent, addressed=True))
        return {"target": self.names[target], "relation": relation}

    def _tie(self, round: int, agent: int, other: int, relation: str) -> None:
        for one, another in ((agent, other), (other, agent)):
            ties = self._ties.setdefault(one, {})
            ties[another] = relation
            self._relations[one] = tuple(Relation(who, self.names[who], what) for who, what in ties.items())
        self.add(_RELATION, round, agent, other, relation)

    def _tie_known(self, agent: int, relationships: object) -> None:
        """Relationships that a person brings along as [name, description], to those who are here."""
        for known in relationships if isinstance(relationships, (list, tuple)) else ():
            match known:
                case [str(name), str(what)] if (other := self._index.find(name)) not in (None, agent):
                    self._tie(0, agent, other, what)

    def _between(self, relation: RelationSettings) -> tuple[int, int]:
        numbers = [self._index.find(who) for who in relation.between]
        for who, number in zip(relation.between, numbers, strict=True):
            if number is None:
                raise ScenarioInvalid([f"worlds.{self.name}.relations: there is nobody called {who!r}"])
        first, second = (number for number in numbers if number is not None)
        if first == second:
            raise ScenarioInvalid([f"worlds.{self.name}.relations: {relation.between[0]!r} is named twice"])
        return first, second

    # What is made to happen

    def _affect(self, agent: int, stimulus: Stimulus) -> None:
        if stimulus.kind == "goal":
            self._goals[agent] = (*self._goals.get(agent, ()), stimulus.content)
        elif stimulus.kind == "location":
            self._ears.move(agent, stimulus.content)


def _words(action: Action, argument: str) -> str:
    words: str = action.args[argument]
    if not words.strip():
        raise Rejected(f"{action.kind} needs {argument}: it is empty")
    return words


def _opinion(stated: object) -> float | None:
    if stated is None:
        return None
    if type(stated) not in (int, float) or not -1 <= stated <= 1:  # type: ignore[operator]
        raise Rejected("the opinion of TALK is a number from -1 to 1")
    return float(stated)  # type: ignore[arg-type]
