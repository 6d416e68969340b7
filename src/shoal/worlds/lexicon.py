"""Reads from the words of a short text what it is about, and which way it leans.

Both readings are pure functions of the text, so that the platform and the heuristic mind agree about every post.
They know English: a text in another language is about nothing and leans nowhere.
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
        for index, phrase in enumerate(self.vocabulary):
            words = _content_words(phrase)
            # People shorten what everyone talks about: half of the subject's words, two at most, are enough.
            self._needed.append(min((len(words) + 1) // 2, 2) if index == self.subject else len(words))
            for place, word in enumerate(words):
                for form in _derive_forms(word):
                    self._forms.setdefault(form, []).append((index, 1 << place))
        phrases = [_plain(phrase) for phrase in self.vocabulary]
        leaning = {phrase.lower().strip(" .!?") for phrase in phrases if not _MARKS.keys().isdisjoint(_tokens(phrase))}
        self._neutral = tuple(sorted(leaning, key=len, reverse=True))
        self._topics: dict[str, tuple[int, ...]] = {}
        self._slants: dict[str, float] = {}

    @property
    def subject_name(self) -> str | None:
        return None if self.subject is None else self.vocabulary[self.subject]

    def topics(self, text: str) -> tuple[int, ...]:
        """Return at most two indices into the vocabulary in order of appearance, and the subject's if it is named."""
        found = self._topics.get(text)
        if found is None:
            found = self._find_topics(text)
            _remember(self._topics, text, found)
        return found

    def is_on_topic(self, text: str) -> bool:
        """Return whether the text speaks of the subject. Every count of posts on the scenario's topic uses this.

        A subject in a script without spaces between words is one token, so it is also looked for inside longer ones.
        """
        phrase = self.subject_name
        if phrase is None:
            return False
        return self.subject in self.topics(text) or (not phrase.isascii() and phrase.casefold() in text.casefold())

    def slant(self, text: str) -> float:
        """Return -1 (doubt, denial, anger) to 1 (belief, approval, trust); 0 when nothing shows."""
        slant = self._slants.get(text)
        if slant is None:
            read = text
            if self._neutral:
                # A scenario about "the vaccine hoax" must not make everyone who names it a denier.
                read = text.lower()
                for phrase in self._neutral:
                    read = read.replace(phrase, "it")
            total = _weigh(_tokens(read))
            slant = total / (abs(total) + DAMPING)
            _remember(self._slants, text, slant)
        return slant

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


def is_cue(word: str) -> bool:
    """Return whether the word alone would make a text lean, or turn its leaning around."""
    return word.lower() in _MARKS


def content_words(text: str) -> list[str]:
    """Return the words of a text that carry its meaning, as they are written, in order and each once."""
    words = (token for token in _TOKENS.findall(text) if token not in _CLAUSE_ENDS)
    return list(dict.fromkeys(word for word in words if len(word) > 1 and word.lower() not in _FILLERS))


def _plain(phrase: str) -> str:
    return phrase.replace("_", " ")


def _tokens(text: str) -> list[str]:
    return _TOKENS.findall(text.lower().replace("’", "'"))


def _content_words(phrase: str) -> list[str]:
    words = [token.strip("'").removesuffix("'s") for token in _tokens(_plain(phrase))]
    return list(dict.fromkeys(word for word in words if word and word not in _CLAUSE_ENDS and word not in _FILLERS))


def _weigh(tokens: Sequence[str]) -> float:
    """Add up the weights of cues; a negation turns the cues after it around."""
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


def _remember(memory: dict[str, T], text: str, reading: T) -> None:
    if len(memory) >= MEMORY_TEXTS:
        memory.clear()
    memory[text] = reading


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
    **{form: weight for weight, verbs in _VERBS.items() for verb in verbs.split() for form in _inflect(verb)},
    **{word: weight for weight, words in _WORDS.items() for word in words.split()},
    **dict.fromkeys(_NEGATORS, 0.0),
}
