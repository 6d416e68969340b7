from __future__ import annotations

from pathlib import Path

from shoal.journal import Journal, JournalKey
from shoal.models import build_replay_stack
from shoal.models.openai import EmbeddingRequest, StackEmbedder
from shoal.models.stack import StackSettings, open_stack
from tests.models.fakes import endpoints
from tests.models.local.small_table import write_small_table

MODEL = "local/wordllama"
REQUEST = EmbeddingRequest(key=JournalKey("w", 1, 0, "embed"), model=MODEL, texts=("bridge", "cake"))


async def test_texts_are_embedded_without_a_call_and_a_replay_needs_no_table(tmp_path: Path) -> None:
    settings = StackSettings(endpoints=endpoints(), tables={MODEL: write_small_table(tmp_path)})
    async with Journal.open(tmp_path / "journal.jsonl") as journal, open_stack(settings, journal) as stack:
        vectors = await StackEmbedder(stack).embed(REQUEST)
        assert stack.spending.calls == 0
    replayed = build_replay_stack(Journal.sealed(tmp_path / "journal.jsonl"))

    again = await StackEmbedder(replayed).embed(REQUEST)

    assert (again == vectors).all()
    assert vectors[0] @ vectors[1] < 0.1
