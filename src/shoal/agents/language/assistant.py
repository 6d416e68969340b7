"""The assistant under test: a plain chat with its own system message, in which the person it talks to is the user.

No rules, no persona, no memory, no schema and no tools: the model gets what its users would send it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from shoal.agents.language.unusable_turns import UnusableTurns
from shoal.agents.settings import LanguageSettings
from shoal.journal import JournalKey
from shoal.models import Message, Model, ModelFailed, Question, Remedy, strip_reasoning
from shoal.text import clip
from shoal.types import Action, Decision, Mind, MindMode, Observation, Versioned
from shoal.worlds import NO_ACTION, WorldContext, renderer_for

_MAX_REASON_CHARS = 500


class AssistantMind(Mind):
    """Answers what was said in a dialogue. The model journals the calls, so that none is paid for twice."""

    outside: ClassVar[bool] = True

    def __init__(self, given: WorldContext, settings: Versioned[LanguageSettings], model: Model) -> None:
        super().__init__(given)
        self._versions = settings
        self._model = model
        self._unusable = UnusableTurns()
        self._systems: dict[int, tuple[str, str]] = {}

    def mode(self, agent: int) -> MindMode:
        return MindMode.SELF_JOURNALING

    def deadline(self, agent: int, seconds: float) -> float | None:
        """Return no deadline: the model keeps it, so that waiting for a free slot does not count."""
        return None

    def request(self, observation: Observation) -> Question:
        agent = observation.agent
        if agent not in self._systems:
            persona = self.given.population[agent]
            self._systems[agent] = str(persona.traits.get("group")), persona.persona
        group, system = self._systems[agent]
        settings = self._versions.at(observation.round).for_group(group)
        first = (Message("system", system),) if system else ()
        # Lines in a row by one side are one message.
        said: list[tuple[str, list[str]]] = []
        for is_own, text in renderer_for(observation).list_said(observation):
            role = "assistant" if is_own else "user"
            if not said or said[-1][0] != role:
                said.append((role, []))
            said[-1][1].append(text)
        return Question(
            key=JournalKey.of_turn(observation),
            model=settings.model,
            iteration=self.given.seed,
            messages=(*first, *(Message(role, "\n\n".join(texts)) for role, texts in said)),
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
        )

    async def decide(self, observation: Observation) -> Decision:
        """Answer the last words of the other side; say nothing where there are none."""
        question = self.request(observation)
        if not question.messages or question.messages[-1].role != "user":
            return Decision((NO_ACTION,))
        try:
            text = strip_reasoning((await self._model.answer(question)).text).strip()
        except ModelFailed as failed:
            if failed.failure.kind.remedy is Remedy.ACCEPT:
                self._unusable.count(question.model, str(failed))
            return Decision(failure="error", reason=clip(str(failed), _MAX_REASON_CHARS))
        if not text:
            self._unusable.count(question.model, why := "the assistant's reply is empty")
            return Decision.unusable(why)
        self._unusable.clear(question.model)
        return Decision((Action("SAY", {"content": text}),))

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        question = self.request(observation)
        prompt = [{"role": message.role, "content": message.content} for message in question.messages]
        return {"mind": "assistant", "model": question.model, "prompt": prompt, "recalled": ""}

    def opinions(self) -> Sequence[float]:
        return ()
