"""What an agent sees, as lines of text: people by name, everybody's words marked as theirs, all within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from shoal.text import clip, format_moment, join_words, outline, pluralise, quote
from shoal.types import Action, Observation
from shoal.worlds.base import ViewObservation
from shoal.worlds.dialogue.observations import DialogueObservation, LineView
from shoal.worlds.dialogue.world import NOBODY
from shoal.worlds.room.observations import RoomObservation, Stimulus
from shoal.worlds.social.observations import CommentView, GroupView, LookedUp, MessageView, PostView, SocialObservation

MAX_POST_CHARS = 280
MAX_COMMENT_CHARS = 120
MAX_MESSAGE_CHARS = 160
MAX_SPEECH_CHARS = 400
MAX_NEWS_CHARS = 400
MAX_SETTING_CHARS = 1200
MAX_NAMES = 24
MAX_GOALS, MAX_RELATIONS, MAX_PENDING, MAX_NEWS = 5, 12, 8, 5

#: What one is reminded by: of so many posts, or things said last, the beginning.
_POSTS_IN_MIND, _CHARS_IN_MIND = 5, 80

#: How long ago something was, from the round and the rounds since.
Ago = Callable[[int, int], str]


class DisplayNames:
    """Who is called what in one picture: two people of one name are told apart by their numbers."""

    __slots__ = ("_holders", "_own")

    def __init__(self, agent: int, name: str) -> None:
        self._own = agent
        self._holders = {name: agent}

    def of(self, agent: int, name: str) -> str:
        if agent == self._own:
            return "you"
        holder = self._holders.setdefault(name, agent)
        return name if holder == agent else f"{name} ({agent})"


class PromptRenderer:
    """One picture in words. `room` is what is left of the budget, in characters."""

    def __init__(self, observation: Observation, budget_chars: int, ago: Ago) -> None:
        self._round = observation.round
        self._names = DisplayNames(observation.agent, observation.name)
        self._ago = ago
        self._room = budget_chars
        self._lines: list[str] = []

    def add(self, line: str) -> bool:
        """Whether the line still fitted in."""
        self._room -= len(line) + 1
        if self._room >= 0:
            self._lines.append(line)
        return self._room >= 0

    def head(self, text: str) -> None:
        self._lines.append(text)

    def text(self) -> str:
        return "\n".join(self._lines)

    # What there is in all worlds

    def news(self, announcements: Sequence[str]) -> None:
        for news in announcements[-MAX_NEWS:]:
            self.add(f"Announcement: {quote(news, MAX_NEWS_CHARS)}")

    def pending(self, actions: Sequence[Action]) -> None:
        """What the agent did that nobody can have reacted to yet."""
        if actions:
            self.add(f"Just now you did, and nobody has seen it yet: {join_words(map(_brief, actions), MAX_PENDING)}.")

    # A platform

    def social(self, seen: SocialObservation) -> None:
        self.add(f"{pluralise(seen.followers, 'follower')}; you follow {seen.following}.")
        self.news(seen.announcements)
        self.pending(seen.pending)
        for answer in seen.answers:
            self._answer(answer, seen)
        self._groups(seen.groups)
        if seen.products:
            self.add("On sale: " + join_words((f"{name} ({sold} sold)" for name, sold in seen.products), MAX_NAMES))
        self._feed(seen)

    def _feed(self, seen: SocialObservation) -> None:
        """All posts come first; comments take what room they leave, the first under every post before any second."""
        if not seen.followed and not seen.recommended:
            self.add("There are no posts to see.")
        titled = [("Posts by people you follow:", seen.followed), ("Posts the platform shows you:", seen.recommended)]
        fitting = [(title, posts, self._fitting(title, posts, seen)) for title, posts in titled if posts]
        comments = self._comments([post for _, posts, lines in fitting for post in posts[: len(lines)]])
        for title, posts, lines in fitting:
            self.head(title)
            for line, post in zip(lines, posts, strict=False):
                self.head(line)
                self._lines += comments.get(post.post_id, ())
            if len(lines) < len(posts):
                self.head(f"({pluralise(len(posts) - len(lines), 'more post')})")

    def _fitting(self, title: str, posts: Sequence[PostView], seen: SocialObservation) -> list[str]:
        lines: list[str] = []
        self._room -= len(title) + 1
        for post in posts:
            line = self._post(post, seen)
            if len(line) >= self._room:
                break
            self._room -= len(line) + 1
            lines.append(line)
        return lines

    def _comments(self, posts: Sequence[PostView]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for place in range(max((len(post.replies) for post in posts), default=0)):
            for post in posts:
                if place < len(post.replies):
                    line = self._comment(post.replies[place])
                    self._room -= len(line) + 1
                    if self._room < 0:
                        return found
                    found.setdefault(post.post_id, []).append(line)
        return found

    def _post(self, post: PostView, seen: SocialObservation) -> str:
        who = self._names.of(post.author_id, post.author)
        if post.author_id in seen.strangers:
            who += "*"
        if post.quote is not None:
            words = (
                f"{quote(post.quote, MAX_POST_CHARS)} on {post.original_author}'s {quote(post.content, MAX_POST_CHARS)}"
            )
        elif post.original_author is not None:
            words = f"shares {post.original_author}'s {quote(post.content, MAX_POST_CHARS)}"
        else:
            words = quote(post.content, MAX_POST_CHARS)
        return f"[{post.post_id}] {who}, {self._figures(post)}{_remarks(post, seen)}: {words}"

    def _figures(self, post: PostView) -> str:
        parts = [self._ago(self._round, post.age)]
        if post.likes:
            parts.append(pluralise(post.likes, "like"))
        if post.dislikes:
            parts.append(pluralise(post.dislikes, "dislike"))
        if post.shares:
            parts.append(pluralise(post.shares, "share"))
        if post.comments:
            parts.append(pluralise(post.comments, "comment"))
        return ", ".join(parts)

    def _comment(self, reply: CommentView) -> str:
        likes = f", {pluralise(reply.likes, 'like')}" if reply.likes else ""
        dislikes = f", {pluralise(reply.dislikes, 'dislike')}" if reply.dislikes else ""
        who = self._names.of(reply.author_id, reply.author)
        return f"  comment [{reply.comment_id}] {who}{likes}{dislikes}: {quote(reply.content, MAX_COMMENT_CHARS)}"

    def _answer(self, answer: LookedUp, seen: SocialObservation) -> None:
        about = f" for {quote(answer.query, MAX_COMMENT_CHARS)}" if answer.query else ""
        self.add(f"Your {answer.action}{about} found{':' if answer.posts or answer.messages else ' '}"
                 + (join_words((self._names.of(*user) for user in answer.users), MAX_NAMES) if answer.users else "")
                 + ("" if answer.posts or answer.messages or answer.users else "nothing."))  # fmt: skip
        for post in answer.posts:
            self.add(self._post(post, seen))
        self._messages(answer.messages)

    def _groups(self, groups: Sequence[GroupView]) -> None:
        others = [_group(group) for group in groups if not group.joined]
        for group in groups:
            if group.joined:
                self.add(f"Your group {_group(group)}")
                self._messages(group.messages)
        if others:
            self.add(f"Other groups: {join_words(others, MAX_NAMES)}")

    def _messages(self, messages: Sequence[MessageView]) -> None:
        for message in messages:
            words = quote(message.content, MAX_MESSAGE_CHARS)
            self.add(f"  {self._names.of(message.author_id, message.author)}: {words}")

    # A room

    def roomful(self, seen: RoomObservation) -> None:
        if seen.location:
            self.add(f"You are here: {clip(seen.location, MAX_POST_CHARS)}")
        self.add(f"Within hearing: {join_words(seen.present, MAX_NAMES) or 'nobody'}")
        for goal in seen.goals[-MAX_GOALS:]:
            self.add(f"Your goal: {clip(goal, MAX_NEWS_CHARS)}")
        if seen.attention:
            self.add(f"Your attention is on: {clip(seen.attention, MAX_POST_CHARS)}")
        known = (f"{other.agent} ({quote(other.relation, 60)})" for other in seen.relations)
        if seen.relations:
            self.add(f"You are related to: {join_words(known, MAX_RELATIONS)}")
        self.pending(seen.pending)
        self._latest("Since your last turn:", [self._stimulus(one) for one in seen.stimuli], "Nothing has happened.")

    def _stimulus(self, one: Stimulus) -> str:
        words = quote(one.content, MAX_SPEECH_CHARS)
        if one.source is None:
            return f"{_UNSOURCED.get(one.kind, one.kind)}: {words}"
        who = self._names.of(one.source_id if one.source_id is not None else -1, one.source)
        match one.kind:
            case "hear":
                return f"{who}{' to you' if one.addressed else ''}: {words}"
            case "relate":
                return f"{who} says you are to one another: {words}"
            case "reach_out":
                return f"{who} wants a word with you."
        return f"{who} ({one.kind}): {words}"

    def _latest(self, title: str, lines: Sequence[str], nothing: str) -> None:
        """The newest lines that fit, oldest first."""
        if not lines:
            self.add(nothing)
            return
        self.add(title)
        first = len(lines)
        while first and self._room >= len(lines[first - 1]) + 1:
            first -= 1
            self._room -= len(lines[first]) + 1
        if first:
            self.head(f"({first} earlier left out)")
        self._lines += lines[first:]

    # A conversation

    def conversation(self, seen: DialogueObservation) -> None:
        if seen.partner_id == NOBODY:
            self.add("You have nobody to talk to.")
            self.news(seen.announcements)
            return
        about = f" ({clip(seen.partner_bio, MAX_POST_CHARS)})" if seen.partner_bio else ""
        self.add(f"You talk with {seen.partner}{about}.")
        if seen.setting:
            self.add(f"Scene {seen.scene}: {clip(seen.setting, MAX_SETTING_CHARS)}")
        if seen.turning_point:
            self.add(f"Meanwhile: {clip(seen.turning_point, MAX_SETTING_CHARS)}")
        self.news(seen.announcements)
        self.pending(seen.pending)
        self._latest("What was said:", [self._line(line) for line in seen.lines], "Nothing has been said yet.")
        self.head("The scene is over: RATE it." if seen.rating else f"It is your turn ({seen.turn} of {seen.turns}).")

    def _line(self, line: LineView) -> str:
        return f"{self._names.of(line.speaker_id, line.speaker)}: {quote(line.content, MAX_SPEECH_CHARS)}"

    # A world of one's own

    def look(self, seen: ViewObservation) -> None:
        self.news(seen.announcements)
        self.pending(seen.pending)
        self.head(outline(seen.view, max(self._room, 0), quoted=True))


_UNSOURCED = {"hear": "You hear", "see": "You see", "think": "It crosses your mind", "goal": "You have a new goal",
              "location": "You are now here"}  # fmt: skip


def render_observation(observation: Observation, budget_chars: int, ago: Ago) -> str:
    """The last part of a prompt: the moment, and all that is to be seen in it."""
    sight = PromptRenderer(observation, budget_chars, ago)
    sight.head(f"# Now\nIt is {format_moment(observation.time)}.")
    match observation:
        case SocialObservation():
            sight.social(observation)
        case RoomObservation():
            sight.roomful(observation)
        case DialogueObservation():
            sight.conversation(observation)
        case ViewObservation():
            sight.look(observation)
        case _:
            sight.pending(observation.pending)
    return sight.text()


def _remarks(post: PostView, seen: SocialObservation) -> str:
    flagged = ", reported by several" if post.flagged else ""
    return f"{flagged}, you reacted" if post.post_id in seen.reacted else flagged


def _group(group: GroupView) -> str:
    return f"[{group.group_id}] {quote(group.name, 60)} ({group.members})"


def _brief(action: Action) -> str:
    return action.kind + "".join(f" {quote(str(value), 80)}" for value in action.args.values())


def retrieval_cue(observation: Observation) -> Iterable[str]:
    """What others say in the picture, to be reminded by."""
    match observation:
        case SocialObservation():
            for post in (*observation.followed, *observation.recommended)[:_POSTS_IN_MIND]:
                yield (post.quote or post.content)[:_CHARS_IN_MIND]
        case RoomObservation():
            for stimulus in observation.stimuli[-_POSTS_IN_MIND:]:
                yield stimulus.content[:_CHARS_IN_MIND]
        case DialogueObservation():
            for line in observation.lines[-_POSTS_IN_MIND:]:
                yield line.content[:_CHARS_IN_MIND]
        case ViewObservation():
            yield outline(observation.view, 600)
