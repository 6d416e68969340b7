"""Imports a directory that MiroFish has prepared.

Every field of its configuration has its effect, also those that MiroFish writes and never reads.
docs/coming-from-other-tools.md lists the fields and their effects.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ScenarioInvalid
from shoal.formats import decode_json, decode_text
from shoal.scenario.importers.fields import FieldReport, ImportResult, SourceRecord, note_language
from shoal.scenario.importers.mirofish.events import Calendar, read_events
from shoal.scenario.importers.mirofish.people import UNKNOWN, read_participants
from shoal.scenario.importers.people_file import read_content
from shoal.scenario.importers.tables import RecordTable, read_csv_table, read_json_table
from shoal.text import format_count, join_words

CONFIG, REDDIT, TWITTER = "simulation_config.json", "reddit_profiles.json", "twitter_profiles.csv"
#: Other files of such a directory, in which MiroFish records its progress.
_RECORDS = ("state.json", "run_state.json", "env_status.json")
#: Fields that the configuration of a run of Shoal has, and MiroFish's has not.
_SHOAL_FIELDS = frozenset({"format", "shoal_version"})

_BANDS = {
    "peak": (range(19, 23), 1.5),
    "off_peak": (range(6), 0.05),
    "morning": (range(6, 9), 0.4),
    "work": (range(9, 19), 0.7),
}
#: MiroFish's name of a weight, and ours.
_WEIGHTS = {
    "recency_weight": "recency",
    "popularity_weight": "popularity",
    "relevance_weight": "relevance",
    "echo_chamber_strength": "echo_chamber",
}
_FEEDS: dict[str, dict[str, float]] = {
    "twitter": {"recency": 0.4, "popularity": 0.3, "relevance": 0.3, "echo_chamber": 0.5, "viral_threshold": 10},
    "reddit": {"recency": 0.3, "popularity": 0.4, "relevance": 0.3, "echo_chamber": 0.6, "viral_threshold": 15},
}
_HOURS, _MINUTES_PER_ROUND, _MAX_ROUNDS = 72, 60, 1_000_000
_AGENTS_PER_HOUR = (5, 20)
_FIRST_DAY = "2026-01-01"
_MAX_TOPIC_CHARS, _MAX_NAME_CHARS = 100, 80
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
_KEPT = {
    "project_id": "kept in the scenario's notes: there are no projects here",
    "graph_id": "kept in the scenario's notes: there is no hosted graph here",
    "generation_reasoning": "kept in the scenario's notes",
    "llm_model": "kept in the scenario's notes, for when a language model makes the decisions",
    "llm_base_url": "kept in the scenario's notes, for when a language model makes the decisions",
}
#: Fields that MiroFish writes and never reads.
_IGNORED = frozenset({
    "stance", "sentiment_bias", "influence_weight", "posts_per_hour", "comments_per_hour", "response_delay_min",
    "response_delay_max", "entity_type", "entity_uuid", "hot_topics", "narrative_direction", "scheduled_events",
    "morning_hours", "morning_activity_multiplier", "work_hours", "work_activity_multiplier", "platform",
    "viral_threshold", "twitter_config", "reddit_config", "generated_at", *_WEIGHTS,
})  # fmt: skip
_MAX_NAMES_SHOWN = 5


def is_mirofish(directory: Path) -> bool:
    """Return whether MiroFish prepared this directory."""
    return (directory / CONFIG).is_file() and not is_run_directory(directory)


def refuse_simulations(directory: Path, verb: str) -> None:
    """Raise ScenarioInvalid if MiroFish prepared directories in this folder, such as its `uploads/simulations`."""
    found = sorted(path for path in directory.iterdir() if is_mirofish(path))
    if found:
        names = join_words((path.name for path in found), _MAX_NAMES_SHOWN)
        many = format_count(len(found), "simulation")
        problem = f"{directory}: a folder with {many} of MiroFish ({names}); take one: `shoal {verb} {found[0]}`"
        raise ScenarioInvalid([problem])


def is_run_directory(directory: Path) -> bool:
    """Return whether this is a run of Shoal, whose configuration has the same name but other fields."""
    config = directory / CONFIG
    if not config.is_file():
        return False
    try:
        content = msgspec.json.decode(config.read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return isinstance(content, dict) and content.keys() >= _SHOAL_FIELDS


def import_mirofish(directory: Path) -> ImportResult:
    """Make a scenario from a directory that MiroFish has prepared. Raise ScenarioInvalid with every problem."""
    report = FieldReport(_IGNORED)
    content = decode_json(decode_text(read_content(directory / CONFIG), CONFIG), CONFIG)
    report.learn_order(CONFIG, content)
    config = SourceRecord(report, CONFIG, content)
    profiles: dict[str, RecordTable | None] = {"reddit": None, "twitter": None}
    if (path := directory / REDDIT).exists():
        profiles["reddit"] = read_json_table(decode_json(decode_text(read_content(path), REDDIT), REDDIT), REDDIT)
    if (path := directory / TWITTER).exists():
        profiles["twitter"] = read_csv_table(decode_text(read_content(path), TWITTER), TWITTER)

    calendar, time = _read_time(config)
    name = config.read_text("simulation_id", "name") or directory.resolve().name
    events = config.read_object("event_config")
    hot_topics = events.read_texts("hot_topics", "interests of everybody")
    topic, notes = _read_topic(config, hot_topics)
    participants = read_participants(report, config, profiles, hot_topics)
    scenario = {
        "name": re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_MAX_NAME_CHARS] or "mirofish",
        "rounds": calendar.rounds,
        "time": time,
        "topic": topic,
        "population": participants.people,
        "follows": "none",
        "worlds": _read_worlds(config, profiles),
        "events": read_events(events, participants, calendar),
    }
    kept = {name: config.read_text(name, becomes, "kept") for name, becomes in _KEPT.items()}
    notes |= {name: text for name, text in kept.items() if text is not None}
    scenario["notes"] = notes | config.take_rest("kept", f"kept in the scenario's notes: {UNKNOWN}")
    events.take_rest("unused", UNKNOWN)

    for file in _RECORDS:
        if (directory / file).exists():
            becomes = "how MiroFish got on with it; a run here keeps its own record"
            report.count_use(file, "(the whole file)", "unused", becomes)
    if calendar.minutes_per_round != _MINUTES_PER_ROUND:
        report.add_note(
            f"agents_per_hour_min and _max count per simulated hour here; MiroFish applies them to every round, "
            f"which are {calendar.minutes_per_round} minutes long"
        )
    stated = (person.get("persona") for person in participants.people)
    for note in note_language([notes.get("simulation_requirement"), *stated]):
        report.add_note(note)
    report.add_note("nobody follows anybody at the start, as in MiroFish; --set follows=scale-free changes that")
    report.check()
    return ImportResult("MiroFish directory", scenario, report.fields, tuple(report.notes))


def _read_topic(config: SourceRecord, hot_topics: list[str]) -> tuple[str | None, dict[str, Any]]:
    """Read the topic from the first sentence of the requirement. The whole requirement becomes a note."""
    requirement = config.read_text("simulation_requirement", "topic, cut short after a sentence; whole among the notes")
    if requirement is None:
        if hot_topics:
            config.add_note(f"there is no simulation_requirement: the first hot topic, {hot_topics[0]!r}, is the topic")
        return (hot_topics[0] if hot_topics else None), {}
    first = next(part for part in _SENTENCE_END.split(requirement) if part.strip()).strip()
    if len(first) > _MAX_TOPIC_CHARS:
        cut = first[:_MAX_TOPIC_CHARS]
        first = cut.rsplit(" ", 1)[0] if " " in cut else cut
    return first.rstrip(" .。!！,;:") or first, {"simulation_requirement": requirement}


def _read_time(config: SourceRecord) -> tuple[Calendar, dict[str, Any]]:
    time = config.read_object("time_config")
    minutes = time.read_whole("minutes_per_round", "time.minutes_per_round", _MINUTES_PER_ROUND, (1, 10_080)) or 1
    hours = time.read_number("total_simulation_hours", "rounds", _HOURS, (0, _MAX_ROUNDS * minutes / 60))
    rounds = int(hours * 60 / minutes)
    if rounds < 1:
        time.add_problem("total_simulation_hours", f"{hours:g} hours are less than one round of {minutes} minutes")
    # A simulation begins at midnight of the day on which it was prepared.
    day = config.read_text("generated_at", "the day of time.start; the hour is 0, as in MiroFish")
    try:
        start = datetime.fromisoformat(day or _FIRST_DAY).replace(
            hour=0, minute=0, second=0, microsecond=0, tzinfo=None
        )
    except ValueError:
        config.add_problem("generated_at", f"expected a date and time such as 2026-01-01T08:00, found {day!r}")
        start = datetime.fromisoformat(_FIRST_DAY)
    low, high = (
        time.read_whole(f"agents_per_hour_{end}", f"time.agents_per_hour_{end}", usual, (0, None))
        for end, usual in zip(("min", "max"), _AGENTS_PER_HOUR, strict=True)
    )
    if low is not None and high is not None and low > high:
        time.add_problem("agents_per_hour_min", f"the minimum ({low}) is above agents_per_hour_max ({high})")
    settings: dict[str, Any] = {
        "start": start.isoformat(timespec="minutes"),
        "minutes_per_round": minutes,
        "agents_per_hour_min": low,
        "agents_per_hour_max": high,
    }
    for band, (usual_hours, usual_factor) in _BANDS.items():
        settings[f"{band}_hours"] = time.read_hours(f"{band}_hours", f"time.{band}_hours", usual_hours)
        factor = time.read_number(f"{band}_activity_multiplier", f"time.{band}_factor", usual_factor, (0, 10))
        settings[f"{band}_factor"] = factor
    time.take_rest("unused", UNKNOWN)
    return Calendar(max(rounds, 1), minutes, start), settings


def _read_worlds(config: SourceRecord, profiles: dict[str, RecordTable | None]) -> dict[str, Any]:
    """Read the platforms that are configured; if none is, those for which there are profiles."""
    configured = [platform for platform in _FEEDS if f"{platform}_config" in config]
    if not configured:
        configured = [platform for platform, table in profiles.items() if table is not None] or ["twitter"]
        config.add_note(f"no platform is configured: there is {' and '.join(configured)}, as usual")
    worlds: dict[str, Any] = {}
    for name in configured:
        platform = config.read_object(f"{name}_config")
        platform.read_word("platform", "the kind of the world", name, [name])
        where, usual = f"worlds.{name}.feed", _FEEDS[name]
        feed: dict[str, Any] = {
            ours: platform.read_number(theirs, f"{where}.{ours}", usual[ours], (0, 1))
            for theirs, ours in _WEIGHTS.items()
        }
        threshold = int(usual["viral_threshold"])
        becomes = f"{where}.viral_threshold"
        feed["viral_threshold"] = platform.read_whole("viral_threshold", becomes, threshold, (1, None))
        platform.take_rest("unused", UNKNOWN)
        worlds[name] = {"feed": feed}
    for name in _FEEDS:
        if name not in configured:
            config.take(f"{name}_config", "used", "no such world")
    return {name: worlds[name] for name in ("twitter", "reddit") if name in worlds}
