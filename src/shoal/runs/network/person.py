"""Explains one person of a network: the part in the path of a claim, and influence in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shoal.errors import AgentMissing
from shoal.runs.network.contacts import Tie
from shoal.runs.network.history import Move, NetworkHistory, OpinionChanges
from shoal.runs.network.paths import PathStep
from shoal.text import format_count

#: Opinions below this are undecided.
_LEANING = 0.1
_MAX_NAMED = 6


@dataclass(frozen=True, slots=True)
class PersonMove:
    """Influence on or by another person: its amount, and the first action that shows it."""

    agent: int
    name: str
    amount: float
    round: int
    event: str


@dataclass(frozen=True, slots=True)
class PathPart:
    """The part of a person in the path of a claim or post."""

    #: `began`, `passed`, `wrote`, `reacted` or `none`.
    role: str
    round: int | None
    #: The agent from which it came.
    source: int | None
    #: How many others took it up from the person, at any remove, and how many steps away.
    reached: int
    steps: int
    #: Those of them who passed it on, and those of these who changed sides afterwards.
    passed_on: int
    changed: int


@dataclass(frozen=True, slots=True)
class NetworkPerson:
    """A person, as of a round."""

    agent: int
    name: str
    world: str
    round: int
    #: The whole in a few sentences.
    text: str
    opinion: float | None
    #: What the person thought first.
    first_opinion: float | None
    followers: int
    following: int
    moved_total: float
    moved: list[PersonMove]
    moved_by: list[PersonMove]
    part: PathPart | None


def explain_person(history: NetworkHistory, agent: int, round: int | None, claim: str | None) -> NetworkPerson:
    """Explain a person as of a round, or of the last one that is counted, and the part in a claim's path."""
    with history.lock:
        if not 0 <= agent < len(history.names):
            raise AgentMissing(f"there is no agent {agent} in {history.world}")
        history.check_claim(claim)
        counted = max(history.counted_until, 0)
        at = counted if round is None else min(round, counted)
        moves = [move for move in history.moves if move.round <= at and agent in (move.author, move.agent)]
        moved = _sum_moves(history, [(move.agent, move) for move in moves if move.author == agent])
        moved_by = _sum_moves(history, [(move.author, move) for move in moves if move.agent == agent])
        subject = history.choose_subject(claim)
        opinions = [] if subject is None else [each for each in history.opinions[subject].of(agent) if each[0] <= at]
        ties = [tie for tie in history.list_ties() if tie.since <= at and (tie.until is None or tie.until > at)]
        part = None if claim is None else _find_part(history, agent, at, claim)
        followers, following = (sum(end == agent for end in ends) for ends in _list_ends(history, ties))
        total = sum(abs(move.amount) for move in moves if move.author == agent)
        sentences = [
            *([] if part is None else _tell_part(history, part)),
            _tell_ties(history.contacts.tie, followers, following),
            *_tell_moves(moved, moved_by, total),
        ]
        return NetworkPerson(
            agent=agent,
            name=history.names[agent],
            world=history.world,
            round=at,
            text=" ".join(sentences),
            opinion=opinions[-1][1] if opinions else None,
            first_opinion=opinions[0][1] if opinions else None,
            followers=followers,
            following=following,
            moved_total=round_amount(total),
            moved=moved[:_MAX_NAMED],
            moved_by=moved_by[:_MAX_NAMED],
            part=part,
        )


def round_amount(amount: float) -> float:
    return float(f"{amount:.3f}")


def _list_ends(history: NetworkHistory, ties: Sequence[Tie]) -> tuple[list[int], list[int]]:
    """Return who is followed and who follows; where people speak, each stands on both sides."""
    followed, followers = [tie.other for tie in ties], [tie.one for tie in ties]
    if history.contacts.tie == "follow":
        return followed, followers
    pairs = {(min(pair), max(pair)) for pair in zip(followed, followers, strict=True)}
    both = [agent for pair in pairs for agent in pair]
    return both, both


def _sum_moves(history: NetworkHistory, moves: Sequence[tuple[int, Move]]) -> list[PersonMove]:
    sums: dict[int, tuple[float, Move]] = {}
    for other, move in moves:
        amount, first = sums.get(other, (0.0, move))
        sums[other] = amount + move.amount, first
    found = [
        PersonMove(other, history.names[other], round_amount(amount), first.round, first.event)
        for other, (amount, first) in sums.items()
    ]
    return sorted(found, key=lambda one: (-abs(one.amount), one.agent))


def _find_part(history: NetworkHistory, agent: int, round: int, claim: str) -> PathPart:
    path = history.trace(claim).truncate(round)
    own = next((step for step in path.steps if step.agent == agent), None)
    reaction = next((each for each in path.reactions if each[1] == agent), None)
    if own is None:
        role = "none" if reaction is None else "reacted"
        at = None if reaction is None else reaction[0]
        return PathPart(role, at, None if reaction is None else reaction[2], 0, 0, 0, 0)
    sharers, steps = path.trace_from(agent)
    authors = {agent, *sharers}
    others = {who for _, who, author in path.reactions if author in authors} - authors
    subject = history.choose_subject(claim)
    opinions = None if subject is None else history.opinions[subject]
    changed = 0 if opinions is None else sum(_has_changed(opinions, step, round) for step in sharers.values())
    role = "began" if own is path.steps[0] else "wrote" if own.source is None else "passed"
    reached = len(sharers) + len(others)
    return PathPart(role, own.round, own.source, reached, max(steps, int(bool(others))), len(sharers), changed)


def _has_changed(opinions: OpinionChanges, step: PathStep, round: int) -> bool:
    """Return whether a sharer changed sides after sharing."""
    known = opinions.of(step.agent)
    then = next((value for at, value in reversed(known) if at <= step.round), None)
    now = next((value for at, value in reversed(known) if at <= round), None)
    return then is not None and now is not None and _side(then) != _side(now)


def _side(opinion: float) -> int:
    return 0 if abs(opinion) < _LEANING else 1 if opinion > 0 else -1


def _tell_part(history: NetworkHistory, part: PathPart) -> Iterator[str]:
    source = "" if part.source is None else history.names[part.source]
    match part.role:
        case "none":
            yield "Had nothing to do with it."
        case "reacted":
            yield f"Reacted to it in round {part.round}, at {source}, and did not pass it on."
        case "began":
            yield "Started it."
        case "wrote":
            yield f"Wrote of it in round {part.round}."
        case _:
            yield f"Passed it on in round {part.round}, from {source}."
    if part.reached:
        people = format_count(part.reached, "person", "people")
        took = f"{people} took it up from there, over {format_count(part.steps, 'step')};"
        if not part.passed_on:
            yield f"{took} none of them passed it on."
        elif not part.changed:
            yield f"{took} {part.passed_on} passed it on, and none of these changed sides."
        else:
            yield f"{took} {part.passed_on} passed it on, and {part.changed} of these changed their mind afterwards."
    elif part.role not in ("none", "reacted"):
        yield "Nobody took it up from there."


def _tell_ties(tie: str, followers: int, following: int) -> str:
    if tie == "follow":
        return f"{format_count(followers, 'follower')}; follows {following}."
    return f"Speaks with {format_count(followers, 'person', 'people')}." if followers else "Speaks with nobody."


def _tell_moves(moved: Sequence[PersonMove], moved_by: Sequence[PersonMove], total: float) -> Iterator[str]:
    """Say who moved towards what a person says, and who moved the person."""
    if moved:
        people = format_count(len(moved), "person", "people")
        yield f"{people} moved towards what they said, by {total:.2f} in all, most of all {moved[0].name}."
    if moved_by:
        yield f"Was moved most by {moved_by[0].name} ({moved_by[0].amount:+.2f})."
