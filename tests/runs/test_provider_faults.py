"""Everything that a provider can do wrong: the run stops or waits and says why, loses no decision, and goes on later.

Each fault is played by a server on this machine, in front of a rehearsal server that answers when the fault is over.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.errors import map_error
from shoal.errors import EveryTurnFailed, ProviderRefused, ProviderUnavailable, ShoalError
from shoal.journal import read_journal
from shoal.models import Pause
from shoal.models.http.messages import HttpRequest, HttpTarget
from shoal.models.http.pool import open_transport
from shoal.rehearsal.http import RequestReader, ServerRequest
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.config import LimitSettings
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run
from shoal.runs.progress import PauseWatch, RunProgress
from shoal.runs.resources import RunResources
from shoal.runs.state import RunOutcome, Status
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate
from tests.models.servers import ChatReply, listen, make_certificate, read_request

#: What a run waits here for something that may pass, and for something that will.
PATIENCE_SECONDS, LONG_PATIENCE_SECONDS = 0.5, 60.0
#: An attempt is cut at less than a third of it.
DEADLINE_SECONDS = 3.0
#: Answers before a fault that comes in the middle: those of the first round.
ANSWERS_BEFORE = 6

SCENARIO: dict[str, Any] = {
    "topic": "the old bridge",
    "rounds": 3,
    "time": {"daily_rhythm": False},
    "deadline_seconds": DEADLINE_SECONDS,
    "population": [{"name": name, "activity": 1.0} for name in ("Ada", "Bea", "Cid", "Dan", "Eve", "Fay")],
    "worlds": {"twitter": None},
    "mind": {"kind": "language", "model": "openai/rehearsal"},
}

#: Writes what it likes to the connection; returns whether it may be used again.
Misbehave = Callable[[asyncio.StreamWriter], Awaitable[bool]]


def reply(status: int, body: Any = b"", headers: str = "") -> Misbehave:
    async def misbehave(writer: asyncio.StreamWriter) -> bool:
        writer.write(ChatReply(body, status, headers).encode() if status != 529 else _encode_529())
        return True

    return misbehave


def _encode_529() -> bytes:
    """The status of an overloaded server that HTTP itself does not know."""
    return b'HTTP/1.1 529 Overloaded\r\nContent-Length: 35\r\n\r\n{"error": {"message": "overloaded"}}'[:-1]


def send(text: bytes, *, hang: bool = False, reset: bool = False) -> Misbehave:
    """Send these bytes and nothing more: then close, hang, or reset the connection."""

    async def misbehave(writer: asyncio.StreamWriter) -> bool:
        writer.write(text)
        if hang:
            await asyncio.Event().wait()
        if reset:
            linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        else:
            await writer.drain()
        return False

    return misbehave


async def drip(writer: asyncio.StreamWriter) -> bool:
    """A reply that comes a byte at a time and never ends in time."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(1000):
        writer.write(b" ")
        await asyncio.sleep(0.05)
    return False


def error(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code}}


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"
DAY = "Retry-After: 86400\r\n"
SOON = "Retry-After: 0.05\r\n"

#: What the user must mend, with words that the message holds.
TO_MEND: dict[str, tuple[Misbehave, str]] = {
    "400 for every call": (reply(400, error("we do not do this")), "we do not do this"),
    "401 wrong key": (reply(401, error("no such key")), "no such key"),
    "402 no money": (reply(402, error("pay first")), "pay first"),
    "403 not allowed": (reply(403, error("not for you")), "not for you"),
    "404 no such model": (reply(404, error("no model", "model_not_found")), "does not know this model or address"),
    "405 wrong address": (reply(405, b"Method Not Allowed"), "405"),
    "413 for every call": (reply(413, b"too large"), "413"),
    "422 for every call": (reply(422, {"detail": "field required"}), "field required"),
    "context overflow for every call": (reply(400, error("maximum context length is 10 tokens")), "maximum context"),
    "429 quota used up": (reply(429, error("You exceeded your current quota", "insufficient_quota")), "quota"),
    "429 quota used up for a day": (reply(429, error("your current quota for today"), DAY), "to wait for 24 hours"),
    "429 with a day to wait": (reply(429, error("slow down"), DAY), "it asks to wait for 24 hours"),
    "503 with a day to wait": (reply(503, error("maintenance"), DAY), "it asks to wait for 24 hours"),
    "301 moved": (reply(301, b"", "Location: https://elsewhere/v2\r\n"), "sends us elsewhere"),
    "307 moved": (reply(307, b"", "Location: https://elsewhere/v2\r\n"), "https://elsewhere/v2"),
}
#: What may pass.
PASSING: dict[str, tuple[Misbehave, str]] = {
    "429 for ever": (reply(429, error("slow down"), SOON), "slow down"),
    "429 without a word": (reply(429), "429"),
    "500": (reply(500, error("it broke")), "it broke"),
    "502 as a page": (reply(502, b"<html><h1>Bad Gateway</h1></html>"), "Bad Gateway"),
    "503": (reply(503), "503"),
    "529 overloaded": (reply(529), "529"),
    "closed without a reply": (send(b""), "closed the connection without a reply"),
    "closed in the middle of a reply": (send(HEAD + b'{"choices":'), "in the middle of its reply"),
    "reset": (send(b"", reset=True), "cannot be reached"),
    "hangs before the head": (send(b"", hang=True), "no answer"),
    "hangs in the middle of the body": (send(HEAD + b"{", hang=True), "no answer"),
    "no HTTP at all": (send(b"SSH-2.0-OpenSSH_9.6\r\n"), "cannot be read"),
    "a reply that drips": (drip, "no answer"),
}
#: Replies that cannot be used: as many as a run needs to see.
UNREADABLE: dict[str, tuple[Misbehave, str]] = {
    "an empty reply": (reply(200), ""),
    "a page instead of an answer": (reply(200, b"<html>Welcome!</html>"), ""),
    "JSON of another shape": (reply(200, {"hello": "world"}), ""),
    "null for every answer": (reply(200, {"choices": [{"message": {"content": None}}]}), "holds no text"),
}
FAULTS = {**TO_MEND, **PASSING, **UNREADABLE}


class Front:
    """Stands before the server that answers, and misbehaves while it is told to."""

    def __init__(self, behind: str) -> None:
        self._target = HttpTarget(f"{behind}/chat/completions", {})
        self.fault: Misbehave | None = None
        #: Answers that are still given before the fault begins.
        self.answers_left = 0
        self.faults = 0
        self.has_failed = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reading = RequestReader()
        async with open_transport() as transport:
            while True:
                request = await read_request(reader, reading)
                if self.fault is not None and self.answers_left <= 0:
                    self.faults += 1
                    self.has_failed.set()
                    if not await self.fault(writer):
                        return
                    continue
                self.answers_left -= 1
                writer.write(await self._ask_behind(transport, request))

    def mend(self) -> None:
        self.fault = None

    async def _ask_behind(self, transport: Any, request: ServerRequest) -> bytes:
        found = await transport.post(HttpRequest(self._target, request.body, 30))
        return ChatReply(found.body, found.status).encode()


@asynccontextmanager
async def open_front() -> AsyncIterator[tuple[Front, str]]:
    async with start(RehearsalSettings()) as behind:
        front = Front(behind.base_url)
        async with listen(front.talk) as port:
            yield front, f"http://127.0.0.1:{port}/v1"


@dataclass
class Ending:
    """How a session of a run ended."""

    error: ShoalError | None
    outcome: RunOutcome | None
    #: What the run waited for, None each time it went on.
    pauses: list[Pause | None]


async def work(
    run: Path,
    base_url: str,
    patience_seconds: float = PATIENCE_SECONDS,
    watch: PauseWatch | None = None,
    shards: int | None = None,
) -> Ending:
    limits = LimitSettings(patience=patience_seconds, shards=shards)
    resources = RunResources(environ={"OPENAI_BASE_URL": base_url}, limits=limits)
    directory, pauses = RunDirectory(run), list[Pause | None]()
    progress = RunProgress.of(directory)
    progress.watch_pauses(pauses.append)
    if watch is not None:
        progress.watch_pauses(watch)
    try:
        outcome = await work_on_run(directory, asyncio.Event(), progress, resources)
    except ShoalError as failed:
        return Ending(failed, None, pauses)
    return Ending(None, outcome, pauses)


def count_lost(run: Path) -> int:
    """Decisions that were recorded as failed."""
    return sum(line.outcome is not None for line in read_journal(run / "journal.jsonl")[0])


def check_stopped(run: Path, ending: Ending, words: str, kind: type[ShoalError] | tuple[type[ShoalError], ...]) -> None:
    assert isinstance(ending.error, kind)
    assert words in str(ending.error)
    assert "shoal resume" in str(ending.error)
    assert map_error(ending.error).exit_code not in (0, 70)
    assert count_lost(run) == 0
    stopped = Status.STOPPED if isinstance(ending.error, ProviderUnavailable) else Status.FAILED
    state = RunDirectory(run).read_state()
    assert (state.runner_status, state.waiting, state.error) == (stopped, None, str(ending.error))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    create_run(validate(SCENARIO), tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the same run without any fault."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    create_run(validate(SCENARIO), run)

    async def main() -> Ending:
        async with start(RehearsalSettings()) as server:
            return await work(run, server.base_url)

    ending = asyncio.run(main())
    assert ending.outcome is not None
    return ending.outcome.digest


def expected_error(name: str) -> type[ShoalError] | tuple[type[ShoalError], ...]:
    if name in TO_MEND:
        return ProviderRefused
    return ProviderUnavailable if name in PASSING else (ProviderRefused, ProviderUnavailable)


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("answers_before", [0, ANSWERS_BEFORE], ids=["at the start", "in the middle"])
def test_a_fault_stops_the_run_loses_nothing_and_the_run_goes_on_when_it_is_mended(
    name: str, answers_before: int, run: Path, undisturbed: str
) -> None:
    fault, words = FAULTS[name]

    async def main() -> tuple[Ending, int, Ending]:
        async with open_front() as (front, base_url):
            front.fault, front.answers_left = fault, answers_before
            broken = await work(run, base_url)
            check_stopped(run, broken, words, expected_error(name))
            front.mend()
            return broken, front.faults, await work(run, base_url, LONG_PATIENCE_SECONDS)

    broken, faults, mended = asyncio.run(main())
    if answers_before == 0 and name in TO_MEND:
        assert faults <= 3, "a first call goes out alone"
    if name in PASSING:
        assert any(pause is not None and words in pause.reason for pause in broken.pauses)
    assert mended.outcome is not None
    assert (mended.outcome.digest, mended.outcome.errors) == (undisturbed, 0)


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_only_costs_time(name: str, run: Path, undisturbed: str) -> None:
    fault, _ = PASSING[name]

    async def main() -> Ending:
        async with open_front() as (front, base_url):
            front.fault, front.answers_left = fault, ANSWERS_BEFORE
            return await work(run, base_url, LONG_PATIENCE_SECONDS, lambda _: front.mend())

    ending = asyncio.run(main())
    assert [pause is None for pause in ending.pauses] == [False, True]
    assert ending.outcome is not None
    assert ending.outcome.status is Status.COMPLETED
    assert (ending.outcome.digest, ending.outcome.errors, count_lost(run)) == (undisturbed, 0, 0)


# Servers that are not there


def test_a_port_where_nobody_listens_stops_the_run_at_once(run: Path, undisturbed: str) -> None:
    async def main() -> Ending:
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            return await work(run, f"http://127.0.0.1:{held.getsockname()[1]}/v1", LONG_PATIENCE_SECONDS)

    check_stopped(run, asyncio.run(main()), "Connection refused", ProviderRefused)
    check_goes_on(run, undisturbed)


def test_a_host_that_nobody_knows_stops_the_run_at_once(
    run: Path, undisturbed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def know_nobody(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with monkeypatch.context() as without_names:
        without_names.setattr(socket, "getaddrinfo", know_nobody)
        ending = asyncio.run(work(run, "http://nowhere.invalid/v1", LONG_PATIENCE_SECONDS))
    check_stopped(run, ending, "nowhere.invalid:80: Name or service not known", ProviderRefused)
    check_goes_on(run, undisturbed)


def check_goes_on(run: Path, undisturbed: str) -> None:
    """The run goes on with a server that answers, and ends as if nothing had been."""

    async def main() -> Ending:
        async with start(RehearsalSettings()) as server:
            return await work(run, server.base_url, LONG_PATIENCE_SECONDS)

    ending = asyncio.run(main())
    assert ending.outcome is not None
    assert ending.outcome.digest == undisturbed


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("comes_back", [True, False], ids=["comes back", "stays dead"])
def test_a_server_that_dies_in_the_middle(comes_back: bool, shards: int, run: Path, undisturbed: str) -> None:
    async def main() -> Ending:
        async with start(RehearsalSettings()) as behind:
            front = Front(behind.base_url)
            front.fault, front.answers_left = send(b""), ANSWERS_BEFORE
            with socket.socket() as held:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                held.bind(("127.0.0.1", 0))
                port = held.getsockname()[1]
                patience = LONG_PATIENCE_SECONDS if comes_back else PATIENCE_SECONDS
                paused = asyncio.Event()
                async with listen(front.talk, port=port):
                    running = asyncio.create_task(
                        work(run, f"http://127.0.0.1:{port}/v1", patience, lambda _: paused.set(), shards)
                    )
                    await front.has_failed.wait()
                if not comes_back:
                    return await running
                await paused.wait()
                state = RunDirectory(run).read_state()
                assert state.runner_status is Status.PAUSED
                assert state.waiting is not None
                front.mend()
                async with listen(front.talk, port=port):
                    return await running

    ending = asyncio.run(main())
    if comes_back:
        assert ending.outcome is not None
        assert (ending.outcome.digest, count_lost(run)) == (undisturbed, 0)
    else:
        check_stopped(run, ending, "cannot be reached", ProviderUnavailable)
        check_goes_on(run, undisturbed)


# TLS


def make_expired_certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Make a certificate of the year 2000 that a client trusts but for its date."""
    make_certificate(folder)
    key, certificate = folder / "localhost.key", folder / "expired.pem"
    (folder / "index.txt").touch()
    (folder / "ca.cnf").write_text(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index.txt\nnew_certs_dir={folder}\nrand_serial=yes\n"
        "default_md=sha256\npolicy=p\nx509_extensions=e\n[p]\ncommonName=supplied\n[e]\nsubjectAltName=DNS:localhost\n"
    )
    request = ["openssl", "req", "-new", "-key", str(key), "-subj", "/CN=localhost", "-out", f"{folder}/request.pem"]
    dates = ["-startdate", "20000101000000Z", "-enddate", "20000201000000Z"]
    files = ["-in", f"{folder}/request.pem", "-out", str(certificate), "-keyfile", str(key), "-selfsign"]
    sign = ["openssl", "ca", "-batch", "-notext", "-config", f"{folder}/ca.cnf", *dates, *files]
    for command in (request, sign):
        subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


@pytest.mark.parametrize("fault", ["self-signed", "of another host", "expired"])
def test_a_certificate_that_is_no_good_stops_the_run_at_once(
    fault: str, run: Path, undisturbed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "expired":
        tls, certificate = make_expired_certificate(tmp_path)
    else:
        tls, certificate = make_certificate(tmp_path, "localhost" if fault == "self-signed" else "other.example")
    words = {"self-signed": "self-signed", "of another host": "mismatch", "expired": "has expired"}[fault]
    if fault != "self-signed":
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def main() -> Ending:
        async with start(RehearsalSettings()) as behind, listen(Front(behind.base_url).talk, tls=tls) as port:
            return await work(run, f"https://localhost:{port}/v1", LONG_PATIENCE_SECONDS)

    ending = asyncio.run(main())
    check_stopped(run, ending, words, ProviderRefused)
    assert "certificate" in str(ending.error)
    monkeypatch.undo()
    check_goes_on(run, undisturbed)


def test_tls_at_a_port_without_it_stops_the_run_at_once(run: Path, undisturbed: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async def main() -> Ending:
        async with listen(talk) as port:
            return await work(run, f"https://127.0.0.1:{port}/v1", LONG_PATIENCE_SECONDS)

    check_stopped(run, asyncio.run(main()), "is it http:// or https://?", ProviderRefused)
    check_goes_on(run, undisturbed)


def test_no_tls_at_a_port_that_wants_it_is_said(run: Path, undisturbed: str, tmp_path: Path) -> None:
    tls, _ = make_certificate(tmp_path)

    async def main() -> Ending:
        async with start(RehearsalSettings()) as behind, listen(Front(behind.base_url).talk, tls=tls) as port:
            return await work(run, f"http://localhost:{port}/v1")

    check_stopped(run, asyncio.run(main()), "rehearsal", ProviderUnavailable)
    check_goes_on(run, undisturbed)


# What belongs to one question


@pytest.mark.parametrize("status", [400, 413])
def test_a_failure_of_one_question_is_its_outcome_and_the_others_go_on(status: int, run: Path) -> None:
    """The server never takes what Cid sees."""

    class Choosy(Front):
        async def _ask_behind(self, transport: Any, request: ServerRequest) -> bytes:
            if b"You are Cid" in request.body and b"Say yes." not in request.body:
                return ChatReply(error("not this one"), status).encode()
            return await super()._ask_behind(transport, request)

    async def main() -> Ending:
        async with start(RehearsalSettings()) as behind, listen(Choosy(behind.base_url).talk) as port:
            return await work(run, f"http://127.0.0.1:{port}/v1", LONG_PATIENCE_SECONDS)

    ending = asyncio.run(main())
    assert ending.outcome is not None
    assert ending.outcome.errors == SCENARIO["rounds"] == count_lost(run)


def test_an_unreadable_reply_to_the_same_question_stops_no_resume(run: Path) -> None:
    """The run was stopped in a round in which only questions are left that nobody ever gets an answer to."""

    class Choosy(Front):
        async def _ask_behind(self, transport: Any, request: ServerRequest) -> bytes:
            names = (b"You are Ada", b"You are Bea", b"You are Cid", b"You are Dan")
            if any(name in request.body for name in names) and b"Say yes." not in request.body:
                return ChatReply({"choices": [{"message": {"content": None}}]}).encode()
            return await super()._ask_behind(transport, request)

    async def main() -> tuple[Ending, Ending]:
        async with start(RehearsalSettings()) as behind:
            front = Choosy(behind.base_url)
            async with listen(front.talk) as port:
                # One is answered, three are not, and then even the control question is not.
                front.fault, front.answers_left = reply(200), 4
                broken = await work(run, f"http://127.0.0.1:{port}/v1", LONG_PATIENCE_SECONDS)
                front.mend()
                return broken, await work(run, f"http://127.0.0.1:{port}/v1", LONG_PATIENCE_SECONDS)

    broken, resumed = asyncio.run(main())
    assert isinstance(broken.error, ProviderRefused)
    assert resumed.outcome is not None
    lost = [line for line in read_journal(run / "journal.jsonl")[0] if line.outcome is not None]
    assert len(lost) == resumed.outcome.errors > 4
    assert all("holds no text" in (line.reason or "") for line in lost)


def test_a_model_whose_replies_cannot_be_used_is_given_up_early(tmp_path: Path) -> None:
    people = [{"name": f"Person {number}", "activity": 1.0} for number in range(40)]
    create_run(validate({**SCENARIO, "population": people}), tmp_path / "run")
    front_reply = {"choices": [{"message": {"content": "I would rather talk about cats."}}]}

    async def main() -> tuple[Ending, int]:
        async with open_front() as (front, base_url):
            front.fault = reply(200, front_reply)
            return await work(tmp_path / "run", base_url), front.faults

    ending, calls = asyncio.run(main())
    assert isinstance(ending.error, EveryTurnFailed)
    assert "openai/rehearsal: each of its first 10 turns failed" in str(ending.error)
    assert calls < 2 * len(people)


def test_answers_that_are_on_their_way_when_the_run_must_stop_are_kept(run: Path) -> None:
    """Four act in the first round and six in the second. The last of them is refused while the others wait."""

    class Slow(Front):
        def __init__(self, behind: str) -> None:
            super().__init__(behind)
            self.asked = 0
            self.is_refused = asyncio.Event()

        async def _ask_behind(self, transport: Any, request: ServerRequest) -> bytes:
            self.asked += 1
            if self.asked == 4 + 6:
                self.is_refused.set()
                return ChatReply(error("no such key"), 401).encode()
            if self.asked > 4:
                await self.is_refused.wait()
                # The refusal arrives before any answer does.
                await transport.post(HttpRequest(self._target, request.body, 30))
            return await super()._ask_behind(transport, request)

    async def main() -> Ending:
        async with start(RehearsalSettings()) as behind, listen(Slow(behind.base_url).talk) as port:
            return await work(run, f"http://127.0.0.1:{port}/v1", LONG_PATIENCE_SECONDS)

    ending = asyncio.run(main())
    assert isinstance(ending.error, ProviderRefused)
    assert len(read_journal(run / "journal.jsonl")[0]) == 4 + 5
