"""Following and muting people, group chats, and buying things."""

from __future__ import annotations

from typing import Any

from shoal.worlds.base import Rejected
from shoal.worlds.social import database
from shoal.worlds.social.observations import LookedUp, MessageView
from shoal.worlds.social.state import Actor, Done, GroupChat, State

#: Messages of a group that are kept for members to see; the database keeps all.
MESSAGES_KEPT = 50
_MESSAGES_HEARD = 10
#: So that sales fit into the database whatever a model asks for.
_MOST_BOUGHT = 1_000_000


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
    if (actor.agent, other) in state.feed.mutes:
        raise Rejected("already muted")
    mute_id = state.feed.mutes[actor.agent, other] = actor.new_id()
    state.rows.add(database.MUTE, mute_id, actor.agent, other, actor.created_at)
    return Done({"mutee_id": other, **_target(state, other)}, {"mutee_id": other})


def unmute(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    other = _somebody_else(state, actor, args["mutee_id"], "unmute")
    mute_id = state.feed.mutes.pop((actor.agent, other), None)
    if mute_id is None:
        raise Rejected("not muted")
    state.rows.add(database.UNMUTE, mute_id)
    return Done({"mutee_id": other, **_target(state, other)}, {"mutee_id": other})


def create_group(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    name = args["group_name"].strip()
    if not name:
        raise Rejected("a group needs a name")
    group = GroupChat(actor.new_id(), name)
    state.groups[group.group_id] = group
    state.rows.add(database.GROUP, group.group_id, name, actor.created_at)
    _enter(state, actor, group)
    return Done({"group_id": group.group_id, "group_name": name}, {"group_id": group.group_id, "group_name": name})


def join_group(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """Enter a group; Rejected where the agent is in it already."""
    group = _find(state, args["group_id"])
    if actor.agent in group.members:
        raise Rejected("already a member of this group")
    _enter(state, actor, group)
    return Done({"group_id": group.group_id, "group_name": group.name}, {"group_id": group.group_id})


def leave_group(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """Leave a group; Rejected where the agent is not in it."""
    group = _find_joined(state, actor, args["group_id"])
    group.members.remove(actor.agent)
    state.group_ids_of[actor.agent].remove(group.group_id)
    state.rows.drop(database.GROUP_JOIN, (group.group_id, actor.agent), database.GROUP_LEAVE)
    return Done({"group_id": group.group_id, "group_name": group.name}, {"group_id": group.group_id})


def send_to_group(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    group, content = _find_joined(state, actor, args["group_id"]), args["message"]
    if not content.strip():
        raise Rejected("a message cannot be empty")
    message_id = actor.new_id()
    group.messages.append((actor.agent, content))
    del group.messages[:-MESSAGES_KEPT]
    state.rows.add(database.GROUP_MESSAGE, message_id, group.group_id, actor.agent, content, actor.created_at)
    trace = {"group_id": group.group_id, "message_id": message_id, "content": content}
    return Done({"group_id": group.group_id, "group_name": group.name, "message": content}, trace)


def listen_from_group(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """Show the newest messages in the agent's groups in its next observation."""
    heard = tuple(
        MessageView(author, state.names[author], content)
        for group_id in state.group_ids_of.get(actor.agent, ())
        for author, content in state.groups[group_id].messages[-_MESSAGES_HEARD:]
        if (actor.agent, author) not in state.feed.mutes
    )
    state.answer(actor, LookedUp("LISTEN_FROM_GROUP", "", messages=heard))
    return Done({}, {"messages": len(heard)})


def purchase_product(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    name, number = args["product_name"], args["purchase_num"]
    if name not in state.sales:
        raise Rejected(f"there is no product {name!r}")
    if number < 1:
        raise Rejected("at least one must be bought")
    if number > _MOST_BOUGHT:
        raise Rejected(f"at most {_MOST_BOUGHT} can be bought at once")
    state.sales[name] += number
    state.rows.add(database.PRODUCT_SALES, state.sales[name], name)
    return Done({"product_name": name, "purchase_num": number}, {"product_name": name, "purchase_num": number})


def _somebody_else(state: State, actor: Actor, agent: int, what: str) -> int:
    if not 0 <= agent < state.people or agent in state.unknown:
        raise Rejected(f"there is no user {agent}")
    if agent in state.gone and what == "follow":
        raise Rejected(f"{state.names[agent]} {'is suspended' if agent in state.feed.suspended else 'has left'}")
    if agent == actor.agent:
        raise Rejected(f"nobody can {what} themselves")
    return agent


def _target(state: State, agent: int) -> dict[str, Any]:
    name = state.names[agent]
    return {"target_user": name, "target_user_name": name}


def _enter(state: State, actor: Actor, group: GroupChat) -> None:
    group.members.add(actor.agent)
    state.group_ids_of.setdefault(actor.agent, []).append(group.group_id)
    key = (group.group_id, actor.agent)
    state.rows.put(database.GROUP_JOIN, key, *key, actor.created_at)


def _find(state: State, group_id: int) -> GroupChat:
    group = state.groups.get(group_id)
    if group is None:
        raise Rejected(f"there is no group {group_id}")
    return group


def _find_joined(state: State, actor: Actor, group_id: int) -> GroupChat:
    group = _find(state, group_id)
    if actor.agent not in group.members:
        raise Rejected("not a member of this group")
    return group
