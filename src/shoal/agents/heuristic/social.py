"""The offline mind of social platforms: a seeded classical model of people, never a language model.

What people read pulls their stance towards the slant of posts that are not too far away (bounded confidence). What is
far away provokes them, and the more they see of the subject the more they talk about it. So a rumour spreads along
follows, doubters push back, and with low confidence camps form.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isnan
from typing import Any, cast

import numpy as np

from shoal.agents.heuristic.actions import MOST_DUE, SUNDRY, SUNDRY_IN_GROUPS, SUNDRY_IN_SHOPS, SocialTurn
from shoal.agents.heuristic.base import (
    ANYTHING,
    AUTHORITY,
    HEARSAY,
    NOTHING,
    TEXTS,
    Behaviour,
    OpinionMind,
    read_numbers,
)
from shoal.agents.heuristic.opinion import classify_stance, persuade
from shoal.agents.heuristic.perception import TextReading
from shoal.agents.heuristic.reactions import PROVOCATION, Chances, draw_reaction, take_side, weigh_reactions
from shoal.agents.heuristic.sentences import CLAIM, build_sentences
from shoal.agents.heuristic.writing import Voice, build_social_families
from shoal.types import USUAL_HABITS, Action, Decision, Mention, Observation, Population, Versioned
from shoal.worlds import TextReader
from shoal.worlds.social import PostView, SocialObservation

MAX_ACTIONS = 3
#: Chance that people without an opinion on a claim ask about it.
ASKING = 0.5

#: Chances per turn; the rest goes to the feed.
SUNDRY_CHANCE = 0.05
NEWS_CHANCE = 0.5
UNDO_CHANCE = 0.003
ANOTHER_ACTION_CHANCE = 0.16
#: How much more a post appeals that takes the agent's own side with full force.
KINSHIP = 1.2
#: How much less one appeals that takes the other side with full force; it still provokes.
AVERSION = 0.4
#: Likes and shares with which a post has half of all the appeal that a crowd can give it; runs of 0.2 have the first.
FIRST_CROWDING, CROWDING = 60, 12
#: Weight of doing nothing against the appeal of all posts in sight.
BOREDOM = 0.7

#: Actions that can be undone: their argument, and what undoes them.
UNDO = {
    "LIKE_POST": ("post_id", "UNLIKE_POST"),
    "DISLIKE_POST": ("post_id", "UNDO_DISLIKE_POST"),
    "FOLLOW": ("followee_id", "UNFOLLOW"),
    "MUTE": ("mutee_id", "UNMUTE"),
}
UNDOABLE = tuple(UNDO)
UNDOING = frozenset(undo for _, undo in UNDO.values())
NOTHING_TO_UNDO = -1

#: How explanations speak of attitudes and leanings.
ATTITUDES = {1: "drawn", 0: "neither", -1: "provoked"}
VOICED = {-2: "firmly against", -1: "mildly against", 0: "undecided", 1: "mildly for", 2: "firmly for"}


class SocialMind(OpinionMind):
    """Decides for every agent on one platform."""

    def __init__(
        self, population: Population, behaviours: Versioned[Behaviour], seed: int, world: str, reader: TextReader
    ) -> None:
        super().__init__(population, behaviours, seed, world, reader)
        self._voice = Voice(seed, world, build_social_families() if self._edition == 1 else build_sentences())
        # Interests are bits, so that one operation compares an agent's with the topics of a post.
        topics = len(population.topics)
        bits = np.array([0, *(1 << topic for topic in range(topics))], dtype=np.int64 if topics < 63 else object)
        masks = bits[np.zeros(len(population), dtype=np.int64)]
        for column in population.interests.T:
            masks = masks | bits[column.astype(np.int64) + 1]
        self._masks = cast("list[int]", masks.tolist())
        # What agents also remember: the last action that can be undone (its target and kind in one number).
        self._undo = [NOTHING_TO_UNDO] * len(population)
        #: Columns of habits by name, of those that anyone has.
        columns = {name: getattr(population.habits, name) for name in USUAL_HABITS}
        self._habits: dict[str, list[float]] = {
            name: column.tolist() for name, column in columns.items() if column is not None
        }

    def memory(self, agent: int) -> object:
        """Return all that the agent's decisions depend on besides what it sees."""
        own = (self._stances[agent], self._heats[agent], self._written[agent], self._undo[agent])
        heard = self._heard.get(agent, ())
        return (*own, *self._own_habits(agent).items(), *self._own_beliefs(agent).items(), *heard)

    def _own_habits(self, agent: int) -> dict[str, float]:
        """Return the agent's habits that differ from the usual ones."""
        habits = {name: column[agent] for name, column in self._habits.items()}
        return {name: value for name, value in habits.items() if not isnan(value) and value != USUAL_HABITS[name]}

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        """Set the stance and habits, where they are numbers."""
        super().change(agent, traits)
        for name, value in read_numbers(traits).items():
            if name in USUAL_HABITS:
                self._habits.setdefault(name, [USUAL_HABITS[name]] * len(self._stances))[agent] = value

    def decide(self, observation: Observation) -> Decision:
        seen = cast(SocialObservation, observation)
        turn = self._turn(seen)
        if seen.announcements and turn.posts is None:
            turn.add(self._talk_of_news(turn))
        if not turn.actions:
            # What the agent's own rates demand is written besides whatever else it does in the turn.
            if turn.posts is not None and self._may("CREATE_POST"):
                for _ in range(turn.draw_due(turn.posts)):
                    turn.add(self._talk_of_news(turn) or self._write_post(turn))
            if turn.comments is not None and self._may("CREATE_COMMENT"):
                posts, bounds = self._appeals(turn)
                for _ in range(min(turn.draw_due(turn.comments), len(posts))):
                    place = bisect(bounds, turn.draws.random() * bounds[-1])
                    turn.add(turn.react("CREATE_COMMENT", posts[place], self._readings.read_post(posts[place])))
                    appeal = bounds[place] - (bounds[place - 1] if place else 0.0)
                    bounds = bounds[:place] + [bound - appeal for bound in bounds[place + 1 :]]
                    del posts[place]
            chance = turn.draws.random()
            if chance < SUNDRY_CHANCE:
                turn.add(self._do_sundry(turn))
            elif chance < SUNDRY_CHANCE + self._original_chance(turn) * (1.0 + 0.6 * turn.heat):
                turn.add(self._write_post(turn))
            else:
                self._read_feed(turn)
        return Decision(tuple(turn.actions)) if turn.actions else NOTHING

    def _turn(self, seen: SocialObservation) -> SocialTurn:
        agent = seen.agent
        self._enter(seen.round)
        turn = SocialTurn(
            seen, self._draws(agent), self._voice, self._stances[agent], self._heats[agent], self._written[agent]
        )
        turn.states_lean = self._edition > 1
        if self._beliefs:
            turn.beliefs = self._own_beliefs(agent)
        if self._habits:
            hours = self._behaviour.hours_per_turn
            if "sentiment" in self._habits:
                turn.mood = self._habits["sentiment"][agent]
            if "posts_per_hour" in self._habits and not isnan(rate := self._habits["posts_per_hour"][agent]):
                turn.posts = rate * hours
            if "comments_per_hour" in self._habits and not isnan(rate := self._habits["comments_per_hour"][agent]):
                turn.comments = rate * hours
        return turn

    def _original_chance(self, turn: SocialTurn) -> float:
        return self._behaviour.original_chance if turn.posts is None else 0.0

    # Memory

    def remember_turn(self, observation: Observation, decision: Decision) -> None:
        seen = cast(SocialObservation, observation)
        agent = seen.agent
        self._stances[agent], self._heats[agent] = self._opinion_after(seen)
        if self._beliefs:
            # Announcements last, as they count most.
            influences = self._habits.get("influence")
            posts = [
                (post.mention, 1.0 if influences is None else influences[post.author_id])
                for post in seen.followed + seen.recommended
                if isinstance(post.mention, Mention) and post.author_id != seen.agent
            ]
            news = [
                (mention, AUTHORITY) for text in seen.announcements if (mention := self._readings.find_mention(text))
            ]
            self._take_beliefs(
                agent, self._beliefs_after(agent, posts[: self._behaviour.settings.attention - len(news)] + news)
            )
        for action in decision.actions:
            kind = action.kind
            if kind in TEXTS:
                self._written[agent] += 1
            elif kind in UNDO:
                self._undo[agent] = int(action.args[UNDO[kind][0]]) * len(UNDOABLE) + UNDOABLE.index(kind)
            elif kind in UNDOING:
                self._undo[agent] = NOTHING_TO_UNDO

    def _opinion_after(self, seen: SocialObservation) -> tuple[float, float]:
        """Return the agent's stance and heat after what it reads."""
        agent = seen.agent
        themes = self._readings.themes
        settings = self._behaviour.settings
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
            count += sum(self._readings.read_text(text).contested for text in seen.announcements)
        influences = self._habits.get("influence")
        weights = None if influences is None else [influences[author] for author in authors]
        return persuade(self._stances[agent], heard, settings, weights), self._heat_after(agent, count)

    # The feed

    def _read_feed(self, turn: SocialTurn) -> None:
        posts, bounds = self._appeals(turn)
        first = self._pick(turn, posts, bounds)
        if first is None:
            if not posts and turn.draws.chance(2 * self._original_chance(turn)):
                turn.add(self._write_post(turn))
            return
        if not turn.add(self._react(turn, first)):
            return
        while len(turn.actions) < MAX_ACTIONS and turn.draws.chance(ANOTHER_ACTION_CHANCE):
            other = self._pick(turn, posts, bounds)
            if other is not None and other.post_id != first.post_id:
                turn.add(self._react(turn, other))
                continue
            # One more thing about the same post.
            reading = self._readings.read_post(first)
            if self._attitude(turn, reading) > 0:
                followed = self._may("FOLLOW") and turn.add(turn.react("FOLLOW", first, reading))
                if not followed and self._may("LIKE_POST"):
                    turn.add(turn.react("LIKE_POST", first, reading))

    def _appeals(self, turn: SocialTurn) -> tuple[list[PostView], list[float]]:
        """Return the posts of other people, and the running sum of how much each appeals to the agent."""
        seen = turn.seen
        agent = turn.seen.agent
        themes = self._readings.themes
        interests = self._masks[agent]
        crowding = FIRST_CROWDING if self._edition == 1 else CROWDING
        involvement = 0.35 + 0.5 * turn.heat
        reacted = seen.reacted
        total = 0.0
        posts: list[PostView] = []
        bounds: list[float] = []
        feed = seen.followed + seen.recommended
        for answer in seen.answers:
            feed += answer.posts
        for post in feed:
            if post.author_id == agent:
                continue
            mask, contested, _ = themes.get(post.topics) or self._readings.theme(post.topics)
            appeal = 0.7 if mask & interests else 0.25
            mention = post.mention
            if isinstance(mention, Mention) or contested:
                # People look for their own side, the more so the more both take it; the other side is less read.
                own, said = self._compare(turn, mention, post.slant)
                side = own * said
                appeal += involvement + (KINSHIP if side > 0 else AVERSION) * side
            crowd = post.likes + post.shares
            appeal = (appeal + crowd / (crowd + crowding)) / (1.0 + 0.1 * post.age)
            if post.post_id in reacted:
                appeal *= 0.1
            total += appeal
            posts.append(post)
            bounds.append(total)
        return posts, bounds

    @staticmethod
    def _pick(turn: SocialTurn, posts: list[PostView], bounds: list[float]) -> PostView | None:
        """Draw a post with a chance that grows with its appeal, or none."""
        if not posts:
            return None
        place = bisect(bounds, turn.draws.random() * (bounds[-1] + BOREDOM))
        return posts[place] if place < len(posts) else None

    def _react(self, turn: SocialTurn, post: PostView) -> Action | None:
        reading = self._readings.read_post(post)
        attitude = self._attitude(turn, reading)
        chances = self._weigh(turn, attitude, post)
        if not chances:
            return None
        action = turn.react(draw_reaction(chances, turn.draws.random), post, reading)
        if action is None and attitude >= 0 and self._may("LIKE_POST"):
            return turn.react("LIKE_POST", post, reading)
        return None if action is None or action.kind == "DO_NOTHING" else action

    def _weigh(self, turn: SocialTurn, attitude: int, post: PostView) -> Chances:
        """Return the chances of reactions to a post, towards which the agent has this attitude."""
        behaviour = self._behaviour
        chances = (behaviour.chances if turn.comments is None else behaviour.other_chances)[attitude]
        if self._edition == 1:
            return chances
        appeal = self._claims[post.mention.claim].appeal if isinstance(post.mention, Mention) else 1.0
        return weigh_reactions(chances, post, appeal)

    @staticmethod
    def _compare(turn: SocialTurn, mention: object, slant: float) -> tuple[float, float]:
        """Return what the agent thinks of what a text is about, and what the text says: of its claim, or the topic."""
        return (turn.beliefs[mention.claim], mention.lean) if isinstance(mention, Mention) else (turn.stance, slant)

    def _attitude(self, turn: SocialTurn, reading: TextReading) -> int:
        """Return 1 for what draws the agent, -1 for what provokes it, 0 for the rest."""
        own, said = self._compare(turn, reading.mention, reading.slant)
        is_disputed = reading.mention is not None or (reading.contested and self._subject is not None)
        if self._edition > 1 and is_disputed:
            return take_side(own, said)
        if reading.contested and reading.slant:
            gap = abs(reading.slant - turn.stance)
            if gap <= self._behaviour.settings.confidence:
                return 1
            return -1 if gap >= PROVOCATION else 0
        return 1 if reading.mask & self._masks[turn.seen.agent] else 0

    # Original posts, and everything else

    def _write_post(self, turn: SocialTurn) -> Action:
        """Write about the subject or a claim, the more it is on the agent's mind; about an interest otherwise."""
        subject = self._subject
        heard = self._heard.get(turn.seen.agent) if self._heard else None
        if heard and turn.draws.chance(HEARSAY * (0.06 + 0.8 * turn.heat)):
            return self._write_about(turn, turn.draws.choice(heard), "post")
        keen = 0.06 * abs(turn.stance) + 0.8 * turn.heat
        topic = self._own_topic(turn.seen.agent, turn.draws)
        if turn.draws.chance(keen) or topic in (None, subject):
            text = turn.write(("post", turn.lean), subject or topic or ANYTHING)
            return Action("CREATE_POST", {"content": text, **turn.state(turn.lean if subject else 0)})
        return Action("CREATE_POST", {"content": turn.write(("hobby",), topic or ANYTHING), **turn.state(0)})

    def _write_about(self, turn: SocialTurn, claim: str, kind: str) -> Action:
        """Write what the agent thinks of a claim; people without an opinion ask."""
        lean = classify_stance(turn.beliefs[claim])
        key = (CLAIM, kind, lean) if lean or not turn.draws.chance(ASKING) else (CLAIM, "ask")
        text = turn.write(key, self._readings.claims[claim])
        return Action("CREATE_POST", {"content": text, **turn.state(lean, claim)})

    def _talk_of_news(self, turn: SocialTurn) -> Action | None:
        """Write about the first announcement that concerns the agent, if it is in the mood."""
        for text in turn.seen.announcements:
            reading = self._readings.read_text(text)
            concerned = reading.contested or bool(reading.mask & self._masks[turn.seen.agent])
            if turn.draws.chance(NEWS_CHANCE if concerned else 0.1 * NEWS_CHANCE) and self._may("CREATE_POST"):
                if reading.mention is not None:
                    return self._write_about(turn, reading.mention.claim, "news")
                lean = turn.lean if reading.contested else 0
                text = turn.write(("news", lean), reading.about)
                return Action("CREATE_POST", {"content": text, **turn.state(lean)})
        return None

    def _do_sundry(self, turn: SocialTurn) -> Action | None:
        """Undo something, search, look at trends, or do something with groups or products."""
        draws, seen = turn.draws, turn.seen
        if draws.chance(UNDO_CHANCE / SUNDRY_CHANCE):
            target, number = divmod(self._undo[turn.seen.agent], len(UNDOABLE))
            argument, undo = UNDO[UNDOABLE[number]]
            return Action(undo, {argument: target}) if target >= 0 and self._may(undo) else None
        weights = {**SUNDRY, **(SUNDRY_IN_GROUPS if seen.groups else {}), **(SUNDRY_IN_SHOPS if seen.products else {})}
        options = [kind for kind, weight in weights.items() if self._may(kind) for _ in range(weight)]
        if not options:
            return None
        subject = self._subject if draws.chance(turn.heat) else None
        kind = draws.choice(options)
        return turn.act(kind, subject or self._own_topic(turn.seen.agent, draws) or self._subject or ANYTHING)

    # Explanations

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        """Show what the agent remembers, what each post in sight is worth to it, and its chances to act."""
        seen = cast(SocialObservation, observation)
        turn = self._turn(seen)
        posts, bounds = self._appeals(turn)
        readings = [self._readings.read_post(post) for post in posts]
        attitudes = [self._attitude(turn, reading) for reading in readings]
        appeals = [bound - before for before, bound in pairwise((0.0, *bounds))]
        stance, heat = self._opinion_after(seen)
        return {
            "mind": "heuristic",
            "before": {
                "stance": _round(turn.stance),
                "voiced as": VOICED[turn.lean],
                "topic on its mind": _round(turn.heat),
                "texts written": turn.written,
                **{f"belief in {claim}": _round(belief) for claim, belief in turn.beliefs.items()},
                **self._own_habits(turn.seen.agent),
            },
            "posts in sight": [
                {
                    "post": post.post_id,
                    "by": post.author,
                    "about": reading.about,
                    "leans": _round(post.slant),
                    "reacted before": post.post_id in seen.reacted,
                    "attitude": ATTITUDES[attitude],
                    "appeal": _round(appeal),
                    "chance to be picked": _round(appeal / (bounds[-1] + BOREDOM)),
                }
                for post, reading, attitude, appeal in zip(posts, readings, attitudes, appeals, strict=True)
            ],
            "chances": self._chances(turn, bounds),
            "reactions": {
                str(post.post_id): {kind: _round(chance / sum(chances.values())) for kind, chance in chances.items()}
                for post, attitude in zip(posts, attitudes, strict=True)
                if (chances := self._weigh(turn, attitude, post))
            },
            "after reading": {"stance": _round(stance), "topic on its mind": _round(heat)},
        }

    def _chances(self, turn: SocialTurn, bounds: Sequence[float]) -> dict[str, float]:
        """Return what a turn is spent on; posts and comments at the agent's own rates come on top of it."""
        original = min(self._original_chance(turn) * (1.0 + 0.6 * turn.heat), 1.0 - SUNDRY_CHANCE)
        chances = {
            "something else, such as a search": SUNDRY_CHANCE,
            "a post of its own": original,
            "a look at the feed": 1.0 - SUNDRY_CHANCE - original,
            "picking nothing in the feed": BOREDOM / (bounds[-1] + BOREDOM) if bounds else 1.0,
        }
        if turn.seen.announcements:
            chances["talking about news that concerns it"] = NEWS_CHANCE
        if turn.posts is not None:
            chances["posts in a turn, on average"] = min(turn.posts, MOST_DUE)
        if turn.comments is not None:
            chances["comments in a turn, on average"] = min(turn.comments, MOST_DUE)
        return {what: _round(chance) for what, chance in chances.items()}


def _round(value: float) -> float:
    return round(value, 4)
