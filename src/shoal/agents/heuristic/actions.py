"""One turn of one agent of the heuristic mind, and the well-formed actions it can take in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.agents.heuristic.perception import TextReading
from shoal.agents.heuristic.phrases import GROUP_NAMES, REPORT_REASONS
from shoal.agents.heuristic.writing import Voice, address
from shoal.seeds import Draws
from shoal.types import Action
from shoal.worlds.social.observations import CommentView, GroupView, PostView, SocialObservation

#: Stances nearer to zero than the first are not voiced, those beyond the second are voiced firmly.
UNDECIDED, FIRM = 0.15, 0.55
#: Actions after which the agent has written one more text.
TEXTS = frozenset({"CREATE_POST", "CREATE_COMMENT", "QUOTE_POST", "SEND_TO_GROUP"})
#: How far the brightest or the gloomiest sentiment shifts the stance that is voiced.
COLOUR = 0.5
#: Posts, and comments, that somebody writes in one turn at most, however long the turn and high the rate.
MOST_DUE = 6


class Turn:
    """What an agent has in front of it while it makes up its mind, and what it has decided so far."""

    __slots__ = (
        "actions", "agent", "comments", "draws", "heat", "lean", "mood", "observation", "posts", "stance", "voice",
        "written",
    )  # fmt: skip

    def __init__(
        self, observation: SocialObservation, draws: Draws, voice: Voice, stance: float, heat: float, written: int
    ) -> None:
        self.observation = observation
        self.agent = observation.agent
        self.draws = draws
        self.voice = voice
        self.stance = stance
        self.heat = heat
        self.written = written
        self.lean = leaning(stance)
        self.mood = 0.0
        #: How many posts and comments the agent's own rates make it write on average; None: it has none.
        self.posts: float | None = None
        self.comments: float | None = None
        self.actions: list[Action] = []

    def colour(self, mood: float) -> None:
        """Let the agent sound brighter (1) or gloomier (-1) than what it thinks."""
        self.mood = mood
        self.lean = leaning(self.stance + COLOUR * mood)

    def due(self, average: float | None) -> int:
        """A whole number that is this on average."""
        if average is None:
            return 0
        whole = int(average)
        return min(whole + self.draws.chance(average - whole), MOST_DUE)

    def do(self, action: Action | None) -> bool:
        """Add the action, unless there is none or the agent just decided on it."""
        if action is None or action in self.actions:
            return False
        self.actions.append(action)
        if action.kind in TEXTS:
            self.written += 1
        return True

    def touched(self, post_id: int) -> bool:
        """Whether the agent has reacted to the post before, as far as it knows."""
        observation = self.observation
        return post_id in observation.reacted or (
            bool(observation.pending) and any(action.args.get("post_id") == post_id for action in observation.pending)
        )

    def stranger(self, author: int) -> bool:
        """Whether the agent could follow this author."""
        observation = self.observation
        return author in observation.strangers and not (
            observation.pending and any(action.args.get("followee_id") == author for action in observation.pending)
        )


Reaction = Callable[[Turn, PostView, TextReading], Action | None]


def leaning(stance: float) -> int:
    """How a stance is voiced: 0 not at all, 1 or -1 mildly, 2 or -2 firmly."""
    if -UNDECIDED < stance < UNDECIDED:
        return 0
    strength = 2 if stance > FIRM or stance < -FIRM else 1
    return strength if stance > 0 else -strength


def like(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    return None if turn.touched(post.post_id) else Action("LIKE_POST", {"post_id": post.post_id})


def dislike(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    return None if turn.touched(post.post_id) else Action("DISLIKE_POST", {"post_id": post.post_id})


def repost(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    return None if turn.touched(post.post_id) else Action("REPOST", {"post_id": post.post_id})


def quote(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    if turn.touched(post.post_id):
        return None
    text = turn.voice.quote(turn.agent, turn.written, _lean_on(turn, reading), reading.about)
    return Action("QUOTE_POST", {"post_id": post.post_id, "quote_content": text})


def comment(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    lean = _lean_on(turn, reading)
    agreement = lean * reading.slant
    tone = (agreement > 0) - (agreement < 0)
    # A comment on a repost answers whoever wrote the words.
    author = post.author if post.quote is not None else post.original_author or post.author
    text = turn.voice.comment(turn.agent, turn.written, tone, lean, address(author), reading.about)
    return Action("CREATE_COMMENT", {"post_id": post.post_id, "content": text})


def follow(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    return Action("FOLLOW", {"followee_id": post.author_id}) if turn.stranger(post.author_id) else None


def unfollow(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    followed = post in turn.observation.followed and post.author_id not in turn.observation.strangers
    return Action("UNFOLLOW", {"followee_id": post.author_id}) if followed else None


def mute(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    return Action("MUTE", {"mutee_id": post.author_id})


def report(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    return Action("REPORT_POST", {"post_id": post.post_id, "report_reason": turn.draws.choice(REPORT_REASONS)})


def like_comment(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    reply = _someones_reply(turn, post)
    return None if reply is None else Action("LIKE_COMMENT", {"comment_id": reply.comment_id})


def dislike_comment(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    reply = _someones_reply(turn, post)
    return None if reply is None else Action("DISLIKE_COMMENT", {"comment_id": reply.comment_id})


def ignore(turn: Turn, post: PostView, reading: TextReading) -> Action | None:
    return Action("DO_NOTHING")


REACTIONS: Mapping[str, Reaction] = {
    "LIKE_POST": like,
    "DISLIKE_POST": dislike,
    "REPOST": repost,
    "QUOTE_POST": quote,
    "CREATE_COMMENT": comment,
    "FOLLOW": follow,
    "UNFOLLOW": unfollow,
    "MUTE": mute,
    "REPORT_POST": report,
    "LIKE_COMMENT": like_comment,
    "DISLIKE_COMMENT": dislike_comment,
    "DO_NOTHING": ignore,
}


def _lean_on(turn: Turn, reading: TextReading) -> int:
    """People voice their stance where it is at issue; elsewhere they are friendly or just curious."""
    if reading.contested:
        return turn.lean
    if turn.mood and turn.draws.chance(abs(turn.mood)):
        return 1 if turn.mood > 0 else -1
    return 1 if reading.slant > 0 and turn.draws.chance(0.6) else 0


def _someones_reply(turn: Turn, post: PostView) -> CommentView | None:
    replies = [reply for reply in post.replies if reply.author_id != turn.agent]
    return turn.draws.choice(replies) if replies else None


def search_posts(turn: Turn, about: str) -> Action | None:
    # Of a quoted subject only the words within the quotation marks can be found.
    return Action("SEARCH_POSTS", {"query": about.rsplit("“", maxsplit=1)[-1].rstrip("”…? ")})


def trend(turn: Turn, about: str) -> Action | None:
    return Action("TREND")


def refresh(turn: Turn, about: str) -> Action | None:
    return Action("REFRESH")


def search_user(turn: Turn, about: str) -> Action | None:
    """Look up somebody whose name came up."""
    observation = turn.observation
    names = [reply.author for post in observation.followed + observation.recommended for reply in post.replies]
    names += [post.author for post in observation.recommended]
    return Action("SEARCH_USER", {"query": turn.draws.choice(names)}) if names else None


def purchase(turn: Turn, about: str) -> Action | None:
    products = turn.observation.products
    if not products:
        return None
    name, _ = turn.draws.choice(products)
    return Action("PURCHASE_PRODUCT", {"product_name": name, "purchase_num": 1 + int(turn.draws.chance(0.15))})


def create_group(turn: Turn, about: str) -> Action | None:
    name = turn.draws.choice(GROUP_NAMES).replace("{about}", about)
    if any(group.name == name for group in turn.observation.groups):
        return None
    return Action("CREATE_GROUP", {"group_name": name})


def join_group(turn: Turn, about: str) -> Action | None:
    group = _group(turn, joined=False)
    return None if group is None else Action("JOIN_GROUP", {"group_id": group.group_id})


def leave_group(turn: Turn, about: str) -> Action | None:
    group = _group(turn, joined=True)
    return None if group is None else Action("LEAVE_GROUP", {"group_id": group.group_id})


def send_to_group(turn: Turn, about: str) -> Action | None:
    group = _group(turn, joined=True)
    if group is None:
        return None
    text = turn.voice.message(turn.agent, turn.written, turn.lean, about)
    return Action("SEND_TO_GROUP", {"group_id": group.group_id, "message": text})


def listen_from_group(turn: Turn, about: str) -> Action | None:
    return None if _group(turn, joined=True) is None else Action("LISTEN_FROM_GROUP")


def _group(turn: Turn, *, joined: bool) -> GroupView | None:
    """One of the groups the agent is, or is not, a member of, also counting what nobody can see yet."""
    pending: Any = {action.args.get("group_id") for action in turn.observation.pending}
    groups = [g for g in turn.observation.groups if g.joined is joined and g.group_id not in pending]
    return turn.draws.choice(groups) if groups else None


#: What people do besides reacting to posts and writing them, with relative chances.
SUNDRY: Mapping[str, tuple[Callable[[Turn, str], Action | None], int]] = {
    "SEARCH_POSTS": (search_posts, 6),
    "SEARCH_USER": (search_user, 3),
    "TREND": (trend, 4),
    "REFRESH": (refresh, 2),
    "CREATE_GROUP": (create_group, 1),
}
#: The same with what they do in addition where there are groups or products.
SUNDRY_IN_GROUPS: Mapping[str, tuple[Callable[[Turn, str], Action | None], int]] = {
    "JOIN_GROUP": (join_group, 5),
    "SEND_TO_GROUP": (send_to_group, 9),
    "LISTEN_FROM_GROUP": (listen_from_group, 4),
    "LEAVE_GROUP": (leave_group, 1),
}
SUNDRY_IN_SHOPS: Mapping[str, tuple[Callable[[Turn, str], Action | None], int]] = {
    "PURCHASE_PRODUCT": (purchase, 6),
}
