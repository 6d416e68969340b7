"""The mind that asks a language model: one call for each turn, and one more where the reply cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from shoal.agents.language.episodes import summarise_turn
from shoal.agents.language.prefix_stats import PrefixMeter
from shoal.agents.language.prompt import PersonaTexts, ask_again, join_prompt
from shoal.agents.language.references import Finder
from shoal.agents.language.reply import ParsedReply, read_reply
from shoal.agents.language.world_card import WorldCard
from shoal.agents.memory.memory import Memory
from shoal.agents.settings import LanguageSettings
from shoal.errors import ProviderRefused
from shoal.journal import JournalKey
from shoal.models import CHARACTERS_PER_TOKEN, Answer, FailureKind, Message, Model, ModelFailed, Question
from shoal.text import clip
from shoal.types import Decision, Mind, MindMode, Observation, Versioned
from shoal.worlds import NameIndex, WorldContext, renderer_for

_MAX_CUE_CHARS = 600
_MAX_REASON_CHARS = 500
_AGES_KEPT = 4096
_REFUSED = "refused"

#: Failures that every agent would meet: it is better to stop than to write a history of them.
_HOPELESS = frozenset({FailureKind.AUTH, FailureKind.QUOTA})


class LanguageMind(Mind):
    """Asks a model in the name of each agent. The model journals the calls, so that none is paid for twice."""

    outside: ClassVar[bool] = True

    def __init__(
        self,
        given: WorldContext,
        settings: Versioned[LanguageSettings],
        cards: Versioned[WorldCard],
        model: Model,
        memory: Memory,
    ) -> None:
        super().__init__(given)
        self._versions = settings
        self._cards = cards
        self._model = model
        self._memory = memory
        self._people = PersonaTexts(given.population, given.reader.subject_name)
        self._index = NameIndex(given.population.names)
        #: From a decision until it is absorbed: what was asked, and what the agent thought.
        self._asked: dict[int, tuple[int, Question | None]] = {}
        self._thoughts: dict[int, str] = {}
        self.prefixes = PrefixMeter()
        # Many agents see the same post in a round, and it is equally old for all of them.
        self._ago = lru_cache(_AGES_KEPT)(given.clock.format_age)

    async def decide(self, observation: Observation) -> Decision:
        self._asked[observation.agent] = (observation.round, None)
        question = self._build_question(observation, self._recall(observation))
        self._asked[observation.agent] = (observation.round, question)
        self.prefixes.add(observation.agent, *(message.content for message in question.messages))
        try:
            answer = await self._model.answer(question)
            reply = self._read(observation, answer)
            if not reply.is_usable and answer.finish != _REFUSED:
                reply = self._read(
                    observation, await self._model.answer(ask_again(question, answer.text, reply.complaints))
                )
        except ModelFailed as failed:
            if failed.failure.kind in _HOPELESS:
                raise ProviderRefused(failed.failure.text) from failed
            return Decision(failure="error", reason=clip(str(failed), _MAX_REASON_CHARS))
        if not reply.is_usable:
            return Decision.unusable(clip("; ".join(reply.complaints), _MAX_REASON_CHARS))
        self._thoughts[observation.agent] = reply.thought
        return Decision(reply.actions)

    def mode(self, agent: int) -> MindMode:
        return MindMode.SELF_JOURNALING

    def deadline(self, agent: int, seconds: float) -> float | None:
        """Return no deadline: the model keeps it, so that waiting for a free slot does not count."""
        return None

    async def prepare(self, observation: Observation) -> None:
        """Wait until the agent remembers everything that it should by now. Its prompt can be read only after this."""
        await self._memory.settle(observation.agent, observation.round, _cue(observation))

    def request(self, observation: Observation) -> Question:
        """Return the first question of the turn. Of a turn that was cut short earlier, return what is known."""
        round, question = self._asked.get(observation.agent, (-1, None))
        if round != observation.round:
            return self._build_question(observation, self._recall(observation))
        return self._build_question(observation, "") if question is None else question

    def absorb(self, observation: Observation, decision: Decision) -> None:
        """Remember the turn, unless it failed."""
        agent = observation.agent
        self._asked.pop(agent, None)
        thought = self._thoughts.pop(agent, "")
        if decision.failure is None:
            episode, importance = summarise_turn(observation, decision, thought, self._people.names)
            self._memory.absorb(agent, observation.round, observation.time, episode, importance)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._people.change(agent, traits)

    def opinions(self) -> Sequence[float]:
        """Return nothing: the opinion of a language model is not known before it is asked."""
        return ()

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        question = self.request(observation)
        return {
            "mind": "language",
            "model": question.model,
            "prompt": [{"role": message.role, "content": message.content} for message in question.messages],
            "recalled": self._recall(observation),
        }

    async def recollection(self, agent: int, round: int, cue: str) -> tuple[str, str]:
        """Return who the agent has become, and what a cue reminds it of, after its last turn in this round."""
        await self._memory.settle(agent, round)
        return self._people.persona(agent), self._memory.recall(agent, round, cue)

    async def close(self) -> None:
        await self._memory.close()

    def _build_question(self, observation: Observation, recalled: str) -> Question:
        """Build the question for a turn. Runs with different seeds are different samples of the same question."""
        agent, round = observation.agent, observation.round
        settings, card = self._versions.at(round), self._cards.at(round)
        model = settings.model
        if settings.by_agent or settings.by_group:
            model = settings.model_of(self._people.names[agent], self._people.group(agent))
        budget_chars = settings.observation_tokens * CHARACTERS_PER_TOKEN
        sight = renderer_for(observation).render_prompt(observation, budget_chars, self._ago)
        prompt = join_prompt(self._people.persona(agent), recalled, sight)
        return Question(
            key=JournalKey.of_turn(observation),
            model=model,
            iteration=self.given.seed,
            messages=(Message("system", card.text), Message("user", prompt)),
            schema=card.schema,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
        )

    def _recall(self, observation: Observation) -> str:
        return self._memory.recall(observation.agent, observation.round, _cue(observation))

    def _read(self, observation: Observation, answer: Answer) -> ParsedReply:
        if answer.finish == _REFUSED:
            return ParsedReply(complaints=(f"the model refused: {clip(answer.text, 200)}",))
        return read_reply(answer, self._cards.at(observation.round), Finder(observation, self._index))


def _cue(observation: Observation) -> str:
    return clip(" ".join(renderer_for(observation).cue(observation)), _MAX_CUE_CHARS)
