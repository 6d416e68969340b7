"""TinyTroupe's specifications of persons, and the fragments that are merged into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal.scenario.declared.distributions import GENDERS
from shoal.scenario.importers.columns import read_gender
from shoal.scenario.importers.fields import FieldUse, Use, raise_problems
from shoal.scenario.importers.tables import RecordTable, collect_columns
from shoal.scenario.validation.problems import show_value

#: One specification, and the file that it stands in.
Spec = tuple[str, Mapping[str, Any]]

PERSONA = "persona"
_MEMORIES = "what happened in an earlier simulation; people begin a run without memories"
#: Where `Person.save` writes what only Shoal knows about a person.
SAVED = "shoal"
_UNUSED = {
    SAVED: "what a script said about the person; `Person.load` reads it",
    "type": "says what kind of file this is",
    "mental_state": "the moment in which an earlier simulation ended; a run has its own",
    "mental_faculties": "how TinyTroupe thinks; the scenario's `mind` says it here",
    "current_episode_event_count": _MEMORIES,
    "episodic_memory": _MEMORIES,
    "semantic_memory": _MEMORIES,
}
_FIELDS = {
    "persona.name": "name",
    "persona.age": "age",
    "persona.gender": "gender",
    "persona.residence": "country",
    "persona.occupation": "profession",
    "persona.occupation.title": "profession",
    "persona.preferences.interests": "interests",
}
#: Facts that stand in the first line of the persona text.
_FIRST = ("name", "age", "gender", "nationality", "residence")
#: The only fields that are filled. Other keys with the name of a field become traits.
_FILLED = ("name", "age", "gender", "country", "profession", "interests", "persona")
#: Where a relationship says what the other person is, and where it says more about them.
_RELATION_KEYS = (("relation", "relationship", "role", "type"), ("description", "details"))
#: Facts of at most this many characters are also traits.
_MAX_TRAIT_CHARS = 80


def is_spec(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(PERSONA), Mapping)


def build_spec_table(specs: Sequence[Spec], fragments: Sequence[Spec], name: str) -> RecordTable:
    """Make a row for each specification, with every fragment merged into it."""
    problems = [
        f"{file}: expected an object with a `persona`, found {show_value(spec)}"
        for file, spec in (*specs, *fragments)
        if not is_spec(spec)
    ]
    problems += [
        f"{file}: a fragment; name it under `fragments`"
        for file, spec in specs
        if is_spec(spec) and spec.get("type") == "Fragment"
    ]
    raise_problems(problems)
    rows = []
    for _, spec in specs:
        for _, fragment in fragments:
            spec = {**spec, PERSONA: merge_fragments(spec[PERSONA], fragment[PERSONA])}
        rows.append(_build_row(spec))
    uses = (*_list_uses(specs), *_list_uses(fragments))
    return RecordTable(name, collect_columns(rows), range(1, len(rows) + 1), "person", uses=uses, only=_FILLED)


def merge_fragments(base: Any, more: Any) -> Any:
    """Merge mappings key by key, and append the new items of lists. Anything else is replaced."""
    if isinstance(base, Mapping) and isinstance(more, Mapping):
        merged = {key: merge_fragments(base[key], value) if key in base else value for key, value in more.items()}
        return {**base, **merged}
    if isinstance(base, list) and isinstance(more, list):
        return [*base, *(item for item in more if item not in base)]
    return more


def redefine(persona: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return what a specification says with one fact replaced, or added. Fields of a person stand where it has them."""
    place = {"country": "residence", "profession": "occupation"}.get(key, key)
    if key == "interests":
        stated = persona.get("preferences")
        place, value = "preferences", {**(stated if isinstance(stated, Mapping) else {}), "interests": value}
    elif key == "profession" and isinstance(persona.get("occupation"), Mapping):
        value = {**persona["occupation"], "title": value}
    return {**persona, place: list(value) if isinstance(value, tuple) else value}


def _build_row(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the fields of a person. Every fact is in the persona text; short facts and numbers are also traits."""
    persona = spec[PERSONA]

    def read_part(name: str, key: str) -> Any:
        value = persona.get(name)
        return value.get(key) if isinstance(value, Mapping) else None

    row: dict[str, Any] = {
        key: value
        for key, value in persona.items()
        if isinstance(value, (int, float)) or (isinstance(value, str) and len(value) <= _MAX_TRAIT_CHARS)
    }
    row |= {key: value for key, value in spec.items() if key not in _UNUSED and key != PERSONA}
    occupation, relationships = persona.get("occupation"), persona.get("relationships")
    if isinstance(relationships, list):
        relationships = list(map(_read_relationship, relationships))
    gender = persona.get("gender")
    if isinstance(gender, str):
        # A text in other words counts as `other`; the words stay in the persona text.
        found = read_gender(gender)
        gender = found if found is None or found in GENDERS else "other"
    row |= {
        **{key: persona.get(key) for key in ("name", "age")},
        "gender": gender,
        "country": persona.get("residence") or persona.get("nationality"),
        "profession": read_part("occupation", "title") if isinstance(occupation, Mapping) else occupation,
        "interests": read_part("preferences", "interests"),
        "big_five": read_part("personality", "big_five"),
        "relationships": relationships,
        "persona": render_persona(persona),
    }
    return {key: value for key, value in row.items() if value is not None and key not in ("occupation", "residence")}


def _read_relationship(item: Any) -> list[str | None]:
    """Return the name of the other person, and what they are, as the person who has the relationship puts it."""
    if not isinstance(item, Mapping):
        return [str(item), None]
    folded = {key.casefold(): value for key, value in item.items()}
    what = [next((str(folded[key]) for key in keys if folded.get(key)), None) for keys in _RELATION_KEYS]
    return [folded.get("name") or _render_item(item), ": ".join(filter(None, what)) or None]


def render_persona(persona: Mapping[str, Any]) -> str:
    """Write everything that a specification says as text."""
    first = [
        str(persona[key]) if key in ("name", "gender") else f"{key}: {persona[key]}"
        for key in _FIRST
        if persona.get(key) not in (None, "")
    ]
    lines = ["; ".join(first) + "."] if first else []
    for key, value in persona.items():
        if key not in _FIRST:
            lines += _render_lines(key, value, 0)
    return "\n".join(lines)


def _render_lines(key: str, value: Any, depth: int) -> Iterator[str]:
    """Write a heading, and what belongs under it with a deeper margin."""
    margin = "  " * depth
    if value in (None, "", [], {}):
        return
    if isinstance(value, Mapping):
        yield f"{margin}{_label(key)}:"
        for below, each in value.items():
            yield from _render_lines(below, each, depth + 1)
    elif isinstance(value, list):
        yield f"{margin}{_label(key)}:"
        yield from (f"{margin}  - {_render_item(item)}" for item in value)
    else:
        yield f"{margin}{_label(key)}: {value}"


def _render_item(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{_label(key).lower()}: {_render_item(below)}" for key, below in value.items())
    return ", ".join(map(_render_item, value)) if isinstance(value, list) else str(value)


def _label(key: str) -> str:
    text = key.replace("_", " ")
    return text[:1].upper() + text[1:]


def _list_uses(specs: Sequence[Spec]) -> Iterator[FieldUse]:
    """List every field that occurs, with the number of specifications that have it."""
    counts: Counter[str] = Counter()
    for _, spec in specs:
        found: dict[str, bool] = {}
        for path, is_filled in _list_paths(spec):
            found[path] = found.get(path, False) or is_filled
        counts.update({path: int(is_filled) for path, is_filled in found.items()})
    source = specs[0][0] if len(specs) == 1 else f"{len(specs)} files"
    for path, count in counts.items():
        top = path.partition(".")[0].removesuffix("[]")
        use: Use = "used"
        becomes = "part of the persona text"
        if not count:
            use, becomes = "unused", "empty in every record"
        elif top in _UNUSED:
            use, becomes = "unused", _UNUSED[top]
        elif top != PERSONA:
            use, becomes = "kept", f"trait {top!r}"
        elif path in _FIELDS:
            becomes = f"{_FIELDS[path]}, and part of the persona text"
        elif path.startswith("persona.relationships"):
            use, becomes = "kept", "trait 'relationships', and part of the persona text"
        elif path.startswith("persona.personality.big_five"):
            use, becomes = "kept", "trait 'big_five', and part of the persona text"
        elif path == "persona.nationality":
            becomes = "country where no residence is given; part of the persona text"
        yield FieldUse(source, path, use, becomes, count)


def _list_paths(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, bool]]:
    """List every field below a mapping, for example `persona.relationships[].name`, and whether anything is in it."""
    for key, below in value.items():
        if isinstance(below, Mapping) and below:
            yield from _list_paths(below, f"{before}{key}.")
        elif isinstance(below, list) and any(isinstance(item, Mapping) for item in below):
            for item in below:
                is_deeper = isinstance(item, Mapping)
                yield from _list_paths(item, f"{before}{key}[].") if is_deeper else [(f"{before}{key}[]", True)]
        else:
            yield f"{before}{key}", below not in (None, "", [], {})
