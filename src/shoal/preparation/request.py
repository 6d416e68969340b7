"""What is to be prepared: a requirement, documents, and how large the result is. It is frozen when work begins."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ArgumentInvalid
from shoal.formats import decode_text
from shoal.preparation.reading.documents import SourceDocument
from shoal.scenario import read_content
from shoal.text import clip, one_of, replace_surrogates

MAX_REQUIREMENT_CHARS = 20_000
MAX_PEOPLE = 1_000_000
WORLDS = ("twitter", "reddit", "room")
USUAL_PEOPLE = 100
_NAME_WORDS = re.compile(r"[A-Za-z0-9]+")
_MAX_NAME_CHARS = 40


class PreparationRequest(msgspec.Struct, frozen=True):
    """A requirement in plain words, the documents as they were read, and the settings of the result."""

    requirement: str
    documents: tuple[SourceDocument, ...] = ()
    #: How many people there are in all.
    people: int = USUAL_PEOPLE
    #: None: as the model thinks fit, or 24.
    rounds: int | None = None
    worlds: tuple[str, ...] = ("twitter",)
    seed: int = 1
    #: The language model that reads; None: rules do.
    model: str | None = None
    base_url: str | None = None
    #: What people talk about; None: chosen from the requirement.
    topic: str | None = None
    #: Demographic tables: the name and the content of each file.
    tables: tuple[tuple[str, str], ...] = ()
    #: How many entities become people at most; None: as many as there are people.
    max_entities: int | None = None

    @classmethod
    def of(cls, requirement: str, documents: Sequence[SourceDocument] = (), **settings: Any) -> PreparationRequest:
        """Check a request; ArgumentInvalid names what is wrong."""
        text = replace_surrogates(requirement).strip()
        if not text and not documents:
            raise ArgumentInvalid("requirement", "say in plain words what is to be simulated, or name documents")
        if len(text) > MAX_REQUIREMENT_CHARS:
            raise ArgumentInvalid(
                "requirement",
                f"it has {len(text):,} characters; at most {MAX_REQUIREMENT_CHARS:,} are read, the rest in documents",
            )
        request = cls(text, tuple(documents), **{name: value for name, value in settings.items() if value is not None})
        request.check()
        return request

    def check(self) -> None:
        """Raise ArgumentInvalid where a setting is out of range."""
        if not 1 <= self.people <= MAX_PEOPLE:
            raise ArgumentInvalid("people", f"expected 1 to {MAX_PEOPLE:,} people, found {self.people:,}")
        if self.rounds is not None and not 1 <= self.rounds <= MAX_PEOPLE:
            raise ArgumentInvalid("rounds", f"expected 1 to {MAX_PEOPLE:,} rounds, found {self.rounds:,}")
        if unknown := [world for world in self.worlds if world not in WORLDS]:
            raise ArgumentInvalid("worlds", f"there is no world {unknown[0]!r}; there is {one_of(WORLDS)}")
        if not self.worlds:
            raise ArgumentInvalid("worlds", f"name at least one world: {one_of(WORLDS)}")

    @property
    def name(self) -> str:
        """The name of the scenario, made of the first words of the requirement."""
        source = self.topic or self.requirement or (self.documents[0].name if self.documents else "")
        words = "-".join(word.lower() for word in _NAME_WORDS.findall(source))
        return words[:_MAX_NAME_CHARS].strip("-") or "prepared"

    @property
    def digest(self) -> str:
        """What identifies the request: the same one has the same digest on every machine."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def describe_difference(self, other: PreparationRequest) -> str:
        """Say in what another request differs from this one."""
        for field in self.__struct_fields__:
            mine, theirs = getattr(self, field), getattr(other, field)
            if mine != theirs:
                if field in ("documents", "tables"):
                    return f"other {field}"
                return f"{field}: {clip(str(mine), 60)!r} there, {clip(str(theirs), 60)!r} now"
        return "nothing"


def read_tables(paths: Sequence[Path]) -> tuple[tuple[str, str], ...]:
    """Read the files of demographic tables under different names."""
    tables: dict[str, str] = {}
    for number, path in enumerate(paths):
        name = path.name if path.name not in tables else f"{number}-{path.name}"
        tables[name] = decode_text(read_content(path), path.name)
    return tuple(tables.items())
