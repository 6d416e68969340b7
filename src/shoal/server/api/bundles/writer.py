"""Writes bundles: a run or an experiment as a folder of static files that a browser opens without Shoal.

What pages ask a server for is asked here once, of the same application, and written into files. Every file is a script
that hands over its content, because a page that is opened from a disk may load scripts, and no data.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from fastapi import FastAPI
from starlette.types import Message

from shoal.errors import RunMissing, RunRefused, ShoalError, StorageFailed
from shoal.experiments import is_experiment
from shoal.runs import RunDirectory, storage_errors
from shoal.runs.views import PeopleReader, read_many_turns, read_whole_feed, read_whole_people, read_whole_talk
from shoal.server.api.folder import IN_EXPERIMENT

_INDEX = "index"
_MAX_POSTS, _MAX_TURNS, _MAX_PEOPLE = 20_000, 20_000, 5_000
#: People whose own pages are in a bundle, and turns that are explained with prompt and reply.
_MAX_AGENTS, _MAX_EXPLAINED = 200, 1_500
#: Rounds of which the network and the trends are drawn; a page shows the nearest one before.
_MAX_DRAWN_ROUNDS = 48
_MAX_NODES = 1_000
_MAX_EXPERIMENT_RUNS = 24
_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")
_LOCAL = ("127.0.0.1", 0)
#: From this status on, an answer says what is wrong.
_FIRST_ERROR_STATUS = 400


@dataclass(frozen=True, slots=True)
class BundleNote:
    """What a bundle holds, and what was left out of it."""

    folder: Path
    runs: int
    bytes: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BundleEntry:
    """One answer of the server, and what it was asked."""

    route: str
    values: Mapping[str, Any]
    answer: msgspec.Raw


@dataclass(slots=True)
class BundleWriter:
    """Writes one bundle."""

    app: FastAPI
    folder: Path
    left_out: list[str] = field(default_factory=list)
    _cards: list[msgspec.Raw] = field(default_factory=list)

    async def ask(self, route: str, **values: object) -> msgspec.Raw | None:
        """Ask the application for a route; None where it has no answer."""
        given = {name: value for name, value in values.items() if value is not None}
        status, body = await _request(self.app, f"/api/{route}", urlencode(given))
        return msgspec.json.decode(body, type=_Answer).data if status < _FIRST_ERROR_STATUS else None

    async def collect(self, route: str, **values: object) -> list[BundleEntry]:
        """Ask, and keep the question with the answer."""
        found = await self.ask(route, **values)
        given = {name: value for name, value in values.items() if value is not None}
        return [] if found is None else [BundleEntry(route, given, found)]

    def write(self, name: str, content: object) -> None:
        """Write a file of data as a script."""
        text = msgspec.json.encode(content, enc_hook=str)
        path = self.folder / "data" / f"{name}.js"
        path.write_bytes(b'shoalBundle.add("%s",' % name.encode() + text + b");\n")

    async def add_run(self, run: RunDirectory, identity: str) -> None:
        """Write everything that pages show of a run."""
        name = clean_name(identity)
        header = await self.ask(f"simulation/{identity}/overview")
        if header is None:
            raise RunRefused(f"{run.path} cannot be shown; `shoal show {run.path}` may say why")
        self._cards.append(header)
        last = max(run.read_last_rounds().values())
        rounds = [*range(0, last, max(1, -(-last // _MAX_DRAWN_ROUNDS))), last]
        people = read_whole_people(run, PeopleReader(), _MAX_PEOPLE, rounds)
        if people.is_cut:
            self.left_out.append(f"{identity}: all but the {_MAX_PEOPLE:,} most active people")
        figures = await self.ask(f"simulation/{identity}/figures")
        self.write(f"run-{name}", {"header": header, "figures": figures, "people": people})
        for world in run.worlds:
            await self._add_world(run, identity, world, rounds)
        busiest = sorted(people.people, key=lambda person: (-person.actions, person.agent_id))[:_MAX_AGENTS]
        await self._add_agents(run, identity, [person.agent_id for person in busiest])

    async def _add_world(self, run: RunDirectory, identity: str, world: str, rounds: list[int]) -> None:
        feed, name = read_whole_feed(run, world, _MAX_POSTS), clean_name(identity)
        if feed is not None and feed.is_cut:
            self.left_out.append(f"{identity}: all but the latest {_MAX_POSTS:,} posts on {world}")
        talk, is_cut = ([], False) if feed is not None else read_whole_talk(run, world, _MAX_TURNS)
        if is_cut:
            self.left_out.append(f"{identity}: all but the latest {_MAX_TURNS:,} turns in {world}")
        self.write(f"world-{name}-{world}", {"feed": feed, "talk": talk})
        route = f"simulation/{identity}"
        entries = await self.collect(f"{route}/network", world=world, max_nodes=_MAX_NODES)
        for round in rounds:
            entries += await self.collect(
                f"{route}/network", world=world, round=round, only_state=True, max_nodes=_MAX_NODES
            )
            if feed is not None:
                entries += await self.collect(f"{route}/trends", world=world, until=round)
        if feed is None:
            entries += await self.collect(f"{route}/conversations", world=world, limit=200)
        self.write(f"answers-{name}-{world}", entries)

    async def _add_agents(self, run: RunDirectory, identity: str, agents: list[int]) -> None:
        found: dict[int, list[Any]] = {}
        places = {agent: place for place, agent in enumerate(agents)}
        for world in run.worlds:
            # Turns in which something was done, those of the most active people first.
            acted = {(event.agent_id, event.round) for event in run.open_stream(world).read_actions() if event.round}
            wanted = sorted((turn for turn in acted if turn[0] in places), key=lambda turn: (places[turn[0]], turn[1]))
            share = wanted[: _MAX_EXPLAINED // len(run.worlds)]
            if len(share) < len(wanted):
                self.left_out.append(f"{run.path.name}: prompts and replies of {len(wanted) - len(share):,} turns")
            for agent, turns in (await read_many_turns(run, world, share)).items() if share else ():
                found.setdefault(agent, []).extend(turns)
        for agent in agents:
            route = f"simulation/{identity}"
            entries = await self.collect(f"{route}/agent/{agent}")
            for world in run.worlds:
                entries += await self.collect(f"{route}/network/{agent}", world=world)
            entries += [
                BundleEntry(
                    f"{route}/explain",
                    {"agent": agent, "round": turn.round, "world": turn.world},
                    msgspec.Raw(msgspec.json.encode([turn], enc_hook=str)),
                )
                for turn in found.get(agent, ())
            ]
            self.write(f"agent-{clean_name(identity)}-{agent}", entries)

    async def add_experiment(self, name: str) -> None:
        """Write what pages show of an experiment."""
        entries: list[BundleEntry] = []
        for route in ("experiments/list", f"experiments/{name}", f"experiments/{name}/report"):
            entries += await self.collect(route)
        entries += await self.collect(f"experiments/{name}/curves")
        self.write("experiments", entries)

    def finish(self, experiment: str | None) -> BundleNote:
        """Write the table of contents."""
        content = {"runs": self._cards, "experiment": experiment, "left_out": self.left_out}
        self.write(_INDEX, content)
        size = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        return BundleNote(self.folder, len(self._cards), size, tuple(self.left_out))


class _Answer(msgspec.Struct):
    data: msgspec.Raw


async def _request(app: FastAPI, path: str, query: str) -> tuple[int, bytes]:
    """Call the application with a GET request, without a network."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"localhost")],
        "client": _LOCAL,
        "server": _LOCAL,
    }
    status, body = 500, bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        body.extend(message.get("body", b""))

    await app(scope, receive, send)
    return status, bytes(body)


def clean_name(identity: str) -> str:
    """Return the name that the files of a run have: letters, digits and dashes."""
    return _PLAIN.sub("-", identity)


def write_bundle(app: FastAPI, template: Path, source: Path, out: Path, identity: str | None = None) -> BundleNote:
    """Write a run or an experiment as a folder of static files. The folder must be new or empty.

    `identity`: the id under which the application knows the run; otherwise the name of its folder.
    """
    if not (template / "index.html").is_file():
        raise StorageFailed("the pages were not built: install Shoal without SKIP_FRONTEND, or run scripts/pages")
    if out.exists() and any(out.iterdir()):
        raise RunRefused(f"{out} is not empty; choose another folder with --out")
    source = source.resolve()
    with storage_errors(out):
        shutil.copytree(template, out, dirs_exist_ok=True)
        (out / "data").mkdir()
    try:
        return asyncio.run(_write(BundleWriter(app, out), source, identity or source.name))
    except ShoalError:
        shutil.rmtree(out)
        raise


async def _write(writer: BundleWriter, source: Path, name: str) -> BundleNote:
    if (source / "simulation_config.json").is_file():
        await writer.add_run(RunDirectory.open(source), name)
        return writer.finish(None)
    if not is_experiment(source):
        raise RunMissing(f"{source} is neither a run nor an experiment; `shoal list` shows runs")
    await writer.add_experiment(source.name)
    runs = _list_runs(source)
    for path in runs[:_MAX_EXPERIMENT_RUNS]:
        identity = IN_EXPERIMENT.join((source.name, *path.relative_to(source).parts))
        await writer.add_run(RunDirectory.open(path), identity)
    if len(runs) > _MAX_EXPERIMENT_RUNS:
        writer.left_out.append(f"all but {_MAX_EXPERIMENT_RUNS} of {len(runs)} runs")
    if (source / "report.html").is_file():
        shutil.copy2(source / "report.html", writer.folder)
    return writer.finish(source.name)


def _list_runs(experiment: Path) -> list[Path]:
    """List the runs of an experiment: first one of each arm, then the others."""
    found = sorted(config.parent for config in experiment.glob("*/*/*/simulation_config.json"))
    seeds = sorted({path.name for path in found})
    return sorted(found, key=lambda path: (seeds.index(path.name), path))
