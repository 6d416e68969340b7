"""Seats of a run that no worker is on: they are taken before it starts or goes on, and are read from its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shoal.engine import DecidedBy, SeatTerms
from shoal.errors import AgentMissing
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import inject_before_start
from shoal.runs.seats.forms import TurnForm
from shoal.runs.state import SeatState
from shoal.scenario import GiveBackEvent, Scenario, SeatEvent, number_own_names, parse_event
from shoal.types import Population
from shoal.worlds import NameIndex


@dataclass(frozen=True, slots=True)
class SeatView:
    """A seat that a person has taken."""

    agent_id: int
    name: str
    #: The first round in which the person decides.
    since_round: int
    #: How long the person may take for a turn, and who decides after that: `mind` or `nothing`.
    seconds: float
    otherwise: str
    #: Whether a browser holds the seat, and whether it is the one that asks.
    is_held: bool = False
    is_mine: bool = False
    turns: list[TurnForm] = field(default_factory=list)


def make_seat_event(who: str | int, terms: SeatTerms) -> dict[str, Any]:
    return {"seat": who, "seconds": terms.seconds, "otherwise": str(terms.otherwise)}


def choose_name(scenario: Scenario, agent: int) -> str | int:
    """Return how an event calls an agent: by name where the scenario lists one, and else by number."""
    return next((name for name, number in number_own_names(scenario.population).items() if number == agent), agent)


def check_agent(agent: int, count: int) -> None:
    if not 0 <= agent < count:
        raise AgentMissing(f"there is no agent {agent}; there are agents 0 to {count - 1}")


def read_seats(run: RunDirectory, people: Population) -> list[SeatView]:
    """Read which seats are taken: as the last worker left them, and as was decided since."""
    found = {seat.agent: seat for seat in run.read_state().seats}
    index = NameIndex(people.names)
    for line in run.events:
        event = None if line.is_continuation or line.event is None else parse_event(line.event)
        if isinstance(event, SeatEvent):
            agent = index[event.seat]
            found[agent] = SeatState(agent, people.names[agent], event.round, event.seconds, event.otherwise)
        elif isinstance(event, GiveBackEvent):
            found.pop(index[event.give_back], None)
    return [SeatView(one.agent, one.name, one.since_round, one.seconds, one.otherwise) for one in found.values()]


def take_seat_before_start(run: RunDirectory, people: Population, agent: int, terms: SeatTerms) -> SeatView:
    """Take a seat in a run that nobody works on; RunLocked where a worker has begun."""
    check_agent(agent, len(people))
    known = {seat.agent_id: seat for seat in read_seats(run, people)}.get(agent)
    if known is None or (known.seconds, known.otherwise) != (terms.seconds, terms.otherwise):
        event = inject_before_start(run, make_seat_event(choose_name(run.scenario, agent), terms))
        known = SeatView(agent, people.names[agent], event["round"], terms.seconds, terms.otherwise)
    return known


def give_seat_back_before_start(run: RunDirectory, people: Population, agent: int) -> None:
    """Give a seat back in a run that nobody works on; RunLocked where a worker has begun."""
    if any(seat.agent_id == agent for seat in read_seats(run, people)):
        inject_before_start(run, {"give_back": choose_name(run.scenario, agent)})


def read_terms(seconds: float, otherwise: str) -> SeatTerms:
    return SeatTerms(seconds, DecidedBy(otherwise))
