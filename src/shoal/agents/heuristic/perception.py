"""What the heuristic mind takes from a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shoal.agents.heuristic.writing import label
from shoal.worlds.lexicon import TextReader, content_words, is_cue
from shoal.worlds.social.observations import PostView

MIN_KEY_WORD_CHARS = 5
#: What to call something that has no word one could pick up.
THIS = "this"


class Theme(NamedTuple):
    """What a combination of topics means to agents."""

    #: Bit i set: it is about topic i.
    mask: int
    #: Whether it is about what people have their stance on.
    contested: bool
    #: What to call it when talking about it; None where no topic shows.
    about: str | None


class TextReading(NamedTuple):
    """What is taken from a text."""

    mask: int
    slant: float
    contested: bool
    about: str


class TextReadings:
    """Reads posts, from what the platform says they are about, and announcements, from their words."""

    def __init__(self, reader: TextReader) -> None:
        self._reader = reader
        self._number = {phrase: topic for topic, phrase in enumerate(reader.vocabulary)}
        #: What topic i is called in a sentence.
        self.labels = tuple(self._label(phrase) for phrase in reader.vocabulary)
        self.subject: str | None = None if reader.subject is None else self.labels[reader.subject]
        #: Themes of posts seen so far, to be looked up without a call.
        self.themes: dict[tuple[str, ...], Theme] = {}

    def theme(self, topics: tuple[str, ...]) -> Theme:
        found = self.themes.get(topics)
        if found is None:
            found = self.themes[topics] = self._theme([self._number[topic] for topic in topics])
        return found

    def post(self, post: PostView) -> TextReading:
        mask, contested, about = self.theme(post.topics)
        texts = (post.content,) if post.quote is None else (post.quote, post.content)
        return TextReading(mask, post.slant, contested, about or _key_word(texts))

    def text(self, text: str) -> TextReading:
        mask, contested, about = self._theme(list(self._reader.topics(text)))
        return TextReading(mask, self._reader.slant(text), contested, about or _key_word((text,)))

    def _theme(self, topics: list[int]) -> Theme:
        subject = self._reader.subject
        contested = subject is None or subject in topics
        first = subject if subject in topics else topics[0] if topics else None
        return Theme(sum(1 << topic for topic in topics), contested, None if first is None else self.labels[first])

    def _label(self, phrase: str) -> str:
        """A long subject is cut short; if what is left leans, fall back on words that do not."""
        name = label(phrase)
        return name if self._reader.slant(name) == 0.0 else _key_word((phrase,))


def _key_word(texts: Iterable[str]) -> str:
    words = [word for text in texts for word in content_words(text) if len(word) >= MIN_KEY_WORD_CHARS]
    words = [word for word in words if word.isalpha() and word.isascii() and not is_cue(word)]
    return f"“{max(words, key=len)}”" if words else THIS
