"""A social platform as a world: feeds, actions with their rules, and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.types import MAX_ACTIONS_PER_TURN, Action, Decision, Event, Happening, Notice, Versioned, Writes
from shoal.worlds.base import Rejected, describe_failure
from shoal.worlds.clock import ActivationSampler, MutedAgents
from shoal.worlds.context import WorldContext
from shoal.worlds.social import database
from shoal.worlds.social.actions.rules import RULES
from shoal.worlds.social.feed import FeedShape
from shoal.worlds.social.observations import LookedUp, SocialObservation
from shoal.worlds.social.ranking import RankingWeights
from shoal.worlds.social.settings import SocialSettings
from shoal.worlds.social.state import Actor, Done, State, trace
from shoal.worlds.social.view_builder import ViewBuilder

#: Edges of the follow graph that are written at once.
_CHUNK_EDGES = 100_000
#: A post this much newer may have a tenth of the engagement and be as hot; Reddit's own formula has 45,000 seconds.
_DECADE_MINUTES = {"twitter": 360, "reddit": 750}


@dataclass(frozen=True, slots=True)
class PlatformPreset:
    """Everything that makes one platform differ from another."""

    shape: FeedShape
    weights: RankingWeights
    decade_minutes: int
    #: Whether the database tells time as a date; otherwise as the number of the round. As OASIS does.
    is_dated: bool

    @classmethod
    def of(cls, settings: SocialSettings) -> PlatformPreset:
        feed = settings.complete_feed()
        recency, popularity, relevance, echo_chamber = (
            round(1000 * (weight or 0.0))
            for weight in (feed.recency, feed.popularity, feed.relevance, feed.echo_chamber)
        )
        return cls(
            FeedShape(feed.followed or 0, feed.recommended or 0, feed.recommendation or "none", feed.comments or 0),
            RankingWeights(recency, popularity, relevance, echo_chamber, feed.viral_threshold or 1),
            _DECADE_MINUTES[settings.kind],
            settings.kind == "reddit",
        )


class Platform:
    """The world behind `twitter` and `reddit`."""

    schema = database.SCHEMA
    indexes = database.INDEXES
    over = False

    def __init__(self, name: str, settings: Versioned[SocialSettings], given: WorldContext) -> None:
        self.name = name
        self.visibility = settings.first.visibility
        self.muted = MutedAgents()
        self._settings = settings
        self._presets: Versioned[PlatformPreset] = settings.map(PlatformPreset.of)
        self._clock = given.clock
        self._given = given
        self._activity = given.time.map(
            lambda time: ActivationSampler(time, given.clock, given.population, given.seed, name)
        )
        self._state = State(name, given, self._presets.first.decade_minutes)
        self._state.sales.update(dict.fromkeys(settings.first.products, 0))
        self._builder: tuple[tuple[int, int], ViewBuilder] | None = None
        self._last_turn = np.full(len(given.population), -1, np.int32)
        self._previous_turn = self._last_turn.copy()
        self._news: list[tuple[int, Happening]] = []
        self._posted: Counter[int] = Counter()
        self._stamp = ""
        self._created_at: int | str = 0
        self._allowed = settings.first.actions

    def turns(self, round: int) -> Sequence[Sequence[int]]:
        """Return one group with all agents that are awake."""
        awake = self.muted.exclude_from(self._activity.at(round).draw(round), round)
        new = awake[self._last_turn[awake] != round]
        self._previous_turn[new] = self._last_turn[new]
        self._last_turn[new] = round
        return [awake.tolist()] if len(awake) else []

    def explain_absence(self, round: int, agent: int) -> str:
        """Return why an agent has no turn in a round."""
        people, hour = self._given.population, self._clock.hour(round)
        if (round, agent) in self.muted:
            return f"muted until round {self.muted.until(agent)}"
        if not int(people.active_hours[agent]) >> hour & 1:
            return f"asleep at {hour:02}:00"
        return f"awake but not drawn to act this time, with an activity of {people.activity[agent]:.2f}"

    def observe(self, round: int, agents: Sequence[int]) -> Sequence[SocialObservation]:
        everyone, state = np.asarray(agents, np.int64), self._state
        # All who look at the same round of the same state share one builder.
        moment = (round, state.version)
        if self._builder is None or self._builder[0] != moment:
            preset = self._presets.at(round)
            self._builder = (moment, ViewBuilder(state, round, preset.shape, preset.weights))
        builder = self._builder[1]
        news = self._find_news(round, everyone)
        followers, following = state.follows.followers[everyone].tolist(), state.follows.followings[everyone].tolist()
        products = tuple(state.sales.items())
        time = self._clock.stamp(round)
        return [
            SocialObservation(
                world=self.name, round=round, agent=agent, name=state.names[agent], time=time,
                followed=page.followed, recommended=page.recommended, strangers=page.strangers, reacted=page.reacted,
                followers=followers[i], following=following[i], announcements=news.get(agent, ()),
                answers=self._find_answers(agent) if agent in state.answers else (), groups=builder.groups(agent),
                products=products,
            )
            for i, (agent, page) in enumerate(zip(agents, builder.pages(everyone), strict=True))
        ]  # fmt: skip

    def _find_news(self, round: int, agents: NDArray[np.int64]) -> dict[int, tuple[str, ...]]:
        """Return what was broadcast to each agent since its last turn."""
        news: dict[int, tuple[str, ...]] = {}
        for since, happening in self._news:
            if since <= round:
                missed = agents[self._previous_turn[agents] < since].tolist()
                for agent in missed if not happening.to else set(missed).intersection(happening.to):
                    news[agent] = (*news.get(agent, ()), happening.content)
        return news

    def _find_answers(self, agent: int) -> tuple[LookedUp, ...]:
        """Return what the agent looked up and could not see yet when it last had its turn."""
        seen = int(self._previous_turn[agent]) - self.visibility
        return tuple(answer for asked, answer in self._state.answers[agent] if asked > seen)

    def begin(self, round: int) -> None:
        state, settings, preset = self._state, self._settings.at(round), self._presets.at(round)
        state.version += 1
        self._stamp = self._clock.stamp(round)
        self._created_at = self._clock.at(round).strftime("%Y-%m-%d %H:%M:%S") if preset.is_dated else round
        state.self_rating = settings.self_rating
        self._allowed = settings.actions
        state.comments_shown = preset.shape.comments
        state.feed.open_round()
        state.find_trend(round)
        self._posted.clear()
        if round == 0:
            state.rows.stream(database.USER, self._user_rows())
            state.rows.add(database.SIGN_UP)
            state.rows.stream(database.FOLLOW, self._follow_rows())
            for number, product in enumerate(self._settings.first.products, 1):
                state.rows.add(database.PRODUCT, number, product, 0)

    def _user_rows(self) -> Iterator[tuple[Any, ...]]:
        follows = self._state.follows
        for agent in range(len(self._given.population)):
            who = self._given.population[agent]
            counts = int(follows.followings[agent]), int(follows.followers[agent])
            yield (agent, agent, who.username, who.name, who.bio, self._created_at, *counts)

    def _follow_rows(self) -> Iterator[tuple[Any, ...]]:
        graph = self._given.graph
        followers = np.repeat(np.arange(len(graph.starts) - 1), np.diff(graph.starts))
        for first in range(0, graph.edges, _CHUNK_EDGES):
            part = slice(first, first + _CHUNK_EDGES)
            numbers = range(first + 1, first + _CHUNK_EDGES + 1)
            yield from zip(numbers, followers[part].tolist(), graph.targets[part].tolist(), repeat(self._created_at))

    def happen(self, round: int, happening: Happening) -> Sequence[Event | Notice]:
        match happening.kind:
            case "post":
                return [self._post(round, happening)]
            case "broadcast":
                self._news.append((round, happening))
            case "mute":
                self.muted.add(round, happening)
            case "change":
                # The world uses activity and influence; other traits concern the mind alone.
                agents = happening.to or range(len(self._given.population))
                activity, influence = happening.args.get("activity"), happening.args.get("influence")
                if activity is not None:
                    for version in self._activity.versions():
                        version.change(agents, activity)
                if isinstance(influence, (int, float)):
                    self._state.ranking.change_influence(agents, influence)
        return [happening.notice(round, self._clock.stamp(round))]

    def _post(self, round: int, happening: Happening) -> Event:
        """Post in an agent's name. There is room for as many in a round as for the agent's own actions."""
        agent = happening.agent or 0
        number = self._posted[agent]
        self._posted[agent] += 1
        actor = Actor(self._state, round, agent, self._created_at, event=number)
        args, refusal = {"content": happening.content}, None
        if number >= MAX_ACTIONS_PER_TURN:
            refusal = f"more than {MAX_ACTIONS_PER_TURN} posts in one name in one round"
        else:
            done = RULES["CREATE_POST"][1](self._state, actor, args)
            trace(self._state, actor, "create_post", done.trace)
            args = done.args
        return self._make_event(actor, f"event{number}", "CREATE_POST", args, refusal)

    def apply(self, round: int, agent: int, decision: Decision) -> Sequence[Event]:
        state = self._state
        actor = Actor(state, round, agent, self._created_at)
        state.version += 1
        answers = state.answers.pop(agent, None)
        if answers:
            unseen = [answer for answer in answers if answer[0] > round - self.visibility]
            if unseen:
                state.answers[agent] = unseen
        failure = describe_failure(decision)
        actions = decision.actions if failure is None else ()
        events = []
        for n, action in enumerate(actions or (Action("DO_NOTHING"),)):
            refusal, args = failure, action.args
            if refusal is None:
                try:
                    done = self._try(actor, n, action)
                    trace(state, actor, action.kind.lower(), done.trace)
                    args = done.args
                except Rejected as rejected:
                    refusal = str(rejected)
            events.append(self._make_event(actor, n, action.kind, args, refusal))
        return events

    def _try(self, actor: Actor, n: int, action: Action) -> Done:
        if n >= MAX_ACTIONS_PER_TURN:
            raise Rejected(f"more than {MAX_ACTIONS_PER_TURN} actions in one turn")
        known = RULES.get(action.kind)
        if known is None:
            raise Rejected(f"there is no action {action.kind}")
        if self._allowed is not None and action.kind not in self._allowed:
            raise Rejected(f"{action.kind} is not possible here")
        needs, rule = known
        for name, kind in needs.items():
            if type(action.args.get(name)) is not kind:
                raise Rejected(f"{action.kind} needs {name} ({'a number' if kind is int else 'a text'})")
        return rule(self._state, actor, action.args)

    def _make_event(self, actor: Actor, n: int | str, kind: str, args: dict[str, Any], refusal: str | None) -> Event:
        agent, number = actor.agent, f"{self.name}-{actor.round}-{actor.agent}-{n}"
        name, is_done = self._state.names[agent], refusal is None
        return Event(actor.round, agent, name, kind, args, is_done, refusal, self._stamp, number)

    def writes(self) -> Writes:
        state = self._state
        state.pools.update(np.array(sorted(state.touched_posts), np.int64))
        state.follows.settle()
        state.write_counts()
        return state.rows.take()

    def timestamp(self, round: int) -> str:
        return self._clock.stamp(round)

    def hours(self, round: int) -> float:
        return self._clock.hours_gone(round)
