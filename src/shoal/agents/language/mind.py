"""The mind that asks a language model: one call for each turn, and one more where the reply cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from shoal.agents.language import episodes, sights
from shoal.agents.language.cards import WorldCard
from shoal.agents.language.finding import Finder
from shoal.agents.language.people import Everybody
from shoal.agents.language.prefix import Prefixes
from shoal.agents.language.prompts import Occasion, Prompt, first_question, second_question
from shoal.agents.language.reading import Reply, read
from shoal.agents.language.wording import ago, clipped
from shoal.agents.memory.memory import Memory
from shoal.agents.settings import LanguageSettings
from shoal.errors import ProviderRefused
from shoal.models.question import Answer, Kind, Model, ModelFailed, Question
from shoal.types import Decision, Mind, Observation, Timeline
from shoal.worlds.clock import Clock
from shoal.worlds.given import Given

#: What a server makes of a token, roughly.
CHARS_PER_TOKEN = 4
_MAX_CUE_CHARS = 600
_MAX_REASON_CHARS = 500
_AGES_IN_MIND = 4096
REFUSED = "refused"


#: Failures that everybody would meet: it is better to stop than to write a history of them.
HOPELESS = frozenset({Kind.AUTH, Kind.QUOTA})


class LanguageMind(Mind):
    """Asks a model in the name of each agent. Who answers journals the calls, so that none is paid for twice."""

    outside: ClassVar[bool] = True
    keeps_journal: ClassVar[bool] = True

    def __init__(
        self,
        given: Given,
        settings: Timeline[LanguageSettings],
        cards: Timeline[WorldCard],
        ask: Model,
        memory: Memory,
    ) -> None:
        super().__init__(given)
        self._versions = settings
        self._cards = cards
        self._ask = ask
        self._memory = memory
        self._people = Everybody(given.population, _topic(given))
        #: From a decision until it is absorbed: what was asked, and what the agent thought.
        self._asked: dict[int, tuple[int, Question | None]] = {}
        self._thoughts: dict[int, str] = {}
        self.prefixes = Prefixes()
        # Everybody who sees a post in a round sees it as old as the others do.
        self._ago = lru_cache(_AGES_IN_MIND)(_by(given.clock))

    async def decide(self, observation: Observation) -> Decision:
        self._asked[observation.agent] = (observation.round, None)
        await self.settle(observation)
        question = self._question(observation, self._recalled(observation))
        self._asked[observation.agent] = (observation.round, question)
        self.prefixes.add(observation.agent, *(message.content for message in question.messages))
        try:
            return await self._decision(observation, question)
        except ModelFailed as failed:
            if failed.failure.kind in HOPELESS:
                raise ProviderRefused(failed.failure.text) from failed
            return Decision(failure="error", reason=clipped(str(failed), _MAX_REASON_CHARS))

    def deadline(self, agent: int, seconds: float) -> float | None:
        """What asks keeps to the deadline itself, so that waiting for one's turn to ask does not count."""
        return None

    async def settle(self, observation: Observation) -> None:
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
            episode, importance = episodes.told(observation, decision, thought, self._people.names)
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
        sight = sights.in_words(observation, settings.observation_tokens * CHARS_PER_TOKEN, self._ago)
        prompt = Prompt(self._people.persona(agent), recalled, sight)
        occasion = Occasion(f"{observation.world}/{round}/{agent}", self._model(agent, settings), self.given.seed)
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
            again = await self._ask.answer(second_question(question, answer.text, reply.complaints))
            reply = self._read(observation, again)
        if not reply.is_usable:
            return Decision.unusable(clipped("; ".join(reply.complaints), _MAX_REASON_CHARS))
        self._thoughts[observation.agent] = reply.thought
        return Decision(reply.actions)

    def _read(self, observation: Observation, answer: Answer) -> Reply:
        if answer.finish == REFUSED:
            return Reply(complaints=(f"the model refused: {clipped(answer.text, 200)}",))
        return read(answer, self._cards.at(observation.round), Finder(observation, self._people.names))


def _cue(observation: Observation) -> str:
    return clipped(" ".join(sights.words_of(observation)), _MAX_CUE_CHARS)


def _by(clock: Clock) -> sights.Ago:
    """How long ago something was by this clock, in words."""

    def gone(round: int, rounds: int) -> str:
        return ago(int(60 * (clock.hours_gone(round) - clock.hours_gone(round - rounds)) + 0.5))

    return gone


def _topic(given: Given) -> str | None:
    subject = given.reader.subject
    return None if subject is None else given.reader.vocabulary[subject]
