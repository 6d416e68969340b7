"""The server of a model file, with the real llama.cpp and a model without sense."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from shoal.errors import RunRefused
from shoal.journal import JournalKey
from shoal.models import Answer, Message, Question
from shoal.models.http import Proxies
from shoal.models.http.pool import open_transport
from shoal.models.local import ServedModel, ServerSize, measure_speed, open_server
from shoal.models.local.server import find_server_files
from shoal.models.openai import Endpoint, ModelClient
from tests.models.local.tiny_model import write_tiny_model

pytest.importorskip("xllamacpp")

SIZE = ServerSize(threads=1, slots=2, context=4096, prompt_cache_mib=0)


@pytest.fixture
def sockets() -> Iterator[Path]:
    # The path of a socket must be short, which pytest's own folders are not.
    with TemporaryDirectory(prefix="shoal-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


async def ask(served: ServedModel, key: str | None = None) -> Answer:
    endpoint = Endpoint(model="tiny", base_url=served.base_url, key=key or served.key)
    messages = (Message("user", "Hello"),)
    key = JournalKey("w", 1, 0, "decide")
    # Without chance, which would sometimes end an answer early.
    question = Question(key=key, model="tiny", messages=messages, temperature=0.0, max_tokens=4)
    async with open_transport(Proxies()) as transport:
        return await ModelClient(transport, {"tiny": endpoint}, 60.0).answer(question)


def find_process(model: Path, sockets: Path) -> int:
    return int(find_server_files(model, sockets).lock.read_text())


def end_server(model: Path, sockets: Path) -> None:
    os.kill(find_process(model, sockets), signal.SIGTERM)


async def wait_until_gone(pid: int) -> None:
    """Wait for a process that is no child of this one."""
    process = os.pidfd_open(pid)
    try:
        ended, _, _ = await asyncio.to_thread(select.select, [process], [], [], 60)
        assert ended
    finally:
        os.close(process)


async def test_runs_share_one_server_which_ends_without_a_trace(tmp_path: Path, sockets: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    async with open_server(model, sockets, SIZE) as first, open_server(model, sockets, SIZE) as second:
        assert first == second
        assert first.size == SIZE
        assert first.line_breaks
        answer = await ask(first)
        speed = await asyncio.to_thread(measure_speed, first.base_url, first.key, SIZE)
        pid = find_process(model, sockets)
        gone = asyncio.create_task(wait_until_gone(pid))
        await asyncio.sleep(0)
    end_server(model, sockets)
    await gone

    assert 0 < answer.usage.output <= 4
    assert speed.read > 0
    assert speed.written > 0
    assert not find_server_files(model, sockets).socket.exists()


async def test_a_server_that_is_killed_is_started_anew_at_the_same_address(tmp_path: Path, sockets: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    async with open_server(model, sockets, SIZE) as served:
        killed = find_process(model, sockets)
        gone = asyncio.create_task(wait_until_gone(killed))
        await asyncio.sleep(0)
        os.kill(killed, signal.SIGKILL)
        await gone
        async with open_server(model, sockets, SIZE) as again:
            assert again == served
            assert 0 < (await ask(served)).usage.output <= 4
            assert find_process(model, sockets) != killed
        end_server(model, sockets)


async def test_a_file_that_llama_cpp_does_not_take_is_refused(tmp_path: Path, sockets: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    model.write_bytes(model.read_bytes().replace(b"llama.block_count", b"llama.block_drops"))

    with pytest.raises(RunRefused, match=r"cannot be served: llama\.cpp does not take it"):
        async with open_server(model, sockets, SIZE):
            pass
