"""The offline mind: a seeded classical model of people on a social platform, never a language model.

People have interests and one opinion, their stance on the scenario's subject. What they read pulls the stance towards
the slant of posts that are not too far away (bounded confidence), what lies far away provokes them, and the more they
see of the subject the more they talk about it themselves. So a rumour spreads along who follows whom, doubters push
back, and with low confidence camps form.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isnan
from typing import Any, cast

import numpy as np

from shoal.agents.heuristic import actions as turns
from shoal.agents.heuristic.actions import Reaction, Turn
from shoal.agents.heuristic.base import Behaviour, OpinionMind
from shoal.agents.heuristic.opinion import persuade, weigh_opinions
from shoal.agents.heuristic.perception import TextReading
from shoal.agents.heuristic.writing import Voice
from shoal.seeds import Draws, extend
from shoal.types import USUAL_HABITS, Action, Decision, Habits, Observation, Population, Versioned
from shoal.worlds.lexicon import TextReader
from shoal.worlds.social.observations import PostView, SocialObservation

#: So many posts about the subject in a turn and it is all that is on an agent's mind.
ENGROSSED_POSTS = 3
#: How much of what is on an agent's mind is left a turn later.
LINGERING = 0.75
#: Opinions at least this far away provoke, if they are beyond the agent's confidence too.
PROVOCATION = 0.9
MAX_ACTIONS = 3

#: Chances per turn; what is left goes to the feed.
SUNDRY_CHANCE = 0.05
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

#: How explanations speak of attitudes and leanings.
ATTITUDES = {1: "drawn", 0: "neither", -1: "provoked"}
VOICED = {-2: "firmly against", -1: "mildly against", 0: "undecided", 1: "mildly for", 2: "firmly for"}


class HeuristicMind(OpinionMind):
    """Decides for everybody on one platform. `decide` only reads; what an agent remembers changes in `absorb`."""

    def __init__(
        self, population: Population, manners: Versioned[Behaviour], seed: int, world: str, reader: TextReader
    ) -> None:
        super().__init__(population, manners, seed, world, reader)
        self._voice = Voice(seed, world)
        self._interests = _masks(population)
        # The memory of the agents besides their stance, one list per thing remembered: how much the subject is on their
        # mind, texts written, and what they last did that can be taken back.
        self._heats = [0.0] * len(population)
        self._written = [0] * len(population)
        self._undo = [NOTHING_TO_UNDO] * len(population)
        #: Habits that somebody has, by name; nothing where nobody has any.
        self._habits = _columns(population.habits)

    def memory(self, agent: int) -> object:
        """What the agent remembers: all that its decisions depend on besides what it sees."""
        own = (self._stances[agent], self._heats[agent], self._written[agent], self._undo[agent])
        return (*own, *self._habits_of(agent).items())

    def _habits_of(self, agent: int) -> dict[str, float]:
        """Only what is not as it is with everybody."""
        habits = {name: column[agent] for name, column in self._habits.items()}
        return {name: value for name, value in habits.items() if not isnan(value) and value != USUAL_HABITS[name]}

    def stance(self, agent: int) -> float:
        return self._stances[agent]

    def decide(self, observation: Observation) -> Decision:
        seen = cast(SocialObservation, observation)
        turn = self._turn(seen)
        if seen.announcements and turn.posts is None:
            turn.do(self._talk_of_news(turn))
        if not turn.actions:
            self._write_due(turn)
            self._act(turn)
        return Decision(tuple(turn.actions)) if turn.actions else _NOTHING

    def _turn(self, seen: SocialObservation) -> Turn:
        agent = seen.agent
        self._enter(seen.round)
        draws = Draws(extend(self._key, agent, "decide"))
        turn = Turn(seen, draws, self._voice, self._stances[agent], self._heats[agent], self._written[agent])
        if self._habits:
            self._take_habits(turn)
        return turn

    def absorb(self, observation: Observation, decision: Decision) -> None:
        if decision.failure is not None:
            return
        seen = cast(SocialObservation, observation)
        self._enter(seen.round)
        self._form_opinion(seen)
        for action in decision.actions:
            self._recall(seen.agent, action)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        """Numbers for the stance and for habits are taken over; a mind has no use for other traits."""
        for name, value in traits.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            if name == "stance":
                self._stances[agent] = min(max(float(value), -1.0), 1.0)
            elif name in USUAL_HABITS:
                usual = [USUAL_HABITS[name]] * len(self._stances)
                self._habits.setdefault(name, usual)[agent] = float(value)

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        """What the agent brings along, what each post in sight is worth to it, and the chances of what it may do."""
        seen = cast(SocialObservation, observation)
        turn = self._turn(seen)
        posts, bounds = self._appeals(turn)
        attitudes = {self._attitude(turn, self._readings.post(post)) for post in posts}
        stance, heat = self._moved(seen)
        return {
            "mind": "heuristic",
            "before": {
                "stance": _rounded(turn.stance),
                "voiced as": VOICED[turn.lean],
                "topic on its mind": _rounded(turn.heat),
                "texts written": turn.written,
                **self._habits_of(turn.agent),
            },
            "posts in sight": [
                self._worth(turn, post, appeal, appeal / (bounds[-1] + BOREDOM))
                for post, appeal in zip(posts, _steps(bounds), strict=True)
            ],
            "chances": self._chances(turn, bounds),
            "reactions": {ATTITUDES[attitude]: self._reactions(turn, attitude) for attitude in sorted(attitudes)},
            "after reading": {"stance": _rounded(stance), "topic on its mind": _rounded(heat)},
        }

    def _worth(self, turn: Turn, post: PostView, appeal: float, chance: float) -> dict[str, Any]:
        """What a post is to the agent."""
        reading = self._readings.post(post)
        return {
            "post": post.post_id,
            "by": post.author,
            "about": reading.about,
            "leans": _rounded(post.slant),
            "reacted before": post.post_id in turn.observation.reacted,
            "attitude": ATTITUDES[self._attitude(turn, reading)],
            "appeal": _rounded(appeal),
            "chance to be picked": _rounded(chance),
        }

    def _chances(self, turn: Turn, bounds: Sequence[float]) -> dict[str, float]:
        """What a turn is spent on; posts and comments at a rate of one's own come on top of it."""
        original = min(self._original_chance(turn) * (1.0 + 0.6 * turn.heat), 1.0 - SUNDRY_CHANCE)
        chances = {
            "something else, such as a search": SUNDRY_CHANCE,
            "a post of its own": original,
            "a look at the feed": 1.0 - SUNDRY_CHANCE - original,
            "picking nothing in the feed": BOREDOM / (bounds[-1] + BOREDOM) if bounds else 1.0,
        }
        if turn.observation.announcements:
            chances["talking about news that concerns it"] = NEWS_CHANCE
        if turn.posts is not None:
            chances["posts in a turn, on average"] = min(turn.posts, turns.MOST_DUE)
        if turn.comments is not None:
            chances["comments in a turn, on average"] = min(turn.comments, turns.MOST_DUE)
        return {what: _rounded(chance) for what, chance in chances.items()}

    def _reactions(self, turn: Turn, attitude: int) -> dict[str, float]:
        """What the agent does about a post that it has picked, with chances."""
        kinds = {reaction: kind for kind, reaction in turns.REACTIONS.items()}
        bounds, reactions = self._tables(turn)[attitude]
        return {
            kinds[reaction]: _rounded(step / bounds[-1])
            for reaction, step in zip(reactions, _steps(bounds), strict=True)
        }

    def _take_habits(self, turn: Turn) -> None:
        agent, hours = turn.agent, self._manner.hours_per_turn
        if "sentiment" in self._habits:
            turn.colour(self._habits["sentiment"][agent])
        if "posts_per_hour" in self._habits and not isnan(rate := self._habits["posts_per_hour"][agent]):
            turn.posts = rate * hours
        if "comments_per_hour" in self._habits and not isnan(rate := self._habits["comments_per_hour"][agent]):
            turn.comments = rate * hours

    def _form_opinion(self, seen: SocialObservation) -> None:
        self._stances[seen.agent], self._heats[seen.agent] = self._moved(seen)

    def _moved(self, seen: SocialObservation) -> tuple[float, float]:
        """Stance and how much the subject is on the agent's mind, after what it reads."""
        agent = seen.agent
        themes = self._readings.themes
        settings = self._manner.settings
        count = 0
        heard: list[float] = []
        authors: list[int] = []
        for post in seen.followed + seen.recommended:
            _, contested, _ = themes.get(post.topics) or self._readings.theme(post.topics)
            if contested and post.author_id != agent:
                count += 1
                if post.slant:
                    heard.append(post.slant)
                    authors.append(post.author_id)
                if count == settings.attention:
                    break
        if seen.announcements:
            count += sum(self._readings.text(text).contested for text in seen.announcements)
        heat = LINGERING * self._heats[agent] + (1 - LINGERING) * min(count / ENGROSSED_POSTS, 1.0)
        influences = self._habits.get("influence")
        if influences is None:
            return persuade(self._stances[agent], heard, settings), heat
        return weigh_opinions(self._stances[agent], heard, [influences[author] for author in authors], settings), heat

    def _recall(self, agent: int, action: Action) -> None:
        kind = action.kind
        if kind in turns.TEXTS:
            self._written[agent] += 1
        elif kind in UNDO:
            self._undo[agent] = int(action.args[UNDO[kind][0]]) * len(UNDOABLE) + UNDOABLE.index(kind)
        elif kind in UNDOING:
            self._undo[agent] = NOTHING_TO_UNDO

    def _write_due(self, turn: Turn) -> None:
        """What those write who have a rate of their own, besides whatever else they do in the turn."""
        if turn.posts is not None and self._may("CREATE_POST"):
            for _ in range(turn.due(turn.posts)):
                turn.do(self._talk_of_news(turn) or self._write_post(turn))
        if turn.comments is not None and self._may("CREATE_COMMENT"):
            posts, bounds = self._appeals(turn)
            for _ in range(min(turn.due(turn.comments), len(posts))):
                place = bisect(bounds, turn.draws.random() * bounds[-1])
                turn.do(turns.comment(turn, posts[place], self._readings.post(posts[place])))
                appeal = bounds[place] - (bounds[place - 1] if place else 0.0)
                bounds = bounds[:place] + [bound - appeal for bound in bounds[place + 1 :]]
                del posts[place]

    def _original_chance(self, turn: Turn) -> float:
        return self._manner.original_chance if turn.posts is None else 0.0

    def _act(self, turn: Turn) -> None:
        chance = turn.draws.random()
        if chance < SUNDRY_CHANCE:
            turn.do(self._do_sundry(turn))
            return
        original = self._original_chance(turn) * (1.0 + 0.6 * turn.heat)
        if chance < SUNDRY_CHANCE + original:
            turn.do(self._write_post(turn))
            return
        self._read_feed(turn)

    def _read_feed(self, turn: Turn) -> None:
        posts, bounds = self._appeals(turn)
        first = self._pick(turn, posts, bounds)
        if first is None:
            if not posts and turn.draws.chance(2 * self._original_chance(turn)):
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
        bounds, reactions = self._tables(turn)[attitude]
        if not reactions:
            return None
        action = reactions[bisect(bounds, turn.draws.random() * bounds[-1])](turn, post, reading)
        if action is None and attitude >= 0 and self._may("LIKE_POST"):
            return turns.like(turn, post, reading)
        return None if action is None or action.kind == "DO_NOTHING" else action

    def _tables(self, turn: Turn) -> Mapping[int, tuple[list[float], list[Reaction]]]:
        return self._manner.tables if turn.comments is None else self._manner.other_tables

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

    def _attitude(self, turn: Turn, reading: TextReading) -> int:
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


def _steps(bounds: Sequence[float]) -> list[float]:
    """The terms of running sums."""
    return [bound - before for before, bound in pairwise((0.0, *bounds))]


def _rounded(value: float) -> float:
    return round(value, 4)


def _columns(habits: Habits) -> dict[str, list[float]]:
    """Those that somebody has."""
    columns = {name: getattr(habits, name) for name in USUAL_HABITS}
    return {name: column.tolist() for name, column in columns.items() if column is not None}


def _masks(population: Population) -> list[int]:
    """Each agent's interests as bits, so that one operation compares them with what a post is about."""
    topics = len(population.topics)
    bits = np.array([0, *(1 << topic for topic in range(topics))], dtype=np.int64 if topics < 63 else object)
    masks = bits[np.zeros(len(population), dtype=np.int64)]
    for column in population.interests.T:
        masks = masks | bits[column.astype(np.int64) + 1]
    return cast("list[int]", masks.tolist())
