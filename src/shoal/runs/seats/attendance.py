"""The seats of a run that a worker is on: which browser holds which, what waits for it, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shoal.engine import SeatAnswer, SeatTerms
from shoal.errors import RunRefused
from shoal.runs.seats.forms import FormBook
from shoal.runs.seats.taking import SeatView, check_agent, choose_name, make_seat_event
from shoal.runs.state import wall_clock
from shoal.runs.worker import RunSession
from shoal.scenario import Simulation


@dataclass(frozen=True, slots=True)
class SeatHolder:
    """The browser that holds a seat, by a secret of its own."""

    secret: str
    since: str


class SeatAttendance:
    """Lets people take seats in a run, answer turns, and give the seats back.

    That a seat is taken is history. Who holds it is not: a worker that goes on with the run knows no holders, and the
    first browser that asks for a seat holds it.
    """

    def __init__(self, session: RunSession) -> None:
        self._session = session
        self._holders: dict[int, SeatHolder] = {}
        #: Agents whose seat is being taken.
        self._taking: set[int] = set()
        self._forms: tuple[Simulation, FormBook] | None = None

    @property
    def _simulation(self) -> Simulation:
        if self._session.simulation is None:
            raise RunRefused(f"{self._session.run.path} is not running; start it to sit down")
        return self._session.simulation

    def list_seats(self, secret: str | None) -> list[SeatView]:
        """List the seats that are taken, with the turns that wait, as the browser with this secret sees them."""
        simulation = self._simulation
        taken = simulation.seats.list_taken()
        return [self._view(simulation, agent, since, terms, secret) for agent, (since, terms) in taken.items()]

    async def take(self, agent: int, secret: str, terms: SeatTerms, *, is_forced: bool = False) -> SeatView:
        """Take an agent's seat, or one that nobody holds; RunRefused where another browser holds it."""
        simulation = self._simulation
        check_agent(agent, len(simulation.people))
        before = self._holders.get(agent)
        if not is_forced:
            self._check_holder(agent, secret)
        self._holders[agent] = SeatHolder(secret, wall_clock())
        self._taking.add(agent)
        known = simulation.seats.list_taken().get(agent)
        try:
            if known is None or known[1] != terms:
                event = await self._session.inject(
                    make_seat_event(choose_name(self._session.run.scenario, agent), terms)
                )
                self._change(simulation, event["round"], agent, terms)
        except BaseException:
            self._holders.pop(agent)
            if before is not None:
                self._holders[agent] = before
            raise
        finally:
            self._taking.discard(agent)
        simulation.seats.enter(agent)
        since, _ = simulation.seats.list_taken()[agent]
        return self._view(simulation, agent, since, terms, secret)

    def answer(self, turn: tuple[int, str, int], secret: str, entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Answer a turn, given by agent, world and round; what is wrong with an answer is returned, and it waits on."""
        (agent, world, round), simulation = turn, self._simulation
        self._check_holder(agent, secret)
        turns = {(one.observation.world, one.observation.round): one for one in simulation.seats.list_waiting(agent)}
        waiting = turns.get((world, round))
        if waiting is None:
            name = simulation.people.names[agent]
            raise RunRefused(f"{name}'s turn of round {round} in {world} does not wait for an answer any more")
        actions, problems = self._book(simulation).read_answer(waiting.observation, entries)
        if not problems:
            waiting.settle(SeatAnswer.of_person(actions))
        return {"is_accepted": not problems, "problems": problems}

    async def give_back(self, agent: int, secret: str) -> None:
        """Let the agent's own mind decide again: the turns that wait now, and all from the next round on."""
        simulation = self._simulation
        if agent not in simulation.seats.list_taken():
            return
        self._check_holder(agent, secret)
        free = self._session.find_free_round()
        simulation.seats.leave(agent, free)
        # In the last round nothing is left to be given back.
        if free <= self._session.run.scenario.rounds:
            event = await self._session.inject({"give_back": choose_name(self._session.run.scenario, agent)})
            self._change(simulation, event["round"], agent, None)
        self._holders.pop(agent, None)

    def _check_holder(self, agent: int, secret: str) -> None:
        simulation, holder = self._simulation, self._holders.get(agent)
        # Whoever held a seat that an event has given back holds it no more.
        is_taken = agent in self._taking or agent in simulation.seats.list_taken()
        if is_taken and holder is not None and holder.secret != secret:
            name = simulation.people.names[agent]
            raise RunRefused(f"{name}'s seat is taken: another browser holds it since {holder.since}")

    def _change(self, simulation: Simulation, round: int, agent: int, terms: SeatTerms | None) -> None:
        """Show at once what the engines will find when they open the round."""
        for world in simulation.worlds:
            simulation.seats.change(world, round, agent, terms)

    def _view(self, simulation: Simulation, agent: int, since: int, terms: SeatTerms, secret: str | None) -> SeatView:
        holder, book = self._holders.get(agent), self._book(simulation)
        return SeatView(
            agent_id=agent,
            name=simulation.people.names[agent],
            since_round=since,
            seconds=terms.seconds,
            otherwise=str(terms.otherwise),
            is_held=holder is not None,
            is_mine=holder is not None and holder.secret == secret,
            turns=[book.build_form(turn) for turn in simulation.seats.list_waiting(agent)],
        )

    def _book(self, simulation: Simulation) -> FormBook:
        if self._forms is None or self._forms[0] is not simulation:
            self._forms = simulation, FormBook(simulation, self._session.run.scenario_versions)
        return self._forms[1]
