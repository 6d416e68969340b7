"""A directory that MiroFish has prepared, as a scenario.

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
from shoal.scenario.importers.fields import FieldReport, SourceRecord
from shoal.scenario.importers.mirofish.events import Calendar, events
from shoal.scenario.importers.mirofish.people import Participants, participants_of
from shoal.scenario.importers.result import ImportResult
from shoal.scenario.importers.tables import RecordTable, csv_table, json_table, json_value, text_of

CONFIG, REDDIT, TWITTER = "simulation_config.json", "reddit_profiles.json", "twitter_profiles.csv"
#: Other files of such a directory, which say how MiroFish got on with it.
_RECORDS = ("state.json", "run_state.json", "env_status.json")
#: What a configuration of Shoal's own has and MiroFish's has not.
_OWN = frozenset({"format", "shoal_version"})

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


def is_mirofish(directory: Path) -> bool:
    """Whether MiroFish prepared this directory. One that Shoal made has a file of the same name, but says so."""
    config = directory / CONFIG
    return config.is_file() and not _is_own(config)


def is_own(directory: Path) -> bool:
    """Whether this is the directory of a run of Shoal's own."""
    config = directory / CONFIG
    return config.is_file() and _is_own(config)


def _is_own(config: Path) -> bool:
    try:
        content = msgspec.json.decode(config.read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return isinstance(content, dict) and content.keys() >= _OWN


def import_mirofish(directory: Path) -> ImportResult:
    """The scenario in a directory that MiroFish has prepared; ScenarioInvalid says all that is wrong with it."""
    book = FieldReport()
    content = json_value(_text(directory / CONFIG), CONFIG)
    book.lay_out(CONFIG, content)
    config = SourceRecord(book, CONFIG, content)
    profiles = {
        "reddit": _profiles(directory / REDDIT),
        "twitter": _profiles(directory / TWITTER),
    }
    calendar, time = _time(config)
    scenario: dict[str, Any] = {"name": _name(config, directory), "rounds": calendar.rounds, "time": time}
    happenings = config.below("event_config")
    hot_topics = happenings.texts("hot_topics", "interests of everybody")
    scenario["topic"], notes = _topic(config, hot_topics)
    everybody = participants_of(book, config, profiles, hot_topics)
    scenario["population"] = everybody.people
    scenario |= {
        "follows": "none",
        "worlds": _worlds(config, profiles),
        "events": events(happenings, everybody, calendar),
    }
    scenario["notes"] = notes | _kept(config)
    happenings.rest("unused", "not a field that MiroFish is known to write")
    _speak_of_other_files(book, directory)
    _say_what_differs(book, everybody, calendar)
    book.check()
    return ImportResult("MiroFish directory", scenario, book.fields, tuple(book.notes))


def _text(path: Path) -> str:
    try:
        return text_of(path.read_bytes(), path.name)
    except OSError as error:
        raise ScenarioInvalid([f"{path}: cannot be read: {error.strerror}"]) from error


def _profiles(path: Path) -> RecordTable | None:
    if not path.exists():
        return None
    text = _text(path)
    return csv_table(text, path.name) if path.suffix == ".csv" else json_table(json_value(text, path.name), path.name)


def _name(config: SourceRecord, directory: Path) -> str:
    """What the run is called: the simulation's id, or else the directory."""
    given = config.text("simulation_id", "name") or directory.resolve().name
    return re.sub(r"[^A-Za-z0-9_-]+", "-", given).strip("-")[:_MAX_NAME_CHARS] or "mirofish"


def _topic(config: SourceRecord, hot_topics: list[str]) -> tuple[str | None, dict[str, Any]]:
    """The requirement, short enough to be spoken of; all of it is kept."""
    requirement = config.text("simulation_requirement", "topic, cut short after a sentence; whole among the notes")
    if requirement is None:
        if hot_topics:
            config.note(f"there is no simulation_requirement: the first hot topic, {hot_topics[0]!r}, is the topic")
        return (hot_topics[0] if hot_topics else None), {}
    first = next(part for part in _SENTENCE_END.split(requirement) if part.strip()).strip()
    if len(first) > _MAX_TOPIC_CHARS:
        cut = first[:_MAX_TOPIC_CHARS]
        first = cut.rsplit(" ", 1)[0] if " " in cut else cut
    return first.rstrip(" .。!！,;:") or first, {"simulation_requirement": requirement}


def _time(config: SourceRecord) -> tuple[Calendar, dict[str, Any]]:
    time = config.below("time_config")
    minutes = time.whole("minutes_per_round", "time.minutes_per_round", _MINUTES_PER_ROUND, (1, 10_080)) or 1
    hours = time.number("total_simulation_hours", "rounds", _HOURS, (0, _MAX_ROUNDS * minutes / 60))
    rounds = int(hours * 60 / minutes)
    if rounds < 1:
        time.wrong("total_simulation_hours", f"{hours:g} hours are less than one round of {minutes} minutes")
    start = f"{_day(config)}T00:00"
    low, high = (
        time.whole(f"agents_per_hour_{end}", f"time.agents_per_hour_{end}", usual, (0, None))
        for end, usual in zip(("min", "max"), _AGENTS_PER_HOUR, strict=True)
    )
    if low is not None and high is not None and low > high:
        time.wrong("agents_per_hour_min", f"the minimum ({low}) is above agents_per_hour_max ({high})")
    settings = {"start": start, "minutes_per_round": minutes, "agents_per_hour_min": low, "agents_per_hour_max": high}
    for band, (usual_hours, usual_factor) in _BANDS.items():
        settings[f"{band}_hours"] = time.hours(f"{band}_hours", f"time.{band}_hours", usual_hours)
        factor = time.number(f"{band}_activity_multiplier", f"time.{band}_factor", usual_factor, (0, 10))
        settings[f"{band}_factor"] = factor
    time.rest("unused", "not a field that MiroFish is known to write")
    return Calendar(max(rounds, 1), minutes, datetime.fromisoformat(start)), settings


def _day(config: SourceRecord) -> str:
    """The day on which it was prepared; a simulation begins at midnight."""
    written = config.text("generated_at", "the day of time.start; the hour is 0, as in MiroFish")
    try:
        return _FIRST_DAY if written is None else datetime.fromisoformat(written).date().isoformat()
    except ValueError:
        config.wrong("generated_at", f"expected a date and time such as 2026-01-01T08:00, found {written!r}")
        return _FIRST_DAY


def _worlds(config: SourceRecord, profiles: dict[str, RecordTable | None]) -> dict[str, Any]:
    """The platforms that are configured; where none is, those for which there are profiles."""
    configured = [platform for platform in _FEEDS if f"{platform}_config" in config]
    if not configured:
        configured = [platform for platform, table in profiles.items() if table is not None] or ["twitter"]
        config.note(f"no platform is configured: there is {' and '.join(configured)}, as usual")
    worlds = {platform: {"feed": _feed(config.below(f"{platform}_config"), platform)} for platform in configured}
    for platform in _FEEDS:
        if platform not in configured:
            config.mark(f"{platform}_config", "used", "no such world")
    return {platform: worlds[platform] for platform in ("twitter", "reddit") if platform in worlds}


def _feed(platform: SourceRecord, name: str) -> dict[str, Any]:
    platform.word("platform", "the kind of the world", name, [name])
    where, usual = f"worlds.{name}.feed", _FEEDS[name]
    feed: dict[str, Any] = {
        ours: platform.number(theirs, f"{where}.{ours}", usual[ours], (0, 1)) for theirs, ours in _WEIGHTS.items()
    }
    threshold = platform.whole("viral_threshold", f"{where}.viral_threshold", int(usual["viral_threshold"]), (1, None))
    platform.rest("unused", "not a field that MiroFish is known to write")
    return feed | {"viral_threshold": threshold}


def _kept(config: SourceRecord) -> dict[str, Any]:
    kept = {name: config.text(name, becomes, "kept") for name, becomes in _KEPT.items()}
    return {name: text for name, text in kept.items() if text is not None} | config.rest(
        "kept", "kept in the scenario's notes: not a field that MiroFish is known to write"
    )


def _speak_of_other_files(book: FieldReport, directory: Path) -> None:
    for name in _RECORDS:
        if (directory / name).exists():
            book.use(name, "(the whole file)", "unused", "how MiroFish got on with it; a run here keeps its own record")


def _say_what_differs(book: FieldReport, everybody: Participants, calendar: Calendar) -> None:
    if calendar.minutes_per_round != _MINUTES_PER_ROUND:
        book.note(
            f"agents_per_hour_min and _max count per simulated hour here; MiroFish applies them to every round, "
            f"which are {calendar.minutes_per_round} minutes long"
        )
    book.note("nobody follows anybody at the start, as in MiroFish; --set follows=scale-free changes that")
