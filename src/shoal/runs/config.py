"""The frozen input of a run: `simulation_config.json`, written once, before the run."""

from __future__ import annotations

from functools import lru_cache
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

import shoal
from shoal.errors import RunFromNewer, RunMissing, StorageFailed
from shoal.runs.state import wall_clock
from shoal.scenario.sampling.people import People
from shoal.scenario.scenario import Scenario
from shoal.types import Versioned
from shoal.worlds.social.settings import SocialSettings

#: Raised when a directory written by this version could not be read by an older one.
FORMAT = 2
#: People are listed one by one in the file up to this many; they are always all in the databases.
_LISTED_AGENTS = 10_000
_SCENARIOS_KEPT = 256


class ScenarioChange(msgspec.Struct, frozen=True):
    """The scenario as a fork has it from a round on."""

    at: int
    scenario: dict[str, Any]


class Config(msgspec.Struct, frozen=True):
    """What Shoal reads from the file; the other fields are there for MiroFish's clients."""

    simulation_id: str
    format: int
    shoal_version: str
    scenario: dict[str, Any]
    changes: tuple[ScenarioChange, ...] = ()
    parent: str | None = None
    generated_at: str = ""

    @classmethod
    def of(cls, name: str, history: Versioned[Scenario], parent: str | None = None) -> Config:
        changes = tuple(ScenarioChange(at, version.model_dump(mode="json")) for at, version in history.changes)
        scenario = history.first.model_dump(mode="json")
        return cls(name, FORMAT, shoal.__version__, scenario, changes, parent, wall_clock())

    def history(self, folder: Path) -> Versioned[Scenario]:
        """The scenario, and how it changed where the run was forked. Files it speaks of are in the folder."""
        changes = tuple((change.at, restore_scenario(change.scenario, folder)) for change in self.changes)
        return Versioned(restore_scenario(self.scenario, folder), changes)

    def to_json(self, people: People, scenario: Scenario) -> dict[str, Any]:
        """The file's content."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        content |= {
            "simulation_requirement": scenario.notes.get("simulation_requirement", scenario.topic or scenario.name),
            "time_config": _time_config(scenario),
            "agents_count": len(people),
            "agent_configs": [_agent_config(people, agent) for agent in range(min(len(people), _LISTED_AGENTS))],
            "event_config": _event_config(scenario),
            **{name: scenario.notes.get(name) for name in ("project_id", "graph_id", "llm_model", "llm_base_url")},
            "generation_reasoning": scenario.notes.get("generation_reasoning", ""),
        }
        for platform in ("twitter", "reddit"):
            content[f"{platform}_config"] = _platform_config(platform, scenario.worlds.get(platform))
        return content


def restore_scenario(scenario: dict[str, Any], folder: Path) -> Scenario:
    """A scenario as it was written down. One that speaks of no files is the same for ever, and is checked once."""
    parts = (*scenario["population"], scenario.get("follows") or {})
    if any(part.get("file") is not None for part in parts):
        return Scenario.model_validate(scenario, context={"folder": folder})
    return _lasting(msgspec.json.encode(scenario))


@lru_cache(maxsize=_SCENARIOS_KEPT)
def _lasting(text: bytes) -> Scenario:
    return Scenario.model_validate(msgspec.json.decode(text))


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


def _platform_config(platform: str, world: object) -> dict[str, Any] | None:
    if not isinstance(world, SocialSettings):
        return None
    feed = world.complete_feed()
    return {
        "platform": platform,
        "recency_weight": feed.recency,
        "popularity_weight": feed.popularity,
        "relevance_weight": feed.relevance,
        "viral_threshold": feed.viral_threshold,
        "echo_chamber_strength": feed.echo_chamber,
    }


def _agent_config(people: People, agent: int) -> dict[str, Any]:
    hours = int(people.active_hours[agent])
    stance = float(people.stances[agent])
    person = people.listed.get(agent)
    return {
        "agent_id": agent,
        "entity_name": people.names[agent],
        "entity_type": "person" if person is None else person.traits.get("entity_type", "person"),
        "activity_level": round(float(people.activity[agent]), 3),
        "active_hours": [hour for hour in range(24) if hours >> hour & 1],
        "stance": "supportive" if stance > 0.25 else "opposing" if stance < -0.25 else "neutral",
        **_habits(people, agent),
    }


def _habits(people: People, agent: int) -> dict[str, Any]:
    """What is known about how much somebody's words count, and how much and how fast they write."""
    habits = people.habits
    columns = {
        "sentiment_bias": habits.sentiment,
        "influence_weight": habits.influence,
        "posts_per_hour": habits.posts_per_hour,
        "comments_per_hour": habits.comments_per_hour,
    }
    known = {name: round(float(column[agent]), 3) for name, column in columns.items() if column is not None}
    if habits.response_delay is not None:
        known["response_delay_min"], known["response_delay_max"] = habits.response_delay[agent].tolist()
    return {"sentiment_bias": 0.0, "influence_weight": 1.0} | {
        name: value for name, value in known.items() if not isnan(value)
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
