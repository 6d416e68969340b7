"""Every field of MiroFish's configuration has an effect: changed, the history is another one, or the scenario says why.

`test_mirofish.py` checks for each field that the effect is the right one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.scenario.importers.mirofish_directory import (
    UNCHANGED,
    Changes,
    config,
    import_directory,
    platform,
    run_lines,
)

#: Path of a field -> another value of it, which must lead to another history on Twitter.
CHANGED: dict[str, Any] = {
    "simulation_requirement": "The new ferry. Look at who takes it, and why.",
    "time_config.total_simulation_hours": 20,
    "time_config.minutes_per_round": 30,
    "time_config.agents_per_hour_min": 4,
    "time_config.agents_per_hour_max": 1,
    **{
        f"time_config.{band}_hours": hours
        for band, hours in {"peak": [3], "off_peak": [20], "morning": [4], "work": [5]}.items()
    },
    **{f"time_config.{band}_activity_multiplier": 0.0 for band in ("peak", "off_peak", "morning", "work")},
    "agent_configs.1.agent_id": 2,
    "agent_configs.1.entity_name": "Town Paper",
    "agent_configs.1.activity_level": 0.2,
    "agent_configs.1.posts_per_hour": 2.0,
    "agent_configs.1.comments_per_hour": 0.0,
    "agent_configs.1.active_hours": [4],
    "agent_configs.1.response_delay_min": 540,
    "agent_configs.1.response_delay_max": 600,
    "agent_configs.1.sentiment_bias": -0.9,
    "agent_configs.1.stance": "opposing",
    "agent_configs.1.influence_weight": 5.0,
    "event_config.initial_posts.0.content": "The bridge stays open.",
    "event_config.initial_posts.0.poster_agent_id": 3,
    "event_config.scheduled_events": [{"round": 4, "content": "The mayor resigns.", "poster_agent_id": 1}],
    "event_config.hot_topics": ["ferries", "fares"],
    "event_config.narrative_direction": "Trust in the mayor falls.",
    "twitter_config.recency_weight": 0.0,
    "twitter_config.popularity_weight": 0.0,
    "twitter_config.relevance_weight": 0.0,
    "twitter_config.viral_threshold": 1,
    "twitter_config.echo_chamber_strength": 0.0,
}
#: Fields that show in the history only together with another value of another field.
NEEDS: dict[str, Changes] = {
    # The bands that are to matter must have another weight than the rest of the day.
    **{f"time_config.{band}_hours": {f"time_config.{band}_activity_multiplier": 0.0} for band in ("peak", "off_peak")},
    **{f"time_config.{band}_hours": {f"time_config.{band}_activity_multiplier": 0.0} for band in ("morning", "work")},
    # Fewer act by themselves than the minimum asks for.
    "time_config.agents_per_hour_min": {"agent_configs.*.activity_level": 0.1},
    # A post names its author by a type only where it names no agent.
    "event_config.initial_posts.0.poster_type": {"event_config.initial_posts.0.poster_agent_id": None},
    "agent_configs.1.entity_type": {
        "event_config.initial_posts.0.poster_agent_id": None,
        "event_config.initial_posts.0.poster_type": "MediaOutlet",
    },
    # The latest moment at which an agent comes across a post must be later than the earliest.
    "agent_configs.1.response_delay_min": {"agent_configs.1.response_delay_max": 600},
    # Half a day goes by before the evening.
    "time_config.peak_activity_multiplier": {"time_config.total_simulation_hours": 24},
    # A platform shows a choice of posts only where there are more than it shows.
    **{f"twitter_config.{name}": {"agent_configs.*.posts_per_hour": 3.0} for name in platform("twitter")},
    # A chamber has walls only where people are of different minds.
    "twitter_config.echo_chamber_strength": {
        "agent_configs.*.posts_per_hour": 3.0,
        "agent_configs.0.stance": "supportive",
        "agent_configs.1.stance": "opposing",
        "agent_configs.2.stance": "supportive",
        "agent_configs.3.stance": "opposing",
        "twitter_config.echo_chamber_strength": 1.0,
    },
}
#: What must change together with a field: two agents cannot have the same number.
TOGETHER: dict[str, Changes] = {"agent_configs.1.agent_id": {"agent_configs.2.agent_id": 1}}
CHANGED |= {"event_config.initial_posts.0.poster_type": "Student", "agent_configs.1.entity_type": "Club"}

#: Fields that cannot have an effect on the history of a platform, and why.
WITHOUT_EFFECT: dict[str, str] = {
    "simulation_id": "names the run",
    "project_id": "an id at MiroFish; a note, by which pages find the run",
    "graph_id": "an id at MiroFish; a note, by which pages find the graph",
    "llm_model": "the model is named where it is used: --model",
    "llm_base_url": "the address is named where it is used: OPENAI_BASE_URL",
    "generation_reasoning": "a remark about how the configuration was made; a note",
    "generated_at": "the day of the simulated time: only time stamps differ",
    "agent_configs.1.entity_uuid": "an id at MiroFish; a trait",
    "twitter_config.platform": "says again which platform it is",
    "reddit_config": "another platform: each has the same fields",
}


def list_fields(value: Any, path: str = "") -> set[str]:
    """List the paths of all fields, of lists those of one item."""
    if isinstance(value, dict):
        return {field for key, below in value.items() for field in list_fields(below, f"{path}.{key}".lstrip("."))}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        number = min(1, len(value) - 1)
        return list_fields(value[number], f"{path}.{number}")
    return {path}


def test_every_field_is_here() -> None:
    fields = {"reddit_config" if field.startswith("reddit_config") else field for field in list_fields(config())}
    assert fields == CHANGED.keys() | WITHOUT_EFFECT.keys()
    assert not CHANGED.keys() & WITHOUT_EFFECT.keys()


def tell_history(folder: Path, changes: Changes) -> list[tuple[Any, ...]]:
    """Return who did what in which round, without ids and times."""
    return [
        (
            line["round"],
            line.get("agent_name"),
            line.get("action_type", line.get("event_type")),
            line.get("action_args"),
        )
        for line in run_lines(folder, changes)
        if line.get("event_type") not in ("round_start", "round_end")
    ]


def test_without_a_change_the_history_is_the_same(tmp_path: Path) -> None:
    assert tell_history(tmp_path / "one", UNCHANGED) == tell_history(tmp_path / "another", UNCHANGED)


@pytest.mark.parametrize("field", sorted(CHANGED))
def test_a_field_changes_the_history(field: str, tmp_path: Path) -> None:
    needs = NEEDS.get(field, UNCHANGED)
    before = tell_history(tmp_path / "before", needs)
    assert before != tell_history(tmp_path / "after", {**needs, **TOGETHER.get(field, {}), field: CHANGED[field]})


@pytest.mark.parametrize("field", sorted(WITHOUT_EFFECT))
def test_a_field_that_cannot_change_the_history_is_accounted_for(field: str, tmp_path: Path) -> None:
    use = {use.field.replace("[]", ".1"): use for use in import_directory(tmp_path).fields}
    shown = [one for name, one in use.items() if name == field or name.startswith(f"{field}.")]
    assert shown
    assert all(one.becomes for one in shown)
    if field in ("project_id", "graph_id", "llm_model", "llm_base_url", "generation_reasoning"):
        assert json.dumps(import_directory(tmp_path).scenario["notes"]).count(field) == 1
