"""Works on a run and answers the commands to it, meanwhile and for a while after it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from shoal.agents import LanguageSettings
from shoal.errors import QueryFailed
from shoal.runs.commands.answering import CommandLoop, Handler, answer_commands
from shoal.runs.commands.files import Command, CommandFiles, CommandType
from shoal.runs.directory import RunDirectory
from shoal.runs.interviews.live import InterviewAnswer, InterviewRequest, LiveInterviews
from shoal.runs.progress import RunProgress
from shoal.runs.rerun.rerun import Rerun, TurnObserver, open_rerun
from shoal.runs.resources import RunResources
from shoal.runs.seats import SeatAttendance, SeatView, read_terms
from shoal.runs.state import RunOutcome, wall_clock
from shoal.runs.worker import RunSession
from shoal.scenario import Simulation, count_people

#: A worker that waits for commands shows at least this often that it is alive.
_HEARTBEAT_SECONDS = 2.0


class RunServing:
    """The worker on one run as others see it: it works, and it takes commands."""

    def __init__(
        self,
        run: RunDirectory,
        progress: RunProgress | None = None,
        resources: RunResources | None = None,
        *,
        idle_seconds: float = 0.0,
    ) -> None:
        self._run = run
        self._session = RunSession(run, progress, resources)
        self._interviews = LiveInterviews(run, resources or RunResources())
        self._seats = SeatAttendance(self._session)
        self._idle_seconds = idle_seconds
        self._leave = asyncio.Event()
        self._rerun: Rerun | None = None
        self._rerunning = asyncio.Lock()

    async def work(self, stop: asyncio.Event) -> RunOutcome:
        """Work on the run to its end, then answer commands until there was none for the idle time."""
        async with self._open() as loop:
            outcome = await self._session.advance(stop)
            await self._wait(loop, stop)
            return outcome

    async def wait(self, stop: asyncio.Event) -> None:
        """Answer commands, without working on the run, until there was none for the idle time."""
        async with self._open() as loop:
            await self._wait(loop, stop)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[CommandLoop]:
        handlers: dict[str, Handler] = {
            CommandType.INTERVIEW: self._interview,
            CommandType.INTERVIEW_BATCH: self._interview_batch,
            CommandType.INTERVIEW_ALL: self._interview_all,
            CommandType.INJECT: self._inject,
            CommandType.PAUSE: self._pause,
            CommandType.CONTINUE: self._continue,
            CommandType.CLOSE: self._close,
            CommandType.SEATS: self._list_seats,
            CommandType.TAKE_SEAT: self._take_seat,
            CommandType.ANSWER_TURN: self._answer_turn,
            CommandType.GIVE_SEAT_BACK: self._give_seat_back,
        }
        self._session.takes_commands = True
        async with self._session, answer_commands(CommandFiles(self._run.path), handlers) as loop:
            try:
                yield loop
            finally:
                await loop.close()
                await self._interviews.close()

    async def _wait(self, loop: CommandLoop, stop: asyncio.Event) -> None:
        state = self._run.read_state()
        state.takes_commands = True
        while not stop.is_set() and not self._leave.is_set() and loop.idle_seconds() < self._idle_seconds:
            state.process_pid, state.updated_at = os.getpid(), wall_clock()
            self._run.write_env_status(state)
            waiting = [asyncio.create_task(event.wait()) for event in (stop, self._leave)]
            try:
                await asyncio.wait(
                    waiting, timeout=min(_HEARTBEAT_SECONDS, self._idle_seconds), return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                for task in waiting:
                    task.cancel()
        if state.process_pid is not None:
            state.process_pid = None
            self._run.write_env_status(state)

    # The commands

    async def _interview(self, command: Command) -> dict[str, Any]:
        request = msgspec.convert(command.args, InterviewRequest)
        (answer,) = await self._ask([request], command)
        if answer.error is not None:
            raise QueryFailed(answer.error)
        if request.platform is not None:
            return answer.to_json(request.platform)
        platforms = {world: answer.to_json(world) for world in answer.worlds}
        return {"agent_id": request.agent_id, "prompt": request.prompt, "platforms": platforms}

    async def _interview_batch(self, command: Command) -> dict[str, Any]:
        usual = {"platform": command.args.get("platform")}
        interviews = command.args["interviews"]
        return _join(await self._ask([msgspec.convert(usual | each, InterviewRequest) for each in interviews], command))

    async def _interview_all(self, command: Command) -> dict[str, Any]:
        people = count_people(self._run.scenario.population)
        asked = {name: command.args.get(name) for name in ("prompt", "platform")}
        requests = [msgspec.convert({**asked, "agent_id": agent}, InterviewRequest) for agent in range(people)]
        return _join(await self._ask(requests, command))

    async def _ask(self, requests: list[InterviewRequest], command: Command) -> list[InterviewAnswer]:
        return await self._interviews.ask(requests, await self._find_simulation(), command.args.get("model"))

    async def _find_simulation(self) -> Simulation | None:
        """Find the agents at work, or those of a run that is over; None where they have no language minds."""
        if self._session.is_sharded:
            # Agents are made again as they were after the last round.
            return None
        if self._session.simulation is not None:
            return self._session.simulation
        if not isinstance(self._run.scenario.mind, LanguageSettings):
            return None
        async with self._rerunning:
            if self._rerun is None:
                rerun = open_rerun(self._run)
                for world, rounds in rerun.rounds.items():
                    await rerun.observe(world, TurnObserver(), rounds)
                self._rerun = rerun
        return self._rerun.simulation

    async def _inject(self, command: Command) -> dict[str, Any]:
        return await self._session.inject(command.args["event"])

    async def _pause(self, command: Command) -> dict[str, Any]:
        self._session.pause()
        return {"runner_status": self._session.state.runner_status}

    async def _continue(self, command: Command) -> dict[str, Any]:
        self._session.unpause()
        return {"runner_status": self._session.state.runner_status}

    async def _close(self, command: Command) -> dict[str, Any]:
        is_working = self._session.state.runner_status.is_working
        self._leave.set()
        return {"message": "it leaves when the run has ended" if is_working else "it leaves"}

    async def _list_seats(self, command: Command) -> list[SeatView]:
        return self._seats.list_seats(command.args.get("secret"))

    async def _take_seat(self, command: Command) -> SeatView:
        args = command.args
        terms, is_forced = read_terms(args["seconds"], args["otherwise"]), args.get("force", False)
        return await self._seats.take(args["agent_id"], args["secret"], terms, is_forced=is_forced)

    async def _answer_turn(self, command: Command) -> dict[str, Any]:
        args = command.args
        turn = args["agent_id"], args["world"], args["round"]
        return self._seats.answer(turn, args["secret"], args["actions"])

    async def _give_seat_back(self, command: Command) -> dict[str, Any]:
        await self._seats.give_back(command.args["agent_id"], command.args["secret"])
        return {}


def _join(answers: list[InterviewAnswer]) -> dict[str, Any]:
    results = {
        f"{world}_{answer.request.agent_id}": answer.to_json(world) for answer in answers for world in answer.worlds
    }
    return {"interviews_count": len(results), "results": results}
