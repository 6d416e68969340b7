"""The offline mind of people in a room: a seeded classical model, never a language model.

People have interests and one opinion, their stance on the scenario's subject. First they take in what they heard: it
moves the stance by bounded confidence (`opinion`). Then they answer who spoke to them, react to news, or say something,
the more of them the smaller the room is; the others think, turn to something else, or do nothing. Those who hear their
own opinion from somebody come to be of one mind, allies and friends with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, cast

from shoal.agents.heuristic.actions import leaning
from shoal.agents.heuristic.base import Behaviour, OpinionMind
from shoal.agents.heuristic.opinion import persuade, weigh_opinions
from shoal.agents.heuristic.perception import TextReading
from shoal.agents.heuristic.speech import RELATION_WORDS, Speech
from shoal.agents.heuristic.writing import address
from shoal.seeds import Draws, extend
from shoal.types import Action, Decision, Observation, Population, Versioned
from shoal.worlds.lexicon import TextReader
from shoal.worlds.room.observations import RoomObservation, Stimulus

#: How much of what is on an agent's mind is left a turn later.
LINGERING = 0.75
#: So many contested remarks in a turn and the subject is all that is on an agent's mind.
ENGROSSED_REMARKS = 3
#: People react to one of the latest remarks, not to what was said long before.
RECENT_REMARKS = 12
MAX_TIES = 6
#: What somebody without interests talks about where there is no subject.
ANYTHING = "everyday life"

#: Of those who speak up, so many pick up what somebody else said.
REPLY_CHANCE = 0.6
_NOTHING = Decision((Action("DO_NOTHING"),))


class Chances(NamedTuple):
    """How likely an agent is to do what, where there is occasion."""

    answer: float
    news: float
    speak: float
    think: float
    relate: float
    reach_out: float
    attend: float


@dataclass(slots=True)
class Moment:
    """One agent's turn in the making."""

    seen: RoomObservation
    draws: Draws
    stance: float
    heat: float
    said: int

    @property
    def agent(self) -> int:
        return self.seen.agent

    @property
    def lean(self) -> int:
        return leaning(self.stance)

    def recent(self) -> list[Stimulus]:
        """The latest remarks by other people."""
        return [stimulus for stimulus in self.seen.stimuli[-RECENT_REMARKS:] if _is_remark(stimulus)]


class RoomMind(OpinionMind):
    """Decides for everybody in one room. `decide` only reads; what an agent remembers changes in `absorb`."""

    def __init__(
        self, population: Population, manners: Versioned[Behaviour], seed: int, world: str, reader: TextReader
    ) -> None:
        super().__init__(population, manners, seed, world, reader)
        self._speech = Speech(seed, world)
        # The memory of the agents besides their stance: how active they are, how much the subject is on their mind, and
        # how many things they have said or thought.
        self._activity: list[float] = population.activity.tolist()
        self._heats = [0.0] * len(population)
        self._said = [0] * len(population)
        influence = population.habits.influence
        #: How much people's words count with others, where that differs.
        self._influences: list[float] | None = None if influence is None else influence.tolist()
        #: What was last worked out: `absorb` comes right after `decide`, about the same observation.
        self._latest: tuple[Observation | None, float] = (None, 0.0)

    def memory(self, agent: int) -> object:
        """What the agent remembers: all that its decisions depend on besides what it sees."""
        return (self._stances[agent], self._activity[agent], self._heats[agent], self._said[agent])

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        """Numbers for stance, activity and influence are taken over; the mind has no use for other traits."""
        numbers = {name: float(value) for name, value in traits.items() if type(value) in (int, float)}
        self._stances[agent] = min(max(numbers.get("stance", self._stances[agent]), -1.0), 1.0)
        self._activity[agent] = numbers.get("activity", self._activity[agent])
        if "influence" in numbers:
            self._influences = self._influences or [1.0] * len(self._stances)
            self._influences[agent] = numbers["influence"]
        self._latest = (None, 0.0)

    def decide(self, observation: Observation) -> Decision:
        seen = cast(RoomObservation, observation)
        agent = seen.agent
        self._enter(seen.round)
        draws = Draws(extend(self._key, agent, "decide"))
        moment = Moment(seen, draws, self._persuaded(seen), self._heats[agent], self._said[agent])
        actions = self._act(moment)
        return Decision(tuple(actions)) if actions else _NOTHING

    def absorb(self, observation: Observation, decision: Decision) -> None:
        if decision.failure is not None:
            return
        seen = cast(RoomObservation, observation)
        agent = seen.agent
        self._enter(seen.round)
        self._stances[agent] = self._persuaded(seen)
        self._latest = (None, 0.0)
        self._heats[agent] = LINGERING * self._heats[agent] + (1 - LINGERING) * self._engrossed(seen)
        self._said[agent] += sum(action.kind in ("TALK", "THINK") for action in decision.actions)

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        seen = cast(RoomObservation, observation)
        self._enter(seen.round)
        stance = self._stances[seen.agent]
        return {
            "mind": "heuristic",
            "before": {
                "stance": _rounded(stance),
                "topic on its mind": _rounded(self._heats[seen.agent]),
                "things said or thought": self._said[seen.agent],
            },
            "heard": [
                {"from": remark.source, "opinion": _rounded(opinion), "persuades": self._reaches(stance, opinion)}
                for remark in seen.stimuli
                if (opinion := self._opinion(remark)) is not None
            ][-self._manner.settings.attention :],
            "chances": {what: _rounded(chance) for what, chance in self._chances(seen)._asdict().items()},
            "after listening": {"stance": _rounded(self._persuaded(seen))},
        }

    def _reaches(self, stance: float, opinion: float) -> bool:
        return abs(opinion - stance) <= self._manner.settings.confidence

    # Listening

    def _persuaded(self, seen: RoomObservation) -> float:
        """What the agent thinks after what it heard."""
        latest, stance = self._latest
        if latest is not seen:
            stance = self._moved(seen)
            self._latest = (seen, stance)
        return stance

    def _moved(self, seen: RoomObservation) -> float:
        own, settings = self._stances[seen.agent], self._manner.settings
        if self._influences is None:
            return persuade(own, self._heard(seen), settings)
        told = [(opinion, s.source_id) for s in seen.stimuli if (opinion := self._opinion(s)) is not None]
        counted = told[-settings.attention :]
        weights = [1.0 if source is None else self._influences[source] for _, source in counted]
        return weigh_opinions(own, [opinion for opinion, _ in counted], weights, settings)

    def _heard(self, seen: RoomObservation) -> list[float]:
        """The latest opinions that were heard, as many as people pay attention to, oldest first."""
        shown = [stimulus.opinion for stimulus in seen.stimuli]
        if None in shown:
            shown = [self._opinion(stimulus) for stimulus in seen.stimuli]
        return [opinion for opinion in shown if opinion is not None][-self._manner.settings.attention :]

    def _opinion(self, stimulus: Stimulus) -> float | None:
        """What the speaker thinks of the subject, as far as it shows."""
        if stimulus.opinion is not None:
            return stimulus.opinion
        if not stimulus.slant or not _is_remark(stimulus):
            return None
        return stimulus.slant if self._readings.theme(stimulus.topics).contested else None

    def _engrossed(self, seen: RoomObservation) -> float:
        themes = (self._readings.theme(s.topics) for s in seen.stimuli if s.kind in ("hear", "see", "think", "goal"))
        contested = sum(1 for _ in islice((theme for theme in themes if theme.contested), ENGROSSED_REMARKS))
        return contested / ENGROSSED_REMARKS

    # Acting

    def _act(self, moment: Moment) -> list[Action]:
        settings = self._manner.settings
        if settings.outspoken and self._readings.subject is not None and self._may("TALK"):
            return [self._state(moment)]
        chances = self._chances(moment.seen)
        words = self._answer(moment, chances) or self._react(moment, chances) or self._speak_up(moment, chances)
        action = words or self._keep_quiet(moment, chances)
        tie = self._relate(moment, chances)
        return [done for done in (action, tie) if done is not None]

    def _chances(self, seen: RoomObservation) -> Chances:
        talk = self._manner.settings.talkativeness
        active = min(2.0 * self._activity[seen.agent], 1.5)
        heat = self._heats[seen.agent]
        # In a full room most people leave the talking to others.
        speak = talk * active * (0.85 + 0.3 * heat) * (0.08 + 1.5 / (len(seen.present) + 2))
        return Chances(
            answer=min(0.7 * talk, 0.95),
            news=min(3.0 * speak, 0.95),
            speak=min(speak, 0.95) if seen.present and self._may("TALK") else 0.0,
            think=0.5 if any(s.kind in ("think", "goal") for s in seen.stimuli) else 0.07,
            relate=0.06,
            reach_out=min(0.012 * talk, 0.5),
            attend=0.04,
        )

    def _may(self, kind: str) -> bool:
        return self._manner.may(kind)

    def _state(self, moment: Moment) -> Action:
        """The agent's opinion on the subject, said to whoever hears it."""
        subject = self._readings.subject or ANYTHING
        return self._talk(moment, self._speech.remark(moment.agent, moment.said, moment.lean, subject), contested=True)

    def _talk(self, moment: Moment, content: str, contested: bool, target: str | None = None) -> Action:
        args: dict[str, Any] = {"content": content}
        if target is not None:
            args["target"] = target
        if contested and self._readings.subject is not None:
            args["opinion"] = round(moment.stance, 6)
        return Action("TALK", args)

    def _answer(self, moment: Moment, chances: Chances) -> Action | None:
        """People answer whoever spoke to them last, if they can be heard."""
        calls = [s for s in moment.seen.stimuli if s.addressed and s.kind in ("hear", "reach_out")]
        if not calls or not self._may("TALK") or calls[-1].source not in moment.seen.present:
            return None
        return self._reply(moment, calls[-1], calls[-1].source) if moment.draws.chance(chances.answer) else None

    def _react(self, moment: Moment, chances: Chances) -> Action | None:
        """To the latest of what was heard or seen and nobody in the room said."""
        news = [s for s in moment.seen.stimuli if s.source_id is None and s.kind in ("hear", "see")]
        if not news or not chances.speak:
            return None
        reading = self._read(news[-1])
        concerned = reading.contested or self._cares(moment, reading)
        if not moment.draws.chance(chances.news if concerned else 0.1 * chances.news):
            return None
        lean = moment.lean if reading.contested else 0
        words = self._speech.reaction(moment.agent, moment.said, lean, reading.about)
        return self._talk(moment, words, reading.contested)

    def _speak_up(self, moment: Moment, chances: Chances) -> Action | None:
        if not moment.draws.chance(chances.speak):
            return None
        remarks = moment.recent()
        if remarks and moment.draws.chance(REPLY_CHANCE):
            return self._reply(moment, moment.draws.choice(remarks), None)
        topic = self._own_topic(moment)
        subject = self._readings.subject
        if subject is not None and (topic in (None, subject) or moment.draws.chance(0.35 + 0.6 * moment.heat)):
            return self._state(moment)
        if subject is None and topic is None:
            return self._talk(
                moment, self._speech.remark(moment.agent, moment.said, moment.lean, ANYTHING), contested=True
            )
        return self._talk(moment, self._speech.chat(moment.agent, moment.said, topic or ANYTHING), contested=False)

    def _reply(self, moment: Moment, remark: Stimulus, target: str | None) -> Action:
        reading = self._read(remark)
        name = address(remark.source or "")
        about = reading.about
        if remark.kind == "reach_out":
            about = self._readings.subject or self._own_topic(moment) or ANYTHING
        elif not reading.contested and remark.opinion is None:
            return self._talk(moment, self._speech.chime(moment.agent, moment.said, name, about), False, target)
        agreement = moment.lean * reading.slant
        tone = (agreement > 0) - (agreement < 0)
        words = self._speech.answer(moment.agent, moment.said, tone, moment.lean, name, about)
        return self._talk(moment, words, True, target)

    def _keep_quiet(self, moment: Moment, chances: Chances) -> Action | None:
        """Think, turn to what somebody talks about, or reach out to somebody; mostly nothing."""
        draw = moment.draws.random()
        if draw < chances.think:
            about = self._readings.subject or self._own_topic(moment) or ANYTHING
            words = self._speech.thought(moment.agent, moment.said, moment.lean, about)
            return Action("THINK", {"content": words}) if self._may("THINK") else None
        if draw < chances.think + chances.attend:
            return self._attend(moment)
        if draw < chances.think + chances.attend + chances.reach_out:
            return self._reach_out(moment)
        return None

    def _attend(self, moment: Moment) -> Action | None:
        remarks = moment.recent()
        if not remarks or not self._may("ATTEND"):
            return None
        about = self._read(remarks[-1]).about
        return Action("ATTEND", {"content": about}) if about != moment.seen.attention else None

    def _reach_out(self, moment: Moment) -> Action | None:
        """To somebody one is close to, most of all one who is not within hearing."""
        close = [relation.agent for relation in moment.seen.relations]
        away = [name for name in close if name not in moment.seen.present]
        if not close or not self._may("REACH_OUT"):
            return None
        return Action("REACH_OUT", {"target": moment.draws.choice(away or close)})

    def _relate(self, moment: Moment, chances: Chances) -> Action | None:
        """With somebody who said what one thinks oneself; it begins with being of one mind."""
        if not moment.draws.chance(chances.relate) or not self._may("RELATE"):
            return None
        close = {relation.agent_id: relation.relation for relation in moment.seen.relations}
        for remark in reversed(moment.recent()):
            opinion, who = self._opinion(remark), cast(int, remark.source_id)
            if opinion is None or not self._like_minded(moment, opinion):
                continue
            relation = _closer(close.get(who))
            if relation is not None and (who in close or len(close) < MAX_TIES):
                return Action("RELATE", {"target": remark.source, "relation": relation})
        return None

    def _like_minded(self, moment: Moment, opinion: float) -> bool:
        return opinion * moment.stance > 0 and abs(opinion - moment.stance) <= 0.5 * self._manner.settings.confidence

    # Reading

    def _read(self, stimulus: Stimulus) -> TextReading:
        reading = self._readings.text(stimulus.content)
        return reading if stimulus.opinion is None else reading._replace(slant=stimulus.opinion)

    def _cares(self, moment: Moment, reading: TextReading) -> bool:
        return any(topic >= 0 and reading.mask >> topic & 1 for topic in self._interests(moment.agent))

    def _own_topic(self, moment: Moment) -> str | None:
        """What one of the agent's interests is called; None if it has none."""
        topics = [topic for topic in self._interests(moment.agent) if topic >= 0]
        return self._readings.labels[moment.draws.choice(topics)] if topics else None

    def _interests(self, agent: int) -> list[int]:
        return cast("list[int]", self._population.interests[agent].tolist())


def _is_remark(stimulus: Stimulus) -> bool:
    return stimulus.kind == "hear" and stimulus.source_id is not None


def _closer(relation: str | None) -> str | None:
    """The next step of a relationship; None where there is none, or where it is not one that began in the room."""
    if relation is None:
        return RELATION_WORDS[0]
    place = RELATION_WORDS.index(relation) if relation in RELATION_WORDS else len(RELATION_WORDS)
    return RELATION_WORDS[place + 1] if place + 1 < len(RELATION_WORDS) else None


def _rounded(number: float) -> float:
    return round(number, 6)
