"""What the heuristic mind takes from a text, remembered per text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shoal.agents.voice import label
from shoal.worlds.social.views import PostView
from shoal.worlds.social.words import Reader, content_words, is_cue

MAX_REMEMBERED_TEXTS = 250_000
MIN_KEY_WORD_CHARS = 5
#: What to call something that has no word one could pick up.
THIS = "this"


class Reading(NamedTuple):
    #: Bit i set: it is about topic i.
    mask: int
    slant: float
    #: Whether it is about what people have their stance on.
    contested: bool
    #: What to call it when talking about it.
    about: str


class Readings:
    """Reads posts and announcements. A reading depends on the words alone, so forgetting one changes nothing."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        #: What topic i is called in a sentence.
        self.labels = tuple(self._label(phrase) for phrase in reader.vocabulary)
        self.subject: str | None = None if reader.subject is None else self.labels[reader.subject]
        #: Readings of plain texts, to be looked up without a call.
        self.known: dict[str, Reading] = {}
        self._quotes: dict[tuple[str, str], Reading] = {}

    def post(self, post: PostView) -> Reading:
        if post.quote is None:
            return self.text(post.content)
        key = (post.quote, post.content)
        reading = self._quotes.get(key)
        if reading is None:
            if len(self._quotes) >= MAX_REMEMBERED_TEXTS:
                self._quotes.clear()
            reading = self._quotes[key] = self._read_quote(*key)
        return reading

    def text(self, text: str) -> Reading:
        reading = self.known.get(text)
        if reading is None:
            if len(self.known) >= MAX_REMEMBERED_TEXTS:
                self.known.clear()
            reading = self.known[text] = self._read((text,), self._reader.slant(text))
        return reading

    def _read_quote(self, quote: str, content: str) -> Reading:
        # What was added speaks for the author, as it does on the platform.
        return self._read((quote, content), self._reader.slant(quote))

    def _read(self, texts: tuple[str, ...], slant: float) -> Reading:
        topics = list(dict.fromkeys(topic for text in texts for topic in self._reader.topics(text)))
        subject = self._reader.subject
        contested = subject is None or subject in topics
        if subject is not None and contested:
            about = self.labels[subject]
        else:
            about = self.labels[topics[0]] if topics else _key_word(texts)
        return Reading(sum(1 << topic for topic in topics), slant, contested, about)

    def _label(self, phrase: str) -> str:
        """A long subject is cut short; if what is left leans, fall back on words that do not."""
        name = label(phrase)
        return name if self._reader.slant(name) == 0.0 else _key_word((phrase,))


def _key_word(texts: Iterable[str]) -> str:
    words = [word for text in texts for word in content_words(text) if len(word) >= MIN_KEY_WORD_CHARS]
    words = [word for word in words if word.isalpha() and word.isascii() and not is_cue(word)]
    return f"“{max(words, key=len)}”" if words else THIS
