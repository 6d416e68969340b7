"""Playing the provider from the terminal."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from shoal.cli.commands.rehearse import describe_stats, parse_change
from shoal.rehearsal.settings import SettingChange
from shoal.rehearsal.stats import Stats
from tests.cli.terminal import DEADLINE_SECONDS, call, shoal, start_command


@contextmanager
def run_server(folder: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and the address that it named."""
    process = start_command("rehearse", *args, cwd=folder)
    try:
        assert process.stdout is not None
        first, address, key = (process.stdout.readline().strip() for _ in range(3))
        url = address.removeprefix("export OPENAI_BASE_URL=")
        assert url.startswith("http://127.0.0.1:")
        assert url in first
        assert key == "export OPENAI_API_KEY=rehearsal"
        yield process, url
    finally:
        process.kill()
        process.communicate()


def chat(url: str, text: str) -> int:
    body = json.dumps({"model": "rehearsal", "messages": [{"role": "user", "content": text}]}).encode()
    try:
        with urlopen(Request(f"{url}/chat/completions", body)) as response:
            return int(response.status)
    except HTTPError as error:
        error.close()
        return error.code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_names_its_address_answers_and_ends_cleanly(folder: Path, number: int) -> None:
    with run_server(folder, "--latency", "1ms", "--sigma", "0.2") as (process, url):
        assert [chat(url, "hello"), chat(url, "hello")] == [200, 200]
        process.send_signal(number)
        _, said = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 0, said
    assert said.startswith("2 requests, 2 answered · 0 in flight (most 1) · tokens ")


def test_the_server_has_the_chosen_settings(folder: Path) -> None:
    with run_server(folder, "--errors", "30%", "--limits", "0.3", "--quota", "5", "--seed", "7") as (_, url):
        statuses = {chat(url, f"question {number}") for number in range(200)}
        assert statuses == {200, 429, 500}
        with urlopen(f"{url.removesuffix('/v1')}/rehearsal/stats") as response:
            stats = json.load(response)
    assert stats["by_status"]["200"] == stats["distinct"] == 5
    assert stats["faults"]["error"] == pytest.approx(60, abs=25)


def test_a_change_comes_after_a_number_of_answers(folder: Path) -> None:
    with run_server(folder, "--change", "rpm=1@2answers", "--unlabelled") as (_, url):
        statuses = [chat(url, f"question {number}") for number in range(4)]
        with urlopen(f"{url.removesuffix('/v1')}/rehearsal/stats") as response:
            stats = json.load(response)
    assert statuses == [200, 200, 200, 429], "a new limit of one a minute lets one through"
    assert stats["refusals"] == {"requests": 1}


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ("cap=24@60s", SettingChange("cap", 24, 60)),
        ("cap=24@800answers", SettingChange("cap", 24, after_answers=800)),
        ("rpm=0.5@1 answer", SettingChange("requests_per_minute", 0.5, after_answers=1)),
        ("tpm=90000@1.5m", SettingChange("tokens_per_minute", 90_000, 90)),
        ("latency=300ms@2s", SettingChange("latency_seconds", 0.3, 2)),
    ],
)
def test_a_change_is_written_as_what_and_when(value: str, change: SettingChange) -> None:
    assert parse_change(value) == change


def test_an_outage_begins_with_the_first_request(folder: Path) -> None:
    with run_server(folder, "--outage", "1h@0s") as (_, url):
        assert chat(url, "hello") == 503


def test_it_can_end_by_itself(folder: Path) -> None:
    result = shoal("rehearse", "--for", "10ms", cwd=folder)
    assert result.returncode == 0
    assert "0 requests" in result.stderr


def test_a_port_that_is_taken_is_refused_with_advice(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = shoal("rehearse", "--port", str(port), cwd=folder)
    assert result.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--latency", "soon", "is not a duration such as 200ms"),
        ("--latency", "1.2.3s", "is not a duration such as 200ms"),
        ("--errors", "120%", "is not a share such as 5%"),
        ("--errors", "many", "is not a share such as 5%"),
        ("--outage", "20s", "is not an outage such as 20s@60s"),
        ("--change", "cap=24", "such as cap=24@60s or cap=24@800answers"),
        ("--change", "speed=24@3s", "is not a change of cap, rpm, tpm, latency"),
        ("--change", "cap=24@soon", "is not a duration such as 200ms"),
        ("--change", "tpm=3x@4s", "is not a valid float"),
        ("--change", "cap=1.5@4s", "cap must be a whole number"),
        ("--window", "0s", "window_seconds must be more than 0"),
        ("--without", "magic", "json_schema"),
        ("--cap", "0", "x>=1"),
    ],
)
def test_a_wrong_option_is_answered_with_a_right_one(option: str, value: str, words: str) -> None:
    result = call("rehearse", option, value)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_shares_that_add_up_to_too_much_are_refused() -> None:
    result = call("rehearse", "--errors", "60%", "--hangs", "60%")
    assert result.exit_code == 2
    assert "add up to more than 1" in result.stderr


def test_the_status_line_shows_the_counts() -> None:
    stats = Stats(requests=1200, in_flight=3, in_flight_peak=64, waiting=2)
    stats.by_status.update({200: 1100, 500: 60, 429: 40})
    stats.faults["hang"] = 3
    stats.input_tokens, stats.cached_tokens, stats.output_tokens = 2000, 1200, 50
    assert describe_stats(stats) == (
        "1,200 requests, 1,100 answered · 40 x 429 · 60 x 500 · 3 hang · "
        "3 in flight, 2 waiting (most 64) · tokens 2,000 in (60% cached), 50 out"
    )
