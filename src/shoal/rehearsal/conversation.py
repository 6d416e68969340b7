"""Finds names, numbers and words in a conversation, for invented answers to take up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from shoal.seeds import Draws

#: Only the end of a long prompt is read, because it says what is going on.
_TAIL_CHARACTERS = 4000
_NAME = r"[A-ZÀ-ÞА-Я][\w'’-]+(?: [A-ZÀ-ÞА-Я][\w'’-]+)?"
_PERSON = re.compile(rf"(?<![\"“‘'«\w])({_NAME})(,|\s*(?::|\(|said|says|wrote|posted|replied))?")
_WORDS_BEFORE_NAME = frozenset("by from with to meet know follow near and @".split())
_MAX_WORD_BEFORE = 7
#: Capitalised words that are not names.
_NOT_NAMES = frozenset(
    "i you your he she it its they we my our this that these those there here what who why when where how which "
    "somebody someone everybody everyone nobody people reply thank announced announcement news now today yesterday "
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december".split()
)
_WORD = re.compile(r"\b[^\W\d_]{5,}\b")
_FIRST_NUMBER = re.compile(r"(?m)^\[(\d{1,12})\]")
_ANY_NUMBER = re.compile(r"(?:#|\[|\bid\W{1,3})(\d{1,12})\b")
#: Kinds of items that a list may number without naming them.
_UNLABELLED = ("post", "item", "id")
#: Words that no text is about.
_COMMON = frozenset(
    "about above action actions after again agent agents always answer because before being below between choose "
    "could doing every field following given hours likes minutes never nothing object other people please posts reply "
    "return round rules schema shall should since something still string their there these thing things think those "
    "through today under until users using value wants where which while whole whose world would write years your "
    "content message number follow comment comments person persona".split()
)
_MAX_CANDIDATES = 12
#: Characters at the end of a prompt that say what to do now.
_LAST_CHARACTERS = 120

_SENTENCES = (
    "I keep thinking about {a}.",
    "Has anybody here looked into {a}?",
    "{A} matters more than {b}, if you ask me.",
    "I am not sure that {a} is the whole story.",
    "What does {a} have to do with {b}?",
    "I heard the same about {a} last week.",
    "We should talk about {a} more often.",
    "Let us wait and see what becomes of {a}.",
    "{A}, again? I would rather hear about {b}.",
    "Somebody should explain {a} to the rest of us.",
    "I changed my mind about {a}.",
    "Good point about {a}, though {b} worries me.",
    "There is no {a} without {b}.",
    "I would not believe everything about {a}.",
    "Thank you for bringing up {a}.",
    "Who gains from {a}?",
)


@lru_cache(maxsize=256)
def _compile_beside(word: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(word.lower())}s?(?:[ _]?id)?\W{{0,4}}(\d{{1,12}})\b")


class ConversationContext:
    """One conversation. It is searched only for what an answer needs."""

    def __init__(self, text: str) -> None:
        self.tail = text[-_TAIL_CHARACTERS:]
        self._numbers: dict[str, Sequence[int]] = {}

    def asks_for(self, action: str) -> bool:
        """Return whether the last words name this action: `The scene is over: RATE it.`"""
        return f" {action} " in self.tail[-_LAST_CHARACTERS:]

    def draw_name(self, draws: Draws) -> str | None:
        """Return the first name after a random place in the text."""
        start = draws.below(len(self.tail) + 1)
        for at in (start, 0):
            # The second search reads everything, because names may come late.
            for found in islice(_PERSON.finditer(self.tail, at), _MAX_CANDIDATES if at else None):
                if self._is_name(found):
                    return found[1]
        return None

    def _is_name(self, found: re.Match[str]) -> bool:
        """Judge a capitalised word by what stands around it. Two capitalised words may also stand in a list."""
        first, *more = found[1].lower().split()
        if first in _NOT_NAMES or first in _COMMON:
            return False
        before = self.tail[max(0, found.start() - _MAX_WORD_BEFORE) : found.start()].split()
        if before and before[-1].istitle() and before[-1].isalpha():
            # The random place was in the middle of a name.
            return False
        if before and (before[-1] in _WORDS_BEFORE_NAME or before[-1][-1] == "]"):
            return True
        is_listed = found[2] == "," or (bool(before) and before[-1][-1] in ":,")
        return bool(more) if is_listed else bool(found[2])

    def draw_word(self, draws: Draws) -> str:
        """Return the first long word after a random place in the text, for an answer to be about."""
        start = draws.below(len(self.tail) + 1)
        for at in (start, 0):
            for found in islice(_WORD.finditer(self.tail, at), _MAX_CANDIDATES):
                if (word := found[0].lower()) not in _COMMON:
                    return word
        return "this"

    def find_numbers(self, of: str) -> Sequence[int]:
        """Return the numbers beside this word, such as 17 in `post_id: 17`, `post #17` or `[17]`."""
        if (known := self._numbers.get(of)) is None:
            patterns = (
                (_compile_beside(of), _FIRST_NUMBER, _ANY_NUMBER) if of in _UNLABELLED else (_compile_beside(of),)
            )
            text = self.tail.lower()
            found = next(filter(None, (pattern.findall(text) for pattern in patterns)), [])
            known = self._numbers[of] = tuple(dict.fromkeys(map(int, found)))
        return known

    def write_text(self, draws: Draws, characters: int) -> str:
        """Write sentences of about this length, about two words of the conversation."""
        a, b = self.draw_word(draws), self.draw_word(draws)
        words = {"a": a, "b": b if b != a else "everything else", "A": a.capitalize()}
        text = draws.choice(_SENTENCES).format_map(words)
        while len(text) < characters:
            text = f"{text} {draws.choice(_SENTENCES).format_map(words)}"
        return text
