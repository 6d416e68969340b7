"""The mind that asks a language model: one call for each turn, and one more where the reply cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from shoal.agents.language.episodes import summarise_turn
from shoal.agents.language.prefix_stats import PrefixMeter
from shoal.agents.language.prompt import PersonaTexts, Prompt, TurnKey, correction_question, first_question
from shoal.agents.language.references import Finder
from shoal.agents.language.reply import ParsedReply, read_reply
from shoal.agents.language.world_card import WorldCard
from shoal.agents.memory.memory import Memory
from shoal.agents.settings import LanguageSettings
from shoal.errors import ProviderRefused
from shoal.journal import JournalKey
from shoal.models.base import Answer, FailureKind, Model, ModelFailed, Question
from shoal.models.tokens import CHARACTERS_PER_TOKEN
from shoal.text import clip, format_age
from shoal.types import Decision, Mind, MindMode, Observation, Versioned
from shoal.worlds.clock import Clock
from shoal.worlds.context import WorldContext
from shoal.worlds.kinds import renderer_for
from shoal.worlds.names import NameIndex
from shoal.worlds.rendering import Ago

_MAX_CUE_CHARS = 600
_MAX_REASON_CHARS = 500
_AGES_IN_MIND = 4096
REFUSED = "refused"


#: Failures that everybody would meet: it is better to stop than to write a history of them.
HOPELESS = frozenset({FailureKind.AUTH, FailureKind.QUOTA})


class LanguageMind(Mind):
    """Asks a model in the name of each agent. Who answers journals the calls, so that none is paid for twice."""

    outside: ClassVar[bool] = True

    def __init__(
        self,
        given: WorldContext,
        settings: Versioned[LanguageSettings],
        cards: Versioned[WorldCard],
        ask: Model,
        memory: Memory,
    ) -> None:
        super().__init__(given)
        self._versions = settings
        self._cards = cards
        self._ask = ask
        self._memory = memory
        self._people = PersonaTexts(given.population, _topic(given))
        self._index = NameIndex(given.population.names)
        #: From a decision until it is absorbed: what was asked, and what the agent thought.
        self._asked: dict[int, tuple[int, Question | None]] = {}
        self._thoughts: dict[int, str] = {}
        self.prefixes = PrefixMeter()
        # Everybody who sees a post in a round sees it as old as the others do.
        self._ago = lru_cache(_AGES_IN_MIND)(_by(given.clock))

    async def decide(self, observation: Observation) -> Decision:
        self._asked[observation.agent] = (observation.round, None)
        question = self._question(observation, self._recalled(observation))
        self._asked[observation.agent] = (observation.round, question)
        self.prefixes.add(observation.agent, *(message.content for message in question.messages))
        try:
            return await self._decision(observation, question)
        except ModelFailed as failed:
            if failed.failure.kind in HOPELESS:
                raise ProviderRefused(failed.failure.text) from failed
            return Decision(failure="error", reason=clip(str(failed), _MAX_REASON_CHARS))

    def mode(self, agent: int) -> MindMode:
        return MindMode.SELF_JOURNALING

    def deadline(self, agent: int, seconds: float) -> float | None:
        """What asks keeps to the deadline itself, so that waiting for one's turn to ask does not count."""
        return None

    async def prepare(self, observation: Observation) -> None:
        """Wait until the agent remembers all that it should by now; whoever wants its prompt must do so before."""
        await self._memory.settle(observation.agent, observation.round, _cue(observation))

    def request(self, observation: Observation) -> Question:
        """The first question of the turn; of one that was cut short before the agent remembered, what is known."""
        round, question = self._asked.get(observation.agent, (-1, None))
        if round != observation.round:
            return self._question(observation, self._recalled(observation))
        return self._question(observation, "") if question is None else question

    def absorb(self, observation: Observation, decision: Decision) -> None:
        """A turn that came to nothing is not remembered: nobody was there to live it."""
        agent = observation.agent
        self._asked.pop(agent, None)
        thought = self._thoughts.pop(agent, "")
        if decision.failure is None:
            episode, importance = summarise_turn(observation, decision, thought, self._people.names)
            self._memory.absorb(agent, observation.round, observation.time, episode, importance)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._people.change(agent, traits)

    def opinions(self) -> Sequence[float]:
        """Nobody knows what a language model thinks before it is asked."""
        return ()

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        question = self.request(observation)
        return {
            "mind": "language",
            "model": question.model,
            "prompt": [{"role": message.role, "content": message.content} for message in question.messages],
            "recalled": self._recalled(observation),
        }

    async def recollection(self, agent: int, round: int, cue: str) -> tuple[str, str]:
        """Who the agent has become, and what it remembers in view of a cue, after its last turn in this round."""
        await self._memory.settle(agent, round)
        return self._people.persona(agent), self._memory.recall(agent, round, cue)

    async def close(self) -> None:
        await self._memory.close()

    # The prompt

    def _question(self, observation: Observation, recalled: str) -> Question:
        agent, round = observation.agent, observation.round
        settings = self._versions.at(round)
        budget = settings.observation_tokens * CHARACTERS_PER_TOKEN
        sight = renderer_for(observation).render_prompt(observation, budget, self._ago)
        prompt = Prompt(self._people.persona(agent), recalled, sight)
        occasion = TurnKey(JournalKey.of_turn(observation), self._model(agent, settings), self.given.seed)
        return first_question(occasion, prompt, self._cards.at(round), settings)

    def _recalled(self, observation: Observation) -> str:
        return self._memory.recall(observation.agent, observation.round, _cue(observation))

    def _model(self, agent: int, settings: LanguageSettings) -> str:
        if not settings.by_agent and not settings.by_group:
            return settings.model
        return settings.model_of(self._people.names[agent], self._people.group(agent))

    # The reply

    async def _decision(self, observation: Observation, question: Question) -> Decision:
        answer = await self._ask.answer(question)
        reply = self._read(observation, answer)
        if not reply.is_usable and answer.finish != REFUSED:
            again = await self._ask.answer(correction_question(question, answer.text, reply.complaints))
            reply = self._read(observation, again)
        if not reply.is_usable:
            return Decision.unusable(clip("; ".join(reply.complaints), _MAX_REASON_CHARS))
        self._thoughts[observation.agent] = reply.thought
        return Decision(reply.actions)

    def _read(self, observation: Observation, answer: Answer) -> ParsedReply:
        if answer.finish == REFUSED:
            return ParsedReply(complaints=(f"the model refused: {clip(answer.text, 200)}",))
        return read_reply(answer, self._cards.at(observation.round), Finder(observation, self._index))


def _cue(observation: Observation) -> str:
    return clip(" ".join(renderer_for(observation).cue(observation)), _MAX_CUE_CHARS)


def _by(clock: Clock) -> Ago:
    """How long ago something was by this clock, in words."""

    def gone(round: int, rounds: int) -> str:
        return format_age(int(60 * (clock.hours_gone(round) - clock.hours_gone(round - rounds)) + 0.5))

    return gone


def _topic(given: WorldContext) -> str | None:
    subject = given.reader.subject
    return None if subject is None else given.reader.vocabulary[subject]
