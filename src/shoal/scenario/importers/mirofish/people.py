"""Reads the people of a directory that MiroFish has prepared: their configurations and profiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.scenario.declared.distributions import GENDERS, MAX_INTERESTS, STANCE_WORDS
from shoal.scenario.importers.columns import BadCell, split_list
from shoal.scenario.importers.fields import FieldReport, SourceRecord
from shoal.scenario.importers.people_file import make_unique
from shoal.scenario.importers.tables import RecordTable
from shoal.text import printable

#: Interests that are reserved for hot topics where a person has many of their own.
_MAX_HOT_TOPICS = 3
#: How much an observer writes, as a share of the configured rates.
_OBSERVER_SHARE = 0.1
_MAX_PERSON_NAME_CHARS = 100
#: Words that the events of a scenario use in place of a name.
_RESERVED_NAMES = ("random", "most_followed")
_WAKING_HOURS = range(8, 23)
#: MiroFish's field of a profile, and the field of a person that it fills.
_PROFILE_TEXTS = {
    "reddit": {"bio": "bio", "persona": "persona", "country": "country", "profession": "profession"},
    "twitter": {"description": "bio", "user_char": "persona"},
}
#: Profiles that MiroFish has not written yet are filled in up to this number.
_MAX_PEOPLE = 1_000_000
UNKNOWN = "not a field that MiroFish is known to write"

Fields = dict[str, Any]


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


def read_participants(
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
    usual = _read_agent(SourceRecord(report, config.source, {}), 0)
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
        if is_early and user_id is not None and user_id.isdecimal() and len(profiles) <= int(user_id) < _MAX_PEOPLE:
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
