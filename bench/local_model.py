"""What Shoal makes of a real language model on this machine: speed against a bare client, and what replies are worth.

Needs `shoal model get smollm2` and `shoal model get wordllama`; `scripts/bench --real local_model` takes some minutes.

python -m bench.local_model FOLDER run     only the run, which stays in the folder
python -m bench.local_model FOLDER bare    only the bare client, with the prompts of that run
python -m bench.local_model FOLDER split   where the characters of its prompts are, and which of them were new
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from bench.bars import Bar, everyone_active
from shoal.engine import Decider
from shoal.event_loop import run_async
from shoal.journal import DECIDE, JournalKey, read_journal
from shoal.models import Answer, Question, build_replay_stack
from shoal.models.http import Proxies
from shoal.models.http.pool import open_transport
from shoal.models.local import ModelStore, WordTable
from shoal.models.openai import ModelClient, resolve_endpoint
from shoal.runs.directory import RunDirectory
from shoal.runs.rerun.rerun import Rerun
from shoal.runs.resources import serve_local_models
from shoal.runs.store import DigestCheck
from shoal.runs.worker import build_engine, build_from
from shoal.scenario.build import Sources
from shoal.types import Action, Event
from shoal.worlds import TextReader, find_written

MODEL = "local"
PEOPLE, ROUNDS = 20, 10
#: What a decision took with Shoal 0.2 on the same model and machine.
SECONDS_BEFORE = 13.0
SHOAL = str(Path(sys.executable).with_name("shoal"))
_ATTEMPT_SECONDS = 600.0
#: What is in the first line of each part of a compact prompt, and what it is called here.
_PARTS = {
    "# Who you are": "the person",
    "# What you remember": "the past",
    "# Now": "the sight",
    "Refused in your": "what was refused",
    "What do you do now?": "the last words",
}
_POSTS = Path(__file__).parent.parent / "tests" / "worlds" / "data" / "posts_on_topic.jsonl"


@dataclass(frozen=True, slots=True)
class ReplyFigures:
    """What the replies of a run were worth."""

    decisions: int
    #: Of the decisions: usable at the first try, cut off, asked again, and lost.
    usable_at_first: int
    cut_off: int
    asked_again: int
    lost: int
    actions: int
    refused: int
    texts: int
    on_topic: int
    #: The share of the prompts that the server had in its prefix cache.
    cached: float

    @classmethod
    def read(cls, run: RunDirectory, table: WordTable | None = None) -> ReplyFigures:
        """Read the journal and the streams of a run."""
        lines = [(JournalKey.parse(line.key), line) for line in read_journal(run.journal)[0] if line.event is None]
        first = {key.turn for key, line in lines if key.purpose == DECIDE and key.n == 0 and line.reply}
        again = {key.turn for key, line in lines if key.purpose == DECIDE and key.n != 0}
        lost = {key.turn for key, line in lines if line.outcome is not None}
        replies = [line for _, line in lines if line.reply]
        usage = [line.usage or {} for line in replies]
        events = [event for world in run.worlds for event in run.open_stream(world).read_actions() if event.round]
        reader = TextReader((), run.scenario.topic, compare=None if table is None else table.compare)
        texts = [text for event in events if (text := _find_text(event))]
        return cls(
            decisions=len(first),
            usable_at_first=len(first - again - lost),
            cut_off=sum(line.reply.get("finish") == "length" for line in replies),
            asked_again=len(again),
            lost=len(lost),
            actions=len(events),
            refused=sum(not event.success for event in events),
            texts=len(texts),
            on_topic=sum(map(reader.is_on_topic, texts)),
            cached=sum(each.get("cached", 0) for each in usage) / max(sum(each.get("input", 0) for each in usage), 1),
        )

    def describe(self) -> str:
        """Return the figures as one line."""
        return (
            f"{self.decisions} decisions, usable at first {self.usable_at_first / max(self.decisions, 1):.0%}, "
            f"cut off {self.cut_off}, asked again {self.asked_again}, lost {self.lost}; "
            f"{self.actions} actions, {self.refused} refused; {self.texts} texts, {self.on_topic} on topic; "
            f"{self.cached:.0%} of the prompts from the prefix cache"
        )


def _find_text(event: Event) -> str | None:
    return find_written(Action("", event.action_args)) if event.success else None


def run_shoal(*arguments: object) -> str:
    """Run a command of Shoal as a user does, and return what it printed."""
    command = [SHOAL, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


# the bars


def local_model(folder: Path) -> list[Bar]:
    """20 people on one platform for 10 rounds, decided by a real model; and the same prompts sent by a bare client."""
    seconds, figures = measure_run(folder)
    questions = run_async(_collect_questions(RunDirectory(folder / "run")))
    bare = run_async(_send_bare(questions))
    each = seconds / max(figures.decisions, 1)
    usable = 100 * figures.usable_at_first / max(figures.decisions, 1)
    cut = 100 * figures.cut_off / max(len(questions), 1)
    return [
        Bar("local model: completions a second, to a bare client", bare / seconds, "x", 0.9, True, f"{bare:.0f} s"),
        Bar("local model: decisions, to Shoal 0.2", SECONDS_BEFORE / each, "x", 10, True, f"{each:.2f} s each"),
        Bar("local model: replies usable at first", usable, "%", 95, True, f"{figures.decisions} decisions"),
        Bar("local model: replies cut off", cut, "%", 1, False, f"{len(questions)} replies"),
        Bar("local model: prompts from the prefix cache", 100 * figures.cached, "%", 75, True, "as llama.cpp counts"),
        *topics(folder),
    ]


def measure_run(folder: Path) -> tuple[float, ReplyFigures]:
    """Make the run, and return the seconds that it took and what its replies are worth."""
    path, run = folder / "town.json", folder / "run"
    path.write_text(json.dumps(everyone_active(PEOPLE, ROUNDS, name="town")))
    _wait_until_served()
    began = time.perf_counter()
    run_shoal("run", path, "--model", MODEL, "--out", run, "--no-cache", "--quiet")
    seconds = time.perf_counter() - began
    figures = ReplyFigures.read(RunDirectory(run), WordTable.of_user(ModelStore.of_user(os.environ)))
    print(f"        {figures.describe()}, in {seconds:.0f} s", file=sys.stderr)
    return seconds, figures


def describe_split(questions: Sequence[Question]) -> Iterator[str]:
    """Yield the parts of the prompts of all turns, and how much of each was not in the agent's prompt before."""
    size, new, before = Counter[str](), Counter[str](), dict[int | str | None, str]()
    turns = [question for question in questions if question.key.purpose == DECIDE and question.key.n == 0]
    for question in sorted(turns, key=lambda each: each.key):
        prompt = "\n".join(message.content for message in question.messages)
        earlier = before.get(question.key.agent, question.messages[0].content)
        known = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt, earlier, strict=False)))
        before[question.key.agent], part, end = prompt, "the rules", 0
        for line in prompt.splitlines(keepends=True):
            part = next((name for begin, name in _PARTS.items() if begin in line), part)
            end += len(line)
            size[part] += len(line)
            new[part] += min(len(line), max(0, end - known))
    for part, characters in size.items():
        yield f"{part:24} {characters / len(turns):6.0f} characters a prompt, new {new[part] / len(turns):6.0f}"
    yield f"not new, at best: {1 - new.total() / size.total():.0%}"


def topics(folder: Path) -> list[Bar]:
    """200 labelled posts: which of them are on their topic, by words alone and by meaning."""
    table = WordTable.of_user(ModelStore.of_user(os.environ))
    posts = [json.loads(line) for line in _POSTS.read_text().splitlines()]
    by_words, by_meaning = (_score_topics(posts, each) for each in (None, table))
    return [Bar("posts on topic by meaning", by_meaning, "F1", 0.9, True, f"{by_words:.2f} by words alone")]


def _score_topics(posts: list[dict[str, Any]], table: WordTable | None) -> float:
    compare = None if table is None else table.compare
    readers = {topic: TextReader((), topic, compare=compare) for topic in {post["topic"] for post in posts}}
    found = [(readers[post["topic"]].is_on_topic(post["text"]), post["about"]) for post in posts]
    right = sum(took and about for took, about in found)
    return float(2 * right / (sum(took for took, _ in found) + sum(about for _, about in found)))


async def _wait_for_server() -> None:
    endpoint = resolve_endpoint(MODEL, base_url=None, key_variable=None, environ=os.environ)
    async with serve_local_models({MODEL: endpoint}, os.environ):
        pass


def _wait_until_served() -> None:
    """Start the server before anything is timed."""
    run_async(_wait_for_server())


class _Collecting:
    """Keeps the questions that a journal answers."""

    def __init__(self, run: Rerun) -> None:
        self._replay = build_replay_stack(run.journal)
        self.questions: list[Question] = []

    async def answer(self, question: Question) -> Answer:
        self.questions.append(question)
        return await self._replay.answer(question)


async def _collect_questions(directory: RunDirectory) -> list[Question]:
    """Run a run again from its journal, and return every question that it asked."""
    rerun = Rerun(directory)
    collecting = _Collecting(rerun)
    simulation = build_from(directory, rerun.journal, Sources(model=collecting))
    for world, rounds in rerun.rounds.items():
        ledger = DigestCheck(directory.path, world, directory.config.shoal_version)
        decider = Decider(simulation.minds[world], rerun.journal, simulation.limits)
        await build_engine(simulation, world, decider, ledger).run(rounds, asyncio.Event())
    return collecting.questions


async def _send_bare(questions: list[Question]) -> float:
    """Send all questions as fast as the server takes them, and return the seconds."""
    endpoint = resolve_endpoint(MODEL, base_url=None, key_variable=None, environ=os.environ)
    waiting = list(reversed(questions))
    async with serve_local_models({MODEL: endpoint}, os.environ) as served, open_transport(Proxies()) as transport:
        client = ModelClient(transport, served, _ATTEMPT_SECONDS)

        async def work() -> None:
            while waiting:
                await client.answer(waiting.pop())

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(served[MODEL].slots or 1):
                group.create_task(work())
        return time.perf_counter() - began


def main(folder: str, piece: str) -> int:
    run = RunDirectory(Path(folder) / "run")
    if piece == "run":
        Path(folder).mkdir(exist_ok=True)
        seconds, figures = measure_run(Path(folder))
        print(f"{seconds:.1f} s, {seconds / figures.decisions:.2f} s each: {figures.describe()}")
    elif piece == "bare":
        _wait_until_served()
        questions = run_async(_collect_questions(run))
        print(f"{run_async(_send_bare(questions)):.1f} s for {len(questions)} prompts")
    else:
        print(*describe_split(run_async(_collect_questions(run))), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
