"""TinyTroupe's specifications of persons, and the fragments that are merged into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal.errors import ScenarioInvalid
from shoal.scenario.importers.result import FieldUse, Use
from shoal.scenario.importers.tables import RecordTable, columns_of, describe_table
from shoal.scenario.validation.problems import show

#: One specification, and the file that it stands in.
Spec = tuple[str, Mapping[str, Any]]

PERSONA = "persona"
_MEMORIES = "what happened in an earlier simulation; people begin a run without memories"
_UNUSED = {
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
_TOLD_FIRST = ("name", "age", "gender", "nationality", "residence")
#: What fills a field; anything else that has the name of one is a trait, because it was not written as one.
_FILLED = ("name", "age", "gender", "country", "profession", "interests", "persona")
#: Facts of at most this many characters are also traits.
_SHORT = 80


def is_spec(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(PERSONA), Mapping)


def is_fragment(value: Any) -> bool:
    return is_spec(value) and value.get("type") == "Fragment"


def spec_table(specs: Sequence[Spec], fragments: Sequence[Spec], name: str) -> RecordTable:
    """A row for each specification, with every fragment merged into it."""
    problems = [
        f"{file}: expected an object with a `persona`, found {show(spec)}"
        for file, spec in (*specs, *fragments)
        if not is_spec(spec)
    ]
    problems += [f"{file}: a fragment; name it under `fragments`" for file, spec in specs if is_fragment(spec)]
    if problems:
        raise ScenarioInvalid(describe_table(problems))
    whole = []
    for _, spec in specs:
        for _, fragment in fragments:
            spec = {**spec, PERSONA: merge_fragments(spec[PERSONA], fragment[PERSONA])}
        whole.append(spec)
    uses = (*_uses(specs), *_uses(fragments))
    columns = columns_of([_row(spec) for spec in whole])
    return RecordTable(name, columns, range(1, len(whole) + 1), "person", uses=uses, only=_FILLED)


def merge_fragments(base: Any, more: Any) -> Any:
    """Mappings key by key, lists one after the other without repeating anything, anything else replaced."""
    if isinstance(base, Mapping) and isinstance(more, Mapping):
        return {
            **base,
            **{key: merge_fragments(base[key], value) if key in base else value for key, value in more.items()},
        }
    if isinstance(base, list) and isinstance(more, list):
        return [*base, *(item for item in more if item not in base)]
    return more


def _row(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A person's fields. Whatever is not a field of ours is in the text, and what is short or a figure also a trait."""
    persona = spec[PERSONA]
    occupation = persona.get("occupation")
    preferences = persona.get("preferences")
    personality = persona.get("personality")
    row: dict[str, Any] = {key: value for key, value in persona.items() if _is_short(value)}
    row |= {key: value for key, value in spec.items() if key not in _UNUSED and key != PERSONA}
    row |= {
        **{key: persona.get(key) for key in ("name", "age", "gender")},
        "country": persona.get("residence") or persona.get("nationality"),
        "profession": occupation.get("title") if isinstance(occupation, Mapping) else occupation,
        "interests": preferences.get("interests") if isinstance(preferences, Mapping) else None,
        "big_five": personality.get("big_five") if isinstance(personality, Mapping) else None,
        "relationships": _relationships(persona.get("relationships")),
        "persona": persona_text(persona),
    }
    for key in ("occupation", "residence"):
        row.pop(key, None)
    return {key: value for key, value in row.items() if value is not None}


def _is_short(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, str) and len(value) <= _SHORT)


def _relationships(value: Any) -> Any:
    """Pairs of a name and what the other is to this person."""
    if not isinstance(value, list):
        return value
    pairs = []
    for item in value:
        folded = {key.casefold(): below for key, below in item.items()} if isinstance(item, Mapping) else {}
        pairs.append([folded.get("name"), folded.get("description")] if "name" in folded else [str(item), None])
    return pairs


def persona_text(persona: Mapping[str, Any]) -> str:
    """Everything that the specification says, to be read."""
    known = [_first(key, persona[key]) for key in _TOLD_FIRST if persona.get(key) not in (None, "")]
    lines = ["; ".join(known) + "."] if known else []
    for key, value in persona.items():
        if key not in _TOLD_FIRST:
            lines += _told(key, value, 0)
    return "\n".join(lines)


def _first(key: str, value: Any) -> str:
    return str(value) if key in ("name", "gender") else f"{_label(key).lower()}: {value}"


def _told(key: str, value: Any, depth: int) -> Iterator[str]:
    """Lines about one thing that is said: a heading and what belongs under it, further in."""
    margin = "  " * depth
    if value in (None, "", [], {}):
        return
    if isinstance(value, Mapping):
        yield f"{margin}{_label(key)}:"
        for below, each in value.items():
            yield from _told(below, each, depth + 1)
    elif isinstance(value, list):
        yield f"{margin}{_label(key)}:"
        yield from (f"{margin}  - {_item(item)}" for item in value)
    else:
        yield f"{margin}{_label(key)}: {value}"


def _item(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{_label(key).lower()}: {_item(below)}" for key, below in value.items())
    return ", ".join(map(_item, value)) if isinstance(value, list) else str(value)


def _label(key: str) -> str:
    text = key.replace("_", " ")
    return text[:1].upper() + text[1:]


def _uses(specs: Sequence[Spec]) -> Iterator[FieldUse]:
    """What became of every field that occurs, with the number of specifications that have it."""
    counts: Counter[str] = Counter()
    for _, spec in specs:
        counts.update(list(dict.fromkeys(paths(spec))))
    source = specs[0][0] if len(specs) == 1 else f"{len(specs)} files"
    for path, count in counts.items():
        use, becomes = _use(path)
        yield FieldUse(source, path, use, becomes, count)


def paths(value: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Every field below a mapping, such as `persona.relationships[].name`."""
    for key, below in value.items():
        if isinstance(below, Mapping) and below:
            yield from paths(below, f"{before}{key}.")
        elif isinstance(below, list) and any(isinstance(item, Mapping) for item in below):
            for item in below:
                yield from paths(item, f"{before}{key}[].") if isinstance(item, Mapping) else [f"{before}{key}[]"]
        else:
            yield f"{before}{key}"


def _use(path: str) -> tuple[Use, str]:
    top = path.partition(".")[0].removesuffix("[]")
    if top in _UNUSED:
        return "unused", _UNUSED[top]
    if top != PERSONA:
        return "kept", f"trait {top!r}"
    if path in _FIELDS:
        return "used", f"{_FIELDS[path]}, and part of the persona text"
    if path.startswith("persona.relationships"):
        return "kept", "trait 'relationships', and part of the persona text"
    if path.startswith("persona.personality.big_five"):
        return "kept", "trait 'big_five', and part of the persona text"
    if path == "persona.nationality":
        return "used", "country where no residence is given; part of the persona text"
    return "used", "part of the persona text"
