"""What holds for every world, whatever agents do in it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Protocol, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.seeds import Draws, derive
from shoal.types import MAX_ACTIONS_PER_TURN, Action, Decision, Event, Happening, Notice, Observation, WorldProtocol
from shoal.worlds.room.settings import Hearing
from tests.contracts.dialogue import DIALOGUE_EVENTS, DIALOGUE_IMPOSSIBLE, DialogueActions, dialogue_world
from tests.contracts.own import OWN_EVENTS, OWN_IMPOSSIBLE, OwnActions, own_world
from tests.contracts.room import IMPOSSIBLE, ROOM_EVENTS, RoomActions, room_world
from tests.contracts.social import EVENTS, Bystander, SocialActions, social_world

ROUNDS = 12


class Actions(Protocol):
    """Invents actions, possible and impossible ones."""

    def learn(self, events: Iterable[Event]) -> None:
        """Remember what there is to act upon."""
        ...

    def invent(self, draws: Draws) -> Action: ...


@dataclass(frozen=True)
class Case:
    """A world and how to act in it."""

    name: str
    #: A new world, the same each time.
    build: Callable[[], WorldProtocol]
    people: int
    actions: Callable[[], Actions]
    #: Something that anybody can do at any time.
    possible: Action
    #: Things that cannot be done: unknown, without what they need, or with something of the wrong kind.
    impossible: Sequence[Action]
    #: Events and their rounds.
    events: Sequence[tuple[int, Happening]] = ()
    #: Whether whose turn it is depends on what has happened, as in a conversation that can end.
    turns_follow_history: bool = False

    def __str__(self) -> str:
        return self.name


def social(name: str, visibility: int = 1) -> Case:
    return Case(
        name=f"{name}, visibility {visibility}",
        build=lambda: social_world(name, visibility),
        people=8,
        actions=lambda: SocialActions(people=8),
        possible=Action("CREATE_POST", {"content": "Hello."}),
        impossible=(
            Action("FLY"),
            Action("create_post", {"content": "Hello."}),
            Action(""),
            Action("CREATE_POST"),
            Action("CREATE_POST", {"content": None}),
            Action("CREATE_POST", {"content": 5}),
            Action("CREATE_POST", {"text": "Hello."}),
            Action("LIKE_POST", {"post_id": "1"}),
            Action("LIKE_POST", {"post_id": 1.0}),
            Action("LIKE_POST", {"post_id": True}),
            Action("LIKE_POST", {"post_id": [1]}),
            Action("FOLLOW", {"followee_id": 10**30}),
            Action("PURCHASE_PRODUCT", {"product_name": "tea", "purchase_num": 10**30}),
        ),
        events=EVENTS,
    )


def room(turns: str, hearing: str = "everyone") -> Case:
    return Case(
        name=f"room, {turns}, {hearing}",
        build=lambda: room_world(turns, hearing),
        people=8,
        actions=RoomActions,
        possible=Action("TALK", {"content": "Hello."}),
        impossible=IMPOSSIBLE,
        events=ROOM_EVENTS,
    )


def dialogue(score: bool) -> Case:
    return Case(
        name=f"dialogue, {'with' if score else 'without'} scores",
        build=lambda: dialogue_world(score),
        people=8,
        actions=DialogueActions,
        possible=Action("THINK", {"content": "Hello."}),
        impossible=DIALOGUE_IMPOSSIBLE,
        events=DIALOGUE_EVENTS,
        turns_follow_history=True,
    )


OWN = Case(
    name="own",
    build=own_world,
    people=8,
    actions=OwnActions,
    possible=Action("SAY", {"content": "Hello."}),
    impossible=OWN_IMPOSSIBLE,
    events=OWN_EVENTS,
)
SOCIAL = [social("twitter"), social("reddit"), social("twitter", visibility=3)]
ROOMS = [room("sequential"), *(room("parallel", hearing) for hearing in get_args(Hearing))]
DIALOGUES = [dialogue(score=True), dialogue(score=False)]
WORLDS = [*SOCIAL, *ROOMS, *DIALOGUES, OWN]

every_world = pytest.mark.parametrize("case", WORLDS, ids=str)


@dataclass
class History:
    """What a world did when it was led through some rounds."""

    events: list[Event | Notice] = field(default_factory=list)
    asked: int = 0
    looks: list[Observation] = field(default_factory=list)
    writes: list[list[tuple[str, list[tuple[Any, ...]]]]] = field(default_factory=list)

    @property
    def lines(self) -> bytes:
        return msgspec.json.Encoder().encode_lines(self.events)

    def commit(self, world: WorldProtocol) -> None:
        self.writes.append([(statement, list(rows)) for statement, rows in world.writes().items()])


def live(case: Case, seed: int, rounds: int = ROUNDS, looks: int = 1) -> tuple[WorldProtocol, History]:
    """Drive a new world through random turns, as the engine would. Agents look `looks` times before they act."""
    world, history, actions = case.build(), History(), case.actions()
    for round in range(rounds + 1):
        history.events += happen(case, world, round, posts=False)
        groups = world.turns(round) if round else []
        if groups:
            for _ in range(looks):
                history.looks = list(world.observe(round, groups[0]))
        world.begin(round)
        history.events += happen(case, world, round, posts=True)
        for n, group in enumerate(groups):
            for _ in range(looks if n else 0):
                history.looks = list(world.observe(round, group))
            for agent in group:
                decision = _decision(actions, Draws(derive(seed, round, agent)))
                history.asked += len(decision.actions) or 1
                events = world.apply(round, agent, decision)
                actions.learn(events)
                history.events += events
        history.commit(world)
    return world, history


def happen(case: Case, world: WorldProtocol, round: int, posts: bool) -> list[Event | Notice]:
    """Let the events of the round happen: posts after its beginning, everything else before agents look."""
    due = [event for when, event in case.events if when == round and (event.kind == "post") is posts]
    return [event for happening in due for event in world.happen(round, happening)]


def _decision(actions: Actions, draws: Draws) -> Decision:
    if draws.chance(0.05):
        return Decision(failure=draws.choice(("timeout", "error", "unusable")), reason="by lot")
    return Decision(tuple(actions.invent(draws) for _ in range(draws.below(7))))


def begin_world(case: Case) -> WorldProtocol:
    """Return a world in its first round."""
    world = case.build()
    world.begin(0)
    world.writes()
    world.turns(1)
    world.begin(1)
    world.writes()
    return world


# Looking


@every_world
def test_looking_changes_nothing(case: Case) -> None:
    unseen, seen, often = (live(case, seed=3, looks=looks) for looks in (0, 1, 3))
    assert unseen[1].lines == seen[1].lines == often[1].lines
    assert unseen[1].writes == seen[1].writes == often[1].writes
    everybody = range(case.people)
    assert unseen[0].observe(ROUNDS + 1, everybody) == often[0].observe(ROUNDS + 1, everybody)


@every_world
def test_looking_twice_shows_the_same(case: Case) -> None:
    world, _ = live(case, seed=4)
    first = world.observe(ROUNDS + 1, range(case.people))
    assert world.observe(ROUNDS + 1, range(case.people)) == first


@every_world
def test_what_one_sees_does_not_depend_on_who_looks_with_one(case: Case) -> None:
    world, _ = live(case, seed=5)
    together = world.observe(ROUNDS + 1, range(case.people))
    alone = [world.observe(ROUNDS + 1, [agent])[0] for agent in reversed(range(case.people))]
    assert alone[::-1] == list(together)


@every_world
def test_observations_name_who_looks_at_what_and_when(case: Case) -> None:
    world, _ = live(case, seed=6)
    agents = [5, 2, 7]
    seen = world.observe(ROUNDS + 1, agents)
    assert [look.agent for look in seen] == agents
    assert {(look.world, look.round, look.time) for look in seen} == {
        (world.name, ROUNDS + 1, world.timestamp(ROUNDS + 1))
    }
    assert all(look.name and look.pending == () for look in seen)
    assert list(world.observe(ROUNDS + 1, [])) == []


@every_world
def test_observations_can_be_written_down_and_are_the_same_bytes_again(case: Case) -> None:
    encoded = [msgspec.json.encode(live(case, seed=7)[0].observe(ROUNDS + 1, range(case.people))) for _ in range(2)]
    assert encoded[0] == encoded[1]
    assert len(msgspec.json.decode(encoded[0])) == case.people


# Turns


@every_world
def test_turns_are_the_same_each_time_and_list_an_agent_at_most_once(case: Case) -> None:
    world, other = case.build(), live(case, seed=1)[0]
    for round in range(1, 30):
        groups = world.turns(round)
        assert world.turns(round) == groups
        agents = [agent for group in groups for agent in group]
        assert len(agents) == len(set(agents))
        assert set(agents) <= set(range(case.people))
        assert all(type(agent) is int for agent in agents)
        assert all(groups)
        if round > ROUNDS and not case.turns_follow_history:
            assert other.turns(round) == groups


@every_world
def test_a_muted_agent_takes_no_turns_for_a_while(case: Case) -> None:
    world = begin_world(case)
    world.happen(2, Happening("mute", to=(0, 1, 2), args={"rounds": 3}))
    for round in (2, 3, 4):
        assert {0, 1, 2}.isdisjoint(agent for group in world.turns(round) for agent in group)
        world.begin(round)
    later = {agent for round in range(5, 15) for group in world.turns(round) for agent in group}
    assert {0, 1, 2} & later


# Events


@every_world
def test_events_are_in_the_stream(case: Case) -> None:
    world = begin_world(case)
    told: dict[str, dict[str, Any]] = {"broadcast": {}, "mute": {"rounds": 1}, "change": {"stance": 0.5, "activity": 1}}
    for kind, args in told.items():
        (notice,) = world.happen(2, Happening(kind, "Why.", to=(1,), args=args))
        assert isinstance(notice, Notice)
        assert (notice.event_type, notice.round, notice.content) == (kind, 2, "Why.")
        assert (notice.to, notice.timestamp) == ((1,), world.timestamp(2))


@every_world
def test_a_broadcast_is_seen_in_its_round_by_its_addressees(case: Case) -> None:
    world, untouched = begin_world(case), begin_world(case)
    for one in (world, untouched):
        one.turns(2)
    world.happen(2, Happening("broadcast", "A word to two of you.", to=(0, 1)))
    seen = [b"A word to two of you." in msgspec.json.encode(look) for look in world.observe(2, range(case.people))]
    assert seen == [True, True] + [False] * (case.people - 2)
    assert world.observe(2, range(2, case.people)) == untouched.observe(2, range(2, case.people))


# Acting


@every_world
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_there_is_an_event_for_every_action(case: Case, seed: int) -> None:
    _, history = live(case, seed)
    events = [event for event in history.events if isinstance(event, Event)]
    assert sum("event" not in event.id for event in events) == history.asked
    assert len({event.id for event in events}) == len(events)
    assert all((event.result is None) == event.success for event in events)


@every_world
def test_a_turn_becomes_events_in_order_and_in_the_agents_name(case: Case) -> None:
    world = begin_world(case)
    actions = (case.possible, case.impossible[0], case.possible)
    events = world.apply(1, 2, Decision(actions))
    name = world.observe(1, [2])[0].name
    assert [(event.round, event.agent_id, event.agent_name, event.timestamp) for event in events] == [
        (1, 2, name, world.timestamp(1))
    ] * 3
    assert [(event.action_type, event.success) for event in events] == [
        (case.possible.kind, True),
        (case.impossible[0].kind, False),
        (case.possible.kind, True),
    ]


@every_world
@pytest.mark.parametrize("failure", ["timeout", "error", "unusable"])
def test_a_decision_that_failed_is_doing_nothing_without_success(case: Case, failure: str) -> None:
    world = begin_world(case)
    (event,) = world.apply(1, 3, Decision((case.possible,), failure=failure, reason="why"))
    result = "timeout" if failure == "timeout" else f"{failure}: why"
    assert (event.action_type, event.action_args, event.success, event.result) == ("DO_NOTHING", {}, False, result)
    assert all(not list(rows) for rows in world.writes().values())


@every_world
def test_a_decision_to_do_nothing_is_an_event_too(case: Case) -> None:
    (event,) = begin_world(case).apply(1, 3, Decision())
    assert (event.action_type, event.success) == ("DO_NOTHING", True)


@every_world
def test_what_is_impossible_is_refused_with_a_reason_and_changes_nothing(case: Case) -> None:
    world, untouched = begin_world(case), begin_world(case)
    for action in case.impossible:
        (event,) = world.apply(1, 3, Decision((action,)))
        assert (event.action_type, event.action_args, event.success) == (action.kind, action.args, False)
        assert event.result
        assert len(event.result) > 5
    everybody = range(case.people)
    assert world.observe(2, everybody) == untouched.observe(2, everybody)
    assert all(not list(rows) for rows in world.writes().values())
    assert world.apply(1, 4, Decision((case.possible,))) == untouched.apply(1, 4, Decision((case.possible,)))


@every_world
def test_no_more_than_32_actions_are_carried_out_in_one_turn(case: Case) -> None:
    world, just_enough = begin_world(case), begin_world(case)
    events = world.apply(1, 3, Decision((case.possible,) * (MAX_ACTIONS_PER_TURN + 3)))
    just_enough.apply(1, 3, Decision((case.possible,) * MAX_ACTIONS_PER_TURN))
    assert [event.success for event in events] == [True] * MAX_ACTIONS_PER_TURN + [False] * 3
    assert events[-1].result == "more than 32 actions in one turn"
    everybody = range(case.people)
    assert world.observe(2, everybody) == just_enough.observe(2, everybody)


# The record


@every_world
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_the_same_turns_make_the_same_history_to_the_byte(case: Case, seed: int) -> None:
    (_, first), (_, again) = live(case, seed), live(case, seed)
    assert first.lines == again.lines
    assert first.writes == again.writes


@every_world
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_everything_that_can_happen_can_be_written_to_the_database(case: Case, seed: int) -> None:
    world, history = live(case, seed)
    with closing(_database(world, history)) as database:
        traced = Counter(database.execute("SELECT action, user_id FROM trace"))
    done = Counter(
        (event.action_type.lower(), event.agent_id)
        for event in history.events
        if isinstance(event, Event) and event.success
    )
    assert traced == done + Counter(("sign_up", agent) for agent in range(case.people))


@every_world
def test_rows_are_written_once(case: Case) -> None:
    world, _ = live(case, seed=8)
    assert all(not list(rows) for rows in world.writes().values())


@every_world
def test_time_passes(case: Case) -> None:
    world = case.build()
    times = [datetime.fromisoformat(world.timestamp(round)) for round in range(10)]
    assert all(time.tzinfo is not None for time in times)
    assert all(earlier <= later for earlier, later in pairwise(times))
    assert all(earlier < later for earlier, later in pairwise(times[1:]))
    assert world.hours(0) == 0
    assert all(world.hours(round) < world.hours(round + 1) for round in range(10))


def _database(world: WorldProtocol, history: History) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.executescript(world.schema)
    for round in history.writes:
        for statement, rows in round:
            database.executemany(statement, rows)
    return database


# Social platforms: the database against what a bystander counts, who knows the stream and nothing else


@pytest.mark.parametrize("case", SOCIAL, ids=str)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_the_database_agrees_with_the_stream(case: Case, seed: int) -> None:
    world, history = live(case, seed, rounds=20)
    bystander = Bystander(case.people, history.events)
    with closing(_database(world, history)) as database:
        for table, (query, expected) in bystander.expectations().items():
            assert Counter(database.execute(query)) == Counter(expected), table


@pytest.mark.parametrize("case", SOCIAL, ids=str)
def test_the_database_holds_what_agents_see(case: Case) -> None:
    world, history = live(case, seed=11, rounds=20)
    with closing(_database(world, history)) as database:
        users = dict(database.execute("SELECT user_id, num_followings || '/' || num_followers FROM user"))
        posts = {row[0]: row[1:] for row in database.execute(
            "SELECT post_id, user_id, content, quote_content, num_likes, num_dislikes, num_shares, original_post_id "
            "FROM post"
        )}  # fmt: skip
        members = dict(database.execute("SELECT group_id, count(*) FROM group_members GROUP BY group_id"))
    looks: Sequence[Any] = world.observe(21, range(case.people))
    shown = 0
    for look in looks:
        assert users[look.agent] == f"{look.following}/{look.followers}"
        assert all(members.get(group.group_id, 0) == group.members for group in look.groups)
        for post in (*look.followed, *look.recommended):
            author, content, quote, likes, dislikes, shares, original = posts[post.post_id]
            assert (post.author_id, post.content, post.quote) == (author, content, quote)
            if original is not None and quote is None:
                likes, dislikes, shares = posts[original][3:6]
            assert (post.likes, post.dislikes, post.shares) == (likes, dislikes, shares)
            shown += 1
    assert shown


@pytest.mark.parametrize("case", SOCIAL, ids=str)
def test_random_histories_try_everything_with_and_without_success(case: Case) -> None:
    outcomes: set[tuple[str, bool]] = set()
    for seed in range(20):
        _, history = live(case, seed, rounds=20)
        outcomes |= {(event.action_type, event.success) for event in history.events if isinstance(event, Event)}
    kinds = set(SocialActions.kinds)
    assert {kind for kind, success in outcomes if success} == kinds
    always_possible = {"TREND", "REFRESH", "LISTEN_FROM_GROUP"}
    assert {kind for kind, success in outcomes if not success} == kinds - always_possible | {"FLY"}


@pytest.mark.parametrize("case", SOCIAL, ids=str)
def test_joining_leaving_and_joining_in_one_round_leaves_one_member(case: Case) -> None:
    world, history = case.build(), History()
    world.begin(0)
    history.commit(world)
    world.turns(1)
    world.begin(1)
    (made,) = world.apply(1, 0, Decision((Action("CREATE_GROUP", {"group_name": "Club"}),)))
    group = {"group_id": made.action_args["group_id"]}
    kinds = ("JOIN_GROUP", "LEAVE_GROUP", "JOIN_GROUP")
    assert all(event.success for event in world.apply(1, 1, Decision(tuple(Action(kind, group) for kind in kinds))))
    world.apply(1, 2, Decision(tuple(Action(kind, group) for kind in kinds[:2])))
    history.commit(world)
    world.begin(2)
    world.apply(2, 1, Decision(tuple(Action(kind, group) for kind in kinds[1:])))
    history.commit(world)
    with closing(_database(world, history)) as database:
        assert sorted(database.execute("SELECT agent_id FROM group_members")) == [(0,), (1,)]
