"""Social platforms for the contract tests: how to build one, act on it at random, and keep count from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from shoal.seeds import Draws
from shoal.types import Action, Event, Happening, Notice, Versioned
from shoal.worlds.social.actions.rules import NEEDS
from shoal.worlds.social.platform import Platform
from shoal.worlds.social.settings import SocialSettings
from tests.worlds.context import crowd, make_context

PEOPLE = 8
FOLLOWS = [(agent, (agent + step) % PEOPLE) for agent in range(PEOPLE) for step in (1, 3)]
EVENTS = (
    (0, Happening("post", "I love my garden.", agent=0)),
    (0, Happening("post", "Football and the campus curfew.", agent=0)),
    (3, Happening("broadcast", "Breaking news.", to=(1, 2))),
    (4, Happening("post", "I doubt it.", agent=5)),
    (5, Happening("broadcast", "News for all.")),
)
TEXTS = ("I love gardening.", "I doubt the campus curfew.", "Football!", "Ünïcödé 今天 \0 '; --", "", " ", "x" * 500)


def social_world(kind: str, visibility: int) -> Platform:
    """Eight people who do not act every round, with a few things going on."""
    people = crowd(PEOPLE)
    people.activity[:] = 0.7
    settings = SocialSettings.model_validate({"kind": kind, "visibility": visibility, "products": ("tea", "lamp")})
    return Platform(kind, Versioned(settings), make_context(people, FOLLOWS))


class SocialActions:
    """Invents actions of every kind, about things that exist and things that do not."""

    kinds: ClassVar[Sequence[str]] = tuple(NEEDS)

    def __init__(self, people: int) -> None:
        self._known: dict[str, list[int]] = {"post_id": [0], "comment_id": [0], "group_id": [0]}
        self._known["followee_id"] = self._known["mutee_id"] = [-1, *range(people), people]

    def learn(self, events: Iterable[Event]) -> None:
        """Remember what there is to act upon."""
        for event in events:
            args = event.action_args if event.success else {}
            for argument, kind in (("post_id", "post_id"), ("new_post_id", "post_id"), ("comment_id", "comment_id"),
                                   ("group_id", "group_id")):  # fmt: skip
                if argument in args:
                    self._known[kind].append(args[argument])

    def invent(self, draws: Draws) -> Action:
        if draws.chance(0.05):
            return draws.choice((Action("FLY"), Action("LIKE_POST"), Action("CREATE_POST", {"content": 3})))
        kind = draws.choice(self.kinds)
        args = {name: self._argument(name, draws) for name in NEEDS[kind]}
        if args and draws.chance(0.05):
            args.popitem()
        if kind == "DO_NOTHING" and draws.chance(0.3):
            args = {"why": "no reason"}
        return Action(kind, args)

    def _argument(self, name: str, draws: Draws) -> Any:
        if name in self._known:
            # Few things, so that the same is liked, disliked and taken back again and again.
            return draws.choice(self._known[name][-8:] if draws.chance(0.9) else self._known[name])
        if name == "purchase_num":
            return draws.choice((-1, 0, 1, 3, 10**30))
        return draws.choice(("tea", "car")) if name == "product_name" else draws.choice(TEXTS)


Rows = list[tuple[Any, ...]]


class Bystander:
    """Keeps count of a platform from its stream alone."""

    def __init__(self, people: int, events: Iterable[Event | Notice]) -> None:
        self.people = people
        self.follows = set(FOLLOWS)
        self.pairs: dict[str, set[tuple[int, int]]] = {
            name: set() for name in ("like", "dislike", "comment_like", "comment_dislike", "mute", "report", "member")
        }
        self.posts: dict[int, tuple[int, int | None]] = {}
        self.comments: dict[int, int] = {}
        self.messages: Rows = []
        self.sales = {"tea": 0, "lamp": 0}
        for event in events:
            if isinstance(event, Event) and event.success:
                self._watch(event.agent_id, event.action_type, event.action_args)

    #: Kind of action -> which pairs (agent, thing) it adds to or takes from, and what names the thing.
    _PAIRS: ClassVar[dict[str, tuple[str, bool, str]]] = {
        "LIKE_POST": ("like", True, "post_id"), "UNLIKE_POST": ("like", False, "post_id"),
        "DISLIKE_POST": ("dislike", True, "post_id"), "UNDO_DISLIKE_POST": ("dislike", False, "post_id"),
        "LIKE_COMMENT": ("comment_like", True, "comment_id"), "UNLIKE_COMMENT": ("comment_like", False, "comment_id"),
        "DISLIKE_COMMENT": ("comment_dislike", True, "comment_id"),
        "UNDO_DISLIKE_COMMENT": ("comment_dislike", False, "comment_id"),
        "REPORT_POST": ("report", True, "post_id"), "MUTE": ("mute", True, "mutee_id"),
        "UNMUTE": ("mute", False, "mutee_id"), "CREATE_GROUP": ("member", True, "group_id"),
        "JOIN_GROUP": ("member", True, "group_id"), "LEAVE_GROUP": ("member", False, "group_id"),
    }  # fmt: skip

    def _watch(self, agent: int, kind: str, args: dict[str, Any]) -> None:
        if kind in self._PAIRS:
            name, adds, thing = self._PAIRS[kind]
            self._change(self.pairs[name], adds, (agent, args[thing]))
        elif kind in ("FOLLOW", "UNFOLLOW"):
            self._change(self.follows, kind == "FOLLOW", (agent, args["followee_id"]))
        elif kind == "CREATE_POST":
            self.posts[args["post_id"]] = (agent, None)
        elif kind in ("REPOST", "QUOTE_POST"):
            self.posts[args["new_post_id"]] = (agent, args["post_id" if kind == "REPOST" else "quoted_id"])
        elif kind == "CREATE_COMMENT":
            self.comments[args["comment_id"]] = args["post_id"]
        elif kind == "SEND_TO_GROUP":
            self.messages.append((args["group_id"], agent, args["message"]))
        elif kind == "PURCHASE_PRODUCT":
            self.sales[args["product_name"]] += args["purchase_num"]

    @staticmethod
    def _change(pairs: set[tuple[int, int]], adds: bool, pair: tuple[int, int]) -> None:
        """Nothing is done twice, and only what was done is taken back."""
        assert (pair in pairs) is not adds
        pairs.symmetric_difference_update({pair})

    def expectations(self) -> dict[str, tuple[str, Rows]]:
        """What is asked of the database -> query and expected rows."""
        pairs, posts = self.pairs, self.posts
        return {
            "like": ('SELECT user_id, post_id FROM "like"', list(pairs["like"])),
            "dislike": ("SELECT user_id, post_id FROM dislike", list(pairs["dislike"])),
            "comment_like": ("SELECT user_id, comment_id FROM comment_like", list(pairs["comment_like"])),
            "comment_dislike": ("SELECT user_id, comment_id FROM comment_dislike", list(pairs["comment_dislike"])),
            "report": ("SELECT user_id, post_id FROM report", list(pairs["report"])),
            "mute": ("SELECT muter_id, mutee_id FROM mute", list(pairs["mute"])),
            "group_members": ("SELECT agent_id, group_id FROM group_members", list(pairs["member"])),
            "follow": ("SELECT follower_id, followee_id FROM follow", list(self.follows)),
            "comment": ("SELECT comment_id, post_id FROM comment", list(self.comments.items())),
            "group_messages": ("SELECT group_id, sender_id, content FROM group_messages", self.messages),
            "product": ("SELECT product_name, sales FROM product", list(self.sales.items())),
            "post": ("SELECT post_id, user_id, original_post_id FROM post", [(n, *row) for n, row in posts.items()]),
            "counts of posts": (
                "SELECT post_id, num_likes, num_dislikes, num_shares, num_reports FROM post", self._post_counts(),
            ),
            "counts of comments": ("SELECT comment_id, num_likes, num_dislikes FROM comment", self._comment_counts()),
            "counts of users": ("SELECT user_id, num_followings, num_followers FROM user", self._user_counts()),
        }  # fmt: skip

    def _post_counts(self) -> Rows:
        originals = [original for _, original in self.posts.values()]
        return [
            (post, self._of("like", post), self._of("dislike", post), originals.count(post), self._of("report", post))
            for post in self.posts
        ]

    def _comment_counts(self) -> Rows:
        return [(one, self._of("comment_like", one), self._of("comment_dislike", one)) for one in self.comments]

    def _user_counts(self) -> Rows:
        return [
            (user, sum(a == user for a, _ in self.follows), sum(b == user for _, b in self.follows))
            for user in range(self.people)
        ]

    def _of(self, name: str, thing: int) -> int:
        return sum(one == thing for _, one in self.pairs[name])
