"""Many calls at once through the whole stack, without a world around them.

python -m bench.calls COUNT DIRECTORY BASE_URL    prints the seconds that each round took, as one JSON list
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import uvloop

from bench.rehearsed import MODEL
from shoal.journal import DECIDE, Journal, JournalKey
from shoal.models.base import Message, Question
from shoal.models.middleware.limited import PlainLimit
from shoal.models.openai.endpoints import Endpoint
from shoal.models.stack import StackSettings, open_stack
from shoal.runs.worker import manual_gc

_ROUNDS = 5
_SCHEMA = {
    "type": "object",
    "properties": {"thought": {"type": "string"}, "actions": {"type": "array", "items": {"type": "object"}}},
    "required": ["thought", "actions"],
}


def question(round: int, agent: int) -> Question:
    """6 kB, of which the larger part is the same for all."""
    rules, sight = "These are the rules of the world. " * 100, f"Agent {agent} sees this in round {round}. " * 75
    messages = (Message("system", rules), Message("user", sight))
    return Question(key=JournalKey("calls", round, agent, DECIDE), model=MODEL, messages=messages, schema=_SCHEMA)


async def main(count: int, folder: Path, base_url: str) -> list[float]:
    endpoints = {MODEL: Endpoint(model="rehearsal", base_url=base_url)}
    settings = StackSettings(endpoints=endpoints, limit=PlainLimit(count))
    seconds = []
    async with Journal.open(folder / "journal.jsonl") as journal, open_stack(settings, journal) as stack:
        for round in range(_ROUNDS):
            questions = [question(round, agent) for agent in range(count)]
            with manual_gc():
                began = time.perf_counter()
                await asyncio.gather(*map(stack.answer, questions))
                seconds.append(time.perf_counter() - began)
    return seconds


if __name__ == "__main__":
    print(json.dumps(uvloop.run(main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))))
