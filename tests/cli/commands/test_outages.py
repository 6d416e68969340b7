"""What a run prints when its provider fails, and how it exits."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import shoal, start_command

LANGUAGE = ("run", "small.yaml", "--model", "openai/any", "--yes", "--no-cache", "--out", "run")


@pytest.fixture
def dead_port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port that is taken and not listened at."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
        yield port


@pytest.fixture
def closing_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server that accepts connections and never says a word before they are closed."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}/v1")
        yield


def test_a_dead_server_is_named_with_the_command_to_go_on(folder: Path, dead_port: int) -> None:
    done = shoal(*LANGUAGE, cwd=folder)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line]
    assert f"error: openai/any: the server cannot be reached: 127.0.0.1:{dead_port}: Connection refused" in said
    assert said[-1] == "stopped at round 0 of 5; continue with: shoal resume run --no-cache"


def test_a_server_that_stays_silent_ends_the_run_with_a_code_of_its_own(folder: Path, closing_server: None) -> None:
    done = shoal(*LANGUAGE, "--set", "deadline_seconds=1", "--patience", "0", "--json", cwd=folder)
    assert done.returncode == 5
    assert "stopped: openai/any: no answer within" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["status"] == "stopped"
    assert "no answer within" in shoal("show", "run", cwd=folder).stdout


def test_an_interrupt_ends_a_pause_at_once(folder: Path, closing_server: None) -> None:
    run = start_command(*LANGUAGE, "--set", "deadline_seconds=1", cwd=folder)
    with run:
        assert run.stderr is not None
        while not (line := run.stderr.readline()).startswith("paused since"):
            assert line, "it ended without a word"
        assert "tries again for 15 minutes: openai/any: no answer" in line
        shown = shoal("show", "run", cwd=folder).stdout
        run.send_signal(signal.SIGINT)
        said = run.stderr.read()
    assert "waiting since" in shown
    assert "continue with: shoal resume run" in said
    assert run.returncode == 130


@pytest.mark.parametrize("wrong", ["soon", "-1", "nan", "inf"])
def test_a_patience_that_is_no_time_is_refused(folder: Path, wrong: str) -> None:
    done = shoal("run", "small.yaml", "--patience", wrong, cwd=folder)
    assert done.returncode == 2
    assert "it looks like 90s, 15m or 2h" in done.stderr
