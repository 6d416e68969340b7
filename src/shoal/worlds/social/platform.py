"""A social platform as a world: feeds, actions with their rules, and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain, repeat
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.types import MAX_ACTIONS_PER_TURN, Action, Decision, Event, Happening, Notice, Versioned, Writes
from shoal.worlds.base import SIGN_UP, SIGN_UP_LATER, TRACE, BaseWorld, Rejected, WorldContext, encode_info
from shoal.worlds.clock import ActivationSampler
from shoal.worlds.figures import measure_inequality
from shoal.worlds.social import database
from shoal.worlds.social.actions.rules import NEEDS, RULES
from shoal.worlds.social.observations import SocialObservation
from shoal.worlds.social.settings import SocialSettings
from shoal.worlds.social.state import Actor, State
from shoal.worlds.social.view_builder import ViewBuilder

#: Edges of the follow graph that are written at once.
_CHUNK_EDGES = 100_000
#: Where the numbers of declared edges begin that were added while the run went on; turns do not get that far.
_FIRST_LATE = 1 << 40
#: A post this much newer may have a tenth of the engagement and be as hot; Reddit's own formula has 45,000 seconds.
_DECADE_MINUTES = {"twitter": 360, "reddit": 750}


class Platform(BaseWorld):
    """The world behind `twitter` and `reddit`."""

    actions = NEEDS
    indexes = database.INDEXES

    def __init__(self, name: str, settings: Versioned[SocialSettings], given: WorldContext) -> None:
        super().__init__(name, given, settings)
        self.schema = database.SCHEMA + (database.CLAIM_COLUMNS if given.reader.edition > 1 else "")
        self.visibility = settings.first.visibility
        self._settings = settings.first
        self._feed_rules = settings.map(SocialSettings.complete_feed)
        self._activity = given.time.map(
            lambda time: ActivationSampler(time, given.clock, given.population, given.seed, name)
        )
        self._state = State(name, given, _DECADE_MINUTES[settings.first.kind], self.reached)
        self._state.sales.update(dict.fromkeys(settings.first.products, 0))
        self._builder: tuple[tuple[int, int], ViewBuilder] | None = None
        self._last_turn = np.full(len(given.population), -1, np.int32)
        self._previous_turn = self._last_turn.copy()
        self._broadcasts: list[tuple[int, Happening]] = []
        #: Changes of accounts in later rounds: the round, the kind of event, and the agents.
        self._comings: list[tuple[int, str, tuple[int, ...]]] = []
        #: People who have joined, until their accounts are written: the round, the agent, and its edges by number.
        self._new_accounts: list[tuple[int, int, list[tuple[int, int, int]]]] = []
        self._posted: Counter[int] = Counter()
        #: The time of the round in the database: a date or the number of the round, as OASIS has it.
        self._created_at: int | str = 0
        self._round = 0
        #: The agent whose turn is being carried out.
        self._actor = Actor(self._state, 0, 0, 0)

    def turns(self, round: int) -> Sequence[Sequence[int]]:
        """Return one group with all agents that are awake."""
        awake = self._activity.at(round).draw(round, self._find_absent(round))
        if self.muted_until:
            awake = np.array(self.exclude_muted(round, awake.tolist()), np.int64)
        new = awake[self._last_turn[awake] != round]
        self._previous_turn[new] = self._last_turn[new]
        self._last_turn[new] = round
        return [awake.tolist()] if len(awake) else []

    def _find_absent(self, round: int) -> Set[int]:
        """Return who is not there in a round, which may not have begun."""
        absent = self.absent
        for since, kind, agents in self._comings:
            if since <= round and kind != "cut":
                absent = absent.difference(agents) if kind == "join" else absent.union(agents)
        return absent

    def explain_absence(self, round: int, agent: int) -> str:
        """Return why an agent has no turn in a round."""
        people, hour = self.given.population, self.given.clock.hour(round)
        if self.is_muted(round, agent):
            return super().explain_absence(round, agent)
        if not int(people.active_hours[agent]) >> hour & 1:
            return f"asleep at {hour:02}:00"
        return f"awake but not drawn to act this time, with an activity of {people.activity[agent]:.2f}"

    def observe(self, round: int, agents: Sequence[int]) -> Sequence[SocialObservation]:
        everyone, state = np.asarray(agents, np.int64), self._state
        # All who look at the same round of the same state share one builder.
        moment = (round, state.version)
        if self._builder is None or self._builder[0] != moment:
            self._builder = (moment, ViewBuilder(state, round, self._feed_rules.at(round)))
        builder = self._builder[1]
        news = self._find_news(round, everyone)
        followers, following = state.follows.followers[everyone].tolist(), state.follows.followings[everyone].tolist()
        # What an agent looked up and could not see yet when it last had its turn.
        answers = {
            agent: tuple(answer for asked, answer in state.answers[agent] if asked > turn - self.visibility)
            for agent, turn in zip(agents, self._previous_turn[everyone].tolist(), strict=True)
            if agent in state.answers
        }
        products = tuple(state.sales.items())
        time = self.timestamp(round)
        return [
            SocialObservation(
                world=self.name, round=round, agent=agent, name=state.names[agent], time=time,
                followed=page.followed, recommended=page.recommended, strangers=page.strangers, reacted=page.reacted,
                followers=followers[i], following=following[i], announcements=news.get(agent, ()),
                answers=answers.get(agent, ()), groups=builder.groups(agent),
                products=products,
            )
            for i, (agent, page) in enumerate(zip(agents, builder.pages(everyone), strict=True))
        ]  # fmt: skip

    def _find_news(self, round: int, agents: NDArray[np.int64]) -> dict[int, tuple[str, ...]]:
        """Return what was broadcast to each agent since its last turn."""
        news: dict[int, tuple[str, ...]] = {}
        for since, happening in self._broadcasts:
            if since <= round:
                missed = agents[self._previous_turn[agents] < since].tolist()
                for agent in missed if not happening.to else set(missed).intersection(happening.to):
                    news[agent] = (*news.get(agent, ()), happening.content)
        return news

    def begin(self, round: int) -> None:
        state, settings = self._state, self.settings.at(round)
        state.version += 1
        self._settings = settings
        is_dated = settings.kind == "reddit"
        self._created_at = self.given.clock.at(round).strftime("%Y-%m-%d %H:%M:%S") if is_dated else round
        state.self_rating = settings.self_rating
        state.searches_meaning = settings.search == "meaning"
        self._round = round
        due = [coming for coming in self._comings if coming[0] <= round]
        self._comings = self._comings[len(due) :]
        for since, kind, agents in due:
            self._change_accounts(since, kind, agents)
        self._write_new_accounts(round)
        rules = self._feed_rules.at(round)
        state.comments_shown, state.counts_shown = rules.comments, rules.counts
        state.feed.open_round()
        state.find_trend(round)
        self._posted.clear()
        if round == 0:
            known = (agent for agent in self.people if agent not in state.unknown)
            state.rows.stream(database.USER, (self._user_row(agent) for agent in known))
            state.rows.add(SIGN_UP)
            state.rows.stream(database.FOLLOW, self._follow_rows())
            for number, product in enumerate(self.settings.first.products, 1):
                state.rows.add(database.PRODUCT, number, product, 0)

    def _user_row(self, agent: int) -> tuple[Any, ...]:
        who, follows = self.given.population[agent], self._state.follows
        counts = int(follows.followings[agent]), int(follows.followers[agent])
        return (agent, agent, who.username, who.name, who.bio, self._created_at, *counts)

    def _follow_rows(self) -> Iterator[tuple[Any, ...]]:
        graph, unknown = self.given.graph, self._state.unknown
        followers = np.repeat(np.arange(len(graph.starts) - 1), np.diff(graph.starts))
        for first in range(0, graph.edges, _CHUNK_EDGES):
            part = slice(first, first + _CHUNK_EDGES)
            numbers = range(first + 1, first + _CHUNK_EDGES + 1)
            rows = zip(numbers, followers[part].tolist(), graph.targets[part].tolist(), repeat(self._created_at))
            yield from rows if not unknown else (row for row in rows if unknown.isdisjoint(row[1:3]))

    # People who come and go

    def _change_accounts(self, round: int, kind: str, agents: Sequence[int]) -> None:
        if kind == "cut":
            state = self._state
            for tie in [tie for agent in agents for tie in state.follows.list_ties(agent)]:
                if state.follows.has(*tie):
                    state.follows.remove(*tie)
                    state.touched_people.update(tie)
                    state.rows.drop(database.FOLLOW, tie, database.UNFOLLOW)
            return
        for agent in agents:
            if (agent in self.absent) == (kind == "join"):
                (self.join if kind == "join" else self.leave)(round, agent)
        suspended = self._state.feed.suspended
        (suspended.update if kind == "suspend" else suspended.difference_update)(agents)

    def join(self, round: int, agent: int) -> None:
        """Let an agent in. The first time it gets an account, and its declared edges to agents that have one."""
        state = self._state
        self.absent.discard(agent)
        state.gone.discard(agent)
        if agent not in state.unknown:
            return
        state.unknown.discard(agent)
        numbered = enumerate(self.given.late_follows, _FIRST_LATE)
        late = [(number, who, whom) for number, (who, whom) in numbered if agent in (who, whom)]
        edges = [(place + 1, who, whom) for place, who, whom in self.given.graph.list_edges_of(agent)] + late
        edges = [edge for edge in edges if state.unknown.isdisjoint(edge[1:]) and not state.follows.has(*edge[1:])]
        for _, follower, followee in edges:
            state.follows.add(follower, followee)
        self._new_accounts.append((round, agent, edges))

    def leave(self, round: int, agent: int) -> None:
        """Let an agent go. Its posts and followers stay; it is in no group chat any more."""
        super().leave(round, agent)
        state = self._state
        state.gone.add(agent)
        for group_id in state.group_ids_of.pop(agent, ()):
            state.groups[group_id].members.discard(agent)
            state.rows.drop(database.GROUP_JOIN, (group_id, agent), database.GROUP_LEAVE)

    def _write_new_accounts(self, round: int) -> None:
        rows = self._state.rows
        for _, agent, edges in (new for new in self._new_accounts if new[0] <= round):
            rows.add(database.USER, *self._user_row(agent))
            rows.add(SIGN_UP_LATER, agent)
            for number, follower, followee in edges:
                if not self._state.follows.has(follower, followee):
                    continue
                rows.put(database.FOLLOW, (follower, followee), number, follower, followee, self._created_at)
                self._state.touched_people.update((follower, followee))
        self._new_accounts = [new for new in self._new_accounts if new[0] > round]

    def happen(self, round: int, happening: Happening) -> Sequence[Event | Notice]:
        match happening.kind:
            case "post":
                return list(self._post(round, happening))
            case "broadcast":
                self._broadcasts.append((round, happening))
                return [happening.notice(round, self.timestamp(round))]
            case "join" | "leave" | "suspend" | "cut":
                are_coming = happening.kind == "join"
                # Who comes has not heard what was broadcast before.
                absent = [agent for agent in happening.to if are_coming and agent in self._find_absent(round)]
                self._last_turn[absent] = np.maximum(self._last_turn[absent], round - 1)
                if self.visibility == 1:
                    self._change_accounts(round, happening.kind, happening.to)
                else:
                    # Earlier rounds are still under way, so that only the turns of this one know of it until it begins.
                    self._comings.append((round, happening.kind, happening.to))
                return [happening.notice(round, self.timestamp(round))]
            case "change":
                # The world uses activity and influence; other traits concern the mind alone.
                agents = happening.to or self.people
                activity, influence = happening.args.get("activity"), happening.args.get("influence")
                if activity is not None:
                    for version in self._activity.versions():
                        version.change(agents, activity)
                if isinstance(influence, (int, float)):
                    self._state.ranking.change_influence(agents, influence)
        return super().happen(round, happening)

    def _post(self, round: int, happening: Happening) -> Iterator[Event]:
        """Post in an agent's name, and let the voters of the scenario vote on it."""
        args: dict[str, Any] = {"content": happening.content}
        if happening.mention is not None:
            args |= msgspec.to_builtins(happening.mention)
        author = happening.agent or 0
        if happening.args.get("anybody"):
            # The next person who is there speaks.
            later = chain(range(author, len(self.people)), range(author))
            author = next((who for who in later if who not in self.absent), author)
        post = self._act_in_name_of(round, author, "CREATE_POST", args)
        yield post
        for kind, voters in (("LIKE_POST", "liked_by"), ("DISLIKE_POST", "disliked_by")):
            for voter in happening.args.get(voters, ()) if post.success else ():
                yield self._act_in_name_of(round, voter, kind, {"post_id": post.action_args["post_id"]})

    def _act_in_name_of(self, round: int, agent: int, kind: str, args: dict[str, Any]) -> Event:
        """Carry out an action of the scenario. There is room for as many in a round as for the agent's own actions."""
        number, refusal = self._posted[agent], None
        self._posted[agent] += 1
        try:
            if number >= MAX_ACTIONS_PER_TURN:
                what = "posts" if kind == "CREATE_POST" else "posts and votes"
                raise Rejected(f"more than {MAX_ACTIONS_PER_TURN} {what} in one name in one round")
            if agent in self.absent:
                raise Rejected(f"{self.names[agent]} is not there")
            args = self._carry_out(Actor(self._state, round, agent, self._created_at, event=number), kind, args)
        except Rejected as error:
            refusal = str(error)
        event_id, time = f"{self.name}-{round}-{agent}-event{number}", self.timestamp(round)
        return Event(round, agent, self.names[agent], kind, args, refusal is None, refusal, time, event_id)

    def apply(self, round: int, agent: int, decision: Decision) -> Sequence[Event]:
        state = self._state
        self._actor = Actor(state, round, agent, self._created_at)
        state.version += 1
        answers = state.answers.pop(agent, None)
        if answers:
            unseen = [answer for answer in answers if answer[0] > round - self.visibility]
            if unseen:
                state.answers[agent] = unseen
        return super().apply(round, agent, decision)

    def _try(self, round: int, agent: int, n: int, action: Action) -> dict[str, Any]:
        if n >= MAX_ACTIONS_PER_TURN:
            raise Rejected(f"more than {MAX_ACTIONS_PER_TURN} actions in one turn")
        if action.kind not in RULES:
            raise Rejected(f"there is no action {action.kind}")
        allowed = self._settings.actions
        if allowed is not None and action.kind not in allowed:
            raise Rejected(f"{action.kind} is not possible here")
        for name, kind in NEEDS[action.kind].items():
            if type(action.args.get(name)) is not kind:
                raise Rejected(f"{action.kind} needs {name} ({'a number' if kind is int else 'a text'})")
        return self._carry_out(self._actor, action.kind, action.args)

    def _carry_out(self, actor: Actor, kind: str, args: dict[str, Any]) -> dict[str, Any]:
        done = RULES[kind](self._state, actor, args)
        self._state.rows.add(TRACE, actor.agent, actor.created_at, kind.lower(), encode_info(done.trace))
        return done.args

    def figures(self) -> Mapping[tuple[str, str], float]:
        """Return how unequally attention is shared among posts, and which share of people each claim has reached."""
        posts = self._state.posts
        own = np.flatnonzero(posts.find_rated(np.arange(posts.count)) == np.arange(posts.count))
        received = posts.likes[own] + posts.shares[own] + posts.comments[own]
        own_figures = {("inequality", ""): measure_inequality(received), ("unread", ""): float(self._state.unread)}
        return {**super().figures(), **own_figures}

    def writes(self) -> Writes:
        state = self._state
        state.pools.update(np.array(sorted(state.touched_posts), np.int64))
        state.follows.settle()
        state.write_counts()
        rules = self._feed_rules.at(self._round)
        if rules.recommendation == "meaning" and state.meanings is not None:
            # No other table shows what was recommended by meaning to the people who acted.
            acted = np.flatnonzero(self._last_turn == self._round)
            _, recommended = state.feed.choose(state.feed.take_picture(self._round, rules), acted)
            ids = np.where(recommended >= 0, state.posts.post_id[np.maximum(recommended, 0)], -1).tolist()
            for agent, posts in zip(acted.tolist(), ids, strict=True):
                state.rows.add(database.UNRECOMMEND, agent)
                state.rows.extend(database.RECOMMEND, ((agent, post) for post in posts if post >= 0))
        return state.rows.take()
