"""What copying a run elsewhere costs it, how fast the graph memory takes a run over, and how fast it answers."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.bars import Bar, everyone_active
from shoal.event_loop import run_async
from shoal.runs import RunDirectory, create_run
from shoal.runs.sinks import open_graph
from shoal.runs.worker import work_on_run
from shoal.scenario import validate
from shoal.sinks import Entity, Fact, GraphStore, Narration, Position, SinkBatch, answer_question

#: People and rounds of the run that is copied.
PEOPLE, ROUNDS = 1_000, 30
KILLS = 100
FACT_PEOPLE, FACTS_PER_BATCH = 10_000, 20_000
#: Some of them are the same, which leaves a million.
FACTS = 1_060_000
QUESTIONS = 200
_SEED = 7
_WORDS = "bridge closing repair ferry harbour money council school market station winter noise traffic trust".split()
_FOLLOW = "import sys; from shoal.runs.sinks.live import main; sys.exit(main(sys.argv[1]))"
#: Runs a scenario, and prints the CPU time that its process took.
_RUN = (
    "import asyncio, os, sys, time; from pathlib import Path; from shoal.runs import RunDirectory, RunResources;"
    " from shoal.runs.worker import work_on_run; run = RunDirectory.open(Path(sys.argv[1]));"
    " asyncio.run(work_on_run(run, asyncio.Event(), resources=RunResources(environ=dict(os.environ))));"
    " print(time.process_time())"
)


def graph_sink(folder: Path) -> list[Bar]:
    """Actions that the graph takes over per second of CPU time, and whether kills leave anything behind."""
    run = _run(folder / "run", everyone_active(PEOPLE, ROUNDS))
    actions = sum(1 for _ in run.open_stream("twitter").read_actions())
    since = time.process_time()
    with open_graph(run):
        pass
    rate = actions / (time.process_time() - since)
    told = f"{actions:,} actions of {PEOPLE:,} people, in one pass, per second of CPU time"
    whole = _list_rows(run.file("graph.db"))
    copied = create_run(validate({**everyone_active(PEOPLE, ROUNDS), "sinks": ["graph"]}), folder / "copied")
    survived = _kill_followers(run, copied)
    same = _list_rows(copied.file("graph.db")) == whole
    kills = f"the graph afterwards against one made in a single pass, {len(whole):,} rows"
    return [
        Bar("graph memory: actions taken over", rate, "1/s", 5_000, True, told),
        Bar("graph memory: kills that lost and repeated nothing", survived * same, "", KILLS, True, kills),
    ]


def _run(path: Path, scenario: dict[str, Any]) -> RunDirectory:
    run = create_run(validate(scenario), path)
    run_async(work_on_run(run, asyncio.Event()))
    return RunDirectory.open(path)


def _kill_followers(run: RunDirectory, copied: RunDirectory) -> int:
    """Let a stream grow, kill what follows it at random moments, and let it end; return the number of kills."""
    draw, content = random.Random(_SEED), run.open_stream("twitter").path.read_bytes()
    stream = copied.open_stream("twitter").path
    stream.parent.mkdir(exist_ok=True)
    stream.touch()
    with copied.lock(), stream.open("ab", buffering=0) as file:
        for number in range(1, KILLS + 1):
            process = subprocess.Popen([sys.executable, "-c", _FOLLOW, str(copied.path)])
            # Most of the time goes into starting; what is left falls into copying, committing and waiting.
            time.sleep(0.3 + draw.random() * 0.7)
            file.write(content[file.tell() : len(content) * number // KILLS])
            time.sleep(draw.random() * 0.5)
            process.send_signal(signal.SIGKILL)
            process.wait()
    subprocess.run([sys.executable, "-c", _FOLLOW, str(copied.path)], check=True)
    return KILLS


def _list_rows(path: Path) -> list[str]:
    store = GraphStore(path)
    facts = store.database.execute("SELECT * FROM fact ORDER BY id").fetchall()
    episodes = store.database.execute("SELECT * FROM episode ORDER BY id").fetchall()
    entities = store.database.execute("SELECT * FROM entity ORDER BY id").fetchall()
    store.close()
    return [json.dumps(row) for row in (*facts, *episodes, *entities)]


def graph_query(folder: Path) -> list[Bar]:
    """Questions to a graph of a million facts: about one person, about two, and about everybody."""
    folder.mkdir(parents=True, exist_ok=True)
    store = GraphStore(folder / "graph.db")
    at = Position()
    for batch in _invent_facts():
        end = Position(at.bytes + 1, str(at.bytes))
        store.write(SinkBatch("twitter", at, end, batch))
        at = end
    (facts,) = store.database.execute("SELECT count(*) FROM fact").fetchone()
    draw, times = random.Random(_SEED), []
    for number in range(QUESTIONS):
        one, two = (f"Person N{draw.randrange(FACT_PEOPLE)}" for _ in range(2))
        word, another = draw.sample(_WORDS, 2)
        question = (
            f"What does {one} think of the {word}?",
            f"{one} and {two}",
            f"who opposes the {word} or the {another}?",
        )[number % 3]
        since = time.perf_counter()
        answer_question(store, question)
        times.append((time.perf_counter() - since) * 1_000)
    store.close()
    p50, p90 = statistics.median(times), statistics.quantiles(times, n=10)[-1]
    told = f"{facts:,} facts about {FACT_PEOPLE:,} people, {QUESTIONS} questions; 90 of 100 within {p90:.1f} ms"
    return [Bar("graph memory: a question to a million facts, median", p50, "ms", 50, False, told)]


def _invent_facts() -> Iterator[list[Narration]]:
    """Invent posts with views on claims, likes and ties, a batch at a time."""
    draw, batch, made = random.Random(_SEED), list[Narration](), 0
    number = 0
    while made < FACTS:
        number += 1
        round = made * 100 // FACTS
        agent, other = draw.randrange(FACT_PEOPLE), draw.randrange(FACT_PEOPLE)
        who, whom = (Entity("person", str(each), f"Person N{each}") for each in (agent, other))
        word, lean = draw.choice(_WORDS), draw.uniform(-1, 1)
        text = f"{who.name} posted “{' '.join(draw.choices(_WORDS, k=8))} {number}”."
        post = Entity("post", f"twitter:{number}", text[:80])
        views = ("SUPPORTS", "DOUBTS", "OPPOSES")
        view = Fact(who, views[round % 3], Entity("claim", word, f"the {word} is good"), True, views, lean)
        facts = (Fact(who, "POSTED", post), view, Fact(whom, "LIKES", post, True), Fact(whom, "FOLLOWS", who, True))
        batch.append(Narration(f"e{number}", "twitter", round, "t", agent, text, facts, post))
        made += len(facts)
        if len(batch) * len(facts) >= FACTS_PER_BATCH:
            yield batch
            batch = []
    yield batch


def sink_dead(folder: Path) -> list[Bar]:
    """The CPU time of a run's own process with sinks that are slow, dead or live, against none."""
    scenario = everyone_active(500, 30)
    with _listen_and_hang() as port:
        kinds: dict[str, list[Any]] = {
            "none": [],
            "no server": [{"kind": "neo4j", "address": "bolt://127.0.0.1:9"}],
            "a server that hangs": [{"kind": "neo4j", "address": f"bolt://127.0.0.1:{port}"}],
            "the graph": ["graph"],
        }
        times: dict[str, list[float]] = {name: [] for name in kinds}
        for attempt in range(9):
            for name, sinks in kinds.items():
                path = folder / f"{name.replace(' ', '-')}-{attempt}"
                create_run(validate({**scenario, "sinks": sinks}), path)
                done = subprocess.run([sys.executable, "-c", _RUN, str(path)], capture_output=True, check=True)
                times[name].append(float(done.stdout))
                _end_follower(path)
    usual = statistics.median(times["none"])
    told = "the run's process, 500 people in 30 rounds; CPU time, medians of 9 in turn"
    return [
        Bar(f"sinks: a run with {name} against none", statistics.median(times[name]) / usual, "x", 1.03, False, told)
        for name in kinds
        if name != "none"
    ]


@contextmanager
def _listen_and_hang() -> Iterator[int]:
    """Listen on a port where connections are accepted and never answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield server.getsockname()[1]


def _end_follower(path: Path) -> None:
    """End what copies the run, which would still wait for its sink."""
    found = RunDirectory.open(path).file("sinks.lock")
    deadline = time.monotonic() + 2
    while not found.exists() and time.monotonic() < deadline and RunDirectory.open(path).scenario.sinks:
        time.sleep(0.05)
    if found.exists() and (text := found.read_text().strip()):
        subprocess.run(["kill", "-9", text], check=False, capture_output=True)


ALL = (graph_sink, graph_query, sink_dead)
