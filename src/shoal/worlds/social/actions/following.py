"""Following and muting."""

from __future__ import annotations

from typing import Any

from shoal.worlds.base import Rejected
from shoal.worlds.social import database
from shoal.worlds.social.state import Actor, Done, State


def follow(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    other = _somebody_else(state, actor, args["followee_id"], "follow")
    if state.follows.has(actor.agent, other):
        raise Rejected("already following")
    state.follows.add(actor.agent, other)
    state.touched_people.update((actor.agent, other))
    follow_id = state.first_follow_id + actor.new_id()
    state.rows.put(database.FOLLOW, (actor.agent, other), follow_id, actor.agent, other, actor.created_at)
    return Done({"followee_id": other, **_target(state, other)}, {"follow_id": follow_id, "followee_id": other})


def unfollow(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    other = _somebody_else(state, actor, args["followee_id"], "unfollow")
    if not state.follows.has(actor.agent, other):
        raise Rejected("not following")
    state.follows.remove(actor.agent, other)
    state.touched_people.update((actor.agent, other))
    state.rows.drop(database.FOLLOW, (actor.agent, other), database.UNFOLLOW)
    return Done({"followee_id": other, **_target(state, other)}, {"followee_id": other})


def mute(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    other = _somebody_else(state, actor, args["mutee_id"], "mute")
    if (actor.agent, other) in state.mutes:
        raise Rejected("already muted")
    mute_id = state.mutes[actor.agent, other] = actor.new_id()
    state.feed.mute(actor.agent, other)
    state.rows.add(database.MUTE, mute_id, actor.agent, other, actor.created_at)
    return Done({"mutee_id": other, **_target(state, other)}, {"mutee_id": other})


def unmute(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    other = _somebody_else(state, actor, args["mutee_id"], "unmute")
    mute_id = state.mutes.pop((actor.agent, other), None)
    if mute_id is None:
        raise Rejected("not muted")
    state.feed.unmute(actor.agent, other)
    state.rows.add(database.UNMUTE, mute_id)
    return Done({"mutee_id": other, **_target(state, other)}, {"mutee_id": other})


def _somebody_else(state: State, actor: Actor, agent: int, what: str) -> int:
    if not 0 <= agent < state.people:
        raise Rejected(f"there is no user {agent}")
    if agent == actor.agent:
        raise Rejected(f"nobody can {what} themselves")
    return agent


def _target(state: State, agent: int) -> dict[str, Any]:
    name = state.names[agent]
    return {"target_user": name, "target_user_name": name}
