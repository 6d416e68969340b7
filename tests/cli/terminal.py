"""Runs `shoal` as users do, from a shell in a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from shoal.cli.main import cli

COMMAND = str(Path(sys.executable).with_name("shoal"))
#: After this a test fails instead of waiting on; a busy machine takes long.
DEADLINE_SECONDS = 100

SMALL = """\
name: small
topic: the old bridge
rounds: 5
population: {count: 20}
worlds: [twitter, reddit]
time: {start: 2026-03-02T18:00}
events:
  - {post: "They say the old bridge will be closed!", by: most_followed}
"""
SLOW = SMALL + "mind: {latency: {median_ms: 30}}\n"
#: From the second round on, decisions wait for the file `go`, so that a run is certainly at work until then.
GATED = SMALL + "mind: {kind: 'gated:Gated'}\n"
GATED_MIND = """\
import asyncio
from pathlib import Path

from shoal import Action, Decision, Mind

class Gated(Mind):
    outside = True

    async def decide(self, observation):
        while observation.round > 1 and not Path("go").exists():
            await asyncio.sleep(0.01)
        return Decision((Action("CREATE_POST", {"content": f"{observation.name} in {observation.round}"}),))
"""

KEYS = ["run", "status", "digest", "rounds", "actions", "calls", "cost", "errors", "timeouts", "quality"]


def environment(**more: str) -> dict[str, str]:
    hidden = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "SHOAL_TRACEBACK")
    return {name: value for name, value in os.environ.items() if name not in hidden} | more


def shoal(*args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command in another process to its end."""
    return subprocess.run(
        [COMMAND, *args],
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def start_command(*args: str, cwd: Path) -> subprocess.Popen[str]:
    """Start the command in another process, as from a terminal: even where nohup runs these tests."""
    command, pipe = [COMMAND, *args], subprocess.PIPE
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        return subprocess.Popen(command, cwd=cwd, env=environment(), stdout=pipe, stderr=pipe, text=True)
    finally:
        signal.signal(signal.SIGHUP, before)


def call(*args: str) -> Result:
    """Run the command in this process, in the current folder."""
    return CliRunner().invoke(cli, list(args), prog_name="shoal")


def last_object(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_SECONDS
    while not happened():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def count_rounds(stream: Path) -> int:
    """Count the rounds in a stream of actions."""
    return stream.read_text().count('"round_end"') if stream.exists() else 0
