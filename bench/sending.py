"""The bars for limits that learn, over real sockets: the pieces of the model stack, a broker, and a rehearsal server.

python -m bench.sending SPEC_AS_JSON    one client: says that it is ready, starts when told, and prints when it was
                                        answered
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import uvloop

from bench.bars import Bar
from bench.limits import JUDGED, Score, Setting
from bench.providers import Provider, oracle_seconds
from bench.rehearsed import MODEL, Server, rehearsing
from shoal.journal import JournalKey
from shoal.models.base import Message, Question
from shoal.models.costs import Spending
from shoal.models.http.pool import open_transport
from shoal.models.http.routes import Proxies
from shoal.models.middleware.limited import Limited
from shoal.models.middleware.retrying import Retrying
from shoal.models.openai.client import Client
from shoal.models.openai.dialects import Dialect, RequestWriter
from shoal.models.openai.endpoints import Endpoint
from shoal.rehearsal.chat import estimate_tokens
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.model_limits import SharedLimit
from shoal.slots.client import open_slots
from shoal.slots.location import BrokerLocation

_SERVED_AS = "rehearsal"
_DEADLINE_SECONDS = 600.0
#: So many are measured at the same time: they wait for answers, and use little of the machine.
_SIDE_BY_SIDE = 3
#: The judged setting for each bar.
_BARS = {
    "cap 41": "hidden cap",
    "28 requests/s": "hidden requests/s",
    "28 requests/s, OpenAI's headers": "published requests/s",
    "18,000 tokens/s": "hidden tokens/s",
    "cap 72, then 18, then 72": "cap falls and rises",
    "cap 19, slow calls": "slow calls",
    "four processes, cap 50": "four processes",
}


def question(call_id: int, tokens: int) -> Question:
    """About so long; no two are the same."""
    text = f"{call_id} " * (4 * tokens // (len(str(call_id)) + 1))
    return Question(key=JournalKey("limits", call_id, None, "call"), model=MODEL, messages=(Message("user", text),))


# one client


async def send(base_url: str, folder: Path, calls: Sequence[tuple[int, int]]) -> list[float]:
    """When each was answered."""
    endpoints = {MODEL: Endpoint(model=_SERVED_AS, base_url=base_url)}
    place = BrokerLocation(folder / "slots" / "s", folder / "limits.json", idle_seconds=1.0)
    async with open_transport(Proxies()) as transport, open_slots(f"client {calls[0][0]}", place) as slots:
        limit = SharedLimit(slots, endpoints)
        client = Limited(Client(transport, endpoints, _DEADLINE_SECONDS), limit)
        model = Retrying(client, _DEADLINE_SECONDS, 0, Spending({}), limit=limit)
        questions = [question(*call) for call in calls]
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        return list(await asyncio.gather(*(_answered_at(model, each) for each in questions)))


async def _answered_at(model: Retrying, each: Question) -> float:
    await model.answer(each)
    return time.monotonic()


# all of them


@dataclass(frozen=True, slots=True)
class Sent:
    score: Score
    refused: int
    peak: int
    ideal: float


def measure(folder: Path, setting: Setting) -> Sent:
    """One setting, with a server, a broker and clients of its own."""
    folder.mkdir(mode=0o700)
    with rehearsing(**_served(setting)) as server:
        answered = _clients(folder, setting, server)
        stats = server.stats()
    seconds = stats["last_answer_at"] - stats["first_request_at"]
    ideal = _ideal(setting)
    score = Score(seconds / ideal, stats["requests"] / setting.calls - 1, _least_share(answered))
    return Sent(score, sum(stats["refusals"].values()), stats["in_flight_peak"], ideal)


def _served(setting: Setting) -> dict[str, Any]:
    """The settings of a server, as far as they were chosen."""
    usual = asdict(RehearsalSettings())
    return {name: value for name, value in asdict(setting.provider).items() if value != usual[name]}


def _clients(folder: Path, setting: Setting, server: Server) -> list[list[float]]:
    calls = list(enumerate(setting.tokens()))
    shares = [calls[first :: setting.processes] for first in range(setting.processes)]
    specs = [{"base_url": server.base_url, "folder": str(folder), "calls": share} for share in shares]
    running = [_start(spec) for spec in specs]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    with ThreadPoolExecutor(len(running)) as threads:
        said = threads.map(lambda process: process.communicate("go\n")[0], running)
        return [json.loads(each) for each in said]


def _start(spec: dict[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.sending"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(spec) + "\n")
    process.stdin.flush()
    return process


def _ideal(setting: Setting) -> float:
    """Of the same questions, with the latencies that the server draws for them."""
    writer, ids, tokens = RequestWriter(), [], []
    for call in enumerate(setting.tokens()):
        asked = question(*call)
        body = writer.write_body(_SERVED_AS, asked, Dialect())
        ids.append(int.from_bytes(blake2b(body, digest_size=8).digest(), "big"))
        tokens.append(estimate_tokens(f"user: {asked.messages[0].content}") + setting.provider.reply_tokens)
    return oracle_seconds(Provider(setting.provider), tokens, ids)


def _least_share(answered: Sequence[Sequence[float]]) -> float:
    """When the first client had everything: what the one had that had least, of an equal share."""
    over = min(max(each) for each in answered)
    counts = [sum(at <= over for at in each) for each in answered]
    return min(counts) / (sum(counts) / len(counts))


def limits(folder: Path) -> list[Bar]:
    """What limits get that learn, against a client that knows them: on settings that were not tuned on."""
    settings = [setting for setting in JUDGED if setting.name in _BARS]
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as threads:
        found = threads.map(lambda setting: measure(folder / f"{settings.index(setting)}", setting), settings)
        return [bar for setting, sent in zip(settings, found, strict=True) for bar in _bars(setting, sent)]


def _bars(setting: Setting, sent: Sent) -> list[Bar]:
    name, score = _BARS[setting.name], sent.score
    told = f"{setting.name}; {setting.calls:,} calls, ideal {sent.ideal:.1f} s, {sent.refused} refused"
    of_this = partial(Bar, baseline=told)
    bars = [of_this(f"{name}: time / oracle", score.times, "x", setting.times or 0.0, at_least=False)]
    if setting.wasted is not None:
        bars.append(of_this(f"{name}: wasted", score.wasted * 100, "%", setting.wasted * 100, at_least=False))
    if setting.least_share is not None:
        bars.append(of_this(f"{name}: least share of fair", score.least_share, "", setting.least_share, at_least=True))
    return bars


ALL = (limits,)


def main(spec: dict[str, Any]) -> list[float]:
    return uvloop.run(send(spec["base_url"], Path(spec["folder"]), spec["calls"]))


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.stdin.readline()))))
