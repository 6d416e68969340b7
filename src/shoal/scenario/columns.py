"""Columns of a population: text kept as numbers into a vocabulary, and traits of either kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


class Labels(Sequence[str | None]):
    """One text per person out of few different ones; None where there is none."""

    __slots__ = ("_numbers", "codes", "words")

    def __init__(self, people: int) -> None:
        #: Index into `words` for each person, -1 where there is none.
        self.codes: NDArray[np.int32] = np.full(people, -1, dtype=np.int32)
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, word: str) -> int:
        """The number of a word, which is added if it is new."""
        number = self._numbers.setdefault(word, len(self.words))
        if number == len(self.words):
            self.words.append(word)
        return number

    def put(self, where: slice, words: Sequence[str], picks: NDArray[np.integer]) -> None:
        """People in the slice get the words that the picks point to."""
        self.codes[where] = np.array([self.number(word) for word in words], dtype=np.int32)[picks]

    def put_each(self, where: slice, words: Sequence[str | None]) -> None:
        """Each person in the slice gets the word at their place."""
        self.codes[where] = [-1 if word is None else self.number(word) for word in words]

    def put_one(self, person: int, word: str | None) -> None:
        if word is not None:
            self.codes[person] = self.number(word)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, person: int) -> str | None:  # type: ignore[override]  # one person at a time, no slices
        code = int(self.codes[person])
        return None if code < 0 else self.words[code]

    def __iter__(self) -> Iterator[str | None]:
        words = [*self.words, None]
        return (words[code] for code in self.codes.tolist())


#: Numbers (NaN where somebody has none) or texts.
Column = NDArray[np.float64] | Labels


def trait_of(column: Column, person: int) -> float | str | None:
    if isinstance(column, Labels):
        return column[person]
    value = float(column[person])
    return None if np.isnan(value) else value
