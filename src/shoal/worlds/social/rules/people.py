"""Following and muting."""

from __future__ import annotations

from typing import Any

from shoal.worlds.base import Rejected
from shoal.worlds.social import tables
from shoal.worlds.social.state import Done, State, Turn


def follow(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    other = _somebody_else(state, turn, args["followee_id"], "follow")
    if state.follows.has(turn.agent, other):
        raise Rejected("already following")
    state.follows.add(turn.agent, other)
    state.touched_people.update((turn.agent, other))
    follow_id = state.first_follow_id + turn.new_id()
    state.rows.put(tables.FOLLOW, (turn.agent, other), follow_id, turn.agent, other, turn.created_at)
    return Done({"followee_id": other, **_target(state, other)}, {"follow_id": follow_id, "followee_id": other})


def unfollow(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    other = _somebody_else(state, turn, args["followee_id"], "unfollow")
    if not state.follows.has(turn.agent, other):
        raise Rejected("not following")
    state.follows.remove(turn.agent, other)
    state.touched_people.update((turn.agent, other))
    state.rows.drop(tables.FOLLOW, (turn.agent, other), tables.UNFOLLOW)
    return Done({"followee_id": other, **_target(state, other)}, {"followee_id": other})


def mute(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    other = _somebody_else(state, turn, args["mutee_id"], "mute")
    if (turn.agent, other) in state.mutes:
        raise Rejected("already muted")
    mute_id = state.mutes[turn.agent, other] = turn.new_id()
    state.feed.mute(turn.agent, other)
    state.rows.add(tables.MUTE, mute_id, turn.agent, other, turn.created_at)
    return Done({"mutee_id": other, **_target(state, other)}, {"mutee_id": other})


def unmute(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    other = _somebody_else(state, turn, args["mutee_id"], "unmute")
    mute_id = state.mutes.pop((turn.agent, other), None)
    if mute_id is None:
        raise Rejected("not muted")
    state.feed.unmute(turn.agent, other)
    state.rows.add(tables.UNMUTE, mute_id)
    return Done({"mutee_id": other, **_target(state, other)}, {"mutee_id": other})


def _somebody_else(state: State, turn: Turn, agent: int, what: str) -> int:
    if not 0 <= agent < state.people:
        raise Rejected(f"there is no user {agent}")
    if agent == turn.agent:
        raise Rejected(f"nobody can {what} themselves")
    return agent


def _target(state: State, agent: int) -> dict[str, Any]:
    name = state.names[agent]
    return {"target_user": name, "target_user_name": name}
