"""What many short calls of `World.run` cost against one long one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench.bars import Bar

PEOPLE, ROUNDS = 10, 100
_TRIES = 5

#: Runs in a process of its own and prints seconds and digest; the first world only warms up.
_SCRIPT = """
import json, sys, time
from shoal import World
def run(name, calls):
    world = World("Town", {people}, topic="the old bridge", out=name)
    world.run(1)
    before = time.perf_counter()
    for _ in range(calls):
        world.run({rounds} // calls)
    return time.perf_counter() - before, world.results.digest
run("warm", 1)
found = [run(f"{{calls}}-calls-{{n}}", calls) for calls in (1, {rounds}) for n in range({tries})]
print(json.dumps(found))
"""


def short_calls(folder: Path) -> list[Bar]:
    """100 calls of one round against one call of 100 rounds, 10 people in a room, the best of five each."""
    folder.mkdir(parents=True, exist_ok=True)
    code = _SCRIPT.format(people=PEOPLE, rounds=ROUNDS, tries=_TRIES)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    if len({digest for _, digest in found}) != 1:
        raise AssertionError("short calls and long ones do not have the same history")
    long, short = (min(seconds for seconds, _ in found[part]) for part in (slice(_TRIES), slice(_TRIES, None)))
    told = f"one call of {ROUNDS} rounds: {1000 * long:.0f} ms; {PEOPLE} people"
    return [Bar(f"{ROUNDS} calls of one round against one call", short / long, "x", 3, False, told)]
