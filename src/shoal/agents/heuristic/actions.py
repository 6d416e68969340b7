"""One turn of one agent on a social platform, and the well-formed actions it can take in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.agents.heuristic.base import TEXTS, Turn
from shoal.agents.heuristic.opinion import classify_stance
from shoal.agents.heuristic.perception import TextReading
from shoal.agents.heuristic.sentences import CLAIM, find_number, is_question
from shoal.agents.heuristic.writing import FamilyKey, address, load_phrases, sign
from shoal.types import Action
from shoal.worlds.social import PostView, SocialObservation

#: How far the brightest or the gloomiest sentiment shifts the stance that is voiced.
COLOUR = 0.5
#: Posts, and comments, of one agent in one turn at most, however long the turn and high the rate.
MOST_DUE = 6

#: What people do besides reacting to posts and writing them, with relative chances.
SUNDRY: Mapping[str, int] = {"SEARCH_POSTS": 6, "SEARCH_USER": 3, "TREND": 4, "REFRESH": 2, "CREATE_GROUP": 1}
#: What they do in addition where there are groups, or products.
SUNDRY_IN_GROUPS: Mapping[str, int] = {"JOIN_GROUP": 5, "SEND_TO_GROUP": 9, "LISTEN_FROM_GROUP": 4, "LEAVE_GROUP": 1}
SUNDRY_IN_SHOPS: Mapping[str, int] = {"PURCHASE_PRODUCT": 6}


@dataclass(slots=True)
class SocialTurn(Turn[SocialObservation]):
    """A turn on a platform, and what the agent has decided in it so far."""

    #: How much brighter (1) or gloomier (-1) the agent sounds than what it thinks.
    mood: float = 0.0
    #: Posts and comments per turn on average, by the agent's own rates; None: it has none.
    posts: float | None = None
    comments: float | None = None
    actions: list[Action] = field(default_factory=list)
    #: Claim -> what the agent thinks of it; and whether what it writes says how it leans.
    beliefs: Mapping[str, float] = field(default_factory=dict)
    states_lean: bool = True

    @property
    def lean(self) -> int:
        return classify_stance(self.stance + COLOUR * self.mood)

    def state(self, lean: int, claim: str | None = None) -> dict[str, Any]:
        """Return what a text says, as data: the claim, and how it leans on it; without a claim, on the topic."""
        if not self.states_lean:
            return {}
        if claim is not None:
            return {"claim": claim, "lean": round(self.beliefs[claim], 2)}
        return {"lean": round(min(max(self.stance + COLOUR * self.mood, -1.0), 1.0), 2) if lean else 0.0}

    def draw_due(self, average: float) -> int:
        """Draw a whole number that is this on average."""
        whole = int(average)
        return min(whole + self.draws.chance(average - whole), MOST_DUE)

    def add(self, action: Action | None) -> bool:
        """Add the action, unless there is none or the agent just decided on it."""
        if action is None or action in self.actions:
            return False
        self.actions.append(action)
        if action.kind in TEXTS:
            self.written += 1
        return True

    # Reactions to a post

    def react(self, kind: str, post: PostView, reading: TextReading) -> Action | None:
        """Return the reaction of this kind to a post; None where it makes no sense."""
        seen, post_id, author = self.seen, post.post_id, post.author_id
        match kind:
            case "LIKE_POST" | "DISLIKE_POST" | "REPOST":
                return None if self._has_touched(post_id) else Action(kind, {"post_id": post_id})
            case "QUOTE_POST":
                if self._has_touched(post_id):
                    return None
                return Action(kind, {"post_id": post_id, **self._comment("quote", "quote_content", post, reading)})
            case "CREATE_COMMENT":
                return Action(kind, {"post_id": post_id, **self._comment("comment", "content", post, reading)})
            case "FOLLOW":
                is_new = author in seen.strangers and not _is_pending(seen, "followee_id", author)
                return Action(kind, {"followee_id": author}) if is_new else None
            case "UNFOLLOW":
                is_followed = post in seen.followed and author not in seen.strangers
                return Action(kind, {"followee_id": author}) if is_followed else None
            case "MUTE":
                return Action(kind, {"mutee_id": author})
            case "REPORT_POST":
                reason = self.draws.choice(load_phrases("social")["report_reasons"])
                return Action(kind, {"post_id": post_id, "report_reason": reason})
            case "LIKE_COMMENT" | "DISLIKE_COMMENT":
                replies = [reply for reply in post.replies if reply.author_id != self.seen.agent]
                return Action(kind, {"comment_id": self.draws.choice(replies).comment_id}) if replies else None
        return Action("DO_NOTHING")

    def _comment(self, kind: str, field: str, post: PostView, reading: TextReading) -> dict[str, Any]:
        """Write a comment or quote: name what the post is about, answer its question, and take up its number."""
        lean, mention = self._lean_on(reading), reading.mention
        said = reading.slant if mention is None else mention.lean
        # A comment on a repost answers the person who wrote the words.
        answered = post.author if post.quote is not None else post.original_author or post.author
        tone: str | int = sign(lean * said)
        if self.states_lean and is_question(post.quote or post.content):
            tone = "asked"
        key: FamilyKey = ("quote", lean) if kind == "quote" else (kind, tone, lean)
        if self.states_lean and not reading.contested and not (self.mood and lean):
            # People in a mood show it; others chat along.
            key = ("hobby",) if kind == "quote" else ("chime",)
        text = self.write(key if mention is None else (CLAIM, *key), reading.about, address(answered))
        if not self.states_lean:
            return {field: text}
        if reading.contested and (number := find_number(post.quote or post.content)) is not None:
            verdict = self.write(("number", sign(lean * said) if lean else 0), "").replace("{number}", number)
            text = f"{text} {verdict}"
        lean = lean if reading.contested else 0
        return {field: text, **self.state(lean, None if mention is None else mention.claim)}

    def _has_touched(self, post_id: int) -> bool:
        """Return whether the agent has reacted to the post before, as far as it knows."""
        return post_id in self.seen.reacted or _is_pending(self.seen, "post_id", post_id)

    def _lean_on(self, reading: TextReading) -> int:
        """Return the leaning of a text: the agent's own where the subject is at issue, else friendly or curious."""
        if reading.mention is not None:
            return classify_stance(self.beliefs[reading.mention.claim])
        if reading.contested:
            return self.lean
        if self.mood and self.draws.chance(abs(self.mood)):
            return sign(self.mood)
        return 1 if reading.slant > 0 and self.draws.chance(0.6) else 0

    # Everything else

    def act(self, kind: str, about: str) -> Action | None:
        """Return an action that is no reaction to a post; None where it makes no sense."""
        seen = self.seen
        match kind:
            case "SEARCH_POSTS":
                # Of a quoted subject only the words within the quotation marks can be found.
                return Action(kind, {"query": about.rsplit("“", maxsplit=1)[-1].rstrip("”…? ")})
            case "SEARCH_USER":
                names = [reply.author for post in seen.followed + seen.recommended for reply in post.replies]
                names += [post.author for post in seen.recommended]
                return Action(kind, {"query": self.draws.choice(names)}) if names else None
            case "TREND" | "REFRESH":
                return Action(kind)
            case "PURCHASE_PRODUCT":
                if not seen.products:
                    return None
                name, _ = self.draws.choice(seen.products)
                return Action(kind, {"product_name": name, "purchase_num": 1 + int(self.draws.chance(0.15))})
            case "CREATE_GROUP":
                name = self.draws.choice(load_phrases("social")["group_names"]).replace("{about}", about)
                exists = any(group.name == name for group in seen.groups)
                return None if exists else Action(kind, {"group_name": name})
        return self._act_in_group(kind, about)

    def _act_in_group(self, kind: str, about: str) -> Action | None:
        """Choose a group that the agent is (to join: is not) a member of, counting what others cannot see yet."""
        seen, joined = self.seen, kind != "JOIN_GROUP"
        groups = [
            group
            for group in seen.groups
            if group.joined is joined and not _is_pending(seen, "group_id", group.group_id)
        ]
        if not groups:
            return None
        group = self.draws.choice(groups)
        match kind:
            case "LISTEN_FROM_GROUP":
                return Action(kind)
            case "SEND_TO_GROUP":
                text = self.write(("message", self.lean), about)
                return Action(kind, {"group_id": group.group_id, "message": text})
        return Action(kind, {"group_id": group.group_id})


def _is_pending(seen: SocialObservation, argument: str, value: int) -> bool:
    """Return whether the agent has already done something with this argument that is not visible yet."""
    return bool(seen.pending) and any(action.args.get(argument) == value for action in seen.pending)
