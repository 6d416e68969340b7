"""Which column of a file fills which field of a person, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shoal.errors import ScenarioInvalid
from shoal.scenario.problems import hint
from shoal.scenario.sources.tables import Table

#: Other names under which columns are taken without being asked for. Only such as can hardly mean anything else.
SYNONYMS: Mapping[str, Sequence[str]] = {
    "name": ("full_name", "fullname", "realname", "real_name", "display_name", "person_name", "agent_name"),
    "username": ("user_name", "handle", "screen_name", "account_name"),
    "bio": ("description", "biography", "about", "about_me"),
    "persona": ("user_char", "backstory", "persona_description"),
    "age": ("age_years",),
    "gender": ("sex",),
    "country": ("residence", "nationality", "country_of_residence"),
    "profession": ("occupation", "job", "job_title"),
    "interests": ("interested_topics", "hobbies"),
    "activity": ("activity_level",),
    "influence": ("influence_weight",),
    "sentiment": ("sentiment_bias",),
    "follows": ("following_agentid_list",),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody said about where a field comes from; no column means: from none."""

    field: str
    column: str | None
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """Which column fills a field."""

    field: str
    column: str
    separator: str | None = None


def mapped(table: Table, fields: Iterable[str], wanted: Sequence[Wanted]) -> list[Mapped]:
    """Columns that were asked for, then columns that are called like a field, then those with another name for one."""
    known = list(fields)
    _check(table, known, wanted)
    found = {want.field: Mapped(want.field, want.column, want.separator) for want in wanted if want.column is not None}
    refused = {want.field for want in wanted if want.column is None}
    taken = {mapped.column for mapped in found.values()}
    plain = {_folded(column): column for column in reversed(list(table.columns))}
    for field in known:
        if field in found or field in refused or (table.only and field not in table.only):
            continue
        names = (plain.get(name) for name in (field, *SYNONYMS.get(field, ())))
        column = next((name for name in names if name is not None and name not in taken), None)
        if column is not None:
            found[field] = Mapped(field, column)
            taken.add(column)
    return [found[field] for field in known if field in found]


def _check(table: Table, known: Sequence[str], wanted: Sequence[Wanted]) -> None:
    problems = []
    users: dict[str, str] = {}
    for want in wanted:
        if want.field not in known:
            problems.append(f"people have no field {want.field!r}{hint(want.field, known)}")
        if want.column is None:
            continue
        if want.column not in table.columns:
            there = hint(want.column, table.columns) or f"; there is {', '.join(map(repr, table.columns))}"
            problems.append(f"{table.name}: no column {want.column!r}{there}")
        elif (first := users.setdefault(want.column, want.field)) != want.field:
            problems.append(f"{table.name}: column {want.column!r} is asked for by {first} and by {want.field}")
    if problems:
        raise ScenarioInvalid(problems)


def _folded(column: str) -> str:
    return column.casefold().replace(" ", "_").replace("-", "_")
