"""What a scenario may say about conversations of two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from shoal.worlds.world_kind import Path, Who, WorldSettings


class SceneSettings(BaseModel):
    """One scene of every conversation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    setting: str = Field(default="", description="Where and when it takes place, told to both.")
    turning_point: str | None = Field(default=None, description="Something that happens in the middle of it.")
    turns: int | None = Field(
        default=None, ge=1, le=10_000, description="Turns at most; default: as the dialogue says."
    )


class StopSettings(BaseModel):
    """When a scene ends before its turns are over."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    said: tuple[str, ...] = Field(default=(), description="When one of these words is said.")
    silence: int | None = Field(default=None, ge=1, description="After this many turns in a row without a word.")
    agreement: float | None = Field(
        default=None, ge=0, le=2, description="When what both said last leans the same way, within this distance."
    )


class DialogueSettings(WorldSettings):
    """Conversations of two, side by side."""

    kind: Literal["dialogue"] = Field(default="dialogue", description="Conversations of two.")
    pairs: Literal["listed", "random"] | dict[str, str] | tuple[tuple[Who, Who], ...] = Field(
        default="listed",
        description="Who talks to whom: neighbours in the list, drawn at random, pairs of names, or one group to "
        "another, such as {customers: sellers}.",
    )
    turns: int = Field(default=20, ge=1, le=10_000, description="Turns of a scene, at most; the two take them in turn.")
    scenes: tuple[SceneSettings, ...] = Field(
        default=(SceneSettings(),), min_length=1, description="Scenes, one after another."
    )
    stop: StopSettings = Field(default=StopSettings(), description="When a scene ends early.")
    score: bool = Field(default=True, description="Whether both say after each scene how it went.")

    def rounds_needed(self) -> int:
        """Return the rounds that the longest conversation takes."""
        return sum((scene.turns or self.turns) + self.score for scene in self.scenes)

    def without_early_end(self) -> Self:
        return self.model_copy(update={"stop": StopSettings()})

    def least_turns(self, acting: int) -> int:
        """Return the turns of `acting` pairs if each scene ends with its first words."""
        return acting * len(self.scenes) * (1 + 2 * self.score)

    def mentions(self) -> Iterator[tuple[Path, Who]]:
        for index, pair in enumerate(self.list_named_pairs()):
            yield from ((("pairs", index, end), who) for end, who in enumerate(pair))

    def list_named_pairs(self) -> tuple[tuple[Who, Who], ...]:
        """Return the pairs that are given by names or numbers."""
        return self.pairs if isinstance(self.pairs, tuple) else ()

    def groups(self) -> Iterator[tuple[Path, str]]:
        for first, second in self.pairs.items() if isinstance(self.pairs, dict) else ():
            yield from ((("pairs", first), group) for group in (first, second))

    def problems(self, number: Callable[[Who], Who]) -> Iterator[tuple[Path, str]]:
        """Yield who would be in two conversations at once, and who would talk to themselves."""
        counts = Counter(group for _, group in self.groups())
        for path, group in self.groups():
            if counts[group] > 1:
                yield path, f"group {group!r} stands in two places; its people can be in one conversation each"
        seen: dict[Who, int] = {}
        for index, pair in enumerate(self.list_named_pairs()):
            for end, who in enumerate(pair):
                first = seen.setdefault(number(who), index)
                if first != index:
                    yield ("pairs", index, end), f"{who!r} is already in pair {first}; nobody can be in two"
            if number(pair[0]) == number(pair[1]):
                yield ("pairs", index), f"{pair[0]!r} cannot talk to themselves"
