"""Embeds texts with a table on this machine, where the questions name one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from shoal.models.base import Answer, Model, Question
from shoal.models.local import WordTable
from shoal.models.openai.embeddings import is_embedding, pack


class Tabled:
    """Answers requests for embeddings from tables. All other questions go on to the inner model."""

    def __init__(self, inner: Model, tables: Mapping[str, WordTable]) -> None:
        self._inner = inner
        self._tables = tables

    async def answer(self, question: Question) -> Answer:
        table = self._tables.get(question.model)
        if table is None or not is_embedding(question):
            return await self._inner.answer(question)
        # It takes less than a millisecond, but others may be waiting for many of them.
        await asyncio.sleep(0)
        return Answer(pack(table.embed(message.content for message in question.messages).tolist()))
