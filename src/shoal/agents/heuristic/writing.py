"""How the heuristic mind's people write: no one ever writes the same text twice.

A family of texts is a product of short lists of phrases. An agent walks through it with a stride of its own, which
has no divisor in common with the family's size, so that its n-th text is a new one until all are used up.
"""

from __future__ import annotations

from math import prod

from shoal.agents.heuristic import phrases
from shoal.agents.heuristic.phrases import Phrases
from shoal.seeds import derive
from shoal.worlds.lexicon import is_cue

_MASK = (1 << 64) - 1
_SPREAD = 0x9E3779B97F4A7C15
#: Primes longer than any list of phrases, so each shares no divisor with the size of a family.
_STRIDES = (
    7919,
    10007,
    12503,
    15013,
    17509,
    20011,
    22501,
    25013,
    27509,
    30011,
    32503,
    35023,
    37501,
    40009,
    42509,
    45007,
)
#: A longer or a sentence-like subject is quoted rather than woven into a sentence.
_MAX_LABEL_WORDS = 6
_MAX_QUOTED_CHARS = 80
_SENTENCE_WORDS = frozenset(
    "is are was were will would should can could has have had does did says say must may".split()
)


class Family:
    """All texts that take one phrase from each of its lists."""

    __slots__ = ("_lists", "size")

    def __init__(self, *lists: Phrases) -> None:
        self._lists = tuple((phrases, len(phrases)) for phrases in lists)
        self.size = prod(map(len, lists))

    def text(self, index: int) -> str:
        """The text with this number; beyond the last one they begin again, and say so."""
        rest = index
        parts = []
        for phrases_, length in self._lists:
            rest, place = divmod(rest, length)
            parts.append(phrases_[place])
        if rest:
            parts.append("(I have said this once before.)" if rest == 1 else f"(I have said this {rest} times before.)")
        return " ".join(parts)


class Voice:
    """Writes in the name of agents. `nth` is the number of texts the agent wrote before this one."""

    def __init__(self, seed: int, world: str) -> None:
        self._key = derive(seed, world, "voice")
        self._posts = {lean: _post_family(phrases.POST_OPENERS, lean) for lean in phrases.LEANINGS}
        self._news = {lean: _post_family(phrases.NEWS_OPENERS, lean) for lean in phrases.LEANINGS}
        self._hobby = Family(phrases.POST_OPENERS, phrases.HOBBY_MIDDLES, phrases.HOBBY_REASONS, phrases.POST_CLOSERS)
        self._comments = {(tone, lean): _comment_family(tone, lean) for tone in _TONES for lean in phrases.LEANINGS}
        self._quotes = {
            lean: _reply_family(phrases.QUOTE_OPENERS, lean, phrases.POST_CLOSERS) for lean in phrases.LEANINGS
        }
        self._messages = {
            lean: _reply_family(phrases.MESSAGE_OPENERS, lean, phrases.POST_CLOSERS) for lean in phrases.LEANINGS
        }

    def post(self, agent: int, nth: int, lean: int, about: str) -> str:
        return self._write(self._posts[lean], agent, nth).replace("{about}", about)

    def news(self, agent: int, nth: int, lean: int, about: str) -> str:
        return self._write(self._news[lean], agent, nth).replace("{about}", about)

    def hobby(self, agent: int, nth: int, about: str) -> str:
        return self._write(self._hobby, agent, nth).replace("{about}", about)

    def comment(self, agent: int, nth: int, tone: int, lean: int, name: str, about: str) -> str:
        """`tone` is 1 to agree with the author, -1 to disagree, 0 for neither."""
        text = self._write(self._comments[tone, lean], agent, nth)
        return text.replace("{name}", name).replace("{about}", about)

    def quote(self, agent: int, nth: int, lean: int, about: str) -> str:
        return self._write(self._quotes[lean], agent, nth).replace("{about}", about)

    def message(self, agent: int, nth: int, lean: int, about: str) -> str:
        return self._write(self._messages[lean], agent, nth).replace("{about}", about)

    def _write(self, family: Family, agent: int, nth: int) -> str:
        own = (self._key + agent * _SPREAD) & _MASK
        own ^= own >> 29
        return family.text(walk(own, nth, family.size))


def walk(own: int, nth: int, size: int) -> int:
    """The number of somebody's n-th text in a family of this size: a new one until all are used up."""
    turn, place = divmod(nth, size)
    return turn * size + (own + place * _STRIDES[own & 15]) % size


_TONES = {1: phrases.AGREEING_OPENERS, 0: phrases.OPEN_OPENERS, -1: phrases.DISAGREEING_OPENERS}


def _post_family(openers: Phrases, lean: int) -> Family:
    return Family(openers, phrases.POST_MIDDLES[_sign(lean)], phrases.POST_REASONS[lean], phrases.POST_CLOSERS)


def _comment_family(tone: int, lean: int) -> Family:
    return Family(_TONES[tone], phrases.REPLY_MIDDLES[_sign(lean)], phrases.REPLY_CLOSERS[lean])


def _reply_family(openers: Phrases, lean: int, closers: Phrases) -> Family:
    return Family(openers, phrases.REPLY_MIDDLES[_sign(lean)], phrases.REPLY_CLOSERS[lean], closers)


def _sign(lean: int) -> int:
    return (lean > 0) - (lean < 0)


def label(subject: str) -> str:
    """The subject as a noun phrase that fits into a sentence, whatever the scenario calls it."""
    words = subject.replace("_", " ").split()
    text = " ".join(words)
    if text.endswith("?"):
        return f"the question “{shortened(text)}”"
    if len(words) > _MAX_LABEL_WORDS or not _SENTENCE_WORDS.isdisjoint(text.lower().split()):
        return f"the claim “{shortened(text.rstrip('.!'))}”"
    return text


def shortened(text: str) -> str:
    """A text that can be quoted in a sentence."""
    if len(text) <= _MAX_QUOTED_CHARS:
        return text
    return text[:_MAX_QUOTED_CHARS].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def address(author: str) -> str:
    """How to address an author in a comment: `, Mira`, or nothing where no first name can be told."""
    words = author.split()
    if not 1 <= len(words) <= 3 or not all(word.isalpha() and word[0].isupper() for word in words):
        return ""
    if is_cue(words[0]) or not phrases.INSTITUTIONS.isdisjoint(author.lower().split()):
        return ""
    return f", {words[0]}"
