"""The path of one claim or post: its author, its sharers and their sources, and reactions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest

from shoal.runs.network.contacts import Contacts, SharedText

#: The number of posts that are offered besides the claims of the scenario.
MAX_POSTS = 4
_POST = "post-"


@dataclass(frozen=True, slots=True)
class PathStep:
    """One person wrote of the claim or passed it on."""

    round: int
    agent: int
    #: The author of the post that was passed on; None for an author.
    source: int | None
    #: The number of steps from the author.
    depth: int


@dataclass(frozen=True, slots=True)
class ClaimPath:
    """How one claim or post spread: steps in the order of the rounds, and reactions to them."""

    steps: Sequence[PathStep] = ()
    #: Round, agent, and author of the post of each reaction.
    reactions: Sequence[tuple[int, int, int]] = ()

    def truncate(self, round: int) -> ClaimPath:
        """Return the path as it was after a round."""
        steps = [step for step in self.steps if step.round <= round]
        return ClaimPath(steps, [each for each in self.reactions if each[0] <= round])

    def trace_from(self, agent: int) -> tuple[dict[int, PathStep], int]:
        """Return who has it from a person, at any remove, with the first step of each; and how many removes."""
        removes, found = {agent: 0}, dict[int, PathStep]()
        for step in self.steps:
            if step.source in removes and step.agent not in removes:
                removes[step.agent] = removes[step.source] + 1
                found[step.agent] = step
        return found, max(removes.values())


@dataclass(frozen=True, slots=True)
class NetworkSubject:
    """A claim, or a post, whose path can be shown."""

    id: str
    text: str
    #: How often it was written of or passed on.
    times: int


def count_subjects(contacts: Contacts) -> list[tuple[str, int]]:
    """List the claims that were spoken of, and the other posts that were passed on most; and how often each was."""
    claims = sorted((claim, len(posts)) for claim, posts in contacts.by_claim.items())
    best = nsmallest(MAX_POSTS, contacts.shares.items(), key=lambda each: (-each[1], each[0]))
    return [*claims, *((f"{_POST}{root}", count) for root, count in best)]


def trace_path(contacts: Contacts, subject: str) -> ClaimPath:
    """Trace a claim or post through all rounds.

    Platforms do not record the way of a share: it came through the latest sharer that the person follows, and else
    from the first post.
    """
    root = find_post(subject)
    posts = contacts.by_claim.get(subject, []) if root is None else contacts.by_root.get(root, [])
    ties = contacts.ties
    sharers: dict[int, list[SharedText]] = defaultdict(list)
    depths: dict[int, int] = {}
    steps = []
    for post in posts:
        source, depth = None, 0
        if post.root != post.post and (before := sharers[post.root]):
            through = next((one for one in reversed(before) if (post.agent, one.agent) in ties), before[0])
            source, depth = through.agent, depths[through.post] + 1
        sharers[post.root].append(post)
        depths[post.post] = depth
        steps.append(PathStep(post.round, post.agent, source, depth))
    reactions = [(*each, post.agent) for post in posts for each in contacts.reactions.get(post.post, ())]
    return ClaimPath(steps, sorted(reactions))


def find_post(subject: str) -> int | None:
    """Return the number of the post that a subject stands for; None where it is a claim."""
    return int(subject.removeprefix(_POST)) if subject.startswith(_POST) else None
