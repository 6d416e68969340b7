"""Metrics of what people write and say: sentiment, topic, diversity, repetition, length."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shoal.experiments.metrics.base import COUNT, SHARE, SIGNED_SHARE, Measured, Metric
from shoal.experiments.metrics.record import WorldRecord, take_every

#: The most texts that are read for their sentiment and topic: all, or every second, every third, and so on.
MAX_READ = 50_000
#: Word pairs are counted in this many texts, the first ones: their share falls with the length of what is read.
MAX_PAIRED = 1_000
_NEEDS = "nobody wrote or said anything"


def _average(record: WorldRecord, round: int, name: str, value_of: Callable[[str], float | None]) -> float | None:
    """Return the mean of what is read in the texts up to a round. Each is read once."""

    def read() -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        rounds, values = array("i"), array("d")
        for at, _, text in take_every(record.texts(), MAX_READ, len(record.spoken.rounds)):
            if (value := value_of(text)) is not None:
                rounds.append(at)
                values.append(value)
        return np.array(rounds, np.int32), np.array(values, np.float64)

    rounds, values = record.keep(name, read)
    up_to_then = values[: np.searchsorted(rounds, round, side="right")]
    return float(up_to_then.mean()) if len(up_to_then) else None


def find_sentiment(record: WorldRecord, round: int) -> Measured:
    """Σ s(text) / m, where s = w / (|w| + 1) and w is what is good less what is bad in the words of a text, -1 to 1.
    The words of the topic count as neither. Texts in another language than English, and what sounds sarcastic, are
    left out."""
    reader = record.reader
    return _average(record, round, "sentiment", lambda text: None if reader.is_unreadable(text) else reader.slant(text))


def find_on_topic(record: WorldRecord, round: int) -> Measured:
    """Texts that speak of the topic, over all texts."""
    if record.topic is None:
        return None
    return _average(record, round, "on_topic", lambda text: float(record.reader.is_on_topic(text)))


def find_repetition(record: WorldRecord, round: int) -> Measured:
    """1 - u / m: the share of the m texts that were written or said before in the same words; u texts are
    different."""
    marks = record.spoken.until(round).marks
    return 1 - len(np.unique(marks)) / len(marks) if len(marks) else None


def find_diversity(record: WorldRecord, round: int) -> Measured:
    """Different pairs of neighbouring words over all pairs, in the first 1,000 texts (distinct-2, Li and others 2016):
    1 where no pair of words is used twice."""
    different, total = set(), 0
    for number, (at, _, text) in enumerate(record.texts()):
        if at > round or number >= MAX_PAIRED:
            break
        pairs = [*pairwise(text.lower().split())]
        different.update(pairs)
        total += len(pairs)
    return len(different) / total if total else None


def find_length(record: WorldRecord, round: int) -> Measured:
    """The mean number of words of a text."""
    words = record.spoken.until(round).words
    return float(words.mean()) if len(words) else None


METRICS = (
    Metric("sentiment", find_sentiment, needs="there is no English text", bounds=SIGNED_SHARE),
    Metric("on_topic", find_on_topic, needs="there is no text, or the scenario has no topic", bounds=SHARE),
    Metric("repetition", find_repetition, needs=_NEEDS, bounds=SHARE),
    Metric("diversity", find_diversity, needs=_NEEDS, bounds=SHARE),
    Metric("text_length", find_length, needs=_NEEDS, bounds=COUNT),
)
