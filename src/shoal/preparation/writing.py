"""Writes a draft down as an ordinary scenario: `scenario.yaml` with comments, the people, and the evidence for them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from shoal.errors import RunRefused
from shoal.preparation.draft import Draft, DraftGroup
from shoal.preparation.reading.findings import Findings
from shoal.preparation.request import PreparationRequest
from shoal.runs import storage_errors

SCENARIO, PEOPLE, EVIDENCE = "scenario.yaml", "people.json", "evidence.json"
#: Comments of the scenario, by the field that they stand before.
_COMMENTS = {
    "topic": "What people talk about; opinions are for (1) or against (-1) it.",
    "context": "What everybody knows. Agents with a language model see it in every turn.",
    "claims": "Statements that people may believe or not. Say truth: true or false where you know it.",
    "population": f"Whoever the texts speak of is in {PEOPLE}, one entry each, and every field of it can be edited;\n"
    f"# {EVIDENCE} has the sentences that it rests on. The others are drawn from what is said here.",
    "follows": "Who follows whom: the relations in the texts are in the people's `follows`, the others are drawn.",
    "worlds": "Where people meet.",
    "mind": "What makes the decisions: heuristic is offline and free; or {kind: language, model: ...}.",
    "events": "What is posted at the start. Each post can say which claim it supports or denies.",
    "notes": "Where this comes from. It has no effect on runs.",
}
_WHOLE_POPULATION = "Whoever the texts speak of comes first; the others are drawn from what is said here."


def build_scenario(request: PreparationRequest, draft: Draft, tables: Sequence[str]) -> dict[str, Any]:
    """Build the scenario in plain values, without fields that say nothing."""
    followed = sorted(draft.people, key=lambda person: -person.influence)
    mind: dict[str, Any] = {"kind": "heuristic"}
    if request.model is not None:
        address = {} if request.base_url is None else {"base_url": request.base_url}
        mind = {"kind": "language", "model": request.model, **address}
    names, claims = {person.name for person in draft.people}, {claim.id for claim in draft.claims}
    events: list[dict[str, Any]] = []
    for post in draft.posts:
        by = post.author if post.author in names else "most_followed"
        lean: dict[str, Any] = {post.lean: post.claim} if post.lean != "none" and post.claim in claims else {}
        events.append({"post": post.text, "by": by, "round": 0, **lean})
    content: dict[str, Any] = {
        "name": request.name,
        "topic": draft.topic,
        "seed": request.seed,
        "rounds": request.rounds or draft.rounds,
        "time": {"minutes_per_round": draft.minutes_per_round},
        "context": draft.context,
        "claims": [{"id": claim.id, "text": claim.text, "truth": "open"} for claim in draft.claims],
        "population": [*([{"file": PEOPLE}] if draft.people else []), *_list_groups(request, draft, tables)],
        "follows": {"graph": "scale-free"} if followed and request.people > 1 else None,
        "worlds": list(request.worlds),
        "mind": mind,
        "events": events,
        "notes": {
            "simulation_requirement": request.requirement,
            "documents": [document.name for document in request.documents],
            "generation_reasoning": f"read by {request.model or 'rules'}",
        },
    }
    return {name: value for name, value in content.items() if value not in ("", None, [])}


def write_scenario_files(folder: Path, request: PreparationRequest, draft: Draft, findings: Findings) -> None:
    """Write the files of the scenario, itself the last one. A file that is there already must be the same."""
    tables = [f"tables/{name}" for name, _ in request.tables]
    for name, (_, text) in zip(tables, request.tables, strict=True):
        _write_once(folder / name, text)
    if draft.people:
        records = [person.to_record() for person in draft.people]
        _write_once(folder / PEOPLE, _format_json(records))
    _write_once(folder / EVIDENCE, _format_json(describe_evidence(request, draft, findings)))
    _write_once(folder / SCENARIO, format_scenario(build_scenario(request, draft, tables)))


def format_scenario(content: Mapping[str, Any], comments: Mapping[str, str] = _COMMENTS) -> str:
    """Format a scenario as YAML with a comment before each part."""
    parts = [f"# Made by `shoal prepare`. Everything can be edited. Run it:  shoal run {SCENARIO}"]
    for name, value in content.items():
        comment = [f"\n# {comments[name]}"] if name in comments else []
        # A list or mapping of plain values stands on one line, as in the starter; the outermost one never does.
        style = None if isinstance(value, list | dict) else False
        text = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=116, default_flow_style=style)
        parts += [*comment, text.rstrip("\n")]
    return "\n".join(parts) + "\n"


def format_whole_scenario(folder: Path) -> str | None:
    """Format a prepared scenario as one text with its people in it; None where it needs demographic tables as files."""
    content = yaml.safe_load((folder / SCENARIO).read_text(encoding="utf-8"))
    population = content["population"]
    if any("marginals" in entry for entry in population):
        return None
    written = any("file" in entry for entry in population)
    people = msgspec.json.decode((folder / PEOPLE).read_bytes()) if written else []
    content["population"] = [*people, *(entry for entry in population if "file" not in entry)]
    return format_scenario(content, {**_COMMENTS, "population": _WHOLE_POPULATION})


def describe_evidence(request: PreparationRequest, draft: Draft, findings: Findings) -> dict[str, Any]:
    """Return what the people rest on: for each the sentences of the documents, and the relations."""
    written = {person.name for person in draft.people}
    entities = [
        {
            "name": entity.name,
            "kind": entity.kind,
            "also_called": entity.aliases,
            "mentions": entity.mentions,
            "role": entity.role,
            "stance": entity.stance,
            "sentences": [msgspec.to_builtins(sentence) for sentence in entity.evidence],
            "quotes": entity.quotes,
        }
        for entity in findings.entities
        if entity.name in written
    ]
    return {
        "requirement": request.requirement,
        "documents": [
            {"name": document.name, "language": document.language, "characters": document.characters}
            for document in request.documents
        ],
        "entities": entities,
        "relations": [msgspec.to_builtins(relation) for relation in findings.relations],
        "claims": [msgspec.to_builtins(claim) for claim in findings.claims],
        "notes": draft.notes,
    }


def count_drawn(request: PreparationRequest, draft: Draft) -> int:
    """Return how many people are drawn beside the entities."""
    return max(0, request.people - len(draft.people))


def _list_groups(request: PreparationRequest, draft: Draft, tables: Sequence[str]) -> Iterator[dict[str, Any]]:
    drawn = count_drawn(request, draft)
    if tables and drawn:
        yield {"marginals": list(tables), "count": drawn, "group": "public"}
        return
    for group, count in zip(draft.groups, share_out(draft.groups, drawn), strict=True):
        if count:
            entry: dict[str, Any] = {"count": count, "group": group.group}
            if group.age is not None:
                entry["age"] = {
                    "normal": list(group.age),
                    "min": max(0, round(group.age[0] - 3 * group.age[1])),
                    "max": 100,
                }
            if group.professions:
                entry["profession"] = group.professions
            if group.interests:
                entry["interests"] = group.interests
            if group.stance is not None:
                entry["stance"] = {"normal": list(group.stance)}
            yield entry


def share_out(groups: Sequence[DraftGroup], people: int) -> list[int]:
    """Divide people among groups by their shares, by largest remainders."""
    total = sum(max(0.0, group.share) for group in groups) or 1.0
    exact = [people * max(0.0, group.share) / total for group in groups]
    counts = [int(each) for each in exact]
    by_rest = sorted(range(len(groups)), key=lambda place: counts[place] - exact[place])
    for place in by_rest[: people - sum(counts) if groups else 0]:
        counts[place] += 1
    return counts


def _format_json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _write_once(path: Path, text: str) -> None:
    """Write a file whole or not at all; RunRefused where another text is there already."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if path.read_text(encoding="utf-8") != text:
                raise RunRefused(
                    f"{path} is there already and is not what would be written; nothing was overwritten. "
                    "Choose another folder with --out."
                )
            return
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
