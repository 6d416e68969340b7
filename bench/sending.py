"""Sends the calls of a load over real sockets: the model stack and a broker, in one process for each run.

python -m bench.sending    one client: reads what to do from its input, says that it is ready, starts when told, and
                           prints how many calls it had in flight at most
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import uvloop

from bench.loads import Load, World
from bench.rehearsed import MODEL, Server
from shoal.journal import JournalKey
from shoal.models.base import Answer, Message, ModelFailure, Question
from shoal.models.costs import Spending
from shoal.models.http.pool import open_transport
from shoal.models.http.routes import Proxies
from shoal.models.middleware.limited import Limited
from shoal.models.middleware.retrying import Retrying
from shoal.models.openai.client import ModelClient
from shoal.models.openai.endpoints import Endpoint
from shoal.runs.model_limits import SharedLimit, name_pool
from shoal.slots.client import open_slots
from shoal.slots.leases import Lease
from shoal.slots.location import BrokerLocation

_SERVED_AS = "rehearsal"
REPLY_TOKENS = 24
_ATTEMPT_SECONDS, _DEADLINE_SECONDS = 90.0, 300.0


# one client


class CountingLimit(SharedLimit):
    """The limit of a run, which also counts how many calls are in flight at most."""

    in_flight = peak = 0

    async def enter(self, question: Question) -> Lease:
        lease = await super().enter(question)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        return lease

    def leave(self, slot: Lease, question: Question, outcome: Answer | ModelFailure | None, seconds: float) -> None:
        self.in_flight -= 1
        super().leave(slot, question, outcome, seconds)


async def send(base_url: str, folder: Path, load: Load, process: int, fixed: int | None) -> int:
    """Ask everything that this process asks; return how many calls it had in flight at most."""
    endpoints = {MODEL: Endpoint(model=_SERVED_AS, base_url=base_url)}
    place = BrokerLocation(folder / "slots" / "s", folder / "limits.json", idle_seconds=1.0)
    sizes = {} if fixed is None else {name_pool(endpoints[MODEL]): fixed}
    async with open_transport(Proxies()) as transport, open_slots(f"client {process}", place, sizes=sizes) as slots:
        limit = CountingLimit(slots, endpoints)
        client = Limited(ModelClient(transport, endpoints, _ATTEMPT_SECONDS), limit)
        model = Retrying(client, _DEADLINE_SECONDS, 0, Spending({}), limit=limit)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        worlds = [(number, world) for number, world in enumerate(load.worlds) if world.process == process]
        await asyncio.gather(*(_play(model, load, world, number) for number, world in worlds))
        return limit.peak


async def _play(model: Retrying, load: Load, world: World, number: int) -> None:
    await asyncio.sleep(world.starts_at)
    ids = count(number * 100_000)
    for lengths in world.rounds:
        await asyncio.gather(*(_ask_in_turn(model, load, ids, length) for length in lengths))
        await asyncio.sleep(world.pause_seconds)


async def _ask_in_turn(model: Retrying, load: Load, ids: count[int], length: int) -> None:
    for _ in range(length):
        call_id = next(ids)
        await model.answer(make_question(call_id, load.tokens_of(call_id)))


def make_question(call_id: int, tokens: int) -> Question:
    """Make a question that counts so many tokens with its reply; no two are the same."""
    count = 4 * (tokens - REPLY_TOKENS)
    text = (f"{call_id} " * (count // (len(str(call_id)) + 1) + 1))[:count]
    key = JournalKey("limits", call_id, None, "call")
    return Question(key=key, model=MODEL, messages=(Message("user", text),), max_tokens=REPLY_TOKENS)


# all of them


@dataclass(frozen=True, slots=True)
class Sent:
    """How it went, as the server saw it, and the most calls that its clients had in flight."""

    seconds: float
    requests: int
    answers: int
    peak: int
    #: Attempts that a client gave up before they were answered.
    abandoned: int


def send_all(folder: Path, load: Load, server: Server, fixed: int | None) -> Sent:
    """Send a load from as many processes as it has; `fixed` is how many calls at once, None: they learn it here."""
    specs = [
        {"base_url": server.base_url, "folder": str(folder), "load": asdict(load), "process": process, "fixed": fixed}
        for process in range(load.processes)
    ]
    running = [_start(spec) for spec in specs]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    with ThreadPoolExecutor(len(running)) as threads:
        peaks = [int(said) for said in threads.map(lambda process: process.communicate("go\n")[0], running)]
    return take_sent(server, folder / "slots" / "s", sum(peaks))


def take_sent(server: Server, socket: Path | None, peak: int | None) -> Sent:
    """Return what a server counted, and reset it. Wait until the broker at a socket has stored what was learned."""
    stats = server.stats()
    server.reset()
    while socket is not None and socket.exists():
        time.sleep(0.1)
    seconds = stats["last_answer_at"] - stats["first_request_at"]
    peak = stats["in_flight_peak"] if peak is None else peak
    return Sent(seconds, stats["requests"], stats["answers"], peak, stats["abandoned"])


def _start(spec: dict[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.sending"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(spec) + "\n")
    process.stdin.flush()
    return process


def main(spec: dict[str, Any]) -> int:
    worlds = tuple(World(**{**each, "rounds": tuple(map(tuple, each["rounds"]))}) for each in spec["load"]["worlds"])
    load = Load(worlds, spec["load"]["uneven"])
    return uvloop.run(send(spec["base_url"], Path(spec["folder"]), load, spec["process"], spec["fixed"]))


if __name__ == "__main__":
    print(main(json.loads(sys.stdin.readline())))
