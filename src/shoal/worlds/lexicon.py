"""What a short text is about and which way it leans, read from its words alone.

Both readings are pure functions of the text, so that the platform and the heuristic mind agree about every post.
They know English: any other text is about nothing and leans nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

#: Texts remembered per reading before the memory is emptied.
MEMORY_TEXTS = 250_000
#: Topics a text can be about, besides the subject.
MAX_TOPICS = 2
#: A negation turns around cues among this many words after it, unless the clause ends before.
NEGATION_REACH = 3
#: One plain cue gives 1 / (1 + this) of the full slant.
DAMPING = 1.2

_TOKENS = re.compile(r"[\w']+|[.!?;:,]")
_CLAUSE_ENDS = frozenset(".!?;:,")

#: Weight -> verbs, given in their base form; the other forms are derived.
_VERBS = {
    2.0: "trust love admire applaud celebrate adore endorse champion",
    1.0: """believe support approve agree hope welcome praise appreciate enjoy respect thank recommend defend cheer
        embrace favour favor vouch confirm prove verify improve deserve succeed inspire encourage reassure
        convince heal unite""",
    -2.0: "hate despise condemn lie deceive betray boycott detest loathe mislead",
    -1.0: """doubt deny reject oppose dismiss distrust mistrust criticise criticize blame complain refuse resent
        fear worry dislike disagree disapprove debunk refute contradict exaggerate manipulate pretend
        fail harm hurt ruin scare threaten regret protest denounce ridicule mock fabricate distort""",
}
#: Weight -> words that have one form.
_WORDS = {
    2.0: "excellent wonderful brilliant fantastic trustworthy amazing proven undeniable superb thrilled",
    1.0: """good great true honest hopeful hope glad proud happy grateful thankful credible reliable convincing
        convinced plausible reasonable sensible fair promising positive optimistic confident encouraging
        welcome genuine solid accurate correct helpful useful valuable worthwhile progress truth trusted truly
        beautiful nice best better yes supportive supporter supporters believer believers sincere wise safe
        delighted pleased lovely""",
    -2.0: """fake hoax lie lies liar liars disgusting outrageous shameful absurd nonsense bullshit garbage scam fraud
        terrible horrible disgrace furious rubbish awful appalling""",
    -1.0: """false wrong bad untrue dubious doubtful doubt doubts suspicious sceptical skeptical unconvinced
        implausible unlikely misleading baseless unfounded unproven dishonest angry anger afraid worried worrying
        sad upset disappointed disappointing ridiculous stupid silly dangerous unfair unacceptable useless harmful
        worse worst problem problematic shaky flimsy propaganda lied lying against exaggerated
        overblown failure fails mistake denial rejection sceptic sceptics skeptic skeptics harm hollow
        careless reckless annoyed nervous alarming alarmed unreliable sloppy""",
}
_NEGATORS = frozenset(
    """not no never none nobody nothing neither nor cannot without hardly barely dont doesnt didnt cant wont isnt arent
    wasnt werent wouldnt shouldnt couldnt aint don't doesn't didn't can't won't isn't aren't wasn't weren't wouldn't
    shouldn't couldn't ain't haven't hasn't hadn't""".split()
)
_FILLERS = frozenset(
    """a an the and or but if of to in on at by for from with about into over after before under between against as is
    are was were be been being am do does did done has have had having will would shall should can could may might must
    it its this that these those there here he she they them we us you i me my our your his her their who whom whose
    which what when where why how than then so such not no nor only own same too very just up down out off again more
    most some any all each both few other new says say said""".split()
)


class TextReader:
    """Reads texts in terms of one scenario: its topics, and the subject that opinions are about."""

    def __init__(self, topics: Sequence[str], subject: str | None) -> None:
        #: What the indices of `topics` stand for: the topics, and the subject after them unless it is one of them.
        self.vocabulary, self.subject = _vocabulary(topics, subject)
        self._forms: dict[str, list[tuple[int, int]]] = {}
        self._needed: list[int] = []
        for index, phrase in enumerate(self.vocabulary):
            self._learn(index, _content_words(phrase))
        self._neutral = tuple(sorted({_plain(p) for p in self.vocabulary if _has_marks(p)}, key=len, reverse=True))
        self._topics: dict[str, tuple[int, ...]] = {}
        self._slants: dict[str, float] = {}

    @property
    def subject_name(self) -> str | None:
        return None if self.subject is None else self.vocabulary[self.subject]

    def topics(self, text: str) -> tuple[int, ...]:
        """At most two indices into the vocabulary in order of appearance, and the subject's if it is spoken of."""
        found = self._topics.get(text)
        if found is None:
            found = self._find_topics(text)
            _remember(self._topics, text, found)
        return found

    def is_on_topic(self, text: str) -> bool:
        """Return whether the text speaks of the subject. Every count of posts on the scenario's topic uses this.

        A subject in a script without spaces between words is one token, so it is also looked for inside longer ones.
        """
        if self.subject is None:
            return False
        phrase = self.vocabulary[self.subject]
        return self.subject in self.topics(text) or (not phrase.isascii() and phrase.casefold() in text.casefold())

    def slant(self, text: str) -> float:
        """From -1 (doubt, denial, anger) to 1 (belief, approval, trust); 0 when nothing shows."""
        slant = self._slants.get(text)
        if slant is None:
            slant = self._find_slant(text)
            _remember(self._slants, text, slant)
        return slant

    def _learn(self, index: int, words: Sequence[str]) -> None:
        needed = len(words)
        if index == self.subject:
            # People shorten what everybody talks about; half of its words, two at most, are enough.
            needed = min((needed + 1) // 2, 2)
        self._needed.append(needed)
        for place, word in enumerate(words):
            for form in _forms(word):
                self._forms.setdefault(form, []).append((index, 1 << place))

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
        total = _weigh(_tokens(text))
        return total / (abs(total) + DAMPING)


def is_cue(word: str) -> bool:
    """Whether the word alone would make a text lean, or turn its leaning around."""
    return word.lower() in _MARKS


def content_words(text: str) -> list[str]:
    """The words of a text that carry its meaning, as they are written, in order and each once."""
    words = (token for token in _TOKENS.findall(text) if token not in _CLAUSE_ENDS)
    return list(dict.fromkeys(word for word in words if len(word) > 1 and word.lower() not in _FILLERS))


def _vocabulary(topics: Sequence[str], subject: str | None) -> tuple[tuple[str, ...], int | None]:
    vocabulary = tuple(topics)
    if subject is None or not _content_words(subject):
        return vocabulary, None
    known = [topic.casefold() for topic in vocabulary]
    if subject.casefold() in known:
        return vocabulary, known.index(subject.casefold())
    return (*vocabulary, subject), len(vocabulary)


def _tokens(text: str) -> list[str]:
    return _TOKENS.findall(text.lower().replace("’", "'"))


def _content_words(phrase: str) -> list[str]:
    words = [token.strip("'").removesuffix("'s") for token in _tokens(phrase.replace("_", " "))]
    return list(dict.fromkeys(word for word in words if word and word not in _CLAUSE_ENDS and word not in _FILLERS))


def _weigh(tokens: Sequence[str]) -> float:
    marks = _MARKS
    if marks.keys().isdisjoint(tokens):
        return 0.0
    total = 0.0
    reach = 0
    for token in tokens:
        weight = marks.get(token)
        if weight is None:
            reach = 0 if token in _CLAUSE_ENDS else reach - 1
        elif weight == 0.0:
            reach = NEGATION_REACH
        else:
            total += -weight if reach > 0 else weight
            reach -= 1
    return total


def _has_marks(phrase: str) -> bool:
    return not _MARKS.keys().isdisjoint(_tokens(phrase.replace("_", " ")))


def _plain(phrase: str) -> str:
    return phrase.lower().replace("_", " ").strip(" .!?")


def _remember(memory: dict[str, T], text: str, reading: T) -> None:
    if len(memory) >= MEMORY_TEXTS:
        memory.clear()
    memory[text] = reading


def _forms(word: str) -> set[str]:
    """The word and how else it is likely to appear: garden, gardens, gardening, gardener's."""
    forms = {word, f"{word}'s"}
    for root in _roots(word):
        forms |= _inflections(root) | {f"{root}er", f"{root}ers"}
    return forms


def _roots(word: str) -> set[str]:
    roots = {word}
    for ending in ("ing", "ers", "er", "ed", "es", "s"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 4:
            roots.add(root)
    if word.endswith("ies") and len(word) > 5:
        roots.add(f"{word[:-3]}y")
    return roots if len(word) > 3 else {word}


def _inflections(base: str) -> set[str]:
    if base.endswith("e"):
        return {base, f"{base}s", f"{base}d", f"{base[:-1]}ing"}
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return {base, f"{base[:-1]}ies", f"{base[:-1]}ied", f"{base}ing"}
    plural = "es" if base.endswith(("s", "x", "z", "ch", "sh")) else "s"
    return {base, base + plural, f"{base}ed", f"{base}ing"}


def _marks() -> dict[str, float]:
    """Cue words with their weights, and negators with 0."""
    marks: dict[str, float] = {}
    for weight, verbs in _VERBS.items():
        marks.update((form, weight) for verb in verbs.split() for form in _inflections(verb))
    for weight, words in _WORDS.items():
        marks.update((word, weight) for word in words.split())
    marks.update(dict.fromkeys(_NEGATORS, 0.0))
    return marks


_MARKS = _marks()
