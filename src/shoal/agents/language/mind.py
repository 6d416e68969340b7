"""The mind that asks a language model: one call for each turn, and one more where the reply cannot be used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import Any, ClassVar

from shoal.agents.interview import Respondent
from shoal.agents.language.poll import OpinionPoll
from shoal.agents.language.prefix_stats import PrefixMeter
from shoal.agents.language.prompt import PersonaTexts, PromptBook
from shoal.agents.language.reply import Finder, ParsedReply, read_reply
from shoal.agents.language.unusable_turns import UnusableTurns
from shoal.agents.language.world_card import CardLimits, WorldCard, build_card, list_in_sight, list_offered, turn_schema
from shoal.agents.memory.knowledge import GraphKnowledge
from shoal.agents.memory.memory import Memory
from shoal.agents.settings import LanguageSettings
from shoal.journal import JournalKey
from shoal.models import CHARACTERS_PER_TOKEN, Answer, Message, Model, ModelFailed, Question, Remedy
from shoal.text import clip, join_words, quote
from shoal.types import Decision, Event, Mind, MindMode, Notice, Observation, Versioned
from shoal.worlds import (
    MAX_SPEECH_CHARS,
    PAST_VERBS,
    NameIndex,
    WorldContext,
    WorldRules,
    find_written,
    renderer_for,
)

_MAX_CUE_CHARS = 600
_MAX_REASON_CHARS = 500
_AGES_KEPT = 4096
_MAX_NEWS_CHARS = 100
_MAX_THOUGHT_CHARS = 90
_MAX_REFUSAL_CHARS = 80
#: After this much of what was done in one turn, the rest is only counted.
_MAX_DONE_CHARS = 240
#: How much a turn matters: one that only looked on, one that said something, one in which there were news.
_QUIET, _SPOKEN, _NEWS = 1.0, 1.5, 2.0


@dataclass(frozen=True, slots=True)
class _Asking:
    """How the people of one group are asked, from one version of the scenario on."""

    settings: LanguageSettings
    book: PromptBook
    rules: WorldRules
    #: Actions that make no sense -> the card without them. There are few, so that most prompts begin alike.
    cards: dict[frozenset[str], WorldCard] = field(default_factory=dict)

    def card(self, seen: Observation, done: Collection[str]) -> WorldCard:
        """Return the card with the actions that make sense now."""
        renderer, is_old = renderer_for(seen), self.settings.prompt.version == 1
        senseless = frozenset[str]() if is_old else renderer.find_senseless(seen, done)
        card = self.cards.get(senseless)
        if card is None:
            offered = list_offered(self.rules, senseless, () if is_old else renderer.occasional)
            card = self.cards[senseless] = build_card(self.rules, CardLimits.of(self.settings), offered)
        return card

    @property
    def speech_chars(self) -> int:
        """How many characters of one remark are shown. A long answer is read to its end if it can be."""
        shown = self.settings.observation_tokens * CHARACTERS_PER_TOKEN // 2
        return MAX_SPEECH_CHARS if self.settings.prompt.version == 1 else max(shown, MAX_SPEECH_CHARS)


@dataclass(slots=True)
class _Turn:
    """A turn of an agent, with its results as soon as they are known."""

    observation: Observation
    decision: Decision
    thought: str
    events: Sequence[Event] = ()


class LanguageMind(Mind):
    """Asks a model in the name of each agent. The model journals the calls, so that none is paid for twice."""

    outside: ClassVar[bool] = True

    def __init__(
        self,
        given: WorldContext,
        settings: Versioned[LanguageSettings],
        rules: Versioned[WorldRules],
        model: Model,
        memory: Memory,
    ) -> None:
        super().__init__(given)
        self._versions = settings
        self._rules = rules
        #: Settings and rules of a round (by id), and group -> how its people are asked.
        self._askings: dict[tuple[int, int, str | None], _Asking] = {}
        self._model = model
        self._memory = memory
        self._people = PersonaTexts(given.population, given.reader.subject_name)
        self._index = NameIndex(given.population.names)
        #: From a decision until it is absorbed: what was asked, and what the agent thought.
        self._asked: dict[int, tuple[int, Question | None]] = {}
        self._thoughts: dict[int, str] = {}
        #: Agent -> its turns that are not remembered yet, as it does not know their results.
        self._turns: defaultdict[int, list[_Turn]] = defaultdict(list)
        #: Agent -> kinds of action that it has carried out.
        self._done: defaultdict[int, set[str]] = defaultdict(set)
        #: Agent -> which actions of its last turn were refused, and why.
        self._refused: dict[int, str] = {}
        self._unusable = UnusableTurns()
        #: Agent -> what it saw in its last turn.
        self.sights: dict[int, Observation] = {}
        self.prefixes = PrefixMeter()
        #: Asks agents what they think; None where the scenario does not want to know.
        self.poll: OpinionPoll | None = None
        #: What can be known of others; None where the scenario does not want it in prompts.
        self.knowledge: GraphKnowledge | None = None
        # Many agents see the same post in a round, and it is equally old for all of them.
        self._ago = lru_cache(_AGES_KEPT)(given.clock.format_age)

    async def decide(self, observation: Observation) -> Decision:
        self._asked[observation.agent] = (observation.round, None)
        question = self._build_question(observation, self._recall(observation))
        self._asked[observation.agent] = (observation.round, question)
        self.prefixes.add_later(observation.agent, *(message.content for message in question.messages))
        try:
            answer = await self._model.answer(question)
            reply = self._read(observation, answer)
            if not reply.is_usable and not answer.is_refused:
                wrong = "; ".join(dict.fromkeys(reply.complaints))
                complaint = f"{wrong}. Reply again, with one JSON object in the form you were given."
                reply = self._read(observation, await self._model.answer(question.ask_again(answer.text, complaint)))
        except ModelFailed as failed:
            if failed.failure.kind.remedy is Remedy.ACCEPT:
                self._unusable.count(question.model, str(failed))
            return Decision(failure="error", reason=clip(str(failed), _MAX_REASON_CHARS))
        if not reply.is_usable:
            self._unusable.count(question.model, "; ".join(reply.complaints))
            return Decision.unusable(clip("; ".join(reply.complaints), _MAX_REASON_CHARS))
        self._unusable.clear(question.model)
        self._thoughts[observation.agent] = reply.thought
        return Decision(reply.actions)

    def mode(self, agent: int) -> MindMode:
        return MindMode.SELF_JOURNALING

    def deadline(self, agent: int, seconds: float) -> float | None:
        """Return no deadline: the model keeps it, so that waiting for a free slot does not count."""
        return None

    async def prepare(self, observation: Observation) -> None:
        """Wait until the agent remembers everything that it should by now. Its prompt can be read only after this."""
        self._remember_turns(observation.agent, observation.round)
        await self._memory.settle(observation.agent, observation.round, self._cue(observation))

    def request(self, observation: Observation) -> Question:
        """Return the first question of the turn. Of a turn that was cut short earlier, return what is known."""
        round, question = self._asked.get(observation.agent, (-1, None))
        if round != observation.round:
            return self._build_question(observation, self._recall(observation))
        return self._build_question(observation, "") if question is None else question

    def absorb(self, observation: Observation, decision: Decision) -> None:
        """Keep the turn, unless it failed, until its results are known."""
        agent = observation.agent
        self._asked.pop(agent, None)
        self.sights[agent] = observation
        turn = _Turn(observation, decision, self._thoughts.pop(agent, ""))
        if decision.failure is not None:
            return
        if self._versions.at(observation.round).prompt.version == 1:
            self._remember(turn)
        else:
            self._turns[agent].append(turn)

    @property
    def learns(self) -> bool:
        return self.knowledge is not None

    def learn(self, round: int, happened: Sequence[Event | Notice]) -> None:
        if self.knowledge is not None:
            self.knowledge.learn(round, happened)

    def take_results(self, round: int, agent: int, events: Sequence[Event]) -> None:
        for turn in self._turns.get(agent, ()):
            if turn.observation.round == round:
                turn.events = events

    def _remember_turns(self, agent: int, round: int) -> None:
        """Remember the turns whose results the agent can know in this round."""
        turns, known = self._turns.get(agent), round - self._rules.at(round).visibility
        while turns and turns[0].observation.round <= known:
            self._remember(turns.pop(0))

    def _remember(self, turn: _Turn) -> None:
        seen = turn.observation
        episode, importance = summarise_turn(seen, turn.decision, turn.thought, self._people.names, turn.events)
        time = "" if self._asking(seen.agent, seen.round).settings.is_compact else seen.time
        self._memory.absorb(seen.agent, seen.round, time, episode, importance)
        self._done[seen.agent].update(event.action_type for event in turn.events if event.success)
        refused = (f"{event.action_type}: {event.result}." for event in turn.events if not event.success)
        self._refused[seen.agent] = " ".join(refused)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._people.change(agent, traits)

    def opinions(self) -> Sequence[float]:
        """Return what agents answered last; nothing where they are not asked what they think."""
        return () if self.poll is None else self.poll.opinions

    def beliefs(self) -> Mapping[str, Sequence[float]]:
        return {} if self.poll is None else self.poll.beliefs

    async def measure(self, round: int) -> None:
        if self.poll is not None:
            await self.poll.ask(round, sorted(self.sights), self._describe, self._model)

    def _describe(self, agent: int, cue: str) -> tuple[Respondent, str]:
        """Return the agent as it is by now, and its model."""
        persona, memory = self.recollect_now(agent, cue)
        who = self.given.population[agent]
        model = self._versions.at(self.sights[agent].round).model_of(who.name, who.traits.get("group"))
        return Respondent(agent, who.name, persona, memory, ""), model

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
        self._remember_turns(agent, round + self._rules.at(round).visibility)
        await self._memory.settle(agent, round)
        persona = self._people.persona(agent, self._asking(agent, round).book)
        return persona, self._memory.recall(agent, round, cue)

    def recollect_now(self, agent: int, cue: str) -> tuple[str, str]:
        """Return the same in the middle of a run, also of turns of which it is not known what came. Changes nothing."""
        seen = self.sights.get(agent)
        round = 0 if seen is None else seen.round
        names = self._people.names
        turns = [
            summarise_turn(turn.observation, turn.decision, turn.thought, names, turn.events)[0]
            for turn in self._turns.get(agent, ())
        ]
        memory = self._memory.recall(agent, round, cue)
        persona = self._people.persona(agent, self._asking(agent, round).book)
        return persona, "\n".join([memory.rstrip(), *(f"- {turn}" for turn in turns)]).strip()

    async def close(self) -> None:
        await self._memory.close()
        if self.knowledge is not None:
            self.knowledge.close()

    def _build_question(self, observation: Observation, recalled: str) -> Question:
        """Build the question for a turn. Runs with different seeds are different samples of the same question."""
        agent = observation.agent
        asking = self._asking(agent, observation.round)
        settings, book = asking.settings, asking.book
        card = self.card(observation)
        budget_chars = settings.observation_tokens * CHARACTERS_PER_TOKEN
        person, known = self._people.values(agent, book), self._list_known(observation)
        sight = renderer_for(observation).render_prompt(
            observation,
            budget_chars,
            self._ago,
            speech_chars=asking.speech_chars,
            is_brief=settings.is_compact,
        )
        moment = {
            "memory": "\n\n".join(
                [
                    *([f"# What you remember\n{recalled.rstrip()}"] if recalled else []),
                    *([f"# What is known of the people you see\n{known}"] if known else []),
                ]
            ),
            "sight": sight,
            "results": f"Refused in your last turn: {refused}" if (refused := self._refused.get(agent)) else "",
        }
        system, user = book.write_system(card, person), book.write_user(card, person, moment)
        schema = card.schema
        if settings.is_compact:
            schema = turn_schema(card.actions.values(), CardLimits.of(settings), list_in_sight(observation, sight))
        return Question(
            key=JournalKey.of_turn(observation),
            model=settings.by_agent.get(self._people.names[agent], settings.model),
            iteration=self.given.seed,
            messages=(Message("system", system), Message("user", user)),
            schema=schema,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
        )

    def _list_known(self, observation: Observation) -> str:
        """Return what the graph knows of the people in sight, from rounds that the agent can see."""
        tokens = self._versions.at(observation.round).memory.graph_tokens
        if self.knowledge is None or not tokens:
            return ""
        others = [each for each, _ in observation.sources() if each != observation.agent]
        visible = observation.round - self._rules.at(observation.round).visibility
        return self.knowledge.recall(
            observation.agent, list(dict.fromkeys(others)), visible, tokens * CHARACTERS_PER_TOKEN
        )

    def _asking(self, agent: int, round: int) -> _Asking:
        settings, rules = self._versions.at(round), self._rules.at(round)
        key = id(settings), id(rules), self._people.group(agent) if settings.by_group else None
        found = self._askings.get(key)
        if found is None:
            own = settings.for_group(key[2]).fit_to_size()
            topic = self.given.reader.subject_name
            book = PromptBook(own.prompt, self._memory.world, topic, is_compact=own.is_compact)
            found = self._askings[key] = _Asking(own, book, rules)
        return found

    def _recall(self, observation: Observation) -> str:
        self._remember_turns(observation.agent, observation.round)
        return self._memory.recall(observation.agent, observation.round, self._cue(observation))

    def _cue(self, observation: Observation) -> str:
        """Return what the observation reminds the agent of, if it has anything to be reminded of."""
        if not self._memory.needs_cue(observation.agent):
            return ""
        return clip(" ".join(renderer_for(observation).cue(observation)), _MAX_CUE_CHARS)

    def _read(self, observation: Observation, answer: Answer) -> ParsedReply:
        if answer.is_refused:
            return ParsedReply(complaints=(f"the model refused: {clip(answer.text, 200)}",))
        return read_reply(answer, self.card(observation), Finder(observation, self._index))

    def card(self, observation: Observation) -> WorldCard:
        """Return what the agent can do now, as its prompt says it."""
        agent = observation.agent
        return self._asking(agent, observation.round).card(observation, self._done[agent])


def summarise_turn(
    observation: Observation, decision: Decision, thought: str, names: Sequence[str], events: Sequence[Event] = ()
) -> tuple[str, float]:
    """Return the turn as text, and how much it matters.

    `names` holds the people that actions give by number, `events` the results of the actions, where they are known.
    """
    renderer = renderer_for(observation)
    done = []
    for action, event in zip_longest(decision.actions, events[: len(decision.actions)]):
        plain = action.kind.replace("_", " ").lower()
        if event is None or event.success:
            done.append(renderer.recall_action(action, PAST_VERBS.get(action.kind, plain), observation, names))
        else:
            tried = renderer.recall_action(action, f"tried to {plain}", observation, names)
            done.append(f"{tried} but were refused ({clip(str(event.result), _MAX_REFUSAL_CHARS)})")
    # Where the agent thought something, that says what struck it.
    before = clip(f"You thought: {thought}", _MAX_THOUGHT_CHARS) if thought else renderer.recall_sight(observation)
    announcements = getattr(observation, "announcements", ())
    news = f"Announced: {quote(announcements[-1], _MAX_NEWS_CHARS)}." if announcements else ""
    importance = _SPOKEN if any(map(find_written, decision.actions)) else _QUIET
    text = " ".join(part for part in (news, before, f"You {_join_done(done)}.") if part)
    return text, _NEWS if announcements else importance


def _join_done(done: Sequence[str]) -> str:
    """Name the first thing that was done, and as many more as there is room for."""
    chars = 0
    for number, one in enumerate(done):
        chars += len(one)
        if number and chars > _MAX_DONE_CHARS:
            return join_words(done, number)
    return ", ".join(done)
