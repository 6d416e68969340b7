"""Reads from the words of a short text what it is about, and which way it leans.

Both readings are pure functions of the text, so that the platform and the heuristic mind agree about every post.
They know English: a text in another language is about nothing and leans nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import TypeVar

import msgspec

from shoal.types import Claim, Mention
from shoal.worlds.reading import StatementReader, read_attitude

T = TypeVar("T")

#: How alike two texts are in meaning, -1 to 1.
CompareTexts = Callable[[str, str], float]

#: Texts remembered per reading before the memory is emptied.
MEMORY_TEXTS = 250_000
#: Topics a text can be about, besides the subject.
MAX_TOPICS = 2
#: A negation turns around cues among this many words after it, unless the clause ends before.
NEGATION_REACH = 3
#: A text that is so much like the subject in meaning speaks of it. Of 200 posts this takes 92 of 100 and no other.
ALIKE_FROM = 0.2
#: One plain cue gives 1 / (1 + this) of the full slant.
DAMPING = 1.2

_TOKENS = re.compile(r"[\w']+|[.!?;:,]")
_CLAUSE_ENDS = frozenset(".!?;:,")


class _Lexicon(msgspec.Struct):
    """The English words that readings know; `data/lexicon.json`."""

    #: Weight of a cue -> verbs in their base form; the other forms are derived.
    verbs: dict[float, list[str]]
    #: Weight of a cue -> words that have one form.
    words: dict[float, list[str]]
    negators: frozenset[str]
    fillers: frozenset[str]


_LEXICON = msgspec.json.decode(
    resources.files(__package__).joinpath("data", "lexicon.json").read_bytes(), type=_Lexicon
)


class _Memory(dict[str, T]):
    """Readings by text, each read once; emptied when full. An lru_cache costs the garbage collector more."""

    def __init__(self, read: Callable[[str], T]) -> None:
        self._read = read

    def __missing__(self, text: str) -> T:
        if len(self) >= MEMORY_TEXTS:
            self.clear()
        reading = self[text] = self._read(text)
        return reading


class TextReader:
    """Reads texts in terms of one scenario: its topics, and the subject that opinions are about.

    With `compare`, a text that has none of the subject's words may still speak of it. What worlds and minds read must
    not depend on whether it is there, so only reports have it.
    """

    def __init__(  # noqa: PLR0913  # all that a scenario says about texts
        self,
        topics: Sequence[str],
        subject: str | None,
        claims: Sequence[Claim] = (),
        declared: Mapping[str, Mention] | None = None,
        edition: int = 2,
        compare: CompareTexts | None = None,
        unread: int = 0,
    ) -> None:
        """Prepare to read texts. The last `unread` topics, which people bring along who join, are not looked for."""
        self._compare = compare
        #: Which version of the readings this is: that of Shoal 0.2 is 1.
        self.edition = edition
        #: The claims by their ids, and texts of which the scenario says what they say of a claim.
        self.claims: Mapping[str, Claim] = {claim.id: claim for claim in claims}
        self._declared = declared or {}
        self._statements = {claim.id: StatementReader(claim.text) for claim in claims}
        self._meanings = _Memory(self._read_claims)
        #: The topics that indices stand for, and the subject after them unless it is one of them.
        self.vocabulary: tuple[str, ...] = tuple(topics)
        self.subject: int | None = None
        if subject is not None and _content_words(subject):
            known = [topic.casefold() for topic in self.vocabulary]
            if subject.casefold() not in known:
                self.vocabulary, known = (*self.vocabulary, subject), [*known, subject.casefold()]
            self.subject = known.index(subject.casefold())
        #: Form of a word -> the topics it belongs to, each with the bit of the word in the topic's phrase.
        self._forms: dict[str, list[tuple[int, int]]] = {}
        #: Topic -> how many words of its phrase a text must have.
        self._needed: list[int] = []
        skipped = {*range(len(topics) - unread, len(topics))} - {self.subject}
        for index, phrase in enumerate(self.vocabulary):
            words = _content_words(phrase)
            # People shorten what everyone talks about: half of the subject's words, two at most, are enough.
            self._needed.append(min((len(words) + 1) // 2, 2) if index == self.subject else len(words))
            for place, word in enumerate(words if index not in skipped else ()):
                for form in _derive_forms(word):
                    self._forms.setdefault(form, []).append((index, 1 << place))
        phrases = [phrase.replace("_", " ") for index, phrase in enumerate(self.vocabulary) if index not in skipped]
        leaning = {phrase.lower().strip(" .!?") for phrase in phrases if self._leans(phrase)}
        self._neutral = tuple(sorted(leaning, key=len, reverse=True))
        self._topics, self._slants = _Memory(self._find_topics), _Memory(self._find_slant)
        #: Text -> at most two indices into the vocabulary in order of appearance, and the subject's if it is named.
        self.topics = self._topics.__getitem__
        #: Text -> -1 (doubt, denial, anger) to 1 (belief, approval, trust); 0 when nothing shows.
        self.slant = self._slants.__getitem__

    @property
    def subject_name(self) -> str | None:
        return None if self.subject is None else self.vocabulary[self.subject]

    def find_mention(self, text: str) -> Mention | None:
        """Return what the text says of a claim: as the scenario declares it, else as its words are read."""
        declared = self._declared.get(text)
        return self._meanings[text] if declared is None and self._statements else declared

    def _read_claims(self, text: str) -> Mention | None:
        """Return what the text says of the claim on which it leans most."""
        read = [(claim, reader.read(text)) for claim, reader in self._statements.items()]
        leans = [Mention(claim, meaning.lean) for claim, meaning in read if meaning and meaning.lean is not None]
        return max(leans, key=lambda mention: abs(mention.lean), default=None)

    def is_unreadable(self, text: str) -> bool:
        """Return whether the text is in a language that cannot be read, or sounds sarcastic."""
        return self.edition > 1 and read_attitude(text).unread is not None

    def name_topics(self, text: str) -> tuple[str, ...]:
        """Return what the text is about, in the words of the scenario's topics."""
        return tuple([self.vocabulary[topic] for topic in self.topics(text)])

    def is_on_topic(self, text: str) -> bool:
        """Return whether the text speaks of the subject. Every count of posts on the scenario's topic uses this.

        A subject in a script without spaces between words is one token, so it is also looked for inside longer ones.
        """
        phrase = self.subject_name
        if phrase is None:
            return False
        if self.subject in self.topics(text) or (not phrase.isascii() and phrase.casefold() in text.casefold()):
            return True
        return self._compare is not None and self._compare(phrase, text) >= ALIKE_FROM

    def _leans(self, phrase: str) -> bool:
        """Return whether a phrase alone would value what it names."""
        return not _MARKS.keys().isdisjoint(_tokens(phrase)) or (self.edition > 1 and bool(read_attitude(phrase).lean))

    def _find_topics(self, text: str) -> tuple[int, ...]:
        forms = self._forms
        tokens = _tokens(text)
        if forms.keys().isdisjoint(tokens):
            return ()
        seen: dict[int, int] = {}
        for token in tokens:
            for index, bit in forms.get(token, ()):
                seen[index] = seen.get(index, 0) | bit
        complete = [index for index, bits in seen.items() if bits.bit_count() >= self._needed[index]]
        topics = [index for index in complete if index != self.subject][:MAX_TOPICS]
        if self.subject in complete:
            topics.append(self.subject)
        return tuple(topics)

    def _find_slant(self, text: str) -> float:
        if self._neutral:
            # A scenario about "the vaccine hoax" must not make everyone who names it a denier.
            text = text.lower()
            for phrase in self._neutral:
                text = text.replace(phrase, "it")
        if self.edition > 1:
            return read_attitude(text).lean or 0.0
        tokens = _tokens(text)
        if _MARKS.keys().isdisjoint(tokens):
            return 0.0
        total = 0.0
        # How many more words a negation turns around.
        reach = 0
        for token in tokens:
            weight = _MARKS.get(token)
            if weight is None:
                reach = 0 if token in _CLAUSE_ENDS else reach - 1
            elif weight == 0.0:
                reach = NEGATION_REACH
            else:
                total += -weight if reach > 0 else weight
                reach -= 1
        return total / (abs(total) + DAMPING)


def is_cue(word: str) -> bool:
    """Return whether the word alone would make a text lean, or turn its leaning around."""
    return word.lower() in _MARKS


def content_words(text: str) -> list[str]:
    """Return the words of a text that carry its meaning, as they are written, in order and each once."""
    words = (token for token in _TOKENS.findall(text) if token not in _CLAUSE_ENDS)
    return list(dict.fromkeys(word for word in words if len(word) > 1 and word.lower() not in _LEXICON.fillers))


def _tokens(text: str) -> list[str]:
    return _TOKENS.findall(text.lower().replace("’", "'"))


def _content_words(phrase: str) -> list[str]:
    words = [token.strip("'").removesuffix("'s") for token in _tokens(phrase.replace("_", " "))]
    return list(
        dict.fromkeys(word for word in words if word and word not in _CLAUSE_ENDS and word not in _LEXICON.fillers)
    )


def _derive_forms(word: str) -> set[str]:
    """Return the word and how else it is likely to appear: garden, gardens, gardening, gardener's."""
    roots = {word}
    if len(word) > 3:
        shortened = (word.removesuffix(ending) for ending in ("ing", "ers", "er", "ed", "es", "s"))
        roots.update(root for root in shortened if len(root) >= 4)
        if word.endswith("ies") and len(word) > 5:
            roots.add(f"{word[:-3]}y")
    forms = {word, f"{word}'s"}
    for root in roots:
        forms |= _inflect(root) | {f"{root}er", f"{root}ers"}
    return forms


def _inflect(base: str) -> set[str]:
    if base.endswith("e"):
        return {base, f"{base}s", f"{base}d", f"{base[:-1]}ing"}
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return {base, f"{base[:-1]}ies", f"{base[:-1]}ied", f"{base}ing"}
    plural = "es" if base.endswith(("s", "x", "z", "ch", "sh")) else "s"
    return {base, base + plural, f"{base}ed", f"{base}ing"}


#: Cue words with their weights, and negators with 0.
_MARKS: dict[str, float] = {
    **{form: weight for weight, verbs in _LEXICON.verbs.items() for verb in verbs for form in _inflect(verb)},
    **{word: weight for weight, words in _LEXICON.words.items() for word in words},
    **dict.fromkeys(_LEXICON.negators, 0.0),
}
