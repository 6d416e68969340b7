"""The offline mind of people in a room: a seeded classical model, never a language model.

What people heard moves their stance first, by bounded confidence (`opinion`). Then they answer a person who spoke to
them, react to news, or say something, more of them the smaller the room is. The others think, turn to something else,
or do nothing. People who hear their own opinion from another person become of one mind, allies and friends with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple, cast

from shoal.agents.heuristic.base import (
    ANYTHING,
    AUTHORITY,
    ENGROSSED,
    HEARSAY,
    NOTHING,
    Behaviour,
    OpinionMind,
    Turn,
    read_numbers,
)
from shoal.agents.heuristic.opinion import ONE_WORD, classify_stance, persuade
from shoal.agents.heuristic.perception import TextReading
from shoal.agents.heuristic.sentences import CLAIM, build_sentences, is_question
from shoal.agents.heuristic.writing import Voice, address, build_room_families, load_phrases, sign
from shoal.types import Action, Decision, Mention, Observation, Population, Versioned
from shoal.worlds import TextReader
from shoal.worlds.room import RoomObservation, Stimulus

#: People react to one of the latest remarks, not to what was said long before.
RECENT_REMARKS = 12
MAX_TIES = 6
#: Chance that an agent who speaks up replies to a remark.
REPLY_CHANCE = 0.6


class Chances(NamedTuple):
    """How likely an agent is to do what, where there is occasion."""

    answer: float
    news: float
    speak: float
    think: float
    relate: float
    reach_out: float
    attend: float


RoomTurn = Turn[RoomObservation]


class RoomMind(OpinionMind):
    """Decides for every agent in one room."""

    def __init__(
        self, population: Population, behaviours: Versioned[Behaviour], seed: int, world: str, reader: TextReader
    ) -> None:
        super().__init__(population, behaviours, seed, world, reader)
        self._voice = Voice(seed, world, build_room_families() if self._edition == 1 else build_sentences())
        # What agents also remember: how active they are.
        self._activity: list[float] = population.activity.tolist()
        influence = population.habits.influence
        #: How much each agent's words count with others; None where all count alike.
        self._influences: list[float] | None = None if influence is None else influence.tolist()
        #: The last stance that was computed: `absorb` comes right after `decide`, about the same observation.
        self._latest: tuple[Observation | None, float] = (None, 0.0)

    def memory(self, agent: int) -> object:
        """Return all that the agent's decisions depend on besides what it sees."""
        own = (self._stances[agent], self._activity[agent], self._heats[agent], self._written[agent])
        return (*own, *self._own_beliefs(agent).items(), *self._heard.get(agent, ()))

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        """Set stance, activity and influence, where they are numbers."""
        super().change(agent, traits)
        numbers = read_numbers(traits)
        self._activity[agent] = numbers.get("activity", self._activity[agent])
        if "influence" in numbers:
            self._influences = self._influences or [1.0] * len(self._stances)
            self._influences[agent] = numbers["influence"]
        self._latest = (None, 0.0)

    def decide(self, observation: Observation) -> Decision:
        seen = cast(RoomObservation, observation)
        agent = seen.agent
        self._enter(seen.round)
        stance, draws = self._stance_after(seen), self._draws(agent)
        if self._behaviour.settings.influence_rule == "naming" and classify_stance(stance) == 0:
            # Who has both words says one of them.
            stance = draws.choice((-ONE_WORD, ONE_WORD))
        turn = RoomTurn(seen, draws, self._voice, stance, self._heats[agent], self._written[agent])
        if self._behaviour.settings.outspoken and self._subject is not None and self._may("TALK"):
            return Decision((self._state_opinion(turn),))
        chances = self._chances(seen)
        words = self._answer(turn, chances) or self._react(turn, chances) or self._speak_up(turn, chances)
        done = words or self._keep_quiet(turn, chances), self._relate(turn, chances)
        return Decision(tuple(action for action in done if action is not None)) if any(done) else NOTHING

    def remember_turn(self, observation: Observation, decision: Decision) -> None:
        seen = cast(RoomObservation, observation)
        agent = seen.agent
        self._stances[agent] = self._stance_after(seen)
        self._latest = (None, 0.0)
        if self._beliefs:
            heard = ((self._find_mention(s), s.source_id) for s in seen.stimuli if s.kind in ("hear", "see"))
            influences = self._influences
            mentions = [
                (mention, AUTHORITY if source is None else 1.0 if influences is None else influences[source])
                for mention, source in heard
                if mention is not None
            ]
            self._take_beliefs(agent, self._beliefs_after(agent, mentions))
        themes = (self._readings.theme(s.topics) for s in seen.stimuli if s.kind in ("hear", "see", "think", "goal"))
        # A full room need not be read to its end.
        contested = sum(1 for _ in islice((theme for theme in themes if theme.contested), ENGROSSED))
        self._heats[agent] = self._heat_after(agent, contested)
        self._written[agent] += sum(action.kind in ("TALK", "THINK") for action in decision.actions)

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        seen = cast(RoomObservation, observation)
        self._enter(seen.round)
        stance, settings = self._stances[seen.agent], self._behaviour.settings
        heard = [(remark, opinion) for remark in seen.stimuli if (opinion := self._opinion(remark)) is not None]
        return {
            "mind": "heuristic",
            "before": {
                "stance": _round(stance),
                "topic on its mind": _round(self._heats[seen.agent]),
                "things said or thought": self._written[seen.agent],
            },
            "heard": [
                {
                    "from": remark.source,
                    "opinion": _round(opinion),
                    "persuades": abs(opinion - stance) <= settings.confidence,
                }
                for remark, opinion in heard[-settings.attention :]
            ],
            "chances": {what: _round(chance) for what, chance in self._chances(seen)._asdict().items()},
            "after listening": {"stance": _round(self._stance_after(seen))},
        }

    # Listening

    def _stance_after(self, seen: RoomObservation) -> float:
        """Return the agent's stance after the latest opinions that it heard, as many as it pays attention to."""
        latest, stance = self._latest
        if latest is seen:
            return stance
        own, settings = self._stances[seen.agent], self._behaviour.settings
        shown = [stimulus.opinion for stimulus in seen.stimuli]
        if None in shown:
            shown = [self._opinion(stimulus) for stimulus in seen.stimuli]
        opinions = [opinion for opinion in shown if opinion is not None][-settings.attention :]
        weights = None
        if (influences := self._influences) is not None:
            heard = [s.source_id for s, opinion in zip(seen.stimuli, shown, strict=True) if opinion is not None]
            weights = [1.0 if source is None else influences[source] for source in heard[-settings.attention :]]
        stance = persuade(own, opinions, settings, weights)
        self._latest = (seen, stance)
        return stance

    def _opinion(self, stimulus: Stimulus) -> float | None:
        """Return what the speaker thinks of the subject, as far as it shows."""
        if stimulus.opinion is not None:
            return stimulus.opinion
        if not stimulus.slant or not _is_remark(stimulus):
            return None
        return stimulus.slant if self._readings.theme(stimulus.topics).contested else None

    def _find_mention(self, stimulus: Stimulus) -> Mention | None:
        if isinstance(stimulus.mention, Mention):
            return stimulus.mention
        return self._readings.find_mention(stimulus.content)

    def _read(self, stimulus: Stimulus) -> TextReading:
        reading = self._readings.read_text(stimulus.content)
        return reading if stimulus.opinion is None else reading._replace(slant=stimulus.opinion)

    # Talking

    def _chances(self, seen: RoomObservation) -> Chances:
        talk = self._behaviour.settings.talkativeness
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

    def _talk(self, turn: RoomTurn, content: str, contested: bool, target: str | None = None) -> Action:
        args: dict[str, Any] = {"content": content}
        if target is not None:
            args["target"] = target
        if contested and self._subject is not None:
            args["opinion"] = round(turn.stance, 6)
        return Action("TALK", args)

    def _state_opinion(self, turn: RoomTurn) -> Action:
        """Say what the agent thinks of the subject, or of a claim about it, to all within hearing."""
        heard = self._heard.get(turn.seen.agent)
        if heard and turn.draws.chance(HEARSAY):
            claim = turn.draws.choice(heard)
            belief = self._beliefs[claim][turn.seen.agent]
            words = turn.write((CLAIM, "remark", classify_stance(belief)), self._readings.claims[claim])
            return Action("TALK", {"content": words, "claim": claim, "lean": round(belief, 2)})
        words = turn.write(("remark", turn.lean), self._subject or ANYTHING)
        return self._talk(turn, words, contested=True)

    def _answer(self, turn: RoomTurn, chances: Chances) -> Action | None:
        """Answer the last person who spoke to the agent, if they can be heard."""
        calls = [s for s in turn.seen.stimuli if s.addressed and s.kind in ("hear", "reach_out")]
        if not calls or not self._may("TALK") or calls[-1].source not in turn.seen.present:
            return None
        return self._reply(turn, calls[-1], calls[-1].source) if turn.draws.chance(chances.answer) else None

    def _react(self, turn: RoomTurn, chances: Chances) -> Action | None:
        """React to the latest news: what was heard or seen but not said by a person."""
        news = [s for s in turn.seen.stimuli if s.source_id is None and s.kind in ("hear", "see")]
        if not news or not chances.speak:
            return None
        reading = self._read(news[-1])
        concerned = reading.contested or any(reading.mask >> topic & 1 for topic in self.interests_of(turn.seen.agent))
        if not turn.draws.chance(chances.news if concerned else 0.1 * chances.news):
            return None
        if reading.mention is not None:
            claim = reading.mention.claim
            belief = self._beliefs[claim][turn.seen.agent]
            words = turn.write((CLAIM, "reaction", classify_stance(belief)), reading.about)
            return Action("TALK", {"content": words, "claim": claim, "lean": round(belief, 2)})
        words = turn.write(("reaction", turn.lean if reading.contested else 0), reading.about)
        return self._talk(turn, words, reading.contested)

    def _speak_up(self, turn: RoomTurn, chances: Chances) -> Action | None:
        """Reply to a remark, state the agent's opinion, or chat about an interest."""
        if not turn.draws.chance(chances.speak):
            return None
        remarks = _list_remarks(turn.seen)
        if remarks and turn.draws.chance(REPLY_CHANCE):
            return self._reply(turn, turn.draws.choice(remarks), None)
        topic = self._own_topic(turn.seen.agent, turn.draws)
        subject = self._subject
        if subject is None:
            has_opinion = topic is None
        else:
            has_opinion = topic in (None, subject) or turn.draws.chance(0.35 + 0.6 * turn.heat)
        if has_opinion:
            return self._state_opinion(turn)
        return self._talk(turn, turn.write(("chat",), topic or ANYTHING), contested=False)

    def _reply(self, turn: RoomTurn, remark: Stimulus, target: str | None) -> Action:
        reading = self._read(remark)
        name, about = address(remark.source or ""), reading.about
        if (mention := self._find_mention(remark)) is not None:
            belief = self._beliefs[mention.claim][turn.seen.agent]
            lean = classify_stance(belief)
            way: str | int = "asked" if is_question(remark.content) else sign(lean * mention.lean)
            words = turn.write((CLAIM, "answer", way, lean), self._readings.claims[mention.claim], name)
            stated = {"claim": mention.claim, "lean": round(belief, 2), **({"target": target} if target else {})}
            return Action("TALK", {"content": words, **stated})
        if remark.kind == "reach_out":
            about = self._subject or self._own_topic(turn.seen.agent, turn.draws) or ANYTHING
        elif not reading.contested and remark.opinion is None:
            return self._talk(turn, turn.write(("chime",), about, name), False, target)
        tone: str | int = sign(turn.lean * reading.slant)
        if self._edition > 1 and is_question(remark.content):
            tone = "asked"
        return self._talk(turn, turn.write(("answer", tone, turn.lean), about, name), True, target)

    # What people do besides talking

    def _keep_quiet(self, turn: RoomTurn, chances: Chances) -> Action | None:
        """Think, turn to what another person talks about, or reach out to a friend; mostly do nothing."""
        draw = turn.draws.random()
        if draw < chances.think:
            about = self._subject or self._own_topic(turn.seen.agent, turn.draws) or ANYTHING
            words = turn.write(("thought", turn.lean), about)
            return Action("THINK", {"content": words}) if self._may("THINK") else None
        if draw < chances.think + chances.attend:
            remarks = _list_remarks(turn.seen)
            if not remarks or not self._may("ATTEND"):
                return None
            about = self._read(remarks[-1]).about
            return Action("ATTEND", {"content": about}) if about != turn.seen.attention else None
        if draw < chances.think + chances.attend + chances.reach_out:
            close = [relation.agent for relation in turn.seen.relations]
            if close and self._may("REACH_OUT"):
                # Rather to a friend who is not within hearing.
                away = [name for name in close if name not in turn.seen.present]
                return Action("REACH_OUT", {"target": turn.draws.choice(away or close)})
        return None

    def _relate(self, turn: RoomTurn, chances: Chances) -> Action | None:
        """Come closer to a person who said what the agent thinks itself."""
        if not turn.draws.chance(chances.relate) or not self._may("RELATE"):
            return None
        close = {relation.agent_id: relation.relation for relation in turn.seen.relations}
        near = 0.5 * self._behaviour.settings.confidence
        # After the last step comes nothing, nor after a relationship that did not begin in the room.
        steps = load_phrases("room")["relations"]
        following: dict[str | None, str] = dict(zip((None, *steps), steps, strict=False))
        for remark in reversed(_list_remarks(turn.seen)):
            opinion, who = self._opinion(remark), cast(int, remark.source_id)
            if opinion is None or opinion * turn.stance <= 0 or abs(opinion - turn.stance) > near:
                continue
            relation = following.get(close.get(who))
            if relation is not None and (who in close or len(close) < MAX_TIES):
                return Action("RELATE", {"target": remark.source, "relation": relation})
        return None


def _list_remarks(seen: RoomObservation) -> list[Stimulus]:
    """List the latest remarks of other people."""
    return [stimulus for stimulus in seen.stimuli[-RECENT_REMARKS:] if _is_remark(stimulus)]


def _is_remark(stimulus: Stimulus) -> bool:
    return stimulus.kind == "hear" and stimulus.source_id is not None


def _round(number: float) -> float:
    return round(number, 6)
