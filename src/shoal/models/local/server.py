"""The server of one model file: a process that all runs of a user share, with llama.cpp in it. Both ends are here.

A run that needs the model holds a connection to the process's socket. The process says where it serves as soon as the
model is loaded, and leaves some time after the last connection has ended, however it ended.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import secrets
import signal
import socket
import sys
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shoal.daemon import DaemonFiles, DaemonMissing, announce_daemon, become_daemon, start_daemon
from shoal.errors import RunRefused, ShoalError
from shoal.event_loop import run_async
from shoal.models.local.sizing import ModelSpeed, ServerSize

_log = logging.getLogger(__name__)

EXTRA = "xllamacpp"
#: Loading a large model from a slow disk takes a while.
LOAD_SECONDS = 300.0
#: After the last run, the prompts in its cache are worth keeping for a while.
IDLE_SECONDS = 60.0
_HOST = "127.0.0.1"
_RESTART_SECONDS = 0.5
_MAX_GREETING_BYTES = 64 << 10
#: How much less likely it is that a sequence of more tokens than this is repeated, in the steps of llama.cpp's DRY.
_REPEAT_PENALTY, _REPEAT_TOKENS = 0.8, 4
#: How much less likely it is that a token of the last few comes again: without this, numbers follow numbers for ever.
_WORD_PENALTY, _WORD_TOKENS = 1.1, 64
#: How much llama.cpp logs: warnings and errors. With more, it writes several lines for each answer.
_VERBOSITY = 2
#: As many tokens in a row must be the same for them to be moved within a prompt that was read before.
_LEAST_MOVED_TOKENS = 16
#: What a model is measured with: about 400 tokens to read, and some to write.
_MEASURED_WORDS = "The council of the town will decide about the old bridge. " * 32
_MEASURED_TOKENS = 48
#: What small models put between the parts of a JSON object, one token for each: llama.cpp allows up to 20 blanks.
_LINE_BREAKS = ["\r\n", *(breaks + blank * n for breaks in ("\n", "\n\n") for blank in " \t" for n in range(21))]


class ServedModel(msgspec.Struct, frozen=True):
    """What the process says to each connection: where the model is served, or why it is not."""

    base_url: str = ""
    #: Others on this machine cannot use the server without it.
    key: str = ""
    size: ServerSize | None = None
    #: Tokens that are a line break with nothing behind it but spaces.
    line_breaks: tuple[int, ...] = ()
    error: str = ""


class _Timings(msgspec.Struct):
    prompt_per_second: float
    predicted_per_second: float


class _TimedReply(msgspec.Struct):
    """What llama.cpp adds to a chat completion."""

    timings: _Timings


class _TokenizedReply(msgspec.Struct):
    tokens: list[int]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ServedModel).decode


# using one, from a run


def check_extra() -> None:
    """Raise RunRefused where the package that serves models is not installed."""
    if importlib.util.find_spec(EXTRA) is None:
        raise RunRefused("models on this machine need an extra package: pip install 'shoal[local]'")


def find_server_files(model: Path, folder: Path) -> DaemonFiles:
    """Return where the server of a model file is, in the folder of this user's sockets."""
    found = model.stat()
    name = blake2b(f"{model} {found.st_size} {found.st_mtime_ns}".encode(), digest_size=6).hexdigest()
    return DaemonFiles(folder / f"model-{name}.sock")


@asynccontextmanager
async def open_server(model: Path, folder: Path, size: ServerSize) -> AsyncIterator[ServedModel]:
    """Use the server of a model file, and start it if none runs. One that dies is started anew."""
    check_extra()
    files = find_server_files(model, folder)
    served, connection = await _connect(files, model, size)
    keeping = asyncio.create_task(_keep_alive(files, model, size, connection))
    try:
        yield served
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


_Reply = TypeVar("_Reply")
_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _connect(files: DaemonFiles, model: Path, size: ServerSize) -> tuple[ServedModel, _Connection]:
    arguments = [files.socket, model, _encode(size).decode(), IDLE_SECONDS]
    # A second time, since the first one may meet a server that is just leaving.
    for _ in range(2):
        try:
            await asyncio.to_thread(start_daemon, files, __name__, arguments, LOAD_SECONDS)
            reader, writer = await asyncio.open_unix_connection(files.socket, limit=_MAX_GREETING_BYTES)
            served = await _read_greeting(reader, writer)
        except ConnectionError:
            continue
        except (DaemonMissing, OSError) as error:
            raise RunRefused(f"the server of {model} cannot be started: {error}") from error
        if served.size is not None:
            return served, (reader, writer)
        if served.error:
            raise RunRefused(f"{model} cannot be served: {served.error}")
    raise RunRefused(f"{model} cannot be served: its server ended while it loaded the model; see {files.log}")


async def _read_greeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ServedModel:
    """Read what the process says. The connection stays open only where it serves the model."""
    served = ServedModel()
    try:
        async with asyncio.timeout(LOAD_SECONDS):
            line = await reader.readline()
        served = _decode(line) if line else served
    finally:
        if served.size is None:
            writer.close()
    return served


async def _keep_alive(files: DaemonFiles, model: Path, size: ServerSize, connection: _Connection) -> None:
    """Hold a connection. A server that is started anew serves at the same address, so that calls go on."""
    try:
        while True:
            await connection[0].read()
            connection[1].close()
            _log.warning("the server of %s ended: another one is started", model.name)
            await asyncio.sleep(_RESTART_SECONDS)
            try:
                _, connection = await _connect(files, model, size)
            except RunRefused as refused:
                _log.warning("%s", refused)
    finally:
        connection[1].close()


def measure_speed(base_url: str, key: str, size: ServerSize) -> ModelSpeed:
    """Ask a served model for a few tokens, and return how fast it read and wrote them."""
    prompt = f"{secrets.token_hex(8)} {_MEASURED_WORDS}"
    body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": _MEASURED_TOKENS, "ignore_eos": True}
    try:
        timings = _post(f"{base_url}/chat/completions", key, body, _TimedReply).timings
    except (OSError, msgspec.DecodeError) as error:
        raise RunRefused(f"the model could not be measured: {error}") from error
    return ModelSpeed(timings.prompt_per_second, timings.predicted_per_second, size.slots)


def _post(url: str, key: str, body: dict[str, Any], reply_type: type[_Reply]) -> _Reply:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    # No proxy reaches this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, _encode(body), headers), timeout=LOAD_SECONDS) as reply:
        return msgspec.json.decode(reply.read(), type=reply_type)


# serving, in a separate process


async def serve(files: DaemonFiles, listening: socket.socket, lock: int, served: ServedModel, idle: float) -> None:
    """Greet every connection, until there has been none for a while or a signal comes."""
    over, loop = asyncio.Event(), asyncio.get_running_loop()
    connections: set[asyncio.StreamWriter] = set()
    leaving = loop.call_later(idle, over.set)

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal leaving
        connections.add(writer)
        leaving.cancel()
        try:
            writer.write(_encode(served) + b"\n")
            await reader.read()
        except ConnectionError:
            _log.info("a connection broke")
        finally:
            writer.close()
            connections.discard(writer)
            if not connections:
                leaving.cancel()
                leaving = loop.call_later(0.0 if served.error else idle, over.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    server = await asyncio.start_unix_server(greet, sock=listening)
    announce_daemon(lock)
    await over.wait()
    # First refuse new clients, then end the connections of the others: they start another server.
    server.close()
    files.socket.unlink(missing_ok=True)
    for writer in connections:
        writer.close()
    _log.info("process %d leaves", os.getpid())


class _Address(msgspec.Struct):
    """Port and key, kept for a server that follows one that died: its runs go on as if nothing had happened."""

    port: int = 0
    key: str = ""


def _load(files: DaemonFiles, model: Path, size: ServerSize) -> tuple[ServedModel, object]:
    """Load the model and serve it; return the greeting, and the server, which lives as long as it is kept."""
    kept = files.socket.with_name(f"{files.socket.name}.address")
    try:
        address = msgspec.json.decode(kept.read_bytes(), type=_Address)
    except (OSError, msgspec.DecodeError):
        address = _Address(key=secrets.token_hex(16))
    try:
        server, url = _start_llama(model, size, address)
    except RuntimeError as error:
        return ServedModel(error=f"llama.cpp does not take it ({error}); {files.log} has what it said"), None
    address.port = int(url.rpartition(":")[2])
    kept.touch(mode=0o600)
    kept.write_bytes(_encode(address))
    return ServedModel(f"{url}/v1", address.key, size, _find_line_breaks(url, address.key)), server


def _find_line_breaks(url: str, key: str) -> tuple[int, ...]:
    try:
        found = [_post(f"{url}/tokenize", key, {"content": text}, _TokenizedReply).tokens for text in _LINE_BREAKS]
    except OSError as error:
        _log.warning("the tokens of line breaks are not known, so replies may be indented: %s", error)
        return ()
    return tuple(sorted({tokens[0] for tokens in found if len(tokens) == 1}))


def _start_llama(model: Path, size: ServerSize, address: _Address) -> tuple[object, str]:
    import xllamacpp  # noqa: PLC0415  # an optional extra

    parameters: Any = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {model.stem}
    parameters.hostnames = [_HOST]
    parameters.port = address.port if _is_free(address.port) else 0
    parameters.api_keys = [address.key]
    parameters.n_parallel = size.slots
    parameters.n_ctx = size.slots * size.context
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = size.threads
    parameters.cache_ram_mib = size.prompt_cache_mib
    # By likeness, every prompt would go on with whatever slot is free, as all begin alike, and what another agent has
    # there would be lost. Without it, that is put into the prompt cache, and this agent's own last prompt taken out.
    parameters.slot_prompt_similarity = 0.0
    # What an agent no longer remembers goes missing in the middle of its prompt; the rest is moved up, not read anew.
    parameters.n_cache_reuse = _LEAST_MOVED_TOKENS
    parameters.verbosity = _VERBOSITY
    parameters.ui = False
    # Small models begin to say the same again and again. Single words may come again, such as those of the topic.
    parameters.sampling.dry_multiplier = _REPEAT_PENALTY
    parameters.sampling.dry_allowed_length = _REPEAT_TOKENS
    parameters.sampling.penalty_repeat, parameters.sampling.penalty_last_n = _WORD_PENALTY, _WORD_TOKENS
    server: Any = xllamacpp.Server(parameters)
    return server, server.listening_address


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((_HOST, port))
        except OSError:
            return False
    return True


def main(arguments: Sequence[str]) -> int:
    """Become the server of a model file, unless there is one; return as soon as it can be connected to."""
    files, model, idle = DaemonFiles(Path(arguments[0])), Path(arguments[1]), float(arguments[3])
    size = msgspec.json.decode(arguments[2], type=ServerSize)
    try:
        begun = become_daemon(files)
    except (OSError, ShoalError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if begun is not None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        served, server = _load(files, model, size)
        run_async(serve(files, *begun, served, idle))
        # llama.cpp has nothing to save, and its threads need not be waited for.
        del server
        logging.shutdown()
        os._exit(0)
    return 0
