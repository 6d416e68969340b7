"""What the heuristic minds take from a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shoal.agents.heuristic.sentences import state_claim
from shoal.agents.heuristic.writing import label
from shoal.types import Mention
from shoal.worlds import TextReader, content_words, is_cue
from shoal.worlds.social import PostView

MIN_KEY_WORD_CHARS = 5
#: The name of something in which there is no word to pick up.
THIS = "this"


class Theme(NamedTuple):
    """What a combination of topics means to agents."""

    #: Bit i is set if it is about topic i.
    mask: int
    #: Whether it is about the subject on which people have their stance.
    contested: bool
    #: How to name it in a sentence; None where it has no topic.
    about: str | None


class TextReading(NamedTuple):
    """What an agent takes from a text: its topics, how it leans, and how to name what it is about."""

    mask: int
    slant: float
    contested: bool
    about: str
    #: What it says of a claim; never for a text that says nothing of one.
    mention: Mention | None = None


class TextReadings:
    """Reads posts by the topics that the platform found, and other texts by their words."""

    def __init__(self, reader: TextReader) -> None:
        self._reader = reader
        self._number = {phrase: topic for topic, phrase in enumerate(reader.vocabulary)}
        #: The name of each topic in a sentence. A long subject is cut; if the rest leans, one of its words is used.
        self.labels = tuple(
            name if reader.slant(name := label(phrase)) == 0.0 else _key_word((phrase,)) for phrase in reader.vocabulary
        )
        self.subject: str | None = None if reader.subject is None else self.labels[reader.subject]
        #: Each claim as a clause.
        self.claims = {claim.id: state_claim(claim.text) for claim in reader.claims.values()}
        #: Themes of posts so far, public so that hot loops can look them up without a call.
        self.themes: dict[tuple[str, ...], Theme] = {}

    def theme(self, topics: tuple[str, ...]) -> Theme:
        found = self.themes.get(topics)
        if found is None:
            found = self.themes[topics] = self._theme([self._number[topic] for topic in topics])
        return found

    def read_post(self, post: PostView) -> TextReading:
        """Read a post from what its platform found in it."""
        mask, contested, about = self.theme(post.topics)
        texts = (post.content,) if post.quote is None else (post.quote, post.content)
        if isinstance(post.mention, Mention):
            return TextReading(mask, post.slant, True, self.claims[post.mention.claim], post.mention)
        return TextReading(mask, post.slant, contested, about or _key_word(texts))

    def read_text(self, text: str) -> TextReading:
        """Read any other text, such as a line that was heard."""
        mask, contested, about = self._theme(list(self._reader.topics(text)))
        if (mention := self._reader.find_mention(text)) is not None:
            slant = self._reader.claims[mention.claim].bearing * mention.lean
            return TextReading(mask, slant, True, self.claims[mention.claim], mention)
        return TextReading(mask, self._reader.slant(text), contested, about or _key_word((text,)))

    def find_mention(self, text: str) -> Mention | None:
        return self._reader.find_mention(text)

    def _theme(self, topics: list[int]) -> Theme:
        subject = self._reader.subject
        first = subject if subject in topics else topics[0] if topics else None
        return Theme(
            mask=sum(1 << topic for topic in topics),
            contested=subject is None or subject in topics,
            about=None if first is None else self.labels[first],
        )


def _key_word(texts: Iterable[str]) -> str:
    """Return the longest plain word, quoted, to name what the texts are about."""
    words = [word for text in texts for word in content_words(text) if len(word) >= MIN_KEY_WORD_CHARS]
    words = [word for word in words if word.isalpha() and word.isascii() and not is_cue(word)]
    return f"“{max(words, key=len)}”" if words else THIS
