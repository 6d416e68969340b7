"""The frozen input of a run: `simulation_config.json`, written once, before the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

import shoal
from shoal.errors import RunFromNewer, RunMissing, StorageFailed
from shoal.runs.state import wall_clock
from shoal.scenario.models import Scenario
from shoal.scenario.population import People
from shoal.types import Timeline

#: Raised when a directory written by this version could not be read by an older one.
FORMAT = 1
#: People are listed one by one in the file up to this many; they are always all in the databases.
_LISTED_AGENTS = 10_000


class Change(msgspec.Struct, frozen=True):
    """The scenario as a fork has it from a round on."""

    at: int
    scenario: dict[str, Any]


class Config(msgspec.Struct, frozen=True):
    """What Shoal reads from the file; the other fields are there for MiroFish's clients."""

    simulation_id: str
    format: int
    shoal_version: str
    scenario: dict[str, Any]
    changes: tuple[Change, ...] = ()
    parent: str | None = None
    generated_at: str = ""

    @classmethod
    def of(cls, name: str, history: Timeline[Scenario], parent: str | None = None) -> Config:
        changes = tuple(Change(at, version.model_dump(mode="json")) for at, version in history.changes)
        scenario = history.first.model_dump(mode="json")
        return cls(name, FORMAT, shoal.__version__, scenario, changes, parent, wall_clock())

    def history(self) -> Timeline[Scenario]:
        """The scenario, and how it changed where the run was forked."""
        changes = tuple((change.at, Scenario.model_validate(change.scenario)) for change in self.changes)
        return Timeline(Scenario.model_validate(self.scenario), changes)

    def to_json(self, people: People) -> dict[str, Any]:
        """The file's content."""
        scenario = self.history().first
        content: dict[str, Any] = msgspec.to_builtins(self)
        content |= {
            "project_id": None,
            "graph_id": None,
            "simulation_requirement": scenario.topic or scenario.name,
            "time_config": _time_config(scenario),
            "agents_count": len(people),
            "agent_configs": [_agent_config(people, agent) for agent in range(min(len(people), _LISTED_AGENTS))],
            "event_config": _event_config(scenario),
            "llm_model": None,
            "llm_base_url": None,
            "generation_reasoning": "",
        }
        for platform in ("twitter", "reddit"):
            world = scenario.worlds.get(platform)
            content[f"{platform}_config"] = world and {"platform": platform, **world.feed.model_dump(exclude_none=True)}
        return content


def read_config(path: Path) -> Config:
    """The frozen input of the run in this directory."""
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise RunMissing(f"there is no run in {path.parent}; `shoal list` shows those there are") from None
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error
    try:
        config = msgspec.json.decode(text, type=_Header)
        _check_format(path, config)
        return msgspec.json.decode(text, type=Config)
    except msgspec.DecodeError as error:
        raise RunMissing(f"{path} was not written by Shoal ({error})") from error


class _Header(msgspec.Struct):
    """What must be understood before the rest is read."""

    format: int
    shoal_version: str


def _check_format(path: Path, header: _Header) -> None:
    if header.format > FORMAT:
        raise RunFromNewer(
            f"{path.parent} was written by Shoal {header.shoal_version}, which is newer than this one "
            f"({shoal.__version__}).\nNothing was changed. Use that version, or install it with `pip install -U shoal`."
        )


def _time_config(scenario: Scenario) -> dict[str, Any]:
    time = scenario.time
    return {
        "total_simulation_hours": scenario.rounds * time.minutes_per_round / 60,
        "minutes_per_round": time.minutes_per_round,
        "agents_per_hour_min": time.agents_per_hour_min,
        "agents_per_hour_max": time.agents_per_hour_max,
        "peak_hours": time.peak_hours,
        "peak_activity_multiplier": time.peak_factor,
        "off_peak_hours": time.off_peak_hours,
        "off_peak_activity_multiplier": time.off_peak_factor,
        "morning_hours": time.morning_hours,
        "morning_activity_multiplier": time.morning_factor,
        "work_hours": time.work_hours,
        "work_activity_multiplier": time.work_factor,
    }


def _agent_config(people: People, agent: int) -> dict[str, Any]:
    hours = int(people.active_hours[agent])
    stance = float(people.stances[agent])
    return {
        "agent_id": agent,
        "entity_name": people.names[agent],
        "entity_type": "person",
        "activity_level": round(float(people.activity[agent]), 3),
        "active_hours": [hour for hour in range(24) if hours >> hour & 1],
        "stance": "supportive" if stance > 0.25 else "opposing" if stance < -0.25 else "neutral",
        "sentiment_bias": round(stance, 3),
    }


def _event_config(scenario: Scenario) -> dict[str, Any]:
    posts = [event.model_dump(mode="json") for event in scenario.events]
    return {
        "initial_posts": [
            {"content": event["post"], "poster_agent_id": event["by"]}
            for event in posts
            if "post" in event and event["round"] == 0
        ],
        "scheduled_events": [event for event in posts if event["round"] > 0],
        "hot_topics": [scenario.topic] if scenario.topic else [],
        "narrative_direction": "",
    }
