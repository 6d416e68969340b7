"""What a scenario may say about conversations of two."""

from __future__ import annotations

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
    pairs: Literal["listed", "random"] | tuple[tuple[Who, Who], ...] = Field(
        default="listed", description="Which people talk: neighbours in the list, drawn at random, or pairs of names."
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
        for index, pair in enumerate(() if isinstance(self.pairs, str) else self.pairs):
            yield from ((("pairs", index, end), who) for end, who in enumerate(pair))

    def problems(self, number: Callable[[Who], Who]) -> Iterator[tuple[Path, str]]:
        """Yield who would be in two conversations at once, and who would talk to themselves."""
        seen: dict[Who, int] = {}
        for index, pair in enumerate(() if isinstance(self.pairs, str) else self.pairs):
            for end, who in enumerate(pair):
                first = seen.setdefault(number(who), index)
                if first != index:
                    yield ("pairs", index, end), f"{who!r} is already in pair {first}; nobody can be in two"
            if number(pair[0]) == number(pair[1]):
                yield ("pairs", index), f"{pair[0]!r} cannot talk to themselves"
