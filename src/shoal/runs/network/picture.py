"""A network as of one round, in the form that pages draw: places, opinions, influence, and the path of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.runs.network.contacts import Tie
from shoal.runs.network.history import Floats, Integers, NetworkHistory
from shoal.runs.network.paths import ClaimPath, NetworkSubject
from shoal.seeds import derive, hashes

MAX_TIES = 60_000
#: The number of movements that are drawn, the largest ones.
MAX_MOVES = 400
#: Of people who do not fit, this part is chosen by their ties, and the rest at random.
_CHOSEN_BY_TIES = 0.5


@dataclass(frozen=True, slots=True)
class PictureRequest:
    """The options of a picture."""

    #: As of the end of this round; None means the last one.
    round: int | None = None
    #: The claim or post whose path is shown.
    claim: str | None = None
    max_nodes: int = 5_000
    #: Leaves out what stays the same over the rounds.
    is_state_only: bool = False


@dataclass(frozen=True, slots=True)
class NetworkPeople:
    """The people that are drawn, as columns."""

    id: list[int]
    name: list[str]
    x: list[float]
    y: list[float]
    community: list[int]


@dataclass(frozen=True, slots=True)
class NetworkTies:
    """The ties among the people that are drawn, as columns: positions in their list, rounds, and how often."""

    source: list[int]
    target: list[int]
    since: list[int]
    #: The first round in which a tie no longer holds; null where it still does.
    until: list[int | None]
    times: list[int]


@dataclass(frozen=True, slots=True)
class NetworkState:
    """What was so after a round, as columns for the people that are drawn."""

    opinion: list[float | None]
    #: How many others follow each, or speak with each.
    followers: list[int]
    #: How far each moved others, in all.
    influence: list[float]
    #: Movements: positions of author and agent, and the signed amount.
    moves: list[tuple[int, int, float]]
    #: How the claim went: positions of both, and the round.
    path: list[tuple[int, int, int]]
    #: 2 for authors and sharers of the claim, 1 for people who reacted to it.
    part: list[int]


@dataclass(frozen=True, slots=True)
class Community:
    """A group of people with many ties among them."""

    id: int
    people: int
    #: The person with most ties.
    centre: int
    opinion: float | None


@dataclass(frozen=True, slots=True)
class NetworkPicture:
    """The network of one world, as of a round."""

    world: str
    round: int
    last_round: int
    #: The round up to which influence and paths are known. It grows with each look at a long run, up to the last one.
    counted_until: int
    #: What connects people: `follow`, `talk` or `pair`; empty where nothing does.
    tie: str
    people_total: int
    ties_total: int
    #: Says what is left out; empty if nothing is.
    note: str
    #: The meaning of sizes: `influence`, or `ties` if there is no influence, or it is not counted yet.
    size: str
    claim: str | None
    #: What the opinions are about: `topic` or a claim; null where none is known.
    about: str | None
    subjects: list[NetworkSubject]
    state: NetworkState
    #: What stays the same over the rounds; left out where only the state was asked for.
    people: NetworkPeople | None = None
    ties: NetworkTies | None = None
    communities: list[Community] | None = None


def draw_network(history: NetworkHistory, wanted: PictureRequest) -> NetworkPicture:
    """Draw the network as it was after a round. Ties and movements are those among the people that are drawn."""
    with history.lock:
        last = history.last_round
        round = last if wanted.round is None else min(wanted.round, last)
        subjects = history.list_subjects()
        claim = history.check_claim(wanted.claim)
        ties = history.list_ties()
        degrees = count_contacts(history, ties, last)
        shown = _choose_people(degrees, wanted.max_nodes)
        position = np.full(len(history.names), -1, np.int32)
        position[shown] = np.arange(len(shown), dtype=np.int32)
        influence = history.sum_influence(round)
        followers = count_contacts(history, ties, round)
        state = _draw_state(history, round, claim, position, (followers[shown], influence[shown]))
        picture = NetworkPicture(
            world=history.world,
            round=round,
            last_round=last,
            counted_until=max(history.counted_until, 0),
            tie=history.contacts.tie,
            people_total=len(history.names),
            ties_total=len(ties),
            note=_describe_sample(len(shown), len(history.names)),
            size="influence" if influence.any() and round <= history.counted_until else "ties",
            claim=claim,
            about=history.choose_subject(claim),
            subjects=subjects,
            state=state,
        )
        if wanted.is_state_only:
            return picture
        places, communities = history.arrange()
        people = NetworkPeople(
            id=shown.tolist(),
            name=[history.names[agent] for agent in shown.tolist()],
            x=places[shown, 0].round(4).tolist(),
            y=places[shown, 1].round(4).tolist(),
            community=communities[shown].tolist(),
        )
        drawn = [tie for tie in ties if position[tie.one] >= 0 and position[tie.other] >= 0][:MAX_TIES]
        columns = NetworkTies(
            source=[int(position[tie.one]) for tie in drawn],
            target=[int(position[tie.other]) for tie in drawn],
            since=[tie.since for tie in drawn],
            until=[tie.until for tie in drawn],
            times=[tie.times for tie in drawn],
        )
        groups = _describe_communities(communities, degrees, history.main_opinions(round))
        return replace(picture, people=people, ties=columns, communities=groups)


def count_contacts(history: NetworkHistory, ties: Sequence[Tie], round: int) -> Integers:
    """Count for each person the followers after a round, or else the people that it spoke with."""
    held = [tie for tie in ties if tie.since <= round and (tie.until is None or tie.until > round)]
    if history.contacts.tie == "follow":
        ends = [tie.other for tie in held]
    else:
        pairs = {(min(tie.one, tie.other), max(tie.one, tie.other)) for tie in held}
        ends = [agent for pair in pairs for agent in pair]
    counted: Integers = np.bincount(np.array(ends, dtype=int), minlength=len(history.names)).astype(np.int32)
    return counted


def _choose_people(degrees: Integers, most: int) -> Integers:
    """Choose the people to draw: all, or the best connected and a random sample of the others, by number."""
    if len(degrees) <= most:
        return np.arange(len(degrees), dtype=np.int32)
    by_ties = np.argsort(-degrees, kind="stable")
    first = int(most * _CHOSEN_BY_TIES)
    rest = by_ties[first:]
    drawn = rest[np.argsort(hashes(derive(0, "network", "sample"), rest), kind="stable")[: most - first]]
    chosen: Integers = np.sort(np.concatenate([by_ties[:first], drawn])).astype(np.int32)
    return chosen


def _describe_sample(shown: int, people: int) -> str:
    if shown == people:
        return ""
    first = int(shown * _CHOSEN_BY_TIES)
    return f"{shown:,} of {people:,} people: the {first:,} with most ties, and {shown - first:,} drawn at random."


def _draw_state(
    history: NetworkHistory, round: int, claim: str | None, position: Integers, sizes: tuple[Integers, Floats]
) -> NetworkState:
    followers, influence = sizes
    opinions = history.main_opinions(round, claim)[position >= 0]
    moves = [
        (int(position[author]), int(position[agent]), amount)
        for author, agent, amount in history.list_strongest_moves(round, MAX_MOVES)
        if position[author] >= 0 and position[agent] >= 0
    ]
    path = ClaimPath() if claim is None else history.trace(claim).truncate(round)
    part = np.zeros(len(position), int)
    part[[agent for _, agent, _ in path.reactions]] = 1
    part[[step.agent for step in path.steps]] = 2
    steps = [
        (int(position[step.source]), int(position[step.agent]), step.round)
        for step in path.steps
        if step.source is not None and position[step.source] >= 0 and position[step.agent] >= 0
    ]
    return NetworkState(
        opinion=[None if value != value else round_to(value) for value in opinions.tolist()],
        followers=followers.tolist(),
        influence=influence.round(3).tolist(),
        moves=moves,
        path=steps,
        part=part[position >= 0].tolist(),
    )


def round_to(value: float) -> float:
    """Round to as many digits as a colour can show."""
    return float(f"{value:.3f}")


def _describe_communities(communities: Integers, degrees: Integers, opinions: Floats) -> list[Community]:
    found = []
    for number in range(int(communities.max(initial=-1)) + 1):
        members = np.flatnonzero(communities == number)
        known = opinions[members][~np.isnan(opinions[members])]
        mean = round_to(float(known.mean())) if len(known) else None
        found.append(Community(number, len(members), int(members[np.argmax(degrees[members])]), mean))
    return found
