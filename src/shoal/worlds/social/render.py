"""What agents on a social platform see, as text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

from shoal.text import clip, format_count, join_words, pluralise, quote
from shoal.types import Action
from shoal.worlds import rendering
from shoal.worlds.rendering import NO_ACTION, Mistake, ObservationRenderer, PromptWriter, ViewLine, ViewRow, list_lines
from shoal.worlds.social.observations import GroupView, MessageView, PostView, SocialObservation

_MAX_COMMENT_CHARS = 120
_MAX_MESSAGE_CHARS = 160
_MAX_GROUP_NAME_CHARS = 60
#: So much of a post is shown to a person who chooses one.
_MAX_CHOICE_CHARS = 70
#: Posts and counts whose text is kept before it is made anew.
_POSTS_KEPT = 16_384
_REACTIONS = ("like", "dislike", "share", "comment")
#: Verb -> kind of action, for those that take the number of a post and nothing else.
_ON_POSTS = {"like": "LIKE_POST", "unlike": "UNLIKE_POST", "dislike": "DISLIKE_POST", "repost": "REPOST"}

#: Kind of action -> what must have been done before it can be taken back.
_UNDONE = {
    "UNLIKE_POST": "LIKE_POST",
    "UNDO_DISLIKE_POST": "DISLIKE_POST",
    "UNLIKE_COMMENT": "LIKE_COMMENT",
    "UNDO_DISLIKE_COMMENT": "DISLIKE_COMMENT",
    "UNMUTE": "MUTE",
}
_ON_POSTS_IN_SIGHT = ("CREATE_COMMENT", "REPOST", "QUOTE_POST", "LIKE_POST", "DISLIKE_POST", "REPORT_POST")
_ON_COMMENTS = ("LIKE_COMMENT", "DISLIKE_COMMENT")
_ON_PEOPLE = ("FOLLOW", "MUTE")
_ON_GROUPS = ("LEAVE_GROUP", "SEND_TO_GROUP", "LISTEN_FROM_GROUP")


class SocialRenderer(ObservationRenderer[SocialObservation]):
    """Turns looks at a platform into text."""

    def write_prompt(self, writer: PromptWriter, seen: SocialObservation) -> None:
        if not writer.is_brief:
            writer.add(f"{pluralise(seen.followers, 'follower')}; you follow {seen.following}.")
        writer.add_news(seen.announcements)
        writer.add_pending(seen.pending)
        for answer in seen.answers:
            about = f" for {quote(answer.query, _MAX_COMMENT_CHARS)}" if answer.query else ""
            users = join_words((writer.name(*user) for user in answer.users), rendering.MAX_NAMES)
            is_listed = bool(answer.posts or answer.messages)
            found = f":{users}" if is_listed else f" {users or 'nothing.'}"
            writer.add(f"Your {answer.action}{about} found{found}")
            for post in answer.posts:
                writer.add(_render_post(writer, post, seen))
            _write_messages(writer, answer.messages)
        for group in seen.groups:
            if group.joined:
                writer.add(f"Your group {_render_group(group)}")
                _write_messages(writer, group.messages)
        others = [_render_group(group) for group in seen.groups if not group.joined]
        if others:
            writer.add(f"Other groups: {join_words(others, rendering.MAX_NAMES)}")
        if seen.products:
            writer.add(
                "On sale: " + join_words((f"{name} ({sold} sold)" for name, sold in seen.products), rendering.MAX_NAMES)
            )
        _write_feed(writer, seen)

    def cue(self, seen: SocialObservation) -> Iterator[str]:
        posts = (*seen.followed, *seen.recommended)[: rendering.CUE_ITEMS]
        yield from ((post.quote or post.content)[: rendering.CUE_CHARS] for post in posts)

    occasional = frozenset({*_UNDONE, *_ON_GROUPS, *_ON_COMMENTS, "JOIN_GROUP", "UNFOLLOW", "PURCHASE_PRODUCT"})

    def find_senseless(self, seen: SocialObservation, done: Collection[str]) -> frozenset[str]:
        posts = list(seen.posts())
        can: dict[tuple[str, ...], bool] = {
            _ON_POSTS_IN_SIGHT: bool(posts),
            _ON_COMMENTS: any(post.replies for post in posts),
            _ON_PEOPLE: any(True for _ in self.users(seen)),
            _ON_GROUPS: any(group.joined for group in seen.groups),
            ("JOIN_GROUP",): any(not group.joined for group in seen.groups),
            ("UNFOLLOW",): seen.following > 0,
            ("PURCHASE_PRODUCT",): bool(seen.products),
            **{(kind,): before in done for kind, before in _UNDONE.items()},
        }
        return frozenset(kind for kinds, makes_sense in can.items() if not makes_sense for kind in kinds)

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
        """Yield groups by their name, or posts and comments by the name of their author."""
        match what:
            case "group":
                yield from ((group.group_id, group.name) for group in seen.groups)
            case "comment":
                yield from ((reply.comment_id, reply.author) for post in seen.posts() for reply in post.replies)
            case _:
                yield from ((post.post_id, post.author) for post in seen.posts())

    def choices(self, seen: SocialObservation, argument: str, names: str) -> Iterator[tuple[int | str, str]]:
        posts = {post.post_id: post for post in seen.posts()}
        if names == "post":
            for number, post in posts.items():
                yield number, f"{_name_author(post)}: {clip(_join_quote(post), _MAX_CHOICE_CHARS)}"
        elif argument == "comment_id":
            for comment in (reply for post in posts.values() for reply in post.replies):
                yield comment.comment_id, f"{comment.author}: {clip(comment.content, _MAX_CHOICE_CHARS)}"
        elif argument == "product_name":
            yield from ((name, f"{name} ({sold} sold)") for name, sold in seen.products)
        else:
            yield from super().choices(seen, argument, names)

    def recall_sight(self, seen: SocialObservation) -> str:
        first = next(iter((*seen.followed, *seen.recommended)), None)
        return (
            f"You saw {first.author}: {quote(first.quote or first.content, rendering.MAX_SEEN_CHARS)}." if first else ""
        )

    def recall_post(self, seen: SocialObservation, post_id: int) -> str:
        """Return whose post it was, and how it begins."""
        for post in (*seen.followed, *seen.recommended):
            if post.post_id == post_id:
                return f"{post.author}'s {quote(post.quote or post.content, rendering.MAX_SEEN_CHARS)}"
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

    # A person who plays an agent

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
            counts = {"likes": post.likes, "dislikes": post.dislikes, "shares": post.shares, "comments": post.comments}
            facts = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
            who, words = _name_author(post), _join_quote(post)
            yield f"{number:>3}. {who}: {words}{f'  [{facts}]' if facts else ''}"
            yield from (f"       {reply.author}: {reply.content}" for reply in post.replies)
        for answer in seen.answers:
            people = ", ".join(name for _, name in answer.users)
            yield f"{answer.action.lower()} {answer.query}: {len(answer.posts)} posts{'; ' + people if people else ''}"
        for group in seen.groups:
            joined = ", you are in it" if group.joined else ""
            yield f"Group {group.group_id}, {group.name}, {group.members} members{joined}"
            yield from (f"       {message.author}: {message.content}" for message in group.messages)

    def read(self, line: str, seen: SocialObservation) -> Action:
        verb, rest = rendering.split_word(line.removeprefix("/"))
        if verb.isupper() and "_" in verb:
            return rendering.read_action(line)

        def react(kind: str) -> Action:
            return Action(kind, {"post_id": _find_post(rest, seen).post_id})

        verbs: Mapping[str, Callable[[], Action]] = {
            "post": lambda: Action("CREATE_POST", {"content": rendering.need_text(rest)}),
            "comment": lambda: _write_on_post("CREATE_COMMENT", rest, seen, "content"),
            "quote": lambda: _write_on_post("QUOTE_POST", rest, seen, "quote_content"),
            "follow": lambda: Action("FOLLOW", {"followee_id": _find_post(rest, seen).author_id}),
            "mute": lambda: Action("MUTE", {"mutee_id": _find_post(rest, seen).author_id}),
            "search": lambda: Action("SEARCH_POSTS", {"query": rendering.need_text(rest)}),
            "trend": lambda: Action("TREND"),
            "nothing": lambda: NO_ACTION,
            **{name: partial(react, kind) for name, kind in _ON_POSTS.items()},
        }
        return rendering.choose_verb(verb.lower(), verbs)()


# Prompts


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
    if writer.is_brief:
        # All that is read anew in each turn takes time.
        writer.room = min(writer.room, rendering.BRIEF_FEED_CHARS)
        titled = [("Posts:", (*seen.followed, *seen.recommended))]
    fitting: list[tuple[str, tuple[PostView, ...], list[str]]] = []
    for title, posts in titled:
        if posts:
            lines: list[str] = []
            writer.room -= len(title) + 1
            for post in posts:
                line = _render_post(writer, post, seen)
                if len(line) >= writer.room:
                    break
                writer.room -= len(line) + 1
                lines.append(line)
            fitting.append((title, posts, lines))
    comments = _fit_comments(writer, [post for _, posts, lines in fitting for post in posts[: len(lines)]])
    for title, posts, lines in fitting:
        writer.lines.append(title)
        for line, post in zip(lines, posts, strict=False):
            writer.lines += (line, *comments.get(post.post_id, ()))
        if len(lines) < len(posts) and not writer.is_brief:
            writer.lines.append(f"({pluralise(len(posts) - len(lines), 'more post')})")


def _fit_comments(writer: PromptWriter, posts: Sequence[PostView]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for place in range(max((len(post.replies) for post in posts), default=0)):
        for post in posts:
            if place < len(post.replies):
                reply = post.replies[place]
                who, facts = writer.name(reply.author_id, reply.author), _render_counts(reply.likes, reply.dislikes)
                words = quote(reply.content, _MAX_COMMENT_CHARS)
                line = f"  comment [{reply.comment_id}] {who}{facts}: {words}"
                writer.room -= len(line) + 1
                if writer.room < 0:
                    return found
                found.setdefault(post.post_id, []).append(line)
    return found


def _render_post(writer: PromptWriter, post: PostView, seen: SocialObservation) -> str:
    name = writer.name(post.author_id, post.author)
    reacted = ", you reacted" if post.post_id in seen.reacted else ""
    if writer.is_brief:
        words = _quote_post(post.content, post.quote, post.original_author, rendering.BRIEF_POST_CHARS)
        return f"[{post.post_id}] {name}{reacted}: {words}"
    star = "*" if post.author_id in seen.strangers else ""
    facts = _render_counts(post.likes, post.dislikes, post.shares, post.comments)
    flagged = ", reported by several" if post.flagged else ""
    words = _quote_post(post.content, post.quote, post.original_author, rendering.MAX_POST_CHARS)
    return f"[{post.post_id}] {name}{star}, {writer.ago(writer.round, post.age)}{facts}{flagged}{reacted}: {words}"


# Many agents see the same post in a round.
@lru_cache(_POSTS_KEPT)
def _quote_post(content: str, quoted: str | None, original_author: str | None, max_chars: int) -> str:
    words = quote(content, max_chars)
    if quoted is not None:
        return f"{quote(quoted, max_chars)} on {original_author}'s {words}"
    return words if original_author is None else f"shares {original_author}'s {words}"


@lru_cache(_POSTS_KEPT)
def _render_counts(likes: int, dislikes: int = 0, shares: int = 0, comments: int = 0) -> str:
    """Return what others made of a post or a comment, as in `, 3 likes`."""
    counts = zip(_REACTIONS, (likes, dislikes, shares, comments), strict=True)
    return "".join(f", {pluralise(count, noun)}" for noun, count in counts if count)


# The terminal


def _name_author(post: PostView) -> str:
    return f"{post.author} (by {post.original_author})" if post.original_author else post.author


def _join_quote(post: PostView) -> str:
    return post.content if post.quote is None else f"{post.quote} | {post.content}"


def _view_posts(posts: Iterable[PostView], seen: SocialObservation) -> Iterator[ViewLine]:
    for post in posts:
        counts = zip(_REACTIONS, (post.likes, post.dislikes, post.shares, post.comments), strict=True)
        told = [format_count(count, noun) for noun, count in counts if count]
        facts = [f"post {post.post_id}", f"{format_count(post.age, 'round')} old", *told]
        facts += ["reported"] * post.flagged + ["reacted before"] * (post.post_id in seen.reacted)
        named = {"post_id": post.post_id, "user": post.author_id}
        yield ViewLine(_join_quote(post), _name_author(post), ", ".join(facts), named=named)
        for reply in post.replies:
            likes = format_count(reply.likes, "like") if reply.likes else ""
            named = {"comment_id": reply.comment_id, "user": reply.author_id}
            yield ViewLine(reply.content, reply.author, likes, is_reply=True, named=named)


def _view_messages(messages: Iterable[MessageView]) -> Iterator[ViewLine]:
    return (ViewLine(message.content, message.author) for message in messages)


# What a person types


def _write_on_post(kind: str, rest: str, seen: SocialObservation, argument: str) -> Action:
    number, words = rendering.split_word(rest)
    return Action(kind, {"post_id": _find_post(number, seen).post_id, argument: rendering.need_text(words)})


def _find_post(number: str, seen: SocialObservation) -> PostView:
    """Return the post with this number in the list that is shown, counted from 1."""
    posts = list(seen.posts())
    if not number.isdecimal() or not 1 <= int(number) <= len(posts):
        raise Mistake(f"which post? {f'a number from 1 to {len(posts)}' if posts else 'there is none to see'}")
    return posts[int(number) - 1]
