"""A social platform for a person who plays one of its users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from shoal.types import Action
from shoal.worlds.playing import NO_ACTION, Mistake, PlayAdapter, choose_verb, need_text, read_action, split_word
from shoal.worlds.social.observations import PostView, SocialObservation

#: Verb -> kind of action, for those that take the number of a post and nothing else.
_ON_POSTS = {"like": "LIKE_POST", "unlike": "UNLIKE_POST", "dislike": "DISLIKE_POST", "repost": "REPOST"}


class SocialPlay(PlayAdapter[SocialObservation]):
    """A social platform, as a person plays it."""

    help = """\
  post TEXT           write a post
  like 3              like post 3 of those above; dislike, repost, follow and mute go the same way
  comment 3 TEXT      comment on post 3
  quote 3 TEXT        share post 3 with a word of your own
  search TEXT         look for posts; what is found is shown in your next turn
  trend               see what many talk about, in your next turn
  JOIN_GROUP group_id=2   any other action, by its name
  nothing             do nothing"""

    def show(self, seen: SocialObservation) -> Iterable[str]:
        yield f"{seen.followers} follow you, you follow {seen.following}."
        for number, post in enumerate(seen.posts(), start=1):
            yield from _show_post(number, post)
        for answer in seen.answers:
            people = ", ".join(name for _, name in answer.users)
            yield f"{answer.action.lower()} {answer.query}: {len(answer.posts)} posts{'; ' + people if people else ''}"
        for group in seen.groups:
            joined = ", you are in it" if group.joined else ""
            yield f"Group {group.group_id}, {group.name}, {group.members} members{joined}"
            yield from (f"       {message.author}: {message.content}" for message in group.messages)

    def read(self, line: str, seen: SocialObservation) -> Action:
        verb, rest = split_word(line.removeprefix("/"))
        if verb.isupper() and "_" in verb:
            return read_action(line)
        verbs: Mapping[str, Callable[[], Action]] = {
            "post": lambda: Action("CREATE_POST", {"content": need_text(rest)}),
            "comment": lambda: _write_on_post("CREATE_COMMENT", rest, seen, "content"),
            "quote": lambda: _write_on_post("QUOTE_POST", rest, seen, "quote_content"),
            "follow": lambda: Action("FOLLOW", {"followee_id": _find_post(rest, seen).author_id}),
            "mute": lambda: Action("MUTE", {"mutee_id": _find_post(rest, seen).author_id}),
            "search": lambda: Action("SEARCH_POSTS", {"query": need_text(rest)}),
            "trend": lambda: Action("TREND"),
            "nothing": lambda: NO_ACTION,
            **{name: partial(_react, kind, rest, seen) for name, kind in _ON_POSTS.items()},
        }
        return choose_verb(verb.lower(), verbs)()


def _show_post(number: int, post: PostView) -> Iterable[str]:
    counts = {"likes": post.likes, "dislikes": post.dislikes, "shares": post.shares, "comments": post.comments}
    facts = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    words = post.content if post.quote is None else f"{post.quote} | {post.content}"
    origin = f" (by {post.original_author})" if post.original_author else ""
    yield f"{number:>3}. {post.author}{origin}: {words}{f'  [{facts}]' if facts else ''}"
    yield from (f"       {reply.author}: {reply.content}" for reply in post.replies)


def _react(kind: str, number: str, seen: SocialObservation) -> Action:
    return Action(kind, {"post_id": _find_post(number, seen).post_id})


def _write_on_post(kind: str, rest: str, seen: SocialObservation, argument: str) -> Action:
    number, words = split_word(rest)
    return Action(kind, {"post_id": _find_post(number, seen).post_id, argument: need_text(words)})


def _find_post(number: str, seen: SocialObservation) -> PostView:
    """Return the post with this number in the list that is shown, counted from 1."""
    posts = list(seen.posts())
    if not number.isdecimal() or not 1 <= int(number) <= len(posts):
        raise Mistake(f"which post? {f'a number from 1 to {len(posts)}' if posts else 'there is none to see'}")
    return posts[int(number) - 1]
