"""Seats of a run: a person at the keyboard takes an agent's turns, answers them, and gives the seat back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from shoal.errors import RunLocked, RunRefused
from shoal.runs import RunDirectory
from shoal.runs.commands import CommandType, call_worker
from shoal.runs.launchers import find_worker
from shoal.runs.seats import SeatView, give_seat_back_before_start, read_seats, read_terms, take_seat_before_start
from shoal.server.api.context import Context, answer, find_run, in_thread
from shoal.server.messages.base import Envelope, ListEnvelope, RunId
from shoal.server.messages.seats import SeatRequest, TakeSeatRequest, TurnAnswerRequest, TurnAnswerResult

router = APIRouter(tags=["seats"])

_TIMEOUT_SECONDS = 30.0


async def _call_or(run: RunDirectory, command: CommandType, args: dict[str, Any], otherwise: Callable[[], Any]) -> Any:
    """Let the worker do it, and do it on the files where no worker is on the run."""
    if find_worker(run) is None:
        # One may just have begun.
        with suppress(RunLocked):
            return await in_thread(otherwise)
    state = await in_thread(run.read_state)
    if state.runner_status.is_working and not state.takes_commands:
        raise RunRefused(f"{run.path} is worked on by a script, which takes no commands; start it from here instead")
    return await call_worker(run, None, command, args, _TIMEOUT_SECONDS)


@router.get("/{simulation_id}/seats", response_model=ListEnvelope[SeatView])
async def list_seats(
    simulation_id: RunId, context: Context, secret: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """List the seats that people have taken, and the turns that wait: what the agent sees, and what it may do."""
    run = await find_run(context, simulation_id)
    people = await in_thread(context.people.draw, run)
    state = await in_thread(run.read_state)
    try:
        if find_worker(run) is None or not state.takes_commands:
            raise RunRefused("no worker can be asked")
        seats = await call_worker(run, None, CommandType.SEATS, {"secret": secret}, _TIMEOUT_SECONDS)
    except RunRefused:
        # It is only about to begin, or works for a script: then the files say who has a seat, and nothing waits.
        seats = await in_thread(read_seats, run, people)
    return answer(seats, count=len(seats))


@router.post("/seat/take", response_model=Envelope[SeatView])
async def take_seat(body: TakeSeatRequest, context: Context) -> Response:
    """Take the seat of an agent from the next round on; 409 where another browser holds it.

    In a run that does not go on, it is taken from the first round to come.
    """
    run = await find_run(context, body.simulation_id)
    people = await in_thread(context.people.draw, run)
    args = body.model_dump(exclude={"simulation_id"})
    terms = read_terms(body.seconds, body.otherwise)
    return answer(
        await _call_or(
            run, CommandType.TAKE_SEAT, args, lambda: take_seat_before_start(run, people, body.agent_id, terms)
        )
    )


@router.post("/seat/answer", response_model=Envelope[TurnAnswerResult])
async def answer_turn(body: TurnAnswerRequest, context: Context) -> Response:
    """Answer a turn that waits; 409 where it does not wait any more, or another browser holds the seat."""
    run = await find_run(context, body.simulation_id)
    args = body.model_dump(exclude={"simulation_id"})
    return answer(await call_worker(run, None, CommandType.ANSWER_TURN, args, _TIMEOUT_SECONDS))


@router.post("/seat/give-back", response_model=Envelope[dict[str, Any]])
async def give_seat_back(body: SeatRequest, context: Context) -> Response:
    """Let the agent's own mind decide again, also in the turns that wait now."""
    run = await find_run(context, body.simulation_id)
    people = await in_thread(context.people.draw, run)
    args = body.model_dump(exclude={"simulation_id"})
    await _call_or(
        run, CommandType.GIVE_SEAT_BACK, args, lambda: give_seat_back_before_start(run, people, body.agent_id)
    )
    return answer({})
