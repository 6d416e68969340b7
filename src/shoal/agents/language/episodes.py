"""A turn in a sentence or two, to be remembered: what stood out, and what the agent did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.text import clip, join_words, outline, quote
from shoal.types import Action, Decision, Observation
from shoal.worlds.base import ViewObservation
from shoal.worlds.dialogue.observations import DialogueObservation
from shoal.worlds.room.observations import RoomObservation
from shoal.worlds.social.observations import PostView, SocialObservation

_MAX_SEEN_CHARS = 48
_MAX_WRITTEN_CHARS = 100
_MAX_NEWS_CHARS = 100
_MAX_THOUGHT_CHARS = 90
_HEARD = 2
#: What was done in one turn, before the rest is only counted.
_MAX_DONE_CHARS = 240

#: How much a turn matters: one that only looked on, one that said something, one in which there were news.
_QUIET, _SPOKEN, _NEWS = 1.0, 1.5, 2.0

_WRITTEN = ("content", "quote_content", "message")
_VERBS: Mapping[str, str] = {
    "CREATE_POST": "posted", "CREATE_COMMENT": "commented on", "QUOTE_POST": "quoted", "REPOST": "shared",
    "LIKE_POST": "liked", "UNLIKE_POST": "no longer like", "DISLIKE_POST": "disliked", "REPORT_POST": "reported",
    "SEND_TO_GROUP": "wrote to a group", "SEARCH_POSTS": "searched for", "SEARCH_USER": "looked for",
    "FOLLOW": "followed", "UNFOLLOW": "unfollowed", "MUTE": "muted", "TALK": "said", "SAY": "said",
    "THINK": "thought", "ATTEND": "turned to", "RATE": "rated the scene", "DO_NOTHING": "only looked on",
}  # fmt: skip


def summarise_turn(
    observation: Observation, decision: Decision, thought: str, names: Sequence[str]
) -> tuple[str, float]:
    """The turn in words and how much it matters. `names` says who the people are whom actions name by number."""
    done = _fitting([_done(action, observation, names) for action in decision.actions])
    # Where the agent thought something, that says what struck it.
    before = clip(f"You thought: {thought}", _MAX_THOUGHT_CHARS) if thought else _seen(observation)
    parts = (_news(getattr(observation, "announcements", ())), before, f"You {done}.")
    return " ".join(part for part in parts if part), _importance(observation, decision)


def _fitting(done: list[str]) -> str:
    """The first thing that was done, and as many more as there is room for."""
    chars = 0
    for number, one in enumerate(done):
        chars += len(one)
        if number and chars > _MAX_DONE_CHARS:
            return join_words(done, number)
    return ", ".join(done)


def _importance(observation: Observation, decision: Decision) -> float:
    if getattr(observation, "announcements", ()):
        return _NEWS
    return _SPOKEN if any(_written(action) for action in decision.actions) else _QUIET


def _seen(observation: Observation) -> str:
    match observation:
        case SocialObservation():
            posts = (*observation.followed, *observation.recommended)
            return f"You saw {_post(posts[0])}." if posts else ""
        case RoomObservation():
            heard = [f"{one.source or one.kind}: {quote(one.content, _MAX_SEEN_CHARS)}" for one in observation.stimuli]
            return "; ".join(heard[-_HEARD:]) + "." if heard else ""
        case DialogueObservation():
            line = observation.lines[-1] if observation.lines else None
            return f"{line.speaker}: {quote(line.content, _MAX_WRITTEN_CHARS)}." if line else ""
        case ViewObservation():
            view = "; ".join(outline(observation.view, 2 * _MAX_WRITTEN_CHARS, quoted=True).split("\n"))
            return f"You saw {view}." if view else ""
    return ""


def _news(announcements: tuple[str, ...]) -> str:
    return f"Announced: {quote(announcements[-1], _MAX_NEWS_CHARS)}." if announcements else ""


def _post(post: PostView) -> str:
    return f"{post.author}: {quote(post.quote or post.content, _MAX_SEEN_CHARS)}"


def _done(action: Action, observation: Observation, names: Sequence[str]) -> str:
    args = action.args
    parts = [_VERBS.get(action.kind, action.kind.replace("_", " ").lower())]
    if "post_id" in args and isinstance(observation, SocialObservation):
        parts.append(_about(args["post_id"], observation))
    written = _written(action)
    if written:
        parts.append(quote(written, _MAX_WRITTEN_CHARS))
    for name, value in args.items():
        if name in ("followee_id", "mutee_id"):
            parts.append(names[value] if 0 <= value < len(names) else f"user {value}")
        elif name not in _WRITTEN and name != "post_id":
            parts.append(f"to {value}" if name == "target" else clip(str(value), _MAX_SEEN_CHARS))
    return " ".join(part for part in parts if part)


def _written(action: Action) -> str:
    return next((action.args[name] for name in _WRITTEN if name in action.args), "")


def _about(post_id: int, seen: SocialObservation) -> str:
    """Whose post it was, and how it begins."""
    posts = (*seen.followed, *seen.recommended)
    for post in posts:
        if post.post_id == post_id:
            return f"{post.author}'s {quote(post.quote or post.content, _MAX_SEEN_CHARS)}"
    return f"post {post_id}"
