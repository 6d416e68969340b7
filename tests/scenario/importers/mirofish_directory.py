"""A small complete MiroFish directory, and runs of it with single fields changed."""

from __future__ import annotations

import asyncio
import csv
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shoal.scenario.build import build
from shoal.scenario.importers.fields import ImportResult
from shoal.scenario.importers.mirofish import import_mirofish
from shoal.scenario.loading import load, validate
from shoal.scenario.scenario import Scenario
from shoal.types import Action, Decision, Versioned, WorldProtocol
from shoal.worlds.lexicon import TextReader
from shoal.worlds.social.observations import PostView, SocialObservation
from tests.engine.harness import play

Changes = Mapping[str, Any]

UNCHANGED: Changes = MappingProxyType({})

PEOPLE = (("Mayor Berg", "Official"), ("City Paper", "MediaOutlet"), ("Ada Lund", "Student"), ("Ben Roy", "Student"))
REQUIREMENT = "The closing of the old bridge. Look at who trusts the mayor, and why."
TOPIC = "The closing of the old bridge"
FIRST_POST = "The old bridge will be closed on Monday."
FOR, AGAINST = (
    "I trust the closing of the old bridge, it is wise.",
    "The closing of the old bridge is a hoax, it is wrong.",
)
MISSING = object()


def agent(number: int) -> dict[str, Any]:
    """Configure an agent that is awake at all hours and acts in every round."""
    name, kind = PEOPLE[number]
    return {
        "agent_id": number,
        "entity_uuid": f"uuid-{number}",
        "entity_name": name,
        "entity_type": kind,
        "activity_level": 1.0,
        "posts_per_hour": 0.5,
        "comments_per_hour": 0.5,
        "active_hours": list(range(24)),
        "response_delay_min": 5,
        "response_delay_max": 60,
        "sentiment_bias": 0.0,
        "stance": "neutral",
        "influence_weight": 1.0,
    }


def platform(name: str) -> dict[str, Any]:
    return {
        "platform": name,
        "recency_weight": 0.4,
        "popularity_weight": 0.3,
        "relevance_weight": 0.3,
        "viral_threshold": 10,
        "echo_chamber_strength": 0.5,
    }


def config() -> dict[str, Any]:
    return {
        "simulation_id": "sim_0123456789ab",
        "project_id": "proj_1",
        "graph_id": "mirofish_1",
        "simulation_requirement": REQUIREMENT,
        "time_config": {
            "total_simulation_hours": 12,
            "minutes_per_round": 60,
            "agents_per_hour_min": 0,
            "agents_per_hour_max": 100,
            "peak_hours": [19, 20, 21, 22],
            "peak_activity_multiplier": 1.0,
            "off_peak_hours": [0, 1, 2, 3, 4, 5],
            "off_peak_activity_multiplier": 1.0,
            "morning_hours": [6, 7, 8],
            "morning_activity_multiplier": 1.0,
            "work_hours": list(range(9, 19)),
            "work_activity_multiplier": 1.0,
        },
        "agent_configs": [agent(number) for number in range(len(PEOPLE))],
        "event_config": {
            "initial_posts": [{"content": FIRST_POST, "poster_type": "Official", "poster_agent_id": 0}],
            "scheduled_events": [],
            "hot_topics": ["commuting"],
            "narrative_direction": "",
        },
        "twitter_config": platform("twitter"),
        "reddit_config": platform("reddit"),
        "llm_model": "gpt-4o-mini",
        "llm_base_url": "https://models.example/v1",
        "generated_at": "2026-02-20T10:11:12.131415",
        "generation_reasoning": "People argue about bridges.",
    }


def reddit_profile(number: int) -> dict[str, Any]:
    name, kind = PEOPLE[number]
    return {
        "user_id": number,
        "username": f"user_{number}",
        "name": name,
        "bio": f"Bio of {name}.",
        "persona": f"{name} has lived here for years.",
        "karma": 1000 + number,
        "created_at": "2026-02-20",
        "age": 30 + number,
        "gender": "other",
        "mbti": "ISTJ",
        "country": "Norway",
        "profession": kind.lower(),
        "interested_topics": ["music", "chess"],
    }


def twitter_profile(number: int) -> dict[str, Any]:
    name, _ = PEOPLE[number]
    bio = f"Short bio of {name}."
    return {
        "user_id": number,
        "name": name,
        "username": f"tweeter_{number}",
        "user_char": f"{bio} {name} tweets.",
        "description": bio,
    }


def write_directory(
    folder: Path, changes: Changes = UNCHANGED, reddit: Changes = UNCHANGED, twitter: Changes = UNCHANGED
) -> Path:
    """Write the directory with fields changed: `{"agent_configs.0.stance": "opposing"}`; `*` is every item."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "simulation_config.json").write_text(json.dumps(apply_changes(config(), changes), ensure_ascii=False))
    profiles = apply_changes([reddit_profile(number) for number in range(len(PEOPLE))], reddit)
    (folder / "reddit_profiles.json").write_text(json.dumps(profiles, ensure_ascii=False))
    rows = apply_changes([twitter_profile(number) for number in range(len(PEOPLE))], twitter)
    with (folder / "twitter_profiles.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return folder


def apply_changes(value: Any, changes: Changes) -> Any:
    for path, new in changes.items():
        _set(value, path.split("."), new)
    return value


def _set(value: Any, parts: list[str], new: Any) -> None:
    first, *rest = parts
    keys: list[Any] = list(range(len(value))) if first == "*" else [int(first) if isinstance(value, list) else first]
    for key in keys:
        if rest:
            _set(value[key], rest, new)
        elif new is MISSING:
            del value[key]
        else:
            value[key] = new


def import_directory(folder: Path, changes: Changes = UNCHANGED) -> ImportResult:
    return import_mirofish(write_directory(folder, changes))


def scenario(folder: Path, changes: Changes = UNCHANGED) -> Scenario:
    return load(write_directory(folder, changes))


def run_lines(folder: Path, changes: Changes = UNCHANGED, world: str = "twitter") -> list[dict[str, Any]]:
    """Run the directory on one platform and return all lines of the stream."""
    found = import_directory(folder, changes).scenario
    found["worlds"] = {world: found["worlds"][world]}
    ledger = asyncio.run(play(found, folder / "journal.jsonl"))
    return [json.loads(line) for record in ledger.records for line in record.lines.splitlines()]


def counts(lines: list[dict[str, Any]], agent: int | None = None) -> Counter[str]:
    """Count the actions from round 1 on, by one agent or by all."""
    return Counter(
        line["action_type"]
        for line in lines
        if "action_type" in line and line["round"] > 0 and agent in (None, line["agent_id"])
    )


def texts(lines: list[dict[str, Any]], agent: int) -> list[str]:
    """Return the texts that an agent wrote from round 1 on."""
    return [
        line["action_args"].get("quote_content") or line["action_args"]["content"]
        for line in lines
        if line.get("agent_id") == agent
        and line["round"] > 0
        and line["action_type"] in ("CREATE_POST", "CREATE_COMMENT", "QUOTE_POST")
    ]


def mean_slant(written: list[str]) -> float:
    reader = TextReader((), TOPIC)
    return sum(map(reader.slant, written)) / max(len(written), 1)


def mean_lean(lines: list[dict[str, Any]], agent: int) -> float:
    """How what an agent writes leans on average, as it states itself."""
    own = [line["action_args"] for line in lines if line["agent_id"] == agent]
    leans = [args["lean"] for args in own if "lean" in args]
    return float(sum(leans) / len(leans))


class DrivenPlatform:
    """A platform of the directory that a test drives round by round."""

    def __init__(self, folder: Path, changes: Changes = UNCHANGED, name: str = "twitter") -> None:
        write_directory(folder, {"event_config.initial_posts": [], "agent_configs.*.response_delay_max": 5, **changes})
        self.simulation = build(Versioned(validate(import_mirofish(folder).scenario)))
        self.world: WorldProtocol = self.simulation.worlds[name]
        self.mind = self.simulation.minds[name]
        self.round = 0
        self.world.begin(0)
        self.world.writes()

    def do(self, agent: int, kind: str, **args: Any) -> dict[str, Any]:
        """Play a round in which one agent does one thing."""
        self.round += 1
        self.world.turns(self.round)
        self.world.begin(self.round)
        (event,) = self.world.apply(self.round, agent, Decision((Action(kind, args),)))
        self.world.writes()
        assert event.success, event.result
        return event.action_args

    def post(self, agent: int, content: str = "Good morning.") -> int:
        return int(self.do(agent, "CREATE_POST", content=content)["post_id"])

    def look(self, agent: int, rounds_later: int = 1) -> SocialObservation:
        (seen,) = self.world.observe(self.round + rounds_later, [agent])
        assert isinstance(seen, SocialObservation)
        return seen

    def list_shown(self, agent: int, rounds_later: int = 1) -> list[int]:
        return [post.post_id for post in self._posts(agent, rounds_later)]

    def _posts(self, agent: int, rounds_later: int) -> tuple[PostView, ...]:
        seen = self.look(agent, rounds_later)
        return seen.followed + seen.recommended

    def list_acting(self, hour: int) -> list[int]:
        """Return the agents that act in the round of this hour of the first day."""
        groups = self.world.turns(hour + 1)
        return [agent for group in groups for agent in group]
