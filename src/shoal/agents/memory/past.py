"""The past of one agent: a bounded number of episodes, the window of recent ones, and an index of their words."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from shoal.agents.settings import MemorySettings
from shoal.models import estimate, shorten

#: The three parts of what a prompt says of the past.
LEARNED = "What you have learned:\n"
LATELY = "What happened to you lately:\n"
REMINDED = "From longer ago, as far as it comes to mind:\n"
LEARNED_TOKENS, LATELY_TOKENS, REMINDED_TOKENS = map(estimate, (LEARNED, LATELY, REMINDED))

#: How much of a cue is read, and how many of its words are looked for, the rarest first.
MAX_CUE_CHARS = 700
MAX_CUE_TERMS = 24
#: From a few episodes on, a word that more than this share of them contain tells nothing.
COMMON_SHARE = 0.5
FEW_EPISODES = 8
#: An episode this many rounds old counts half as much as one of now.
HALF_LIFE_ROUNDS = 100
#: The score of an episode that has nothing to do with the cue: it is taken where nothing better is, the latest first.
LEAST_SCORE = 0.001
#: How much of an episode's length counts against it, 0 to 1, as long ones mention words by chance.
LENGTH_SHARE = 0.4
#: How many of the most relevant episodes are tried for whether they fit.
MAX_TRIED = 50
#: Scores differ in their last digits between machines, which must not decide.
SCORE_DIGITS = 5

#: Scripts without spaces between words, and hangul, whose words end in particles: indexed as pairs of characters.
_PAIRED = r"\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORDS = re.compile(rf"[{_PAIRED}]+|[^\W_{_PAIRED}]+")
#: The same for texts without such scripts, and for ASCII alone, each in half the time.
_SPACED_WORDS = re.compile(r"[^\W_]+")
_ASCII_WORDS = re.compile(r"[a-z0-9]+")
_FIRST_PAIRED = re.compile(rf"[{_PAIRED}]")
_SHORTEST_PLURAL = 4
#: Words too common to tell anything. Those of other languages are found by how many episodes they are in.
_FILLERS = frozenset(
    """a an the and or but if of to in on at by for from with about into over after before as is are was were be been
    being am do does did done has have had having will would shall should can could may might must it its this that
    these those there here he she they them we us you i me my our your his her their who whom whose which what when
    where why how than then so such not no nor only too very just up down out off again more most some any all each
    both few other s t re ve ll d m
    der die das und ist nicht ein eine ich sie wir mit auf von zu den dem des es im für
    le la les un une et est pas que qui je il elle nous vous dans pour sur du
    el los las una y es no que en por con para se su""".split()
)

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Episode:
    """One turn as a line of text."""

    round: int
    line: str
    #: Where in the line the text begins, after the time.
    start: int
    importance: float
    tokens: int

    @classmethod
    def of_turn(cls, round: int, time: str, text: str, importance: float, max_tokens: int) -> Episode:
        """Write the line of a turn, cut at `max_tokens`, with the simulated time to the minute."""
        before = f"- {time[:16].replace('T', ' ')} " if time else "- "
        line = shorten(before + text, max_tokens - 1) + "\n"
        return cls(round, line, len(before), importance, estimate(line))

    def terms(self) -> list[str]:
        return extract_terms(self.line[self.start :])


class Past:
    """The episodes of one agent, numbered from 0 in the order of its turns. A number is never used twice."""

    def __init__(self) -> None:
        self._episodes: list[Episode] = []
        self._tokens = 0
        #: Columns of the episodes, to score all at once: round, tokens, importance.
        self._rounds, self._lengths, self._importance = array("d"), array("d"), array("d")
        #: Word -> numbers of the episodes that contain it.
        self._postings: dict[str, array[int]] = {}
        #: The number of the first episode that is not in the index. It is needed only where not all fit into a prompt.
        self._unindexed = 0
        #: Embeddings of consecutive episodes: the number of the first, and a row for each.
        self._vectors: list[tuple[int, NDArray[np.float32]]] = []
        #: The numbers of the oldest episode that is kept, of the first recent one, and of the next.
        self.first = 0
        self.recent_from = 0
        self.next = 0
        self.recent_tokens = 0
        self.insights: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self._episodes)

    def episodes(self, start: int, stop: int) -> list[Episode]:
        """Return the episodes from `start` up to `stop`, as far as they are still kept."""
        return self._episodes[max(start - self.first, 0) : max(stop - self.first, 0)]

    def recent(self) -> list[Episode]:
        return self._episodes[self.recent_from - self.first :]

    @property
    def has_older(self) -> bool:
        return self.recent_from > self.first

    def find_older(self, tokens: int) -> list[Episode] | None:
        """Return the episodes before the recent ones; None where they take more tokens, or some must be chosen."""
        older = self.recent_from - self.first
        fits = older <= MAX_TRIED and self._tokens - self.recent_tokens <= tokens
        return self._episodes[:older] if fits else None

    @property
    def usual_tokens(self) -> float:
        """The mean number of tokens of an episode."""
        return self._tokens / len(self._episodes) if self._episodes else 0.0

    def token_budget(self, settings: MemorySettings) -> int:
        """Return the tokens for all that a prompt says of the past.

        They are enough for some episodes of usual length, and never more than the budgets together.
        """
        headings = LEARNED_TOKENS + LATELY_TOKENS + REMINDED_TOKENS
        return min(settings.total_tokens, ceil(settings.episodes_shown * self.usual_tokens) + headings)

    def add(self, episode: Episode, settings: MemorySettings) -> None:
        self._episodes.append(episode)
        self._tokens += episode.tokens
        self._rounds.append(episode.round)
        self._lengths.append(episode.tokens)
        self._importance.append(episode.importance)
        self.next += 1
        self.recent_tokens += episode.tokens
        while len(self._episodes) > settings.episodes_kept:
            self._forget_oldest()
        most = recent_tokens(settings, self.token_budget(settings))
        if self.recent_tokens > most:
            # Emptied by half: a window that moved at every turn would change the start of every prompt.
            for old in self.recent()[:-1]:
                if self.recent_tokens <= most // 2:
                    break
                self.recent_tokens -= old.tokens
                self.recent_from += 1

    def add_vectors(self, first: int, vectors: NDArray[np.float32]) -> None:
        """Keep the embeddings of episodes from this number on."""
        self._vectors.append((first, vectors))

    def _forget_oldest(self) -> None:
        oldest = self._episodes.pop(0)
        self._tokens -= oldest.tokens
        for column in (self._rounds, self._lengths, self._importance):
            del column[0]
        for term in oldest.terms() if self.first < self._unindexed else ():
            posting = self._postings[term]
            del posting[0]
            if not posting:
                del self._postings[term]
        if self.recent_from == self.first:
            self.recent_from += 1
            self.recent_tokens -= oldest.tokens
        self.first += 1
        self._unindexed = max(self._unindexed, self.first)
        self._vectors = [(n, vectors) for n, vectors in self._vectors if n + len(vectors) > self.first]

    def score_by_words(self, cue: str) -> Scores:
        """Score each episode by the words it has in common with the cue; rare words count more."""
        for number, episode in enumerate(self.episodes(self._unindexed, self.next), self._unindexed):
            for term in episode.terms():
                posting = self._postings.get(term)
                if posting is None:
                    posting = self._postings[term] = array("q")
                posting.append(number)
        self._unindexed = self.next
        count = len(self._episodes)
        common = max(COMMON_SHARE * count, FEW_EPISODES)
        postings = (self._postings.get(term) for term in extract_terms(cue[:MAX_CUE_CHARS]))
        found = sorted((posting for posting in postings if posting and len(posting) <= common), key=len)
        found = found[:MAX_CUE_TERMS]
        if not found:
            return np.zeros(count)
        rarity = [log(1 + (count - len(posting) + 0.5) / (len(posting) + 0.5)) for posting in found]
        places = np.frombuffer(b"".join(found), np.int64) - self.first
        shared = np.bincount(places, np.array(rarity).repeat([len(posting) for posting in found]), count)
        lengths = np.frombuffer(self._lengths) * (LENGTH_SHARE / self.usual_tokens)
        return np.divide(shared, lengths + (1 - LENGTH_SHARE))

    def score_by_vector(self, cue: NDArray[np.float32]) -> Scores:
        """Score each episode by the similarity of its embedding to that of the cue; 0 where it has none."""
        scores = np.zeros(len(self._episodes))
        for first, vectors in self._vectors:
            if vectors.shape[1] == len(cue):
                gone = max(self.first - first, 0)
                start = first + gone - self.first
                scores[start : start + len(vectors) - gone] = vectors[gone:] @ cue
        return scores

    def select(self, scores: Scores, now: int, tokens: int) -> list[Episode]:
        """Return the most relevant of the older episodes that fit, oldest first.

        Old episodes count less and important ones more; of equals the latest is taken.
        """
        older = self.recent_from - self.first
        if not older or tokens <= 0:
            return []
        ages = now - np.frombuffer(self._rounds)[:older]
        scores = np.maximum(scores[:older], LEAST_SCORE) * np.frombuffer(self._importance)[:older]
        weighed = (scores / (1 + ages / HALF_LIFE_ROUNDS)).round(SCORE_DIGITS)[::-1]
        order = older - 1 - (-weighed).argsort(kind="stable")
        taken = []
        for place in order[:MAX_TRIED].tolist():
            needed = self._episodes[place].tokens
            if needed <= tokens:
                tokens -= needed
                taken.append(place)
        return [self._episodes[place] for place in sorted(taken)]


def recent_tokens(settings: MemorySettings, allowed: int) -> int:
    """Return how many of the allowed tokens are for the lines about recent turns."""
    return allowed * settings.recent_tokens // settings.total_tokens - LATELY_TOKENS


def extract_terms(text: str) -> list[str]:
    """Return the words of a text that are worth looking for, in any language, each once."""
    words = dict.fromkeys(_ASCII_WORDS.findall(text.lower()) if text.isascii() else _words(text.casefold()))
    singular = {
        word[:-1] if word[-1] == "s" and len(word) > _SHORTEST_PLURAL and word[-2] != "s" else word: None
        for word in words
        if word not in _FILLERS
    }
    return list(singular)


def _words(text: str) -> Iterator[str]:
    if not _FIRST_PAIRED.search(text):
        yield from _SPACED_WORDS.findall(text)
        return
    for word in _WORDS.findall(text):
        if len(word) == 1 or not _FIRST_PAIRED.match(word):
            yield word
        else:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
