"""The same as `bench.limits` over real sockets, processes and clocks: the model stack, a broker and a server.

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
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import uvloop

from bench.bars import Bar
from bench.limits import GOALS, Score, Scores, Setting, find_oracle, make_bars
from bench.loads import Load, World
from bench.rehearsed import MODEL, Server, rehearsing
from shoal.journal import JournalKey
from shoal.models.base import Answer, Message, ModelFailure, Question
from shoal.models.costs import Spending
from shoal.models.http.pool import open_transport
from shoal.models.http.routes import Proxies
from shoal.models.middleware.limited import Limited
from shoal.models.middleware.retrying import Retrying
from shoal.models.openai.client import ModelClient
from shoal.models.openai.endpoints import Endpoint
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.model_limits import SharedLimit, name_pool
from shoal.slots.client import open_slots
from shoal.slots.leases import Lease
from shoal.slots.location import BrokerLocation

_SERVED_AS = "rehearsal"
_ATTEMPT_SECONDS, _DEADLINE_SECONDS = 90.0, 300.0
#: So many are measured at the same time: they wait for answers, and use little of the machine.
_SIDE_BY_SIDE = 2
#: What the real time of a machine with two busy cores allows, where the goal is for virtual time.
_REAL_TIMES = 1.08
#: Settings that take seconds, of each kind.
_NAMES = (
    "cap 24, rumour: 12 rounds of two worlds",
    "cap 24, 10 rounds of 150",
    "cap 7, 20 rounds of 20",
    "cap 24, four runs of different kinds",
    "cap 64, 2,000 at once",
    "30 requests/s, 2,000 at once",
    "cap 64, then 16, then 64, 20 rounds of 100",
    "a queue behind 4 workers, 10 rounds of 12",
    "a queue behind 32 workers, 10 rounds of 96",
    "a queue behind 4 workers, rounds of 20, 3 s answers",
    "slower above 64, 10 rounds of 150",
)


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
    """Make a question of about this length; no two are the same."""
    text = f"{call_id} " * (4 * tokens // (len(str(call_id)) + 1))
    return Question(key=JournalKey("limits", call_id, None, "call"), model=MODEL, messages=(Message("user", text),))


# all of them


@dataclass(frozen=True, slots=True)
class Sent:
    seconds: float
    requests: int
    peak: int


def measure(folder: Path, setting: Setting) -> Scores:
    """Measure one setting with a server of its own: a fixed number as the oracle, then cold, then warm."""
    folder.mkdir(mode=0o700)
    fixed = find_oracle(replace(setting, sweep=setting.sweep or (1_000_000,)), 0)[1]
    found = Scores()
    with rehearsing(**_to_served(setting)) as server:
        oracle = _send_all(folder / "fixed", setting, server, fixed) if setting.sweep and fixed else None
        seconds = find_oracle(setting, 0)[0] if oracle is None else oracle.seconds
        for scores in (found.cold, found.warm):
            sent = _send_all(folder / "learned", setting, server, None)
            scores.append(Score(sent.seconds / seconds, sent.requests / setting.load.calls - 1, sent.peak))
    return found


def _to_served(setting: Setting) -> dict[str, Any]:
    """Return the settings of a server, as far as they were chosen."""
    usual = asdict(RehearsalSettings())
    return {name: value for name, value in asdict(setting.provider).items() if value != usual[name]}


def _send_all(folder: Path, setting: Setting, server: Server, fixed: int | None) -> Sent:
    folder.mkdir(mode=0o700, exist_ok=True)
    load = asdict(setting.load)
    specs = [
        {"base_url": server.base_url, "folder": str(folder), "load": load, "process": process, "fixed": fixed}
        for process in range(setting.load.processes)
    ]
    running = [_start(spec) for spec in specs]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    with ThreadPoolExecutor(len(running)) as threads:
        peaks = [int(said) for said in threads.map(lambda process: process.communicate("go\n")[0], running)]
    stats = server.stats()
    server.reset()
    # What was learned is written when the broker ends, soon after its last client.
    while (folder / "slots" / "s").exists():
        time.sleep(0.1)
    return Sent(stats["last_answer_at"] - stats["first_request_at"], stats["requests"], sum(peaks))


def _start(spec: dict[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.sending"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(spec) + "\n")
    process.stdin.flush()
    return process


def limits(folder: Path) -> list[Bar]:
    """What a limit gets that learns, in real time, against the best fixed number."""
    settings = [setting for setting in GOALS if setting.name in _NAMES]
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as threads:
        found = threads.map(lambda number: measure(folder / f"{number}", settings[number]), range(len(settings)))
        return [
            bar
            for setting, scores in zip(settings, found, strict=True)
            for bar in make_bars(replace(setting, times=max(setting.times or 0, _REAL_TIMES)), scores, "real time")
        ]


def main(spec: dict[str, Any]) -> int:
    worlds = tuple(World(**{**each, "rounds": tuple(map(tuple, each["rounds"]))}) for each in spec["load"]["worlds"])
    load = Load(worlds, spec["load"]["uneven"])
    return uvloop.run(send(spec["base_url"], Path(spec["folder"]), load, spec["process"], spec["fixed"]))


if __name__ == "__main__":
    print(main(json.loads(sys.stdin.readline())))
