"""Finds the facts that episodes add, end and repeat, for sinks on servers; the graph in a file has the same rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shoal.sinks.narration import Entity, Narration

#: The ends of a fact, and its world: facts of different worlds do not end one another.
FactEnds = tuple[str, str, str]


@dataclass(slots=True)
class KnownFact:
    """A fact with the rounds in which it held, and the episodes that show it, by their ids."""

    id: str
    world: str
    source: str
    relation: str
    target: str
    first: str
    latest: str
    since: int
    times: int = 1
    until: int | None = None
    ended_by: str | None = None
    lean: float | None = None

    @property
    def ends(self) -> FactEnds:
        return self.source, self.target, self.world


def name_entity(entity: Entity) -> str:
    """Return the id of an entity within its run."""
    return f"{entity.kind}:{entity.key}"


def list_ends(episodes: Iterable[Narration]) -> set[FactEnds]:
    """Return between which entities facts may be ended or repeated by episodes."""
    return {
        (name_entity(fact.source), name_entity(fact.target), episode.world)
        for episode in episodes
        for fact in episode.facts
        if fact.lasting or fact.ends
    }


class FactBook:
    """The facts that hold between some entities, and what episodes change about them."""

    def __init__(self, holding: Iterable[KnownFact]) -> None:
        self._holding: defaultdict[FactEnds, list[KnownFact]] = defaultdict(list)
        for fact in holding:
            self._holding[fact.ends].append(fact)
        #: Id -> a fact that is new or has changed.
        self.changed: dict[str, KnownFact] = {}

    def add(self, episode: Narration) -> None:
        """Add what an episode makes true, end what it ends, and count what held already."""
        for number, fact in enumerate(episode.facts):
            source, target = name_entity(fact.source), name_entity(fact.target)
            held = self._holding[source, target, episode.world]
            again = next((each for each in held if fact.lasting and each.relation == fact.relation), None)
            for ended in [each for each in held if each.relation in fact.ends and each is not again]:
                ended.until, ended.ended_by = episode.round, episode.id
                self.changed[ended.id] = ended
                held.remove(ended)
            if again is not None:
                again.latest, again.times, again.lean = episode.id, again.times + 1, fact.lean
                self.changed[again.id] = again
                continue
            told = episode.id, episode.id, episode.round, 1, None if fact.lasting else episode.round, None
            identity = f"{episode.id}/{number}"
            new = KnownFact(identity, episode.world, source, fact.relation, target, *told, fact.lean)
            self.changed[new.id] = new
            if fact.lasting:
                held.append(new)


def list_entities(episodes: Iterable[Narration]) -> Iterator[tuple[Entity, int | None]]:
    """Yield each entity of episodes once, with the number of the person who made it where that is known."""
    known: dict[str, tuple[Entity, int | None]] = {}
    for episode in episodes:
        if episode.made is not None:
            known.setdefault(name_entity(episode.made), (episode.made, episode.agent))
        for fact in episode.facts:
            for entity in (fact.source, fact.target):
                known.setdefault(name_entity(entity), (entity, None))
    yield from known.values()
