"""The forms of replies: their schemas, and how replies are read, however a model fills them in.

A form refuses a reply that lacks what it cannot do without; the model gets the text of the refusal, and one more
try. Whatever else is wrong with a value is left out, or moved to the nearest one that is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from shoal.agents import UnusableAnswer, read_object
from shoal.models import Answer
from shoal.preparation.draft import DraftGroup, DraftPost, Lean
from shoal.preparation.reading.findings import KINDS, Kind
from shoal.text import clip, hide_controls, replace_surrogates

MAX_NAME_CHARS = 80
MAX_READ = 60
_MAX_ROLE_CHARS, _MAX_ABOUT_CHARS, _MAX_KIND_CHARS = 120, 500, 60
_MAX_PERSONA_CHARS, _LEAST_PERSONA_CHARS, _MAX_BIO_CHARS = 3_000, 20, 150
_MAX_TOPIC_CHARS, _MAX_CONTEXT_CHARS, _MAX_CLAIM_CHARS, _MAX_CLAIMS = 80, 1_200, 240, 4
_MAX_POST_CHARS, _MAX_POSTS, _MAX_GROUPS, _MAX_WORDS = 500, 12, 8, 5
_MAX_TRAIT_CHARS = 60
#: More than is asked for, and little enough to fit into a reply.
_USUAL_PERSONA_CHARS = 1_500
_HOURS, _MINUTES = (1, 720), (30, 60, 120)
_GENDERS = ("female", "male", "other")
_LEANS: tuple[Lean, ...] = ("supports", "denies", "none")
#: Names that mean other people in events.
_RESERVED = ("random", "most_followed")


class ReadEntity(NamedTuple):
    """An entity that a model found in a passage."""

    name: str
    kind: Kind
    role: str
    about: str
    stance: float


class PassageReading(NamedTuple):
    """What a model read in a passage; a relation is source, target and kind."""

    entities: list[ReadEntity]
    relations: list[tuple[str, str, str]]


class TopicPlan(NamedTuple):
    """What the simulation is about."""

    topic: str
    context: str
    claims: list[str]


class Staging(NamedTuple):
    """How the simulation begins, and who else is there."""

    posts: list[DraftPost]
    #: Of each post, the number of its claim; 0 for none.
    claims: list[int]
    groups: list[DraftGroup]
    hours: int
    minutes_per_round: int


def read_line(value: object, most: int) -> str:
    """Read a text of one line; empty where the value is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return clip(hide_controls(replace_surrogates(str(value))).strip(), most)


def read_number(value: object, low: float, high: float) -> float | None:
    """Read a number, moved between the bounds; None where the value is none."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return min(high, max(low, number)) if isfinite(number) else None


def read_name(value: object) -> str:
    """Read a name that a person of a scenario can have."""
    name = " ".join(read_line(value, MAX_NAME_CHARS).replace("\ufffd", "").split()).strip(" .,;:«»\"'“”")
    return "" if name in _RESERVED or not any(letter.isalnum() for letter in name) else name


def list_members(value: object, most: int) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)][:most] if isinstance(value, list) else []


def list_words(value: object, most: int, chars: int = _MAX_TRAIT_CHARS) -> list[str]:
    """Read a list of short texts, each once."""
    items: Sequence[object] = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return list(dict.fromkeys(text for each in items if (text := read_line(each, chars))))[:most]


def _make_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(items: Mapping[str, Any], most: int) -> dict[str, Any]:
    return {"type": "array", "items": dict(items), "maxItems": most}


def _text(most: int, least: int = 0) -> dict[str, Any]:
    """Return the schema of a text. Small models come to no end without bounds, and their replies are cut off."""
    return {"type": "string", "maxLength": most, **({"minLength": least} if least else {})}


def _number(low: float, high: float) -> dict[str, Any]:
    return {"type": "number", "minimum": low, "maximum": high}


class PassageForm:
    """Who is in a passage."""

    schema = _make_schema(
        {
            "entities": _list_of(
                _make_schema(
                    {
                        "name": _text(MAX_NAME_CHARS),
                        "kind": {"type": "string", "enum": list(KINDS)},
                        "role": _text(_MAX_ROLE_CHARS),
                        "about": _text(_MAX_ABOUT_CHARS),
                        "stance": _number(-1, 1),
                    }
                ),
                MAX_READ,
            ),
            "relations": _list_of(
                _make_schema(
                    {
                        "source": _text(MAX_NAME_CHARS),
                        "target": _text(MAX_NAME_CHARS),
                        "kind": _text(_MAX_KIND_CHARS),
                    }
                ),
                2 * MAX_READ,
            ),
        }
    )

    def read(self, answer: Answer) -> PassageReading:
        found = read_object(answer)
        if not isinstance(found.get("entities"), list):
            raise UnusableAnswer('"entities" must be a list of objects, which may be empty')
        entities: dict[str, ReadEntity] = {}
        for each in list_members(found["entities"], MAX_READ):
            name, kind = read_name(each.get("name")), read_line(each.get("kind"), 20).lower()
            if name:
                entity = ReadEntity(
                    name,
                    next((known for known in KINDS if known == kind), "person"),
                    read_line(each.get("role"), _MAX_ROLE_CHARS).strip(" ."),
                    read_line(each.get("about"), _MAX_ABOUT_CHARS),
                    read_number(each.get("stance"), -1, 1) or 0.0,
                )
                entities.setdefault(name.casefold(), entity)
        relations = [
            (read_name(each.get("source")), read_name(each.get("target")), read_line(each.get("kind"), _MAX_KIND_CHARS))
            for each in list_members(found.get("relations"), 2 * MAX_READ)
        ]
        return PassageReading([*entities.values()], [relation for relation in relations if all(relation)])


class PlanForm:
    """What the simulation is about."""

    schema = _make_schema(
        {
            "topic": _text(_MAX_TOPIC_CHARS),
            "context": _text(_MAX_CONTEXT_CHARS),
            "claims": _list_of(_text(_MAX_CLAIM_CHARS), _MAX_CLAIMS),
        }
    )

    def read(self, answer: Answer) -> TopicPlan:
        found = read_object(answer)
        topic = read_line(found.get("topic"), _MAX_TOPIC_CHARS).strip(" .?!")
        if not topic:
            raise UnusableAnswer('"topic" must be a noun phrase')
        context = read_line(found.get("context"), _MAX_CONTEXT_CHARS)
        return TopicPlan(topic, context, list_words(found.get("claims"), _MAX_CLAIMS, _MAX_CLAIM_CHARS))


class PersonForm:
    """The profile of one account, as fields of a person."""

    schema = _make_schema(
        {
            "persona": _text(_USUAL_PERSONA_CHARS, _LEAST_PERSONA_CHARS),
            "bio": _text(_MAX_BIO_CHARS),
            "profession": _text(_MAX_TRAIT_CHARS),
            "country": _text(_MAX_TRAIT_CHARS),
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "gender": {"type": "string", "enum": list(_GENDERS)},
            "interests": _list_of(_text(_MAX_TRAIT_CHARS), _MAX_WORDS),
            "stance": _number(-1, 1),
            "activity": _number(0, 1),
            "influence": _number(0, 10),
            "sentiment": _number(-1, 1),
            "wakes": {"type": "integer", "minimum": 0, "maximum": 23},
            "sleeps": {"type": "integer", "minimum": 0, "maximum": 23},
        }
    )

    def read(self, answer: Answer) -> dict[str, Any]:
        found = read_object(answer)
        persona = read_line(found.get("persona"), _MAX_PERSONA_CHARS)
        if len(persona) < _LEAST_PERSONA_CHARS:
            raise UnusableAnswer('"persona" must say in some sentences who this is')
        gender = read_line(found.get("gender"), 20).lower()
        wakes, sleeps = (read_number(found.get(name), 0, 23) for name in ("wakes", "sleeps"))
        bounds = {"stance": (-1, 1), "activity": (0, 1), "influence": (0, 10), "sentiment": (-1, 1)}
        numbers = {name: read_number(found.get(name), *ends) for name, ends in bounds.items()}
        age = read_number(found.get("age"), 0, 120)
        hours = None if wakes is None or sleeps is None or int(wakes) == int(sleeps) else f"{int(wakes)}-{int(sleeps)}"
        values = {
            "persona": persona,
            "bio": read_line(found.get("bio"), _MAX_BIO_CHARS),
            "profession": read_line(found.get("profession"), _MAX_TRAIT_CHARS),
            "country": read_line(found.get("country"), _MAX_TRAIT_CHARS),
            "age": int(age) if age else None,
            "gender": gender if gender in _GENDERS else None,
            "interests": list_words(found.get("interests"), _MAX_WORDS),
            "active_hours": hours,
            **{name: None if number is None else round(number, 2) for name, number in numbers.items()},
        }
        return {name: value for name, value in values.items() if value not in (None, "", [])}


class StagingForm:
    """How the simulation begins, and who else is there."""

    schema = _make_schema(
        {
            "posts": _list_of(
                _make_schema(
                    {
                        "author": _text(MAX_NAME_CHARS),
                        "text": _text(_MAX_POST_CHARS),
                        "claim": {"type": "integer", "minimum": 0, "maximum": _MAX_CLAIMS},
                        "lean": {"type": "string", "enum": list(_LEANS)},
                    }
                ),
                _MAX_POSTS,
            ),
            "groups": _list_of(
                _make_schema(
                    {
                        "name": _text(MAX_NAME_CHARS),
                        "share": _number(0, 1),
                        "stance": _number(-1, 1),
                        "spread": _number(0.05, 0.6),
                        "age": _number(10, 90),
                        "professions": _list_of(_text(_MAX_TRAIT_CHARS), _MAX_WORDS),
                        "interests": _list_of(_text(_MAX_TRAIT_CHARS), _MAX_WORDS),
                    }
                ),
                _MAX_GROUPS,
            ),
            "hours": {"type": "integer", "minimum": 12, "maximum": 168},
            "minutes_per_round": {"type": "integer", "enum": list(_MINUTES)},
        }
    )

    def read(self, answer: Answer) -> Staging:
        found = read_object(answer)
        posts, claims = list[DraftPost](), list[int]()
        for each in list_members(found.get("posts"), _MAX_POSTS):
            if text := read_line(each.get("text"), _MAX_POST_CHARS):
                said = read_line(each.get("lean"), 20).lower()
                lean: Lean = next((known for known in _LEANS if known == said), "none")
                posts.append(DraftPost(text, read_name(each.get("author")) or None, None, lean))
                claims.append(int(read_number(each.get("claim"), 0, _MAX_CLAIMS) or 0))
        if not posts:
            raise UnusableAnswer('"posts" must be a list of objects, each with "author" and "text"')
        groups = [self._read_group(each) for each in list_members(found.get("groups"), _MAX_GROUPS)]
        minutes = read_number(found.get("minutes_per_round"), _MINUTES[0], _MINUTES[-1]) or 60
        nearest = min(_MINUTES, key=lambda known: abs(known - minutes))
        hours = int(read_number(found.get("hours"), *_HOURS) or 24)
        return Staging(posts, claims, [group for group in groups if group.group], hours, nearest)

    def _read_group(self, each: Mapping[str, Any]) -> DraftGroup:
        stance, age = read_number(each.get("stance"), -1, 1), read_number(each.get("age"), 10, 90)
        spread = read_number(each.get("spread"), 0.05, 0.6) or 0.3
        return DraftGroup(
            read_line(each.get("name"), 60),
            round(read_number(each.get("share"), 0, 1) or 0.0, 3),
            None if stance is None else (round(stance, 2), round(spread, 2)),
            None if age is None else (round(age), 10.0),
            list_words(each.get("professions"), _MAX_WORDS),
            list_words(each.get("interests"), _MAX_WORDS),
        )
