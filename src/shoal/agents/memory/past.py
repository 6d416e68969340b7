"""The past of one agent: a bounded number of episodes, the window of recent ones, and where words occur in it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from shoal.agents.memory.budget import allowance, for_recent
from shoal.agents.memory.settings import MemorySettings
from shoal.agents.memory.terms import terms
from shoal.models.tokens import estimate, shorten

#: How much of a cue is read, and how many of its words are looked for: the rarest tell most.
CUE_CHARACTERS = 700
CUE_TERMS = 24
#: A word that more than this share of the episodes have in common tells nothing, once there are a few.
COMMON_SHARE = 0.5
FEW_EPISODES = 8
#: An episode this many rounds old counts half as much as one of now.
HALF_LIFE_ROUNDS = 100
#: What an episode scores that has nothing to do with the cue: it is taken where nothing better is, the latest first.
LEAST_SCORE = 0.001
#: How much a long episode is held to mention words by chance, 0 to 1.
LENGTH_SHARE = 0.4
#: Of the most relevant, how many are tried for whether they fit.
MAX_TRIED = 50
#: Scores differ in their last digits between machines, and must not decide there.
SCORE_DIGITS = 5

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Episode:
    """One turn, in words."""

    round: int
    line: str
    #: Where in the line the words begin, after the time.
    start: int
    importance: float
    tokens: int

    @classmethod
    def told(cls, round: int, time: str, text: str, importance: float, longest: int) -> Episode:
        """In words, cut where it would take more tokens than that."""
        before = f"- {_moment(time)}"
        line = shorten(before + text, longest - 1) + "\n"
        return cls(round, line, len(before), importance, estimate(line))

    def terms(self) -> list[str]:
        return terms(self.line[self.start :])


class Past:
    """Episodes are numbered from 0 in the order in which they were lived; a number is never used twice."""

    def __init__(self) -> None:
        self._episodes: list[Episode] = []
        self._tokens = 0
        #: Per episode, for scoring them all at once: its round, its tokens, how much it mattered.
        self._rounds, self._lengths, self._importance = array("d"), array("d"), array("d")
        #: Word -> numbers of the episodes it is in.
        self._postings: dict[str, array[int]] = {}
        #: What episodes are about, in blocks of those that follow one another: number of the first, a row for each.
        self._vectors: list[tuple[int, NDArray[np.float32]]] = []
        #: Number of the oldest episode that is kept, of the first that is recent, and of the next to come.
        self.first = 0
        self.recent_from = 0
        self.next = 0
        self.recent_tokens = 0
        self.insights: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self._episodes)

    def episodes(self, start: int, stop: int) -> list[Episode]:
        """Those of these numbers that are still kept."""
        return self._episodes[max(start - self.first, 0) : max(stop - self.first, 0)]

    def recent(self) -> list[Episode]:
        return self._episodes[self.recent_from - self.first :]

    @property
    def has_older(self) -> bool:
        return self.recent_from > self.first

    @property
    def usual_tokens(self) -> float:
        """Tokens of an episode, on average."""
        return self._tokens / len(self._episodes) if self._episodes else 0.0

    def add(self, episode: Episode, settings: MemorySettings) -> None:
        self._episodes.append(episode)
        self._tokens += episode.tokens
        self._rounds.append(episode.round)
        self._lengths.append(episode.tokens)
        self._importance.append(episode.importance)
        for term in episode.terms():
            posting = self._postings.get(term)
            if posting is None:
                posting = self._postings[term] = array("q")
            posting.append(self.next)
        self.next += 1
        self.recent_tokens += episode.tokens
        while len(self._episodes) > settings.episodes_kept:
            self._forget_oldest()
        self._move_window(for_recent(settings, allowance(settings, self.usual_tokens)))

    def add_vectors(self, first: int, vectors: NDArray[np.float32]) -> None:
        """What episodes are about, from this number on."""
        self._vectors.append((first, vectors))

    def _forget_oldest(self) -> None:
        oldest = self._episodes.pop(0)
        self._tokens -= oldest.tokens
        for column in (self._rounds, self._lengths, self._importance):
            del column[0]
        for term in oldest.terms():
            posting = self._postings[term]
            del posting[0]
            if not posting:
                del self._postings[term]
        if self.recent_from == self.first:
            self.recent_from += 1
            self.recent_tokens -= oldest.tokens
        self.first += 1
        self._vectors = [(n, vectors) for n, vectors in self._vectors if n + len(vectors) > self.first]

    def _move_window(self, most: int) -> None:
        """Once full it is emptied by half: a window that moved at every turn would change the start of every prompt."""
        if self.recent_tokens <= most:
            return
        for episode in self.recent()[:-1]:
            if self.recent_tokens <= most // 2:
                return
            self.recent_tokens -= episode.tokens
            self.recent_from += 1

    def like_words(self, cue: str) -> Scores:
        """How much each episode has in common with the cue, rare words counting more."""
        found, count = self._rarest(cue), len(self._episodes)
        if not found:
            return np.zeros(count)
        rarity = [log(1 + (count - len(posting) + 0.5) / (len(posting) + 0.5)) for posting in found]
        places = np.frombuffer(b"".join(found), np.int64) - self.first
        shared = np.bincount(places, np.array(rarity).repeat([len(posting) for posting in found]), count)
        lengths = np.frombuffer(self._lengths) * (LENGTH_SHARE / self.usual_tokens)
        return np.divide(shared, lengths + (1 - LENGTH_SHARE))

    def like_vector(self, cue: NDArray[np.float32]) -> Scores:
        """How much each episode is about what the cue is about; 0 where that is not known."""
        scores = np.zeros(len(self._episodes))
        for first, vectors in self._vectors:
            if vectors.shape[1] == len(cue):
                gone = max(self.first - first, 0)
                start = first + gone - self.first
                scores[start : start + len(vectors) - gone] = vectors[gone:] @ cue
        return scores

    def _rarest(self, cue: str) -> list[array[int]]:
        postings = self._postings
        common = max(COMMON_SHARE * len(self._episodes), FEW_EPISODES)
        found = [
            posting
            for term in terms(cue[:CUE_CHARACTERS])
            if (posting := postings.get(term)) and len(posting) <= common
        ]
        found.sort(key=len)
        return found[:CUE_TERMS]

    def best(self, scores: Scores, now: int, tokens: int) -> list[Episode]:
        """Of the older episodes the most relevant that fit, oldest first.

        Counted in is how long ago they were and how much they mattered; of equals the latest is taken.
        """
        older = self.recent_from - self.first
        if not older or tokens <= 0:
            return []
        ages = now - np.frombuffer(self._rounds)[:older]
        scores = np.maximum(scores[:older], LEAST_SCORE) * np.frombuffer(self._importance)[:older]
        weighed = (scores / (1 + ages / HALF_LIFE_ROUNDS)).round(SCORE_DIGITS)[::-1]
        order = older - 1 - (-weighed).argsort(kind="stable")
        return self._fitting(order[:MAX_TRIED].tolist(), tokens)

    def _fitting(self, places: Iterable[int], tokens: int) -> list[Episode]:
        taken = []
        for place in places:
            needed = self._episodes[place].tokens
            if needed <= tokens:
                tokens -= needed
                taken.append(place)
        return [self._episodes[place] for place in sorted(taken)]


def _moment(time: str) -> str:
    """Simulated time to the minute, as people write it."""
    return f"{time[:16].replace('T', ' ')} " if time else ""
