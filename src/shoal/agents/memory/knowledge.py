"""What everybody can know of one another: the graph memory of a world, as of the rounds that are visible."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from shoal.sinks import GraphStore, Narration, Narrator, Position, SinkBatch
from shoal.text import clip
from shoal.types import Event, Notice

_IN_MEMORY = Path(":memory:")
_NAME_CHARS = 80
#: Facts and people of one prompt, at most.
_MAX_FACTS, _MAX_PEOPLE = 40, 40
_VIEWS = "('SUPPORTS', 'DOUBTS', 'OPPOSES')"
_PERSON = "SELECT id FROM entity WHERE kind = 'person' AND key = ?"
#: Facts that hold after a round, whatever was committed since: their first round and their end say so.
_HOLDING = (
    "SELECT s.name, relation, t.name, since FROM fact JOIN entity AS s ON s.id = source"
    " JOIN entity AS t ON t.id = target WHERE {condition} AND since <= :round AND (until IS NULL OR until > :round)"
    " ORDER BY since DESC, fact.id LIMIT :limit"
)


class GraphKnowledge:
    """The graph of one world, in memory. It is built from what the engine commits, so a replay builds the same one."""

    def __init__(self, narrator: Narrator) -> None:
        self._narrator = narrator
        self._store = GraphStore(_IN_MEMORY)
        #: Rounds that were not needed yet.
        self._waiting: deque[tuple[int, Sequence[Narration]]] = deque()

    def learn(self, round: int, happened: Sequence[Event | Notice]) -> None:
        """Take over what happened in a round. Rounds come in order."""
        told = (self._narrator.tell(event) for event in happened if isinstance(event, Event))
        self._waiting.append((round, [narration for narration in told if narration is not None]))

    def recall(self, agent: int, others: Sequence[int], round: int, max_chars: int) -> str:
        """Return what the graph knows after a round of other people, and of what is between them and an agent."""
        while self._waiting:
            learned_in, told = self._waiting.popleft()
            begin = self._store.position(self._narrator.world)
            self._store.write(SinkBatch(self._narrator.world, begin, Position(learned_in + 1, str(learned_in)), told))
        mine, theirs = self._find(agent), [found for other in others[:_MAX_PEOPLE] if (found := self._find(other))]
        if not theirs:
            return ""
        those = f"({', '.join(map(str, theirs))})"
        conditions = [f"source IN {those} AND relation IN {_VIEWS}"]
        if mine is not None:
            conditions.append(f"source = {mine} AND target IN {those}")
            conditions.append(f"source IN {those} AND target = {mine}")
        lines, chars = list[str](), 0
        for line in dict.fromkeys(line for condition in conditions for line in self._list_facts(condition, round)):
            chars += len(line) + 1
            if chars > max_chars:
                break
            lines.append(line)
        return "\n".join(lines)

    def close(self) -> None:
        self._store.close()

    def _find(self, agent: int) -> int | None:
        row = self._store.database.execute(_PERSON, (str(agent),)).fetchone()
        return None if row is None else int(row[0])

    def _list_facts(self, condition: str, round: int) -> Iterator[str]:
        """Yield the latest facts that hold in a round, each as a line of a prompt."""
        query = _HOLDING.replace("{condition}", condition)
        values = {"round": round, "limit": _MAX_FACTS}
        for source, relation, target, since in self._store.database.execute(query, values):
            verb = relation.lower().replace("_", " ")
            yield f"- {source} {verb} “{clip(target, _NAME_CHARS)}”, since round {since}"
