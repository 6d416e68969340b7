"""The offline mind: a seeded classical model of people on a social platform, never a language model.

People have interests and one opinion, their stance on the scenario's subject. What they read pulls the stance towards
the slant of posts that are not too far away (bounded confidence), what lies far away provokes them, and the more they
see of the subject the more they talk about it themselves. So a rumour spreads along who follows whom, doubters push
back, and with low confidence camps form.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import cast

import numpy as np

from shoal.agents import turn as turns
from shoal.agents.reading import Reading, Readings
from shoal.agents.settings import HeuristicSettings
from shoal.agents.turn import Reaction, Turn
from shoal.agents.voice import Voice
from shoal.seeds import Draws, derive, extend
from shoal.types import Action, Decision, Mind, Observation, Population, Timeline
from shoal.worlds.social.views import PostView, SocialObservation
from shoal.worlds.social.words import Reader

#: Posts about the subject that persuade in one turn; the others are skimmed.
ATTENTION_POSTS = 3
#: How much of what is on an agent's mind is left a turn later.
LINGERING = 0.75
#: Opinions at least this far away provoke, if they are beyond the agent's confidence too.
PROVOCATION = 0.9
MAX_ACTIONS = 3

#: Chances per turn; what is left goes to the feed.
SUNDRY_CHANCE = 0.05
ORIGINAL_CHANCE = 0.12
NEWS_CHANCE = 0.5
UNDO_CHANCE = 0.003
ANOTHER_ACTION_CHANCE = 0.16
#: How much more a post appeals that takes the agent's own side with full force.
KINSHIP = 1.2
#: How much less one appeals that takes the other side with full force; it still provokes.
AVERSION = 0.4
#: Weight of doing nothing against the appeal of all posts in sight.
BOREDOM = 0.7
#: What somebody without interests writes about where there is no subject.
ANYTHING = "everyday life"

#: What to do about a post, by attitude towards it, with relative chances.
REACTION_CHANCES: Mapping[int, Mapping[str, float]] = {
    1: {
        "LIKE_POST": 56,
        "REPOST": 17,
        "QUOTE_POST": 5,
        "CREATE_COMMENT": 17,
        "FOLLOW": 9,
        "LIKE_COMMENT": 5,
        "DO_NOTHING": 3,
    },
    0: {
        "LIKE_POST": 56,
        "REPOST": 11,
        "QUOTE_POST": 3,
        "CREATE_COMMENT": 18,
        "FOLLOW": 5,
        "LIKE_COMMENT": 5,
        "DO_NOTHING": 8,
    },
    -1: {
        "CREATE_COMMENT": 42,
        "QUOTE_POST": 18,
        "DISLIKE_POST": 15,
        "DISLIKE_COMMENT": 6,
        "MUTE": 2,
        "REPORT_POST": 2,
        "UNFOLLOW": 3,
        "DO_NOTHING": 12,
    },
}
#: What can be taken back: its argument, and what takes it back.
UNDO = {
    "LIKE_POST": ("post_id", "UNLIKE_POST"),
    "DISLIKE_POST": ("post_id", "UNDO_DISLIKE_POST"),
    "FOLLOW": ("followee_id", "UNFOLLOW"),
    "MUTE": ("mutee_id", "UNMUTE"),
}
UNDOABLE = tuple(UNDO)
UNDOING = frozenset(undo for _, undo in UNDO.values())
NOTHING_TO_UNDO = -1
_NOTHING = Decision((Action("DO_NOTHING"),))


class Manner:
    """How agents go about it: what the scenario sets, and what the platform offers (None: everything)."""

    def __init__(self, settings: HeuristicSettings, actions: Collection[str] | None = None) -> None:
        self.settings = settings
        self._allowed = None if actions is None else frozenset(actions)
        self.tables = {attitude: self._table(chances) for attitude, chances in REACTION_CHANCES.items()}
        self.original_chance = min(ORIGINAL_CHANCE * settings.talkativeness, 0.9) if self.may("CREATE_POST") else 0.0

    def may(self, kind: str) -> bool:
        return self._allowed is None or kind in self._allowed

    def _table(self, chances: Mapping[str, float]) -> tuple[list[float], list[Reaction]]:
        """Running sums of the chances of the reactions that the platform offers, and the reactions."""
        kinds = [kind for kind in chances if self.may(kind)]
        talk = self.settings.talkativeness
        weights = [chances[kind] * (talk if kind in turns.TEXTS else 1.0) for kind in kinds]
        return list(accumulate(weights)), [turns.REACTIONS[kind] for kind in kinds]


class HeuristicMind(Mind):
    """Decides for everybody on one platform. `decide` only reads; what an agent remembers changes in `absorb`."""

    def __init__(
        self, population: Population, manners: Timeline[Manner], seed: int, world: str, reader: Reader
    ) -> None:
        self._population = population
        self._manners = manners
        self._seed = seed
        self._world = world
        self._round = -1
        self._enter(0)
        self._readings = Readings(reader)
        self._voice = Voice(seed, world)
        self._interests = _masks(population)
        # The memory of the agents, one list per thing remembered: stance, how much the subject is on their mind,
        # texts written, and what they last did that can be taken back.
        self._stances: list[float] = np.clip(population.stances, -1.0, 1.0).tolist()
        self._heats = [0.0] * len(population)
        self._written = [0] * len(population)
        self._undo = [NOTHING_TO_UNDO] * len(population)

    def memory(self, agent: int) -> object:
        """What the agent remembers: all that its decisions depend on besides what it sees."""
        return (self._stances[agent], self._heats[agent], self._written[agent], self._undo[agent])

    def stance(self, agent: int) -> float:
        return self._stances[agent]

    def decide(self, observation: Observation) -> Decision:
        seen = cast(SocialObservation, observation)
        agent = seen.agent
        self._enter(seen.round)
        draws = Draws(extend(self._key, agent, "decide"))
        turn = Turn(seen, draws, self._voice, self._stances[agent], self._heats[agent], self._written[agent])
        if seen.announcements:
            turn.do(self._talk_of_news(turn))
        if not turn.actions:
            self._act(turn)
        return Decision(tuple(turn.actions)) if turn.actions else _NOTHING

    def absorb(self, observation: Observation, decision: Decision) -> None:
        if decision.failure is not None:
            return
        seen = cast(SocialObservation, observation)
        self._enter(seen.round)
        self._form_opinion(seen)
        for action in decision.actions:
            self._recall(seen.agent, action)

    def _enter(self, round: int) -> None:
        """What everybody's decisions of a round have in common: the manner, and the first part of the draws' path."""
        if round != self._round:
            self._round = round
            self._manner = self._manners.at(round)
            self._key = derive(self._seed, self._world, round)

    def _form_opinion(self, seen: SocialObservation) -> None:
        agent = seen.agent
        themes = self._readings.themes
        confidence = self._manner.settings.confidence
        persuasion = self._manner.settings.persuasion
        stance = self._stances[agent]
        count = 0
        for post in seen.followed + seen.recommended:
            _, contested, _ = themes.get(post.topics) or self._readings.theme(post.topics)
            if contested and post.author_id != agent:
                count += 1
                slant = post.slant
                if slant and -confidence <= slant - stance <= confidence:
                    stance += persuasion * (slant - stance)
                if count == ATTENTION_POSTS:
                    break
        if seen.announcements:
            count += sum(self._readings.text(text).contested for text in seen.announcements)
        self._stances[agent] = stance
        self._heats[agent] = LINGERING * self._heats[agent] + (1 - LINGERING) * min(count / ATTENTION_POSTS, 1.0)

    def _recall(self, agent: int, action: Action) -> None:
        kind = action.kind
        if kind in turns.TEXTS:
            self._written[agent] += 1
        elif kind in UNDO:
            self._undo[agent] = int(action.args[UNDO[kind][0]]) * len(UNDOABLE) + UNDOABLE.index(kind)
        elif kind in UNDOING:
            self._undo[agent] = NOTHING_TO_UNDO

    def _act(self, turn: Turn) -> None:
        chance = turn.draws.random()
        if chance < SUNDRY_CHANCE:
            turn.do(self._do_sundry(turn))
            return
        original = self._manner.original_chance * (1.0 + 0.6 * turn.heat)
        if chance < SUNDRY_CHANCE + original:
            turn.do(self._write_post(turn))
            return
        self._read_feed(turn)

    def _read_feed(self, turn: Turn) -> None:
        posts, bounds = self._appeals(turn)
        first = self._pick(turn, posts, bounds)
        if first is None:
            if not posts and turn.draws.chance(2 * self._manner.original_chance):
                turn.do(self._write_post(turn))
            return
        if not turn.do(self._react(turn, first)):
            return
        while len(turn.actions) < MAX_ACTIONS and turn.draws.chance(ANOTHER_ACTION_CHANCE):
            self._go_on(turn, first, self._pick(turn, posts, bounds))

    def _appeals(self, turn: Turn) -> tuple[list[PostView], list[float]]:
        """The posts that somebody else wrote, and the running sum of how much each appeals to the agent."""
        seen = turn.observation
        agent = turn.agent
        themes = self._readings.themes
        interests = self._interests[agent]
        stance = turn.stance
        involvement = 0.35 + 0.5 * turn.heat
        reacted = seen.reacted
        total = 0.0
        posts: list[PostView] = []
        bounds: list[float] = []
        for post in self._feed(seen):
            if post.author_id == agent:
                continue
            mask, contested, _ = themes.get(post.topics) or self._readings.theme(post.topics)
            appeal = 0.7 if mask & interests else 0.25
            if contested:
                # People look for their own side, the more so the more both take it; the other side is less read.
                side = post.slant * stance
                appeal += involvement + (KINSHIP if side > 0 else AVERSION) * side
            crowd = post.likes + post.shares
            appeal = (appeal + crowd / (crowd + 60)) / (1.0 + 0.1 * post.age)
            if post.post_id in reacted:
                appeal *= 0.1
            total += appeal
            posts.append(post)
            bounds.append(total)
        return posts, bounds

    @staticmethod
    def _feed(seen: SocialObservation) -> tuple[PostView, ...]:
        posts = seen.followed + seen.recommended
        for answer in seen.answers:
            posts += answer.posts
        return posts

    @staticmethod
    def _pick(turn: Turn, posts: list[PostView], bounds: list[float]) -> PostView | None:
        """A post with a chance that grows with its appeal, or none."""
        if not posts:
            return None
        place = bisect(bounds, turn.draws.random() * (bounds[-1] + BOREDOM))
        return posts[place] if place < len(posts) else None

    def _react(self, turn: Turn, post: PostView) -> Action | None:
        reading = self._readings.post(post)
        attitude = self._attitude(turn, reading)
        bounds, reactions = self._manner.tables[attitude]
        if not reactions:
            return None
        action = reactions[bisect(bounds, turn.draws.random() * bounds[-1])](turn, post, reading)
        if action is None and attitude >= 0 and self._may("LIKE_POST"):
            return turns.like(turn, post, reading)
        return None if action is None or action.kind == "DO_NOTHING" else action

    def _go_on(self, turn: Turn, first: PostView, other: PostView | None) -> None:
        """A second thought: something about another post, or one more thing about the same."""
        if other is not None and other.post_id != first.post_id:
            turn.do(self._react(turn, other))
            return
        reading = self._readings.post(first)
        if self._attitude(turn, reading) <= 0:
            return
        if self._may("FOLLOW") and turn.do(turns.follow(turn, first, reading)):
            return
        if self._may("LIKE_POST"):
            turn.do(turns.like(turn, first, reading))

    def _attitude(self, turn: Turn, reading: Reading) -> int:
        """1 for what the agent is drawn to, -1 for what provokes it, 0 for the rest."""
        if reading.contested and reading.slant:
            gap = abs(reading.slant - turn.stance)
            if gap <= self._manner.settings.confidence:
                return 1
            return -1 if gap >= PROVOCATION else 0
        return 1 if reading.mask & self._interests[turn.agent] else 0

    def _write_post(self, turn: Turn) -> Action:
        """About the subject, the more it is on the agent's mind; about an interest otherwise."""
        draws = turn.draws
        subject = self._readings.subject
        keen = 0.06 * abs(turn.stance) + 0.8 * turn.heat
        topic = self._own_topic(turn)
        if draws.chance(keen) or topic in (None, subject):
            text = self._voice.post(turn.agent, turn.written, turn.lean, subject or topic or ANYTHING)
        else:
            text = self._voice.hobby(turn.agent, turn.written, topic or ANYTHING)
        return Action("CREATE_POST", {"content": text})

    def _talk_of_news(self, turn: Turn) -> Action | None:
        """People post about the first announcement that concerns them, if they are in the mood."""
        for text in turn.observation.announcements:
            reading = self._readings.text(text)
            concerned = reading.contested or bool(reading.mask & self._interests[turn.agent])
            if turn.draws.chance(NEWS_CHANCE if concerned else 0.1 * NEWS_CHANCE) and self._may("CREATE_POST"):
                lean = turn.lean if reading.contested else 0
                text = self._voice.news(turn.agent, turn.written, lean, reading.about)
                return Action("CREATE_POST", {"content": text})
        return None

    def _own_topic(self, turn: Turn) -> str | None:
        """What one of the agent's interests is called; None if it has none."""
        topics = [topic for topic in self._population.interests[turn.agent].tolist() if topic >= 0]
        return self._readings.labels[turn.draws.choice(topics)] if topics else None

    def _do_sundry(self, turn: Turn) -> Action | None:
        if turn.draws.chance(UNDO_CHANCE / SUNDRY_CHANCE):
            return self._take_back(turn)
        choices = dict(turns.SUNDRY)
        if turn.observation.groups:
            choices |= turns.SUNDRY_IN_GROUPS
        if turn.observation.products:
            choices |= turns.SUNDRY_IN_SHOPS
        options = [act for kind, (act, weight) in choices.items() if self._may(kind) for _ in range(weight)]
        if not options:
            return None
        subject = self._readings.subject if turn.draws.chance(turn.heat) else None
        return turn.draws.choice(options)(turn, subject or self._own_topic(turn) or self._readings.subject or ANYTHING)

    def _take_back(self, turn: Turn) -> Action | None:
        target, kind = divmod(self._undo[turn.agent], len(UNDOABLE))
        if target < 0:
            return None
        argument, undo = UNDO[UNDOABLE[kind]]
        return Action(undo, {argument: target}) if self._may(undo) else None

    def _may(self, kind: str) -> bool:
        return self._manner.may(kind)


def _masks(population: Population) -> list[int]:
    """Each agent's interests as bits, so that one operation compares them with what a post is about."""
    topics = len(population.topics)
    bits = np.array([0, *(1 << topic for topic in range(topics))], dtype=np.int64 if topics < 63 else object)
    masks = bits[np.zeros(len(population), dtype=np.int64)]
    for column in population.interests.T:
        masks = masks | bits[column.astype(np.int64) + 1]
    return cast("list[int]", masks.tolist())
