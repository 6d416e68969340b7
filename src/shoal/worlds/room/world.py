"""A room: people who talk, think, reach out, turn to things, form relations, and move.

Turns are parallel (all act on the same state; what is said is heard in the next round, in the order in which the turns
were carried out) or sequential (each agent sees what the one before did, in the same round). docs/rooms.md compares
the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import msgspec
import numpy as np

from shoal.errors import ScenarioInvalid
from shoal.seeds import derive, hashes
from shoal.types import Action, Decision, Event, Happening, Notice, Versioned
from shoal.worlds.base import DO_NOTHING, BaseWorld, Needs, Rejected, WorldContext, read_mention, show_stated
from shoal.worlds.names import NameIndex
from shoal.worlds.room.hearing import NOWHERE, Inboxes
from shoal.worlds.room.observations import Relation, RoomObservation, Stimulus
from shoal.worlds.room.settings import RelationSettings, RoomSettings
from shoal.worlds.world_kind import ActionCard, Argument

#: Actions that are always possible, whatever the scenario allows.
ALWAYS = (DO_NOTHING, "DONE")
#: Kinds of events that reach people as stimuli.
STIMULI = ("hear", "see", "think", "goal", "location")

_UTTERANCE = "INSERT INTO utterance VALUES (?,?,?,?,?,?,?)"
_RELATION = "INSERT INTO relation VALUES (?,?,?,?)"
_STIMULUS = "INSERT INTO stimulus VALUES (?,?,?,?,?)"


_CONTENT = Argument("content")
_TARGET = Argument("target", names="person")

CARDS = (
    ActionCard(
        "TALK",
        (_CONTENT, Argument("target", is_needed=False, names="person")),
        "speak to everybody who hears you, or only to target (a name)",
        "said",
    ),
    ActionCard("THINK", (_CONTENT,), "think something that nobody hears", "thought"),
    ActionCard("REACH_OUT", (_TARGET,), "ask for somebody's attention"),
    ActionCard("ATTEND", (_CONTENT,), "turn your attention to something", "turned to"),
    ActionCard("RELATE", (_TARGET, Argument("relation")), "say what you and somebody are to one another"),
    ActionCard("MOVE_TO", (Argument("location"),), "go to another place"),
    ActionCard("DONE", (), "end your turn"),
)


class Room(BaseWorld):
    """People who hear one another."""

    actions: ClassVar[Mapping[str, Needs]] = {card.kind: card.needs for card in CARDS}
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
        self._inboxes = Inboxes(len(self.people), settings.first.location, self.absent)
        self._goals: dict[int, tuple[str, ...]] = {}
        self._attention: dict[int, str] = {}
        #: Agent -> related agents, from both sides -> what this agent knows that they are, which may be nothing.
        self._ties: dict[int, dict[int, list[str]]] = {}
        #: The same as observations show it, for agents that have looked since their relations changed.
        self._relations: dict[int, tuple[Relation, ...]] = {}
        #: Two agents -> the last relation that both of them know.
        self._mutual: dict[frozenset[int], str] = {}
        self._partners: tuple[int, dict[int, int]] = (-1, {})
        self._round = self._last_spoken = 0
        self._is_done = False
        for version in settings.versions()[1:]:
            for relation in version.relations:
                self._find_pair(relation)
        for agent in self.people:
            self._relate_as_brought(0, agent)
        for relation in settings.first.relations:
            self._relate(0, *self._find_pair(relation), relation.relation, relation.mutual)

    def _relate_as_brought(self, round: int, agent: int, other: int | None = None) -> None:
        """Take over the relationships that a person brings along, as [name, description], to people who are here.

        `other`: only those to this person.
        """
        known = self.given.population[agent].traits.get("relationships")
        for entry in known if agent not in self.absent and isinstance(known, (list, tuple)) else ():
            match entry:
                case [str(name), str(what)] if (found := self._index.find(name)) is not None:
                    if found not in (agent, *self.absent) and (other is None or found == other):
                        self._relate(round, agent, found, what)

    def join(self, round: int, agent: int) -> None:
        is_new = agent in self._unknown
        super().join(round, agent)
        self._inboxes.move(agent, self.settings.at(round).location)
        self._inboxes.empty(agent)
        for other in self.people if is_new else ():
            self._relate_as_brought(round, other, None if other == agent else agent)

    def leave(self, round: int, agent: int) -> None:
        super().leave(round, agent)
        self._inboxes.move(agent, NOWHERE)

    @property
    def over(self) -> bool:
        """Whether the room was silent for as many rounds as the scenario allows."""
        quiet = self._settings.quiet_rounds
        return quiet is not None and self._round - self._last_spoken >= quiet

    def turns(self, round: int) -> Sequence[Sequence[int]]:
        self._take_settings(round)
        acting = self.exclude_muted(round, self.people)
        if self._settings.turns == "parallel":
            return [acting] if acting else []
        if self._settings.order == "random":
            key = derive(self.given.seed, self.name, round, "turns")
            everyone = np.asarray(acting, np.int64)
            acting = everyone[np.argsort(hashes(key, everyone), kind="stable")].tolist()
        return [[agent] for agent in acting]

    def observe(self, round: int, agents: Sequence[int]) -> Sequence[RoomObservation]:
        time = self.timestamp(round)
        return [
            RoomObservation(
                world=self.name, round=round, agent=agent, name=self.names[agent], time=time,
                location=self._inboxes.location(agent), stimuli=self._inboxes.peek(agent),
                present=tuple(map(self.names.__getitem__, self._hearers(round, agent))),
                goals=self._goals.get(agent, ()), attention=self._attention.get(agent, ""),
                relations=self._list_relations(agent),
            )
            for agent in agents
        ]  # fmt: skip

    def begin(self, round: int) -> None:
        super().begin(round)
        self._take_settings(round)
        self._round = round
        if round and self._settings.turns == "parallel":
            # All have looked by now, and what they hear from here on is for the next round.
            for agent in self.exclude_muted(round, self.people):
                self._inboxes.empty(agent)
        self._inboxes.distribute()

    def _take_settings(self, round: int) -> None:
        """Let the settings of the round apply. Relations that a fork adds exist from here on."""
        before, self._settings = self._settings, self.settings.at(round)
        if before is self._settings:
            return
        known, still = set(before.relations), set(self._settings.relations)
        replaced = {frozenset(self._find_pair(relation)) for relation in known - still if relation.mutual}
        for relation in self._settings.relations:
            if relation not in known:
                pair = self._find_pair(relation)
                if relation.mutual and frozenset(pair) in replaced:
                    self._drop_mutual(*pair)
                self._relate(round, *pair, relation.relation, relation.mutual)

    def happen(self, round: int, happening: Happening) -> Sequence[Event | Notice]:
        kind = "hear" if happening.kind == "broadcast" else happening.kind
        if kind not in STIMULI:
            return super().happen(round, happening)
        is_addressed = happening.agent is not None and bool(happening.to)
        stimulus = self._make_stimulus(kind, happening.content, happening.agent, is_addressed)
        for agent in happening.to or (other for other in self.people if other != happening.agent):
            if agent in self.absent:
                continue
            if kind == "goal":
                self._goals[agent] = (*self._goals.get(agent, ()), happening.content)
            elif kind == "location":
                self._inboxes.move(agent, happening.content)
            self._inboxes.tell(agent, stimulus)
        for target in happening.to or (None,):
            self.add(_STIMULUS, round, kind, target, happening.agent, happening.content)
        return [happening.notice(round, self.timestamp(round))]

    def apply(self, round: int, agent: int, decision: Decision) -> Sequence[Event]:
        self._is_done = False
        if self._settings.turns == "sequential":
            self._inboxes.empty(agent)
        return super().apply(round, agent, decision)

    def _try(self, round: int, agent: int, n: int, action: Action) -> dict[str, Any]:
        if self._is_done:
            raise Rejected("the turn ended with DONE")
        allowed = self._settings.actions
        if allowed is not None and action.kind in self.actions and action.kind not in (*allowed, *ALWAYS):
            raise Rejected(f"{action.kind} is not possible here")
        return super()._try(round, agent, n, action)

    def act(self, round: int, agent: int, action: Action) -> dict[str, Any] | None:
        match action.kind:
            case "TALK":
                return self._talk(round, agent, action)
            case "THINK":
                return {"content": _need_text(action, "content")}
            case "REACH_OUT":
                target = self._find_other(agent, action.args["target"])
                if not self._hears(round, agent, target) and target not in self._ties.get(agent, ()):
                    raise Rejected(f"{self.names[target]} is out of reach: neither within hearing nor related")
                content = f"{self.names[agent]} wants a word with you."
                self._inboxes.tell(target, self._make_stimulus("reach_out", content, agent, is_addressed=True))
                return {"target": self.names[target]}
            case "ATTEND":
                self._attention[agent] = _need_text(action, "content")
                return {"content": self._attention[agent]}
            case "RELATE":
                relation, target = _need_text(action, "relation"), self._find_other(agent, action.args["target"])
                if not self._inboxes.together(agent, target) and target not in self._ties.get(agent, ()):
                    raise Rejected(f"{self.names[target]} is out of reach: neither here nor related")
                self._drop_mutual(agent, target)
                self._relate(round, agent, target, relation, is_mutual=True)
                self._inboxes.tell(target, self._make_stimulus("relate", relation, agent, is_addressed=True))
                return {"target": self.names[target], "relation": relation}
            case "MOVE_TO":
                self._inboxes.move(agent, _need_text(action, "location"))
                return {"location": self._inboxes.location(agent)}
        self._is_done = True
        return {}

    def _talk(self, round: int, agent: int, action: Action) -> dict[str, Any]:
        content, opinion = _need_text(action, "content"), action.args.get("opinion")
        if opinion is not None and (type(opinion) not in (int, float) or not -1 <= opinion <= 1):
            raise Rejected("the opinion of TALK is a number from -1 to 1")
        opinion = None if opinion is None else float(opinion)
        target = None
        if (name := action.args.get("target")) is not None:
            if type(name) is not str:
                raise Rejected("the target of TALK is somebody's name (a text)")
            target = self._find_other(agent, name)
            if not self._hears(round, agent, target):
                raise Rejected(f"{self.names[target]} cannot hear {self.names[agent]}")
        mention = read_mention(self.given.reader, action.args, content)
        if mention is not None:
            self.reached[mention.claim].add(agent)
        stimulus = self._make_stimulus("hear", content, agent, target is not None, opinion)
        if mention is not None:
            stimulus = msgspec.structs.replace(stimulus, mention=mention)
        hearers = self._hearers(round, agent) if target is None else [target]
        if target is None and self._settings.hearing == "everyone":
            self._inboxes.say(agent, stimulus)
        else:
            for hearer in hearers:
                self._inboxes.tell(hearer, stimulus)
        self._last_spoken = round
        where = self._inboxes.location(agent)
        self.add(_UTTERANCE, round, agent, target, where, content, opinion, len(hearers))
        args: dict[str, Any] = {"content": content, **show_stated(action.args)}
        if target is not None:
            args["target"] = self.names[target]
        return args if opinion is None else {**args, "opinion": opinion}

    def _make_stimulus(
        self, kind: str, content: str, source: int | None, is_addressed: bool = False, opinion: float | None = None
    ) -> Stimulus:
        reader = self.given.reader
        slant = reader.slant(content) if opinion is None else opinion
        name = None if source is None else self.names[source]
        return Stimulus(kind, content, source, name, is_addressed, reader.name_topics(content), slant, opinion)

    # Hearing

    def _hearers(self, round: int, agent: int) -> Sequence[int]:
        """Return the agents that hear this one when it addresses no one, in order of their numbers."""
        hearing = self.settings.at(round).hearing
        if hearing == "everyone":
            return self._inboxes.others(agent)
        return [other for other in self._within_earshot(round, agent, hearing) if self._inboxes.together(agent, other)]

    def _within_earshot(self, round: int, agent: int, hearing: str) -> Sequence[int]:
        if hearing == "neighbours":
            return self._neighbours.get(agent, [])
        if hearing == "relations":
            return sorted(self._ties.get(agent, ()))
        if self._partners[0] != round:
            # Everyone is drawn into a pair; with an odd number, the last one stays alone.
            key = derive(self.given.seed, self.name, round, "pairs")
            here = np.array([agent for agent in self.people if agent not in self.absent], np.int64)
            drawn = here[np.argsort(hashes(key, here), kind="stable")].tolist()
            pairs = list(zip(drawn[::2], drawn[1::2], strict=False))
            self._partners = (round, dict(chain(pairs, ((second, first) for first, second in pairs))))
        partner = self._partners[1].get(agent)
        return [] if partner is None else [partner]

    def _hears(self, round: int, agent: int, other: int) -> bool:
        hearing = self.settings.at(round).hearing
        is_near = hearing == "everyone" or other in self._within_earshot(round, agent, hearing)
        return is_near and self._inboxes.together(agent, other)

    @cached_property
    def _neighbours(self) -> dict[int, list[int]]:
        """Agent -> the agents that follow it or that it follows."""
        graph = self.given.graph
        followers = np.repeat(np.arange(len(self.people)), np.diff(graph.starts)).tolist()
        links: dict[int, set[int]] = {}
        for follower, followed in zip(followers, graph.targets.tolist(), strict=True):
            links.setdefault(follower, set()).add(followed)
            links.setdefault(followed, set()).add(follower)
        return {one: sorted(others - {one}) for one, others in links.items()}

    # Relations

    def _find_other(self, agent: int, name: str) -> int:
        """Return the number of the person with this name, who must not be the agent itself."""
        found = self._index.find(name)
        if found is None:
            raise Rejected(f"nobody is called {name!r}{self._index.suggest(name)}")
        if found == agent:
            raise Rejected(f"{self.names[agent]} cannot be the target of their own action")
        if found in self.absent:
            raise Rejected(f"{self.names[found]} is not here")
        return found

    def _find_pair(self, relation: RelationSettings) -> tuple[int, int]:
        first, second = (self._index.find(who) for who in relation.between)
        if first is None or second is None:
            missing = relation.between[0 if first is None else 1]
            raise ScenarioInvalid([f"worlds.{self.name}.relations: there is nobody called {missing!r}"])
        if first == second:
            raise ScenarioInvalid([f"worlds.{self.name}.relations: {relation.between[0]!r} is named twice"])
        return first, second

    def _relate(self, round: int, agent: int, other: int, relation: str, is_mutual: bool = False) -> None:
        """Add a relation. Where it is not mutual, the other one is tied to the agent without knowing of it."""
        if self._settings.one_relation:
            self._drop_mutual(agent, other)
            is_mutual = True
        for one, another in ((agent, other), (other, agent)):
            known = self._ties.setdefault(one, {}).setdefault(another, [])
            if (is_mutual or one == agent) and relation not in known:
                known.append(relation)
                self._relations.pop(one, None)
        if is_mutual:
            self._mutual[frozenset((agent, other))] = relation
        self.add(_RELATION, round, agent, other, relation)

    def _drop_mutual(self, agent: int, other: int) -> None:
        """Drop the last relation that both know. The two stay tied."""
        last = self._mutual.get(frozenset((agent, other)))
        for one, another in ((agent, other), (other, agent)):
            if last is not None and last in (known := self._ties[one][another]):
                known.remove(last)
                self._relations.pop(one, None)

    def _list_relations(self, agent: int) -> tuple[Relation, ...]:
        if agent not in self._relations:
            ties = self._ties.get(agent, {})
            self._relations[agent] = tuple(
                Relation(other, self.names[other], what) for other, known in ties.items() for what in known
            )
        return self._relations[agent]


def _need_text(action: Action, argument: str) -> str:
    words: str = action.args[argument]
    if not words.strip():
        raise Rejected(f"{action.kind} needs {argument}: it is empty")
    return words
