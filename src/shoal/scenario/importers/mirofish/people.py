"""The people of a MiroFish directory: how they are configured, joined with their profiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.scenario.declared.distributions import GENDERS, MAX_INTERESTS, STANCE_WORDS
from shoal.scenario.importers.fields import FieldReport, SourceRecord
from shoal.scenario.importers.people_file import distinct
from shoal.scenario.importers.tables import RecordTable

Fields = dict[str, Any]

#: Interests that are left to hot topics where somebody has many of their own.
_ROOM_FOR_HOT_TOPICS = 3
#: What an observer writes, as a share of what the rates say.
_OBSERVERS_SHARE = 0.1
_MAX_NAME_CHARS = 100
#: What stands for somebody in the events of a scenario.
_NOT_NAMES = ("random", "most_followed")
_WAKING_HOURS = range(8, 23)
#: MiroFish's field of a profile, and the field of a person that it fills.
_PROFILE_TEXTS = {
    "reddit": {"bio": "bio", "persona": "persona", "country": "country", "profession": "profession"},
    "twitter": {"description": "bio", "user_char": "persona"},
}


@dataclass(frozen=True, slots=True)
class Participants:
    """Everybody, in the order of their numbers, and what events need to know about them."""

    people: list[Fields]
    #: MiroFish's id of an agent -> its number.
    numbers: Mapping[int, int]
    types: Sequence[str | None]
    influences: Sequence[float]

    def first_of(self, kind: str) -> int | None:
        """The first agent of an entity type."""
        types = [None if known is None else known.casefold() for known in self.types]
        return types.index(kind.casefold()) if kind.casefold() in types else None

    def most_influential(self) -> int:
        return max(range(len(self.people)), key=lambda number: (self.influences[number], -number))


@dataclass(frozen=True, slots=True)
class _Configured:
    fields: Fields
    traits: Fields
    agent_id: int
    kind: str | None


def participants_of(
    book: FieldReport, config: SourceRecord, profiles: Mapping[str, RecordTable | None], hot_topics: Sequence[str]
) -> Participants:
    """Everybody who is configured or has a profile."""
    configured = [_configured(agent, number) for number, agent in enumerate(config.each("agent_configs"))]
    tables = [_profiles(book, table, platform) for platform, table in profiles.items() if table is not None]
    count = max([len(configured), *map(len, tables)])
    if not count:
        config.wrong("agent_configs", "nobody takes part: there are neither agent_configs nor profiles")
        return Participants([{"name": "Nobody"}], {}, [None], [1.0])
    placed = _placed(config, configured, count)
    _compare(config, [len(configured), *map(len, tables)])
    joined = [_joined(placed.get(number), [rows[number : number + 1] for rows in tables]) for number in range(count)]
    people = [_person(fields, hot_topics) for fields in joined]
    _name_everybody(book, people)
    return Participants(
        people,
        {agent.agent_id: number for number, agent in placed.items()},
        [placed[number].kind if number in placed else None for number in range(count)],
        [float(person["influence"]) for person in people],
    )


def _configured(agent: SourceRecord, number: int) -> _Configured:
    kind = agent.text("entity_type", "traits.entity_type; initial posts may name an author by it")
    name = agent.text("entity_name", "name")
    agent_id = agent.whole("agent_id", "the person's number", number, (0, None))
    traits = {"entity_type": kind, "entity_uuid": agent.text("entity_uuid", "traits.entity_uuid", "kept")}
    stance = agent.word("stance", "stance, and for observers a tenth of the rates", "neutral", list(STANCE_WORDS))
    share = _OBSERVERS_SHARE if stance == "observer" else 1.0
    low = agent.whole("response_delay_min", "response_delay", 5, (0, 100_000)) or 0
    high = agent.whole("response_delay_max", "response_delay", max(60, low), (0, 100_000)) or 0
    if low > high:
        agent.wrong("response_delay_min", f"{low} is above response_delay_max ({high})")
    hours = agent.hours("active_hours", "active_hours", _WAKING_HOURS)
    activity = agent.number("activity_level", "activity", 0.5, (0, 1))
    fields = {
        "name": name,
        # Who has no hours never acts.
        "activity": activity if hours else 0.0,
        "active_hours": hours or list(_WAKING_HOURS),
        "posts_per_hour": share * agent.number("posts_per_hour", "posts_per_hour", 1.0, (0, 1_000)),
        "comments_per_hour": share * agent.number("comments_per_hour", "comments_per_hour", 2.0, (0, 1_000)),
        "response_delay": [low, high],
        "sentiment": agent.number("sentiment_bias", "sentiment", 0.0, (-1, 1)),
        "stance": STANCE_WORDS[stance],
        "influence": agent.number("influence_weight", "influence", 1.0, (0, 100)),
    }
    return _Configured(fields, traits | agent.rest("kept", "trait"), number if agent_id is None else agent_id, kind)


#: What somebody has who has a profile and is not configured.
_USUAL: Fields = {
    "name": None,
    "activity": 0.5,
    "active_hours": list(_WAKING_HOURS),
    "posts_per_hour": 1.0,
    "comments_per_hour": 2.0,
    "response_delay": [5, 60],
    "sentiment": 0.0,
    "stance": 0.0,
    "influence": 1.0,
}


def _placed(config: SourceRecord, configured: Sequence[_Configured], count: int) -> dict[int, _Configured]:
    """By number: the agent's id where ids number the rows of the profiles, else the order of the list."""
    ids = [agent.agent_id for agent in configured]
    repeated = {agent_id: times for agent_id, times in Counter(ids).items() if times > 1}
    for agent_id, times in repeated.items():
        config.wrong("agent_configs", f"agent_id {agent_id} is there {times} times")
    if not repeated and all(agent_id < count for agent_id in ids):
        return dict(zip(ids, configured, strict=True))
    if not repeated:
        config.note(
            "the agent_ids of agent_configs do not number the profiles: people are joined in the order they stand"
        )
    return dict(enumerate(configured))


def _compare(config: SourceRecord, counts: Sequence[int]) -> None:
    """Say if not everybody is in all files."""
    if len(set(counts)) > 1:
        config.note(
            f"{counts[0]} agent_configs, but {' and '.join(map(str, counts[1:]))} profiles: "
            "what is not said about somebody is as usual"
        )


def _profiles(book: FieldReport, table: RecordTable, platform: str) -> list[Fields]:
    rows = [
        SourceRecord(book, table.name, {name: cells[row] for name, cells in table.columns.items()}, "[]", row)
        for row in range(len(table))
    ]
    book.lay_out(table.name, [dict.fromkeys(table.columns)])
    for note in table.notes:
        book.note(f"{table.name}: {note}")
    return [_profile(row, platform, number) for number, row in enumerate(rows)]


def _profile(row: SourceRecord, platform: str, number: int) -> Fields:
    user_id = row.text("user_id", "the person's number is the place in the file")
    if user_id is not None and user_id != str(number):
        row.note(f"{row.source}: user_id and place differ ({user_id} at {number}): the place counts, as in OASIS")
    fields: Fields = {
        "profile_name": row.text("name", "name, where entity_name does not say it"),
        "username": row.text("username", "username"),
        **{ours: row.text(theirs, ours) for theirs, ours in _PROFILE_TEXTS[platform].items()},
    }
    if platform == "reddit":
        fields["age"] = row.whole("age", "age", None, (0, 120))
        fields["gender"] = _gender(row)
        fields["interests"] = row.texts("interested_topics", "interests")
    return {name: value for name, value in fields.items() if value not in (None, [])} | {
        "traits": row.rest("kept", "trait")
    }


def _gender(row: SourceRecord) -> str | None:
    word = row.text("gender", "gender")
    if word is None or word.lower() in GENDERS:
        return word and word.lower()
    row.note(f"{row.source}: gender {word!r} became 'other'")
    return "other"


def _joined(agent: _Configured | None, profiles: Sequence[Sequence[Fields]]) -> Fields:
    """What is said first counts: in the configuration, in the Reddit profile, in the Twitter profile."""
    fields: Fields = dict(_USUAL if agent is None else agent.fields)
    traits: Fields = {} if agent is None else dict(agent.traits)
    for profile in (profile for rows in profiles for profile in rows):
        traits = profile["traits"] | traits
        fields = profile | {name: value for name, value in fields.items() if value is not None}
    fields["traits"] = {name: value for name, value in traits.items() if value is not None}
    return fields


def _person(fields: Fields, hot_topics: Sequence[str]) -> Fields:
    named = fields.pop("profile_name", None)
    name = fields.pop("name", None) or named or fields.get("username")
    own: list[str] = fields.pop("interests", [])
    room = MAX_INTERESTS - min(len(hot_topics), _ROOM_FOR_HOT_TOPICS)
    interests = list(dict.fromkeys([*own[:room], *hot_topics, *own[room:]]))[:MAX_INTERESTS]
    if len(own) > room:
        fields["traits"] = {**fields["traits"], "all_interests": own}
    return {"name": name, **fields, **({"interests": interests} if interests else {})}


def _name_everybody(book: FieldReport, people: Sequence[Fields]) -> None:
    """Names and usernames as a scenario can have them: in one line, and nobody has that of somebody else."""
    for field in ("name", "username"):
        values = [_in_one_line(person.get(field)) for person in people]
        if field == "name":
            values = [name or f"Agent {number}" for number, name in enumerate(values)]
        values, notes = distinct(values, field, _NOT_NAMES)
        for note in notes:
            book.note(note)
        for person, value in zip(people, values, strict=True):
            person[field] = value


def _in_one_line(name: str | None) -> str | None:
    if name is None:
        return None
    printable = "".join(char if char.isprintable() else " " for char in name)
    return " ".join(printable.split())[:_MAX_NAME_CHARS].strip() or None
