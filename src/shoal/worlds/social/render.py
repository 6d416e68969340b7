"""What agents on a social platform see, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from shoal.text import format_count, join_words, pluralise, quote
from shoal.worlds.rendering import (
    CUE_CHARS,
    CUE_ITEMS,
    MAX_NAMES,
    MAX_POST_CHARS,
    MAX_SEEN_CHARS,
    ObservationRenderer,
    PromptWriter,
    ViewLine,
    ViewRow,
    list_lines,
)
from shoal.worlds.social.observations import CommentView, GroupView, LookedUp, MessageView, PostView, SocialObservation

_MAX_COMMENT_CHARS = 120
_MAX_MESSAGE_CHARS = 160
_MAX_GROUP_NAME_CHARS = 60


class SocialRenderer(ObservationRenderer[SocialObservation]):
    """Turns looks at a platform into text."""

    def write_prompt(self, writer: PromptWriter, seen: SocialObservation) -> None:
        writer.add(f"{pluralise(seen.followers, 'follower')}; you follow {seen.following}.")
        writer.add_news(seen.announcements)
        writer.add_pending(seen.pending)
        for answer in seen.answers:
            _write_answer(writer, answer, seen)
        for group in seen.groups:
            if group.joined:
                writer.add(f"Your group {_render_group(group)}")
                _write_messages(writer, group.messages)
        others = [_render_group(group) for group in seen.groups if not group.joined]
        if others:
            writer.add(f"Other groups: {join_words(others, MAX_NAMES)}")
        if seen.products:
            writer.add("On sale: " + join_words((f"{name} ({sold} sold)" for name, sold in seen.products), MAX_NAMES))
        _write_feed(writer, seen)

    def cue(self, seen: SocialObservation) -> Iterator[str]:
        posts = (*seen.followed, *seen.recommended)[:CUE_ITEMS]
        yield from ((post.quote or post.content)[:CUE_CHARS] for post in posts)

    def users(self, seen: SocialObservation) -> Iterator[tuple[int, str]]:
        for post in seen.posts():
            yield post.author_id, post.author
            yield from ((reply.author_id, reply.author) for reply in post.replies)
        for answer in seen.answers:
            yield from answer.users
            yield from ((message.author_id, message.author) for message in answer.messages)
        for group in seen.groups:
            yield from ((message.author_id, message.author) for message in group.messages)

    def things(self, seen: SocialObservation, what: str) -> Iterator[tuple[int, str]]:
        """Yield groups by their name, or posts by the name of their author."""
        if what == "group":
            yield from ((group.group_id, group.name) for group in seen.groups)
        else:
            yield from ((post.post_id, post.author) for post in seen.posts())

    def recall_sight(self, seen: SocialObservation) -> str:
        first = next(iter((*seen.followed, *seen.recommended)), None)
        return f"You saw {first.author}: {quote(first.quote or first.content, MAX_SEEN_CHARS)}." if first else ""

    def recall_post(self, seen: SocialObservation, post_id: int) -> str:
        """Return whose post it was, and how it begins."""
        for post in (*seen.followed, *seen.recommended):
            if post.post_id == post_id:
                return f"{post.author}'s {quote(post.quote or post.content, MAX_SEEN_CHARS)}"
        return f"post {post_id}"

    def view(self, seen: SocialObservation) -> Iterator[ViewRow]:
        yield from list_lines("news", map(ViewLine, seen.announcements))
        yield from list_lines("followed", _view_posts(seen.followed, seen))
        yield from list_lines("recommended", _view_posts(seen.recommended, seen))
        for answer in seen.answers:
            users, messages = (ViewLine(name) for _, name in answer.users), _view_messages(answer.messages)
            found = (*_view_posts(answer.posts, seen), *users, *messages)
            yield ViewRow(answer.action.lower(), (ViewLine(answer.query, is_query=True), *found))
        for group in seen.groups:
            joined = ", joined" if group.joined else ""
            head = f"{group.name} ({group.group_id}), {format_count(group.members, 'member')}{joined}"
            yield ViewRow("group", (ViewLine(head), *_view_messages(group.messages)))
        if seen.products:
            yield ViewRow("on sale", (ViewLine(", ".join(f"{name} ({sold} sold)" for name, sold in seen.products)),))
        connections = f"{format_count(seen.followers, 'follower')}, follows {seen.following}"
        yield ViewRow("connections", (ViewLine(connections),))


# Prompts


def _write_answer(writer: PromptWriter, answer: LookedUp, seen: SocialObservation) -> None:
    about = f" for {quote(answer.query, _MAX_COMMENT_CHARS)}" if answer.query else ""
    writer.add(f"Your {answer.action}{about} found{':' if answer.posts or answer.messages else ' '}"
               + (join_words((writer.name(*user) for user in answer.users), MAX_NAMES) if answer.users else "")
               + ("" if answer.posts or answer.messages or answer.users else "nothing."))  # fmt: skip
    for post in answer.posts:
        writer.add(_render_post(writer, post, seen))
    _write_messages(writer, answer.messages)


def _render_group(group: GroupView) -> str:
    return f"[{group.group_id}] {quote(group.name, _MAX_GROUP_NAME_CHARS)} ({group.members})"


def _write_messages(writer: PromptWriter, messages: Sequence[MessageView]) -> None:
    for message in messages:
        words = quote(message.content, _MAX_MESSAGE_CHARS)
        writer.add(f"  {writer.name(message.author_id, message.author)}: {words}")


def _write_feed(writer: PromptWriter, seen: SocialObservation) -> None:
    """Write all posts first; comments take the room they leave, the first under every post before any second."""
    if not seen.followed and not seen.recommended:
        writer.add("There are no posts to see.")
    titled = [("Posts by people you follow:", seen.followed), ("Posts the platform shows you:", seen.recommended)]
    fitting = [(title, posts, _fit_posts(writer, title, posts, seen)) for title, posts in titled if posts]
    comments = _fit_comments(writer, [post for _, posts, lines in fitting for post in posts[: len(lines)]])
    for title, posts, lines in fitting:
        writer.lines.append(title)
        for line, post in zip(lines, posts, strict=False):
            writer.lines += (line, *comments.get(post.post_id, ()))
        if len(lines) < len(posts):
            writer.lines.append(f"({pluralise(len(posts) - len(lines), 'more post')})")


def _fit_posts(writer: PromptWriter, title: str, posts: Sequence[PostView], seen: SocialObservation) -> list[str]:
    lines: list[str] = []
    writer.room -= len(title) + 1
    for post in posts:
        line = _render_post(writer, post, seen)
        if len(line) >= writer.room:
            break
        writer.room -= len(line) + 1
        lines.append(line)
    return lines


def _fit_comments(writer: PromptWriter, posts: Sequence[PostView]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for place in range(max((len(post.replies) for post in posts), default=0)):
        for post in posts:
            if place < len(post.replies):
                line = _render_comment(writer, post.replies[place])
                writer.room -= len(line) + 1
                if writer.room < 0:
                    return found
                found.setdefault(post.post_id, []).append(line)
    return found


def _render_post(writer: PromptWriter, post: PostView, seen: SocialObservation) -> str:
    words = quote(post.content, MAX_POST_CHARS)
    if post.quote is not None:
        words = f"{quote(post.quote, MAX_POST_CHARS)} on {post.original_author}'s {words}"
    elif post.original_author is not None:
        words = f"shares {post.original_author}'s {words}"
    star = "*" if post.author_id in seen.strangers else ""
    facts = [writer.ago(writer.round, post.age), *_counts(post, pluralise)]
    if post.flagged:
        facts.append("reported by several")
    if post.post_id in seen.reacted:
        facts.append("you reacted")
    return f"[{post.post_id}] {writer.name(post.author_id, post.author)}{star}, {', '.join(facts)}: {words}"


def _render_comment(writer: PromptWriter, reply: CommentView) -> str:
    likes = f", {pluralise(reply.likes, 'like')}" if reply.likes else ""
    dislikes = f", {pluralise(reply.dislikes, 'dislike')}" if reply.dislikes else ""
    who = writer.name(reply.author_id, reply.author)
    return f"  comment [{reply.comment_id}] {who}{likes}{dislikes}: {quote(reply.content, _MAX_COMMENT_CHARS)}"


def _counts(post: PostView, count: Callable[[int, str], str]) -> Iterator[str]:
    """Yield what others made of a post, as in `3 likes`."""
    if post.likes:
        yield count(post.likes, "like")
    if post.dislikes:
        yield count(post.dislikes, "dislike")
    if post.shares:
        yield count(post.shares, "share")
    if post.comments:
        yield count(post.comments, "comment")


# The terminal


def _view_posts(posts: Iterable[PostView], seen: SocialObservation) -> Iterator[ViewLine]:
    for post in posts:
        words = post.content if post.quote is None else f"{post.quote} | {post.content}"
        who = f"{post.author} (by {post.original_author})" if post.original_author else post.author
        facts = [f"post {post.post_id}", f"{format_count(post.age, 'round')} old", *_counts(post, format_count)]
        facts += ["reported"] * post.flagged + ["reacted before"] * (post.post_id in seen.reacted)
        yield ViewLine(words, who, ", ".join(facts))
        for reply in post.replies:
            likes = format_count(reply.likes, "like") if reply.likes else ""
            yield ViewLine(reply.content, reply.author, likes, is_reply=True)


def _view_messages(messages: Iterable[MessageView]) -> Iterator[ViewLine]:
    return (ViewLine(message.content, message.author) for message in messages)
