"""Everybody in words, made when first asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.agents.language.personas import in_words
from shoal.types import Population

#: Personas kept in words before they are made anew.
_MAX_KEPT = 50_000


class Everybody:
    """Who people are, and what has changed about them since the run began."""

    def __init__(self, population: Population, topic: str | None) -> None:
        self.names: Sequence[str] = population.names
        self._population = population
        self._topic = topic
        self._texts: dict[int, str] = {}
        self._groups: dict[int, str | None] = {}
        self._changed: dict[int, dict[str, Any]] = {}

    def persona(self, agent: int) -> str:
        text = self._texts.get(agent)
        if text is None:
            if len(self._texts) >= _MAX_KEPT:
                self._texts.clear()
            text = in_words(self._population[agent], self._topic, self._changed.get(agent, {}))
            self._texts[agent] = text
        return text

    def group(self, agent: int) -> str | None:
        if agent not in self._groups:
            group = self._population[agent].traits.get("group")
            self._groups[agent] = None if group is None else str(group)
        return self._groups[agent]

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._changed[agent] = {**self._changed.get(agent, {}), **traits}
        self._texts.pop(agent, None)
