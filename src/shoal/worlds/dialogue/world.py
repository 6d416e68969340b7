"""Conversations of two, in scenes, many of them side by side.

In a round every pair takes one step: the one whose turn it is acts, or, when a scene is over, both say how it went.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from shoal.types import Action, Decision, Event, Observation, Versioned
from shoal.worlds.base import BaseWorld, Needs, Rejected
from shoal.worlds.context import WorldContext
from shoal.worlds.dialogue.observations import DialogueObservation, LineView
from shoal.worlds.dialogue.pair import EndRule, Pair, Phase, half, pairs_of, scene_at
from shoal.worlds.dialogue.settings import DialogueSettings, SceneSettings

SAY, THINK, LEAVE, RATE = "SAY", "THINK", "LEAVE", "RATE"
MAX_SCORE = 10

#: What somebody sees who has nobody to talk to.
NOBODY = -1

_PAIR = "INSERT INTO pair VALUES (?,?,?)"
_SCENE = "INSERT INTO scene (pair_id, scene, setting, started_round) VALUES (?,?,?,?)"
_TURNED = "UPDATE scene SET turning_point = ?, turned_round = ? WHERE pair_id = ? AND scene = ?"
_ENDED = """UPDATE scene SET ended_round = ?, turns = ?, ended_by = ?, agreement = ?
    WHERE pair_id = ? AND scene = ?"""
_LINE = "INSERT INTO line (pair_id, scene, turn, round, agent_id, content, slant) VALUES (?,?,?,?,?,?,?)"
_SCORE = "INSERT INTO score VALUES (?,?,?,?,?,?)"


class Dialogue(BaseWorld):
    """Pairs of agents who talk. What one pair does is nothing to the others."""

    actions: ClassVar[Mapping[str, Needs]] = {
        SAY: {"content": str},
        THINK: {"content": str},
        LEAVE: {},
        RATE: {"score": int},
    }
    tables: ClassVar[str] = """
CREATE TABLE pair (pair_id INTEGER PRIMARY KEY, first_id INTEGER, second_id INTEGER);
CREATE TABLE scene (pair_id INTEGER, scene INTEGER, setting TEXT, started_round INTEGER, turning_point TEXT,
    turned_round INTEGER, ended_round INTEGER, turns INTEGER, ended_by TEXT, agreement REAL,
    PRIMARY KEY (pair_id, scene)) WITHOUT ROWID;
CREATE TABLE line (line_id INTEGER PRIMARY KEY, pair_id INTEGER, scene INTEGER, turn INTEGER, round INTEGER,
    agent_id INTEGER, content TEXT, slant REAL);
CREATE TABLE score (pair_id INTEGER, scene INTEGER, agent_id INTEGER, score INTEGER, reason TEXT, round INTEGER);
"""
    indexes: str = BaseWorld.indexes + "\nCREATE INDEX IF NOT EXISTS line_by_pair ON line (pair_id, scene, turn);"

    def __init__(self, name: str, settings: Versioned[DialogueSettings], given: WorldContext) -> None:
        super().__init__(name, given, settings)
        self._timeline = settings
        self._endings = [(version.stop, EndRule(version.stop)) for version in settings.versions()]
        pairs = pairs_of(settings.first, given.population, given.seed, name)
        self._pair_of = {agent: pair for pair in pairs for agent in pair.agents}
        #: Those that are not over, by number.
        self._going = {pair.number: pair for pair in pairs}
        self._topics = given.reader.vocabulary
        self._bios: dict[int, str] = {}
        self._rules: Mapping[str, Callable[[int, Pair, int, Action], dict[str, Any]]] = {
            SAY: self._say, THINK: self._think, LEAVE: self._leave, RATE: self._rate,
        }  # fmt: skip

    @property
    def over(self) -> bool:
        return not self._going

    def turns(self, round: int) -> Sequence[Sequence[int]]:
        """One group: nobody acts on what another pair does. Whoever is muted is waited for."""
        acting = self.unmuted(round, (agent for pair in self._going.values() for agent in pair.acting()))
        return [acting] if acting else []

    def explain_absence(self, round: int, agent: int) -> str:
        if (round, agent) in self.muted:
            return super().explain_absence(round, agent)
        return "it was the other one's turn, or the conversation was over"

    def begin(self, round: int) -> None:
        super().begin(round)
        if round == 0:
            for pair in self._going.values():
                self.add(_PAIR, pair.number, *pair.agents)
                self._note_start(pair, 1)

    # Looking

    def observe(self, round: int, agents: Sequence[int]) -> Sequence[Observation]:
        settings, time = self._timeline.at(round), self.timestamp(round)
        return [self._look(round, agent, settings, time) for agent in agents]

    def _look(self, round: int, agent: int, settings: DialogueSettings, time: str) -> DialogueObservation:
        pair = self._pair_of.get(agent)
        if pair is None:
            return self._look_alone(round, agent, time)
        scene = scene_at(settings, pair.scene)
        partner = pair.partner(agent)
        turns = scene.turns or settings.turns
        return DialogueObservation(
            world=self.name,
            round=round,
            agent=agent,
            name=self.names[agent],
            time=time,
            partner_id=partner,
            partner=self.names[partner],
            partner_bio=self._bio(partner),
            scene=pair.scene,
            setting=scene.setting,
            turning_point=pair.turned,
            turn=pair.taken + 1 if pair.phase is Phase.TALKING else pair.taken,
            turns=turns,
            lines=pair.lines,
            announcements=tuple(self._news.get(agent, ())),
            rating=pair.phase is Phase.RATING,
        )

    def _look_alone(self, round: int, agent: int, time: str) -> DialogueObservation:
        return DialogueObservation(
            world=self.name, round=round, agent=agent, name=self.names[agent], time=time,
            partner_id=NOBODY, partner="", partner_bio="", scene=0, setting="", turning_point=None, turn=0, turns=0,
            announcements=tuple(self._news.get(agent, ())),
        )  # fmt: skip

    def _bio(self, agent: int) -> str:
        bio = self._bios.get(agent)
        if bio is None:
            bio = self._bios[agent] = self.given.population[agent].bio
        return bio

    # Acting

    def apply(self, round: int, agent: int, decision: Decision) -> Sequence[Event]:
        events = super().apply(round, agent, decision)
        pair = self._pair_of.get(agent)
        if pair is not None and agent in pair.acting():
            self._go_on(round, pair, agent)
        return events

    def act(self, round: int, agent: int, action: Action) -> dict[str, Any]:
        pair = self._pair_of.get(agent)
        if pair is None:
            raise Rejected("there is nobody to talk to")
        return self._rules[action.kind](round, pair, agent, action)

    def _say(self, round: int, pair: Pair, agent: int, action: Action) -> dict[str, Any]:
        self._check_may_speak(pair, agent)
        content, opinion = action.args["content"], _opinion(action)
        if not content.strip():
            raise Rejected("SAY needs words; DO_NOTHING is silence")
        reader = self.given.reader
        slant = reader.slant(content) if opinion is None else opinion
        topics = tuple(self._topics[topic] for topic in reader.topics(content))
        pair.say(LineView(agent, self.names[agent], content, topics, slant), outright=opinion is not None)
        self.add(_LINE, pair.number, pair.scene, pair.taken + 1, round, agent, content, slant)
        partner = pair.partner(agent)
        told = {"content": content, "to_agent_id": partner, "to_agent_name": self.names[partner], "scene": pair.scene}
        return told if opinion is None else {**told, "opinion": opinion}

    def _think(self, round: int, pair: Pair, agent: int, action: Action) -> dict[str, Any]:
        return {"content": action.args["content"]}

    def _leave(self, round: int, pair: Pair, agent: int, action: Action) -> dict[str, Any]:
        self._check_may_speak(pair, agent)
        pair.left = True
        return {"scene": pair.scene}

    def _rate(self, round: int, pair: Pair, agent: int, action: Action) -> dict[str, Any]:
        if pair.phase is not Phase.RATING:
            raise Rejected("a scene is rated when it is over")
        if agent in pair.heard:
            raise Rejected("this scene was rated already")
        score, reason = action.args["score"], action.args.get("reason")
        if not 0 <= score <= MAX_SCORE:
            raise Rejected(f"score must be between 0 and {MAX_SCORE}")
        if reason is not None and type(reason) is not str:
            raise Rejected("reason must be a text")
        pair.heard.add(agent)
        self.add(_SCORE, pair.number, pair.scene, agent, score, reason, round)
        return {"score": score, "scene": pair.scene} | ({} if reason is None else {"reason": reason})

    @staticmethod
    def _check_may_speak(pair: Pair, agent: int) -> None:
        if pair.phase is not Phase.TALKING:
            raise Rejected("the scene is over: RATE it" if pair.phase is Phase.RATING else "the conversation is over")
        if pair.left:
            raise Rejected("you have left")
        if agent != pair.speaker:
            raise Rejected("it is not your turn")

    # From turn to turn and scene to scene

    def _go_on(self, round: int, pair: Pair, agent: int) -> None:
        """The agent has had its turn, whatever it made of it."""
        if pair.phase is Phase.TALKING:
            self._pass_turn(round, pair)
            return
        if agent not in pair.heard:
            self.add(_SCORE, pair.number, pair.scene, agent, None, None, round)
        pair.rated.add(agent)
        if not pair.acting():
            self._next_scene(round, pair)

    def _pass_turn(self, round: int, pair: Pair) -> None:
        settings = self._timeline.at(round)
        scene = scene_at(settings, pair.scene)
        turns = scene.turns or settings.turns
        ended_by = self._ending(settings).reached(pair, turns)
        pair.pass_turn()
        if ended_by is not None:
            self.add(_ENDED, round, pair.taken, ended_by, pair.agreement(), pair.number, pair.scene)
            self._end_scene(round, pair, settings)
        elif pair.turned is None and pair.taken >= half(turns):
            self._turn_around(round, pair, scene)

    def _turn_around(self, round: int, pair: Pair, scene: SceneSettings) -> None:
        pair.turned = scene.turning_point
        if pair.turned is not None:
            self.add(_TURNED, pair.turned, round + 1, pair.number, pair.scene)

    def _end_scene(self, round: int, pair: Pair, settings: DialogueSettings) -> None:
        if settings.score:
            pair.phase = Phase.RATING
        else:
            self._next_scene(round, pair)

    def _next_scene(self, round: int, pair: Pair) -> None:
        if pair.scene < len(self._timeline.at(round).scenes):
            pair.begin(pair.scene + 1)
            self._note_start(pair, round + 1)
        else:
            pair.phase = Phase.OVER
            del self._going[pair.number]

    def _note_start(self, pair: Pair, round: int) -> None:
        setting = scene_at(self._timeline.at(round), pair.scene).setting
        self.add(_SCENE, pair.number, pair.scene, setting, round)

    def _ending(self, settings: DialogueSettings) -> EndRule:
        return next(ending for stop, ending in self._endings if stop is settings.stop)


def _opinion(action: Action) -> float | None:
    """What the speaker thinks of the topic, as it says outright."""
    opinion = action.args.get("opinion")
    if opinion is None:
        return None
    if type(opinion) not in (int, float) or not -1 <= opinion <= 1:
        raise Rejected("opinion must be a number between -1 and 1")
    return float(opinion)
