"""Imports a directory that MiroFish has prepared.

Every field of its configuration has its effect, also those that MiroFish writes and never reads.
docs/coming-from-other-tools.md lists the fields and their effects.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ScenarioInvalid
from shoal.formats import decode_json, decode_text
from shoal.scenario.declared.distributions import GENDERS, MAX_INTERESTS, STANCE_WORDS
from shoal.scenario.importers.columns import BadCell, split_list
from shoal.scenario.importers.fields import FieldReport, ImportResult, SourceRecord, note_language
from shoal.scenario.importers.people_file import make_unique, read_content
from shoal.scenario.importers.tables import RecordTable, read_csv_table, read_json_table
from shoal.scenario.validation.problems import show_value
from shoal.text import format_count, join_words, printable

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
_UNKNOWN = "not a field that MiroFish is known to write"
#: Interests that are reserved for hot topics where a person has many of their own.
_MAX_HOT_TOPICS = 3
#: How much an observer writes, as a share of the configured rates.
_OBSERVER_SHARE = 0.1
_MAX_PERSON_NAME_CHARS = 100
_MAX_NAMES_SHOWN = 5
#: Words that the events of a scenario use in place of a name.
_RESERVED_NAMES = ("random", "most_followed")
_WAKING_HOURS = range(8, 23)
#: MiroFish's field of a profile, and the field of a person that it fills.
_PROFILE_TEXTS = {
    "reddit": {"bio": "bio", "persona": "persona", "country": "country", "profession": "profession"},
    "twitter": {"description": "bio", "user_char": "persona"},
}
_POSTS = frozenset({"post", "create_post", "initial_post"})
_BROADCASTS = frozenset({"broadcast", "announcement", "news", "notice", "breaking_news"})
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
_TIME_FIELDS = ("round", "hour", "hours", "time")

Fields = dict[str, Any]


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
    participants = _read_participants(report, config, profiles, hot_topics)
    scenario = {
        "name": re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_MAX_NAME_CHARS] or "mirofish",
        "rounds": calendar.rounds,
        "time": time,
        "topic": topic,
        "population": participants.people,
        "follows": "none",
        "worlds": _read_worlds(config, profiles),
        "events": _read_events(events, participants, calendar),
    }
    kept = {name: config.read_text(name, becomes, "kept") for name, becomes in _KEPT.items()}
    notes |= {name: text for name, text in kept.items() if text is not None}
    scenario["notes"] = notes | config.take_rest("kept", f"kept in the scenario's notes: {_UNKNOWN}")
    events.take_rest("unused", _UNKNOWN)

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


# Time and worlds


@dataclass(frozen=True, slots=True)
class Calendar:
    """The rounds of a simulation in simulated time."""

    rounds: int
    minutes_per_round: int
    start: datetime

    def find_round(self, field: str, value: object) -> int | None:
        """Return the round that a time field means; None if it cannot be told, or is before the start.

        `round` holds a number of a round. The other fields hold hours since the start, a time of the first day such
        as 18:30, or a date and time.
        """
        if field == "round":
            return value if type(value) is int and value >= 0 else None
        hours: float
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            hours = float(value)
        elif not isinstance(value, str):
            return None
        elif clock := _CLOCK.fullmatch(value.strip()):
            hours = int(clock[1]) + int(clock[2]) / 60
        else:
            try:
                then = datetime.fromisoformat(value.strip())
            except ValueError:
                return None
            hours = (then.replace(tzinfo=None) - self.start) / timedelta(hours=1)
        return None if hours < 0 else int(hours * 60 / self.minutes_per_round) + 1


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
    time.take_rest("unused", _UNKNOWN)
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
        platform.take_rest("unused", _UNKNOWN)
        worlds[name] = {"feed": feed}
    for name in _FEEDS:
        if name not in configured:
            config.take(f"{name}_config", "used", "no such world")
    return {name: worlds[name] for name in ("twitter", "reddit") if name in worlds}


# People


@dataclass(frozen=True, slots=True)
class Participants:
    """All people in the order of their numbers, and what events need to know about them."""

    people: list[Fields]
    #: MiroFish's id of an agent -> its number.
    numbers: Mapping[int, int]
    #: Entity type, folded -> the number of the first agent of it.
    first_of_type: Mapping[str, int]
    most_influential: int


@dataclass(frozen=True, slots=True)
class _AgentConfig:
    fields: Fields
    traits: Fields
    agent_id: int


def _read_participants(
    report: FieldReport, config: SourceRecord, profiles: Mapping[str, RecordTable | None], hot_topics: Sequence[str]
) -> Participants:
    """Read all people who have a configuration or a profile."""
    configured = [_read_agent(agent, number) for number, agent in enumerate(config.read_objects("agent_configs"))]
    tables = [_read_profiles(report, table, platform) for platform, table in profiles.items() if table is not None]
    counts = [len(configured), *map(len, tables)]
    if not any(counts):
        config.add_problem("agent_configs", "nobody takes part: there are neither agent_configs nor profiles")
        return Participants([{"name": "Nobody"}], {}, {}, 0)
    # Agents are numbered by id where the ids count the rows of the profiles, else by their order.
    ids = [agent.agent_id for agent in configured]
    repeated = {agent_id: times for agent_id, times in Counter(ids).items() if times > 1}
    for agent_id, times in repeated.items():
        config.add_problem("agent_configs", f"agent_id {agent_id} is there {times} times")
    agents = dict(enumerate(configured))
    if not repeated and all(agent_id < max(counts) for agent_id in ids):
        agents = dict(zip(ids, configured, strict=True))
    elif not repeated:
        config.add_note(
            "the agent_ids of agent_configs do not number the profiles: people are joined in the order they stand"
        )
    if len(set(counts)) > 1:
        config.add_note(
            f"{counts[0]} agent_configs, but {' and '.join(map(str, counts[1:]))} profiles: "
            "what is not said about somebody is as usual"
        )
    usual = _read_agent(SourceRecord(report, CONFIG, {}), 0)
    people = [
        _join_person(agents.get(number, usual), [rows[number] for rows in tables if number < len(rows)], hot_topics)
        for number in range(max(counts))
    ]
    _name_people(report, people)
    types = {number: agent.traits["entity_type"] for number, agent in sorted(agents.items(), reverse=True)}
    return Participants(
        people,
        {agent.agent_id: number for number, agent in agents.items()},
        {kind.casefold(): number for number, kind in types.items() if kind is not None},
        max(range(len(people)), key=lambda number: people[number]["influence"]),
    )


def _read_agent(agent: SourceRecord, number: int) -> _AgentConfig:
    kind = agent.read_text("entity_type", "traits.entity_type; initial posts may name an author by it")
    name = agent.read_text("entity_name", "name")
    agent_id = agent.read_whole("agent_id", "the person's number", number, (0, None))
    traits = {"entity_type": kind, "entity_uuid": agent.read_text("entity_uuid", "traits.entity_uuid", "kept")}
    stance = agent.read_word("stance", "stance, and for observers a tenth of the rates", "neutral", list(STANCE_WORDS))
    share = _OBSERVER_SHARE if stance == "observer" else 1.0
    low = agent.read_whole("response_delay_min", "response_delay", 5, (0, 100_000)) or 0
    high = agent.read_whole("response_delay_max", "response_delay", max(60, low), (0, 100_000)) or 0
    if low > high:
        agent.add_problem("response_delay_min", f"{low} is above response_delay_max ({high})")
        low, high = high, low
    hours = agent.read_hours("active_hours", "active_hours", _WAKING_HOURS)
    activity = agent.read_number("activity_level", "activity", 0.5, (0, 1))
    fields = {
        "name": name,
        # An agent without active hours never acts.
        "activity": activity if hours else 0.0,
        "active_hours": hours or list(_WAKING_HOURS),
        "posts_per_hour": share * agent.read_number("posts_per_hour", "posts_per_hour", 1.0, (0, 1_000)),
        "comments_per_hour": share * agent.read_number("comments_per_hour", "comments_per_hour", 2.0, (0, 1_000)),
        "response_delay": [low, high],
        "sentiment": agent.read_number("sentiment_bias", "sentiment", 0.0, (-1, 1)),
        "stance": STANCE_WORDS[stance],
        "influence": agent.read_number("influence_weight", "influence", 1.0, (0, 100)),
    }
    traits |= agent.take_rest("kept", "trait")
    return _AgentConfig(fields, traits, number if agent_id is None else agent_id)


def _read_profiles(report: FieldReport, table: RecordTable, platform: str) -> list[Fields]:
    """Read the fields of each profile. Those that have no counterpart are under `traits`."""
    report.learn_order(table.name, [dict.fromkeys(table.columns)])
    for note in table.notes:
        report.add_note(f"{table.name}: {note}")
    # While MiroFish prepares profiles, it writes those that are ready, with the columns of Reddit's.
    is_early = platform == "twitter" and "user_char" not in table.columns and "persona" in table.columns
    if is_early:
        platform = "reddit"
        report.add_note(f"{table.name}: MiroFish was still preparing profiles; people are joined by user_id")
    profiles: list[Fields] = []
    for number in range(len(table)):
        values = {name: column[number] for name, column in table.columns.items()}
        if is_early:
            values = {name: _read_cell(name, value) for name, value in values.items()}
        row = SourceRecord(report, table.name, values, "[]", number)
        user_id = row.read_text("user_id", "the person's number is the place in the file")
        if is_early and user_id is not None and user_id.isdecimal() and len(profiles) <= int(user_id) < _MAX_ROUNDS:
            profiles += [{"traits": {}} for _ in range(int(user_id) - len(profiles))]
        elif user_id is not None and user_id != str(number):
            row.add_note(
                f"{table.name}: user_id and place differ ({user_id} at {number}): the place counts, as in OASIS"
            )
        fields: Fields = {
            "profile_name": row.read_text("name", "name, where entity_name does not say it"),
            "username": row.read_text("username", "username"),
            **{ours: row.read_text(theirs, ours) for theirs, ours in _PROFILE_TEXTS[platform].items()},
        }
        if platform == "reddit":
            fields["age"] = row.read_whole("age", "age", None, (0, 120))
            gender = row.read_text("gender", "gender")
            if gender is not None and gender.lower() not in GENDERS:
                row.add_note(f"{table.name}: gender {gender!r} became 'other'")
                gender = "other"
            fields["gender"] = gender and gender.lower()
            fields["interests"] = row.read_texts("interested_topics", "interests")
        filled = {name: value for name, value in fields.items() if value not in (None, [])}
        profiles.append(filled | {"traits": row.take_rest("kept", "trait")})
    return profiles


def _read_cell(name: str, cell: Any) -> Any:
    """Read a cell as the value that it was before MiroFish wrote it into a CSV."""
    if name == "age" and isinstance(cell, str) and cell.isdecimal():
        return int(cell)
    if name == "interested_topics" and isinstance(cell, str):
        try:
            return split_list(cell, None)
        except BadCell:
            return [cell]
    return cell


def _join_person(agent: _AgentConfig, profiles: Sequence[Fields], hot_topics: Sequence[str]) -> Fields:
    """Join what is said about a person. The configuration goes before the Reddit profile, this before Twitter's."""
    fields, traits = dict(agent.fields), agent.traits
    for profile in profiles:
        traits = profile["traits"] | traits
        fields = profile | {name: value for name, value in fields.items() if value is not None}
    fields["traits"] = {name: value for name, value in traits.items() if value is not None}

    profile_name = fields.pop("profile_name", None)
    name = fields.pop("name", None) or profile_name or fields.get("username")
    own: list[str] = fields.pop("interests", [])
    room = MAX_INTERESTS - min(len(hot_topics), _MAX_HOT_TOPICS)
    interests = list(dict.fromkeys([*own[:room], *hot_topics, *own[room:]]))[:MAX_INTERESTS]
    if len(own) > room:
        fields["traits"]["all_interests"] = own
    return {"name": name, **fields, **({"interests": interests} if interests else {})}


def _name_people(report: FieldReport, people: Sequence[Fields]) -> None:
    """Make names and usernames unique and printable, and fill in missing names."""
    for field in ("name", "username"):
        values: list[str | None] = []
        for number, person in enumerate(people):
            cleaned = " ".join(printable(person.get(field) or "").split())[:_MAX_PERSON_NAME_CHARS].strip()
            values.append(cleaned or (f"Agent {number}" if field == "name" else None))
        values, notes = make_unique(values, field, _RESERVED_NAMES)
        for note in notes:
            report.add_note(note)
        for person, value in zip(people, values, strict=True):
            person[field] = value


# Events


def _read_events(config: SourceRecord, participants: Participants, calendar: Calendar) -> list[dict[str, Any]]:
    """Read the events of the scenario, in the order of the file."""
    events: list[dict[str, Any]] = []
    for post in config.read_objects("initial_posts"):
        content = post.read_text("content", "a post before round 1")
        author = _find_author(post, participants, "poster_agent_id")
        post.take_rest("unused", "not a field that MiroFish is known to write")
        if content is None:
            post.add_problem("content", "a post must say something")
            continue
        if author is None:
            author = participants.most_influential
            post.add_note("an initial post without an author is by whoever has the most influence_weight")
        events.append({"post": content, "by": author, "round": 0})
    for record in config.read_objects("scheduled_events"):
        event = _read_scheduled(record, participants, calendar)
        events += [] if event is None else [event]
    direction = config.read_text("narrative_direction", "a broadcast to everybody in round 1")
    if direction is not None:
        events.append({"broadcast": direction, "round": 1})
    return events


def _find_author(event: SourceRecord, participants: Participants, field: str) -> int | None:
    """Find an agent by its id, or the first one of an entity type."""
    agent_id = event.read_whole(field, "who posts it", None)
    kind = event.read_text("poster_type", "who posts it, where no agent is named: the first of that entity type")
    if agent_id is not None:
        last = len(participants.people) - 1
        if agent_id not in participants.numbers and not 0 <= agent_id <= last:
            event.add_problem(field, f"there is no agent {agent_id}: agents are numbered 0 to {last}")
            return None
        return participants.numbers.get(agent_id, agent_id)
    first = None if kind is None else participants.first_of_type.get(kind.casefold())
    if kind is not None and first is None:
        event.add_note(f"nobody is of the type {kind!r}")
    return first


def _read_scheduled(event: SourceRecord, participants: Participants, calendar: Calendar) -> dict[str, Any] | None:
    """Read a post, or a broadcast if it has no author. Events that are not understood are noted and left out."""
    when = next((name for name in _TIME_FIELDS if name in event), None)
    kind = str(event.peek("type") or "").strip().lower()
    round = None if when is None else calendar.find_round(when, event.peek(when))
    if when is None:
        reason = "it does not say when, by `round`, `hour`, `hours` or `time`"
    elif "content" not in event:
        reason = "it has no `content`"
    elif kind and kind not in _POSTS | _BROADCASTS:
        reason = f"its type {kind!r} is neither a post nor a broadcast"
    elif round is None:
        reason = f"when it happens cannot be told from {when}: {show_value(event.peek(when))}"
    elif round > calendar.rounds:
        reason = f"round {round} never comes: there are {calendar.rounds}"
    else:
        event.take(when, "used", "the round of the event")
        event.take("type", "used", "whether it is a post or a broadcast")
        content = event.read_text("content", "a post or a broadcast in a later round")
        author = _find_author(event, participants, "poster_agent_id" if "poster_agent_id" in event else "agent_id")
        event.take_rest("unused", "not a field that is understood here")
        if kind in _BROADCASTS or (author is None and kind not in _POSTS):
            return {"broadcast": content, "round": max(round, 1)}
        return {
            "post": content,
            "by": participants.most_influential if author is None else author,
            "round": round,
        }
    event.add_note(f"{event.path_to('')}: an event was left out: {reason}")
    event.take_rest("unused", f"the event was left out: {reason}")
    return None
