"""Conversations of two, in scenes, many of them side by side.

In a round every pair takes one step: the agent whose turn it is acts, or, when a scene is over, both rate it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from shoal.types import Action, Decision, Event, Observation, Versioned
from shoal.worlds.base import BaseWorld, Needs, Rejected, WorldContext, read_mention
from shoal.worlds.dialogue.observations import DialogueObservation, LineView
from shoal.worlds.dialogue.pair import Pair, Phase, find_end, half, make_pairs, scene_at
from shoal.worlds.dialogue.settings import DialogueSettings
from shoal.worlds.world_kind import ActionCard, Argument

MAX_SCORE = 10

_PAIR = "INSERT INTO pair VALUES (?,?,?)"
_SCENE = "INSERT INTO scene (pair_id, scene, setting, started_round) VALUES (?,?,?,?)"
_TURNED = "UPDATE scene SET turning_point = ?, turned_round = ? WHERE pair_id = ? AND scene = ?"
_ENDED = """UPDATE scene SET ended_round = ?, turns = ?, ended_by = ?, agreement = ?
    WHERE pair_id = ? AND scene = ?"""
_LINE = "INSERT INTO line (pair_id, scene, turn, round, agent_id, content, slant) VALUES (?,?,?,?,?,?,?)"
_SCORE = "INSERT INTO score VALUES (?,?,?,?,?,?)"


CHAT_PLACE = """\
# The place
A chat in writing, in one or more sessions. The two take turns. Write what you would write in one message, mostly one to
three sentences, in reply to what came last, and move on towards what you want. When a session is over you are asked how
it went: then, and only then, RATE it."""

_CONTENT = Argument("content")

CARDS = (
    ActionCard("SAY", (_CONTENT,), "say something to your partner", "said"),
    ActionCard("THINK", (_CONTENT,), "think something that your partner does not hear", "thought"),
    ActionCard("LEAVE", (), "end the scene"),
    ActionCard(
        "RATE",
        (Argument("score", int, bounds=(0, MAX_SCORE)), Argument("reason", is_needed=False)),
        "when you are asked to: how the scene went for you, from 0 (very badly) to 10 (very well)",
        "rated the scene",
    ),
)


class Dialogue(BaseWorld):
    """Pairs of agents who talk. No pair sees what another one does."""

    is_open = False

    actions: ClassVar[Mapping[str, Needs]] = {card.kind: card.needs for card in CARDS}
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
        pairs = make_pairs(settings.first, given.population, given.seed, name)
        self._pair_of = {agent: pair for pair in pairs for agent in pair.agents}
        #: Pairs whose conversation is not over, by number.
        self._going = {pair.number: pair for pair in pairs}
        self._bios: dict[int, str] = {}
        #: What prompts say in place of the kind's words about the place.
        self.place = CHAT_PLACE if any(pair.assistants for pair in pairs) else ""

    @property
    def over(self) -> bool:
        return not self._going

    def turns(self, round: int) -> Sequence[Sequence[int]]:
        """Return one group: no agent acts on what another pair does. A pair waits for its muted member."""
        acting = self.exclude_muted(round, (agent for pair in self._going.values() for agent in pair.acting()))
        return [acting] if acting else []

    def explain_absence(self, round: int, agent: int) -> str:
        if self.is_muted(round, agent):
            return super().explain_absence(round, agent)
        return "it was the other one's turn, or the conversation was over"

    def begin(self, round: int) -> None:
        """Record the pairs and their first scenes."""
        super().begin(round)
        if round == 0:
            for pair in self._going.values():
                self.add(_PAIR, pair.number, *pair.agents)
                self._record_start(pair, 1)

    def observe(self, round: int, agents: Sequence[int]) -> Sequence[Observation]:
        settings, time, seen = self.settings.at(round), self.timestamp(round), list[DialogueObservation]()
        for agent in agents:
            pair, name, announcements = self._pair_of.get(agent), self.names[agent], tuple(self._news.get(agent, ()))
            if pair is None:
                seen.append(DialogueObservation(
                    world=self.name, round=round, agent=agent, name=name, time=time, announcements=announcements
                ))  # fmt: skip
                continue
            scene, partner = scene_at(settings, pair.scene), pair.partner(agent)
            if partner not in self._bios:
                self._bios[partner] = self.given.population[partner].bio
            seen.append(DialogueObservation(
                world=self.name, round=round, agent=agent, name=name, time=time,
                partner_id=partner, partner=self.names[partner], partner_bio=self._bios[partner],
                scene=pair.scene, setting=scene.setting, turning_point=pair.turned,
                turn=pair.taken + 1 if pair.phase is Phase.TALKING else pair.taken, turns=scene.turns or settings.turns,
                lines=pair.lines, announcements=announcements, rating=pair.phase is Phase.RATING,
            ))  # fmt: skip
        return seen

    # Acting

    def act(self, round: int, agent: int, action: Action) -> dict[str, Any]:
        pair = self._pair_of.get(agent)
        if pair is None:
            raise Rejected("there is nobody to talk to")
        if action.kind == "THINK":
            return {"content": action.args["content"]}
        if action.kind == "RATE":
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
        if pair.phase is not Phase.TALKING:
            raise Rejected("the scene is over: RATE it" if pair.phase is Phase.RATING else "the conversation is over")
        if pair.left:
            raise Rejected("you have left")
        if agent != pair.speaker:
            raise Rejected("it is not your turn")
        if action.kind == "SAY":
            return self._say(round, pair, agent, action)
        pair.left = True
        return {"scene": pair.scene}

    def _say(self, round: int, pair: Pair, agent: int, action: Action) -> dict[str, Any]:
        content, opinion = action.args["content"], action.args.get("opinion")
        if opinion is not None and (type(opinion) not in (int, float) or not -1 <= opinion <= 1):
            raise Rejected("opinion must be a number between -1 and 1")
        if not content.strip():
            raise Rejected("SAY needs words; DO_NOTHING is silence")
        reader = self.given.reader
        mention = read_mention(reader, action.args, content)
        if mention is not None:
            self.reached[mention.claim].add(agent)
        slant, topics = reader.slant(content) if opinion is None else float(opinion), reader.name_topics(content)
        pair.say(LineView(agent, self.names[agent], content, topics, slant), is_opinion=opinion is not None)
        self.add(_LINE, pair.number, pair.scene, pair.taken + 1, round, agent, content, slant)
        partner = pair.partner(agent)
        args = {"content": content, "to_agent_id": partner, "to_agent_name": self.names[partner], "scene": pair.scene}
        return args if opinion is None else {**args, "opinion": slant}

    # From turn to turn and scene to scene

    def apply(self, round: int, agent: int, decision: Decision) -> Sequence[Event]:
        events = super().apply(round, agent, decision)
        pair = self._pair_of.get(agent)
        if pair is None or agent not in pair.acting():
            return events
        if pair.phase is Phase.TALKING:
            settings = self.settings.at(round)
            scene = scene_at(settings, pair.scene)
            turns = scene.turns or settings.turns
            ended_by = find_end(settings.stop, pair, turns)
            pair.taken += 1
            pair.silence = 0 if pair.words else pair.silence + 1
            pair.words = []
            if ended_by is not None:
                self.add(_ENDED, round, pair.taken, ended_by, pair.agreement(), pair.number, pair.scene)
                if settings.score:
                    pair.phase = Phase.RATING
                else:
                    self._next_scene(round, pair)
            elif pair.turned is None and scene.turning_point is not None and pair.taken >= half(turns):
                pair.turned = scene.turning_point
                self.add(_TURNED, pair.turned, round + 1, pair.number, pair.scene)
        else:
            if agent not in pair.heard:
                self.add(_SCORE, pair.number, pair.scene, agent, None, None, round)
            pair.rated.add(agent)
            if not pair.acting():
                self._next_scene(round, pair)
        return events

    def _next_scene(self, round: int, pair: Pair) -> None:
        if pair.scene < len(self.settings.at(round).scenes):
            pair.begin(pair.scene + 1)
            self._record_start(pair, round + 1)
        else:
            pair.phase = Phase.OVER
            del self._going[pair.number]

    def _record_start(self, pair: Pair, round: int) -> None:
        setting = scene_at(self.settings.at(round), pair.scene).setting
        self.add(_SCENE, pair.number, pair.scene, setting, round)
