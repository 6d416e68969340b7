"""The calls of runs: worlds with rounds, in one process or several. Shared by virtual time and real time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, exp, log, pi, sqrt

from shoal.seeds import Draws, derive

EVEN_TOKENS = 1000

#: What one round asks: for each chain, how many calls follow one another. An agent that acts is a chain of one call, a
#: room where people speak in turn is one long chain, and a dialogue is a chain as long as it has turns.
Round = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class World:
    """Rounds that follow one another: each begins when the last call of the one before is answered."""

    rounds: tuple[Round, ...]
    process: int = 0
    #: When its run is started.
    starts_at: float = 0.0
    #: What the engine does between two rounds.
    pause_seconds: float = 0.02

    @property
    def calls(self) -> int:
        return sum(map(sum, self.rounds))


@dataclass(frozen=True, slots=True)
class Load:
    """Everything that is asked, over all processes."""

    worlds: tuple[World, ...]
    #: Whether calls differ in size.
    uneven: bool = False

    @property
    def calls(self) -> int:
        return sum(world.calls for world in self.worlds)

    @property
    def processes(self) -> int:
        return 1 + max(world.process for world in self.worlds)

    def tokens_of(self, call_id: int) -> int:
        return draw_tokens(call_id) if self.uneven else EVEN_TOKENS


def draw_tokens(call_id: int) -> int:
    """Draw the size of a call: about 650 on average, and often several times as many."""
    draws = Draws(derive(77, call_id, "tokens"))
    normal = sqrt(-2 * log(1 - draws.random())) * cos(2 * pi * draws.random())
    return int(300 * exp(0.9 * normal)) + 200


def flood(calls: int, processes: int = 1, *, uneven: bool = False) -> Load:
    """Everything at once, as nothing but a benchmark asks."""
    share = calls // processes
    return Load(tuple(World(((1,) * share,), process) for process in range(processes)), uneven)


def rounds(count: int, agents: int, *, worlds: int = 1, process: int = 0, starts_at: float = 0.0) -> tuple[World, ...]:
    """Rounds in which about so many agents act at once, a quarter more or fewer."""
    return tuple(
        World(tuple((1,) * each for each in _draw_sizes(count, agents, process, world)), process, starts_at)
        for world in range(worlds)
    )


def _draw_sizes(count: int, agents: int, process: int, world: int) -> Iterator[int]:
    for each in range(count):
        yield max(1, round(agents * (0.75 + 0.5 * Draws(derive(5, process, world, each)).random())))


#: The two worlds of `examples/rumour.yaml` for twelve rounds: how many act in each round.
_RUMOUR = (
    (20, 21, 59, 62, 58, 56, 60, 61, 48, 61, 53, 45),
    (24, 19, 61, 53, 58, 63, 58, 56, 54, 54, 56, 52),
)


def rumour(process: int = 0, starts_at: float = 0.0) -> tuple[World, ...]:
    return tuple(World(tuple((1,) * each for each in world), process, starts_at) for world in _RUMOUR)


def rooms(count: int, turns: int, *, worlds: int, process: int = 0, starts_at: float = 0.0) -> tuple[World, ...]:
    """Rooms in which one speaks after the other."""
    return tuple(World(((turns,),) * count, process, starts_at) for _ in range(worlds))


def dialogues(count: int, pairs: int, turns: int, process: int = 0, starts_at: float = 0.0) -> tuple[World, ...]:
    """Pairs that talk at the same time, each in turn."""
    return (World(((turns,) * pairs,) * count, process, starts_at),)


def together(*parts: Sequence[World], uneven: bool = False) -> Load:
    return Load(tuple(world for part in parts for world in part), uneven)
