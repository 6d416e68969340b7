"""Counts actions by round and by agent, and reads rows of a world's tables, for clients that show them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.errors import QueryFailed
from shoal.runs.directory import RunDirectory
from shoal.runs.reports.database import open_database
from shoal.runs.store import NO_INTERVIEW, database_path
from shoal.worlds import DO_NOTHING

_PLATFORMS = ("twitter", "reddit")
#: Tables whose rows are read, and their keys, which grow with time.
_TABLES = {"post": "post_id", "comment": "comment_id"}
_AGENTS = f"""SELECT user_id, name, action, count(*), min(trace.created_at), max(trace.created_at)
FROM trace JOIN user USING (user_id)
WHERE action NOT IN ('sign_up', 'refresh') AND {NO_INTERVIEW} GROUP BY user_id, action"""
_INTERVIEWS = """SELECT user_id, created_at, info FROM trace
WHERE action = 'interview' AND (?1 IS NULL OR user_id = ?1) ORDER BY rowid DESC LIMIT ?2"""


@dataclass(slots=True)
class _Tally:
    """Actions that were counted together."""

    by_world: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    agents: set[int] = field(default_factory=set)
    first: str | None = None
    last: str | None = None
    name: str = ""

    def add(self, world: str, kind: str, times: int, first: str, last: str) -> None:
        self.by_world[world] += times
        self.kinds[kind] += times
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)

    def to_json(self) -> dict[str, Any]:
        return {
            **{f"{world}_actions": self.by_world[world] for world in _PLATFORMS},
            "total_actions": self.by_world.total(),
            "action_types": dict(self.kinds),
            "first_action_time": self.first,
            "last_action_time": self.last,
        }


def count_rounds(run: RunDirectory, start: int, until: int) -> list[dict[str, Any]]:
    """Count the successful actions of each round from one to another, of all worlds. Only these rounds are read."""
    rounds: dict[int, _Tally] = {}
    for world in run.worlds:
        for event in run.open_stream(world, start).read_actions(until):
            if event.success:
                tally = rounds.setdefault(event.round, _Tally())
                tally.add(world, event.action_type, 1, event.timestamp, event.timestamp)
                tally.agents.add(event.agent_id)
    return [
        {
            "round_num": round,
            **tally.to_json(),
            "active_agents_count": len(tally.agents),
            "active_agents": sorted(tally.agents),
        }
        for round, tally in sorted(rounds.items())
    ]


def count_agents(run: RunDirectory) -> list[dict[str, Any]]:
    """Count the actions of each agent, the most active one first."""
    agents: dict[int, _Tally] = {}
    for world in run.worlds:
        with open_database(database_path(run.path, world)) as database:
            for agent, name, kind, times, first, last in database.execute(_AGENTS) if database else ():
                tally = agents.setdefault(agent, _Tally(name=name))
                tally.add(world, kind.upper(), times, str(first), str(last))
    done = {agent: tally.kinds.total() - tally.kinds[DO_NOTHING] for agent, tally in agents.items()}
    busiest = sorted(agents, key=lambda agent: (-done[agent], agent))
    return [{"agent_id": agent, "agent_name": agents[agent].name, **agents[agent].to_json()} for agent in busiest]


def read_rows(
    run: RunDirectory, world: str, table: str, limit: int, offset: int, where: Mapping[str, int] | None = None
) -> tuple[int, list[dict[str, Any]]]:
    """Return how many rows a table of a world has, and some of them, newest first. Other worlds have no such table."""
    if world not in run.worlds:
        raise QueryFailed(f"there is no world {world!r}; there is {', '.join(run.worlds)}")
    key, given = _TABLES[table], where or {}
    condition = " AND ".join(f"{name} = ?" for name in given) or "1"
    with open_database(database_path(run.path, world)) as database:
        known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        if database is None or database.execute(known, (table,)).fetchone() is None:
            return 0, []
        (total,) = database.execute(f"SELECT count(*) FROM {table} WHERE {condition}", (*given.values(),)).fetchone()
        page = f"SELECT * FROM {table} WHERE {condition} ORDER BY {key} DESC LIMIT ? OFFSET ?"
        found = database.execute(page, (*given.values(), limit, offset))
        names = [name for name, *_ in found.description]
        return total, [dict(zip(names, row, strict=True)) for row in found]


def read_interviews(run: RunDirectory, world: str | None, agent: int | None, limit: int) -> list[dict[str, Any]]:
    """List the interviews of a run, of one world or agent where they are given, newest first."""
    if world is not None and world not in run.worlds:
        raise QueryFailed(f"there is no world {world!r}; there is {', '.join(run.worlds)}")
    rows = []
    for each in run.worlds if world is None else (world,):
        with open_database(database_path(run.path, each)) as database:
            for user, at, text in database.execute(_INTERVIEWS, (agent, limit)) if database else ():
                info = json.loads(text)
                said = {"prompt": str(info.get("prompt", "")), "response": str(info.get("response", ""))}
                rows.append({"agent_id": user, **said, "timestamp": str(at), "platform": each})
    return sorted(rows, key=lambda row: row["timestamp"], reverse=True)[:limit]
