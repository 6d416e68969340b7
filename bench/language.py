"""What language minds cost beside the model: CPU, waiting, and what is sent.

python -m bench.language DIRECTORY SCENARIO_AS_JSON BASE_URL    runs it and prints what it took, as one JSON object
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from bench.bars import Bar, everyone_active
from bench.probe import Meter
from bench.rehearsed import MODEL, Server, rehearsing
from shoal.agents.language.mind import LanguageMind
from shoal.journal import JournalLine, read_journal
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run
from shoal.runs.progress import RunProgress
from shoal.runs.rerun.rerun import Rerun
from shoal.runs.resources import RunResources
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import load, override, validate

#: Rounds at the start in which connections are opened and nobody remembers anything yet.
_WARM_UP = 2
_PROMPT_BYTES = 6_000
_TRIES = 3
#: What everybody does where only waiting is measured: a turn that can be used, so that nobody is asked twice.
_POSTS = {"thought": "People should know.", "actions": [{"action": "CREATE_POST", "content": "The bridge stays."}]}
_TALKS = {"thought": "People should know.", "actions": [{"action": "TALK", "content": "The bridge stays."}]}
_RUMOUR = Path(__file__).parent.parent / "examples" / "rumour.yaml"


@contextmanager
def _measured(folder: Path, scenario: dict[str, Any], **server: Any) -> Iterator[tuple[dict[str, Any], Server]]:
    """A scenario with language minds, run in a process of its own against a server that is another one."""
    with rehearsing(**server) as rehearsal:
        asking = {"mind": {"kind": "language", "model": MODEL}} | scenario
        command = [sys.executable, "-m", "bench.language", str(folder), json.dumps(asking), rehearsal.base_url]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        yield found, rehearsal


def _usual_wall(measured: dict[str, Any]) -> float:
    assert not measured["errors"], f"{measured['errors']} turns came to nothing"
    return float(statistics.median(r["wall"] for r in measured["rounds"] if r["round"] > _WARM_UP))


def language_cpu(folder: Path) -> list[Bar]:
    """CPU time per call, with everything that a turn takes: prompt, call, journal, parsing, applying, committing.

    The machine is shared and its speed drifts, so the best of some runs counts.
    """
    milliseconds, told = min(_cpu_per_call(folder / f"run-{n}") for n in range(_TRIES))
    return [Bar("CPU per model call", milliseconds, "ms", 0.6, False, told)]


def _cpu_per_call(run: Path) -> tuple[float, str]:
    with _measured(run, everyone_active(200, 14)) as (measured, server):
        stats = server.stats()
    calls, prompts = stats["requests"], measured["prefixes"]
    prompt, sent = prompts["characters"] / prompts["prompts"], stats["received_bytes"] / calls
    assert prompt >= _PROMPT_BYTES, f"prompts have only {prompt:.0f} bytes"
    told = f"prompts of {prompt / 1000:.1f} kB, {sent / 1000:.1f} kB sent, {calls} calls, best of {_TRIES}"
    return sum(r["cpu"] for r in measured["rounds"] if r["steps"]) / calls * 1000, told


def language_in_flight(folder: Path) -> list[Bar]:
    """5,000 calls at once: by themselves, and as a whole round of 5,000 agents."""
    people, seconds = 5_000, 1.0
    calls = _calls(folder, people, seconds) / seconds
    scenario = everyone_active(people, _WARM_UP + 3, max_workers=people)
    with _measured(folder / "run", scenario, says=_POSTS, latency_seconds=seconds) as (measured, server):
        peak = server.stats()["in_flight_peak"]
    whole = _usual_wall(measured) / seconds
    alone = f"ideal: {seconds:g} s; prompts of 6 kB, journaled, one process"
    told = f"ideal: {seconds:g} s; {peak} in flight at most, {measured['peak_mib']:.0f} MiB, everything committed"
    return [
        Bar("5,000 calls in flight: round of calls / ideal", calls, "x", 1.25, False, alone),
        Bar("5,000 calls in flight: round of a run / ideal", whole, "x", 1.25, False, told),
    ]


def _calls(folder: Path, count: int, seconds: float) -> float:
    """How long a round of calls takes, once the connections are open."""
    with rehearsing(says=_POSTS, latency_seconds=seconds) as server:
        command = [sys.executable, "-m", "bench.calls", str(count), str(folder), server.base_url]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(statistics.median(json.loads(done.stdout)[_WARM_UP:]))


def language_room(folder: Path) -> list[Bar]:
    """A step of a room in which fifty people decide at once."""
    seconds = 0.2
    scenario = {"topic": "the old bridge", "rounds": _WARM_UP + 8, "population": {"count": 50}, "worlds": ["room"]}
    with _measured(folder / "run", scenario, says=_TALKS, latency_seconds=seconds) as (measured, _):
        ratio = _usual_wall(measured) / seconds
    told = f"ideal: {seconds:g} s; {measured['steps']:.0f} turns"
    return [Bar("room of 50, parallel: step / ideal", ratio, "x", 1.3, False, told)]


def language_reddit(folder: Path) -> list[Bar]:
    """A round of a hundred people on reddit."""
    seconds = 1.0
    scenario = everyone_active(100, _WARM_UP + 5, worlds=["reddit"], max_workers=128)
    with _measured(folder / "run", scenario, says=_POSTS, latency_seconds=seconds) as (measured, _):
        ratio = _usual_wall(measured) / seconds
    told = f"ideal: {seconds:g} s; {measured['steps']:.0f} turns"
    return [Bar("100 agents on reddit: round / ideal", ratio, "x", 1.1, False, told)]


def language_sending(folder: Path) -> list[Bar]:
    """What the rumour example sends in 30 rounds, whether that grows, and how much of it begins as something before."""
    mind = json.dumps({"kind": "language", "model": MODEL})
    scenario = override(load(_RUMOUR), ["rounds=30", f"mind={mind}"]).model_dump(mode="json", exclude_unset=True)
    with _measured(folder / "run", scenario) as (measured, server):
        stats = server.stats()
    people, requests = scenario["population"][0]["count"], stats["requests"]
    kilobytes = stats["received_bytes"] / 1000
    lines = read_journal(folder / "run" / "journal.jsonl")[0]
    growth = _per_call(lines, 26, 30) / _per_call(lines, 8, 12)
    told = f"{kilobytes / requests:.1f} kB a call, {requests / people:.1f} calls per agent, two platforms"
    always = f"{kilobytes / requests:.1f} kB a call, 30 of them"
    prompts = measured["prefixes"]
    share, own = prompts["any"] / prompts["characters"], prompts["own"] / prompts["characters"]
    return [
        Bar("rumour, 30 rounds: sent per agent", kilobytes / people, "kB", 330, False, told),
        Bar("rumour: sent by an agent active in 30 rounds", kilobytes / requests * 30, "kB", 330, False, always),
        Bar("rumour: a call of rounds 26-30 against 8-12", growth, "x", 1.1, False, "tokens, as the server counts"),
        Bar("rumour: prompt that begins as an earlier one", share * 100, "%", 60, True, f"{own:.0%} as one's own last"),
    ]


def _per_call(lines: list[JournalLine], first: int, last: int) -> float:
    """Tokens of a prompt, on average over some rounds."""
    asked = [line for line in lines if "/decide/0" in line.key and line.usage and first <= line.round <= last]
    return statistics.mean(int(line.usage["input"]) for line in asked if line.usage)


ALL = (language_cpu, language_in_flight, language_room, language_reddit, language_sending)


def main(path: Path, scenario: dict[str, Any], base_url: str) -> dict[str, Any]:
    directory, meter = create_run(validate(scenario), path), Meter()
    outside = RunResources(environ={"OPENAI_BASE_URL": base_url})
    outcome = uvloop.run(work_on_run(directory, asyncio.Event(), RunProgress.of(directory, meter.watch), outside))
    return {
        "errors": outcome.errors + outcome.timeouts,
        "rounds": meter.rounds,
        "steps": sum(r["steps"] for r in meter.rounds),
        "prefixes": uvloop.run(_prefixes(directory)),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


async def _prefixes(directory: RunDirectory) -> dict[str, int]:
    """Characters of all prompts, and how many of them a server has read before: the run is run again to see it."""
    again = Rerun(directory)
    for world, last in again.rounds.items():
        await again.engine(world).run(last, asyncio.Event())
    minds = [mind for mind in again.simulation.minds.values() if isinstance(mind, LanguageMind)]
    names = ("prompts", "characters", "own", "any")
    return {name: sum(getattr(mind.prefixes.total, name) for mind in minds) for name in names}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3])))
