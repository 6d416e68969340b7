"""Posting, sharing, quoting and commenting; liking, disliking and reporting, and taking it back."""

from __future__ import annotations

from typing import Any

from shoal.types import Mention
from shoal.worlds.base import Rejected, check_lean, read_mention, show_stated
from shoal.worlds.social import database
from shoal.worlds.social.posts import Comments, Posts
from shoal.worlds.social.state import Actor, Done, Ratings, State


def find_post(state: State, post_id: int) -> int:
    """Return the row that an action on this post concerns: of a repost, it is the row of its root."""
    row = state.posts.row_of.get(post_id)
    if row is None:
        raise Rejected(f"there is no post {post_id}")
    return row if state.posts.is_quote[row] else int(state.posts.root[row])


def describe_post(state: State, row: int) -> dict[str, Any]:
    """Return a post as the stream shows it beside an action on it."""
    words = state.posts.quote[row] or state.posts.content[row]
    return {
        "post_id": int(state.posts.post_id[row]),
        "post_content": words,
        "post_author_name": state.names[state.posts.author[row]],
    }


def create_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    content = _need_text(args["content"], "a post")
    meaning = _read_meaning(state, args, content)
    done = {"content": content, "post_id": _add_post(state, actor, content, None, None, meaning), **show_stated(args)}
    return Done(done, done)


def repost(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    original_id, shared = _share(state, actor, args["post_id"], None, None)
    trace = {"reposted_id": original_id, "new_post_id": shared["new_post_id"]}
    return Done({"post_id": original_id, **shared}, trace)


def quote_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """Share a post with words of the agent's own."""
    words = _need_text(args["quote_content"], "a quote")
    original_id, shared = _share(state, actor, args["post_id"], words, _read_meaning(state, args, words))
    stated = show_stated(args)
    trace = {"quoted_id": original_id, "new_post_id": shared["new_post_id"], **stated}
    return Done({"quoted_id": original_id, **shared, **stated}, trace)


def create_comment(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    content = _need_text(args["content"], "a comment")
    row = find_post(state, args["post_id"])
    about = describe_post(state, row)
    slant, mention = _read_meaning(state, args, content)
    comment_id = actor.new_id()
    state.comments.add(comment_id, row, actor.agent, content, mention)
    state.reach(actor.agent, mention or state.posts.mention[row])
    state.posts.comments[row] += 1
    state.touched_posts.add(row)
    columns = (comment_id, about["post_id"], actor.agent, content, actor.created_at)
    if state.reader.edition > 1:
        state.rows.add(database.CLAIMING_COMMENT, *columns, *_show_meaning(slant, mention))
    else:
        state.rows.add(database.COMMENT, *columns)
    stated = show_stated(args)
    return Done(
        {"content": content, "comment_id": comment_id, **about, **stated},
        {"content": content, "comment_id": comment_id, "post_id": about["post_id"], **stated},
    )


def rate(state: State, actor: Actor, args: dict[str, Any], *, by: str) -> Done:
    """Like or dislike a post or a comment. `by` names the ratings of the state that it belongs to."""
    ratings: Ratings = getattr(state, by)
    row, rated = _find_rated(state, ratings, args)
    if not state.self_rating and rated.author[row] == actor.agent:
        raise Rejected(f"agents cannot rate their own {ratings.what}s here")
    rating_id = _give(actor, row, ratings, rated)
    about = _touch(state, ratings, row)
    rated_id = about[f"{ratings.what}_id"]
    if rated is state.posts:
        state.reacted.setdefault(actor.agent, set()).add(row)
    state.reach(actor.agent, rated.mention[row])
    if by == "likes":
        state.ranking.learn(actor.agent, int(state.posts.lean[row]))
    state.rows.add(database.RATE[ratings.table], rating_id, actor.agent, rated_id, actor.created_at)
    return Done(about, {f"{ratings.what}_id": rated_id, f"{ratings.table}_id": rating_id})


def unrate(state: State, actor: Actor, args: dict[str, Any], *, by: str) -> Done:
    """Take back what `rate` does."""
    ratings: Ratings = getattr(state, by)
    row, rated = _find_rated(state, ratings, args)
    if not ratings.has(actor.agent, row):
        raise Rejected(f"this was not {ratings.done}")
    rating_id = ratings.by_agent[actor.agent].pop(row)
    getattr(rated, ratings.counter)[row] -= 1
    about = _touch(state, ratings, row)
    if rated is state.posts and not any(
        other.has(actor.agent, row) for other in (state.likes, state.dislikes, state.shares)
    ):
        state.reacted[actor.agent].remove(row)
    state.rows.add(database.UNRATE[ratings.table], rating_id)
    return Done(about, {f"{ratings.what}_id": about[f"{ratings.what}_id"], f"{ratings.table}_id": rating_id})


def report_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    row, reason = find_post(state, args["post_id"]), args["report_reason"]
    report_id = _give(actor, row, state.reports, state.posts)
    about = _touch(state, state.reports, row)
    state.rows.add(database.REPORT, report_id, actor.agent, about["post_id"], reason, actor.created_at)
    trace = {"post_id": about["post_id"], "report_id": report_id, "report_reason": reason}
    return Done({**about, "report_reason": reason}, trace)


def _need_text(value: str, what: str) -> str:
    if not value.strip():
        raise Rejected(f"{what} cannot be empty")
    return value


def _read_meaning(state: State, args: dict[str, Any], words: str) -> tuple[float, Mention | None]:
    """Return which way a text leans on the topic, and what it says of a claim.

    Its author may state both. Of a text that says something of a claim, the claim says what that means for the topic.
    """
    mention = read_mention(state.reader, args, words)
    if mention is not None:
        return state.reader.claims[mention.claim].bearing * mention.lean, mention
    lean = args.get("lean")
    if lean is not None:
        return check_lean(lean), None
    state.unread += state.reader.is_unreadable(words)
    return state.reader.slant(words), None


def _show_meaning(slant: float, mention: Mention | None) -> tuple[str | None, float]:
    """Return the columns of a text's meaning in the database."""
    return (None, slant) if mention is None else (mention.claim, mention.lean)


def _share(
    state: State, actor: Actor, post_id: int, quote: str | None, meaning: tuple[float, Mention | None] | None
) -> tuple[int, dict[str, Any]]:
    """Post another post once more, and return its number and what the stream shows. A quote is shared as its root."""
    root = int(state.posts.root[find_post(state, post_id)])
    if state.shares.has(actor.agent, root):
        raise Rejected("this was already shared")
    state.shares.give(actor.agent, root, 0)
    state.reacted.setdefault(actor.agent, set()).add(root)
    state.posts.shares[root] += 1
    state.touched_posts.add(root)
    original = describe_post(state, root)
    meaning = meaning or (state.posts.lean[root] / 100, state.posts.mention[root])
    new_post_id = _add_post(state, actor, state.posts.content[root], quote, root, meaning)
    return original["post_id"], {
        "new_post_id": new_post_id,
        **({} if quote is None else {"quote_content": quote}),
        "original_content": original["post_content"],
        "original_author_name": original["post_author_name"],
    }


def _add_post(
    state: State,
    actor: Actor,
    content: str,
    quote: str | None,
    root: int | None,
    meaning: tuple[float, Mention | None],
) -> int:
    posts, (slant, mention) = state.posts, meaning
    post_id = actor.new_id()
    row = posts.add(post_id, actor.agent, actor.round, content, quote, root)
    topics = state.reader.topics(content) if root is None else [t for t in posts.topics[root].tolist() if t >= 0]
    posts.describe(row, topics, slant, mention)
    state.ranking.learn(actor.agent, int(posts.lean[row]))
    state.reach(actor.agent, mention or (None if root is None else posts.mention[root]))
    state.feed.add(row, actor.agent)
    state.touched_posts.add(row)
    original_id = None if root is None else int(posts.post_id[root])
    columns = (post_id, actor.agent, original_id, content, quote, actor.created_at)
    if state.reader.edition > 1:
        state.rows.add(database.CLAIMING_POST, *columns, *_show_meaning(slant, mention))
    else:
        state.rows.add(database.POST, *columns)
    return post_id


def _find_rated(state: State, ratings: Ratings, args: dict[str, Any]) -> tuple[int, Posts | Comments]:
    """Return the row of the post or comment that an action concerns, and where it stands."""
    if ratings.what == "post":
        return find_post(state, args["post_id"]), state.posts
    row = state.comments.row_of.get(args["comment_id"])
    if row is None:
        raise Rejected(f"there is no comment {args['comment_id']}")
    return row, state.comments


def _give(actor: Actor, row: int, ratings: Ratings, rated: Posts | Comments) -> int:
    if ratings.has(actor.agent, row):
        raise Rejected(f"this was already {ratings.done}")
    rating_id = actor.new_id()
    ratings.give(actor.agent, row, rating_id)
    getattr(rated, ratings.counter)[row] += 1
    return rating_id


def _touch(state: State, ratings: Ratings, row: int) -> dict[str, Any]:
    """Note that a post or comment changed, and return it as the stream shows it beside an action on it."""
    if ratings.what == "post":
        state.touched_posts.add(row)
        return describe_post(state, row)
    comments = state.comments
    state.touched_comments.add(row)
    comments.shown.pop(comments.post[row], None)
    return {
        "comment_id": comments.comment_id[row],
        "comment_content": comments.content[row],
        "comment_author_name": state.names[comments.author[row]],
    }
