"""Reads from the database of dialogues how conversations of two went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.worlds.world_kind import Remark, SummaryContext

#: The last lines of a conversation that are shown, and of how many of the best and the worst conversations.
_MAX_LINES = 3
_MAX_RATED = 2

_COUNT_FINISHED = """
SELECT count(*) FROM (SELECT pair_id FROM scene GROUP BY pair_id HAVING count(ended_round) >= ?)
"""
_ENDINGS = "SELECT ended_by, count(*) FROM scene WHERE ended_round IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"
_MEAN_SCENE = "SELECT avg(turns), avg(agreement) FROM scene WHERE ended_round IS NOT NULL"
#: Best first; of conversations rated alike, the one with the lower number.
_RATED_PAIRS = """
SELECT pair_id, one.name, other.name, avg(score) AS mean,
    (SELECT agreement FROM scene WHERE scene.pair_id = pair.pair_id AND agreement IS NOT NULL
     ORDER BY scene DESC LIMIT 1)
FROM score JOIN pair USING (pair_id) JOIN user AS one ON one.user_id = first_id
JOIN user AS other ON other.user_id = second_id
WHERE score IS NOT NULL GROUP BY pair_id ORDER BY mean DESC, pair_id
"""
_LAST_LINES = """
SELECT line.round, name, NULL, content FROM line JOIN user ON user.agent_id = line.agent_id
WHERE pair_id = ? ORDER BY line_id DESC LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class SceneEnding:
    """Why scenes ended, and how often."""

    reason: str
    scenes: int


@dataclass(frozen=True, slots=True)
class RatedPair:
    """One conversation, how the two found it, and how it ended."""

    pair_id: int
    first: str
    second: str
    score: float
    agreement: float | None
    last: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class Conversations:
    """How conversations of two went."""

    pairs: int
    finished: int
    scenes: int
    endings: tuple[SceneEnding, ...]
    mean_turns: float | None
    mean_score: float | None
    mean_agreement: float | None
    highest: tuple[RatedPair, ...] = ()
    lowest: tuple[RatedPair, ...] = ()


def summarise(context: SummaryContext) -> Mapping[str, Conversations]:
    """Read the field `conversations` of a world's summary."""
    ask, scenes = context.database.execute, len(context.settings.scenes)

    def rate(row: Sequence[Any]) -> RatedPair:
        last = [Remark(*line) for line in ask(_LAST_LINES, (row[0], _MAX_LINES))]
        return RatedPair(*(*row, tuple(reversed(last))))

    rated = ask(_RATED_PAIRS).fetchall()
    count = min(_MAX_RATED, len(rated) // 2)
    mean_turns, mean_agreement = ask(_MEAN_SCENE).fetchone()
    found = Conversations(
        pairs=ask("SELECT count(*) FROM pair").fetchone()[0],
        finished=ask(_COUNT_FINISHED, (scenes,)).fetchone()[0],
        scenes=scenes,
        endings=tuple(SceneEnding(*row) for row in ask(_ENDINGS)),
        mean_turns=mean_turns,
        mean_score=ask("SELECT avg(score) FROM score").fetchone()[0],
        mean_agreement=mean_agreement,
        highest=tuple(map(rate, rated[:count])),
        lowest=tuple(map(rate, rated[len(rated) - count :])),
    )
    return {"conversations": found}
