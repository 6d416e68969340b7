"""The fields of a run's files that MiroFish's clients read, beside those of Shoal.

`shoal.scenario.importers.mirofish` is the other direction: it reads what MiroFish prepared.
"""

from __future__ import annotations

from math import isnan
from typing import Any

from shoal.runs.state import RunState, WorldState
from shoal.scenario import People, Scenario
from shoal.worlds.social import SocialSettings

_PLATFORMS = ("twitter", "reddit")
#: People are listed one by one in the config up to this many; the databases always hold all of them.
_MAX_LISTED_AGENTS = 10_000


def list_config_fields(people: People, scenario: Scenario) -> dict[str, Any]:
    """Return the fields that MiroFish expects in `simulation_config.json`."""
    notes, time = scenario.notes, scenario.time
    events = [event.model_dump(mode="json") for event in scenario.events]
    return {
        "simulation_requirement": notes.get("simulation_requirement", scenario.topic or scenario.name),
        "time_config": {
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
        },
        "agents_count": len(people),
        "agent_configs": [_describe_agent(people, agent) for agent in range(min(len(people), _MAX_LISTED_AGENTS))],
        "event_config": {
            "initial_posts": [
                {"content": event["post"], "poster_agent_id": event["by"]}
                for event in events
                if "post" in event and event["round"] == 0
            ],
            "scheduled_events": [event for event in events if event["round"] > 0],
            "hot_topics": [scenario.topic] if scenario.topic else [],
            "narrative_direction": "",
        },
        **{name: notes.get(name) for name in ("project_id", "graph_id", "llm_model", "llm_base_url")},
        "generation_reasoning": notes.get("generation_reasoning", ""),
        **{f"{platform}_config": _describe_feed(platform, scenario.worlds.get(platform)) for platform in _PLATFORMS},
    }


def _describe_agent(people: People, agent: int) -> dict[str, Any]:
    hours, stance, person, habits = (
        int(people.active_hours[agent]),
        float(people.stances[agent]),
        people.listed.get(agent),
        people.habits,
    )
    columns = {
        "sentiment_bias": habits.sentiment,
        "influence_weight": habits.influence,
        "posts_per_hour": habits.posts_per_hour,
        "comments_per_hour": habits.comments_per_hour,
    }
    known = {name: round(float(column[agent]), 3) for name, column in columns.items() if column is not None}
    if habits.response_delay is not None:
        known["response_delay_min"], known["response_delay_max"] = habits.response_delay[agent].tolist()
    return {
        "agent_id": agent,
        "entity_name": people.names[agent],
        "entity_type": "person" if person is None else person.traits.get("entity_type", "person"),
        "activity_level": round(float(people.activity[agent]), 3),
        "active_hours": [hour for hour in range(24) if hours >> hour & 1],
        "stance": "supportive" if stance > 0.25 else "opposing" if stance < -0.25 else "neutral",
        "sentiment_bias": 0.0,
        "influence_weight": 1.0,
        **{name: value for name, value in known.items() if not isnan(value)},
    }


def _describe_feed(platform: str, world: object) -> dict[str, Any] | None:
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


def format_state(state: RunState) -> dict[str, Any]:
    """Return the content of `run_state.json`, with the fields that MiroFish expects there."""
    fields: dict[str, Any] = {"total_actions_count": state.actions_count, "rounds_count": state.current_round}
    for name in _PLATFORMS:
        world = state.worlds.get(name, WorldState())
        for field in ("current_round", "simulated_hours", "running", "completed", "actions_count"):
            fields[f"{name}_{field}"] = getattr(world, field)
    return state.to_json() | fields


def describe_environment(state: RunState) -> dict[str, Any]:
    """Return the content of `env_status.json`."""
    alive = state.process_pid is not None
    return {
        "status": "stopped" if not alive else "alive" if state.takes_commands else "running",
        **{f"{name}_available": alive and name in state.worlds for name in _PLATFORMS},
        "pid": state.process_pid,
        "heartbeat": state.updated_at,
        "timestamp": state.updated_at,
    }
