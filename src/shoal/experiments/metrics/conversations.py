"""Metrics of what people do: how unequally, how often they are answered, and how balanced conversations are."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from shoal.experiments.metrics.base import COUNT, SHARE, Measured, Metric
from shoal.experiments.metrics.formulas import measure_balance
from shoal.experiments.metrics.record import DIALOGUE, PLATFORM, ROOM, WorldRecord
from shoal.worlds import measure_inequality

_AGREEMENTS = "SELECT agreement FROM scene WHERE agreement IS NOT NULL AND ended_round <= ?"
_SCORES = "SELECT score FROM score WHERE score IS NOT NULL AND round <= ?"


def find_activity_inequality(record: WorldRecord, round: int) -> Measured:
    """Gini coefficient Σ (2i - n - 1) aᵢ / (n Σ aᵢ) of the actions of each person up to then, sorted, but for looking
    on: 0 where all did as much, near 1 where one did everything."""
    done = record.count_acts(round)
    return measure_inequality(done) if done.any() else None


def find_participation(record: WorldRecord, round: int) -> Measured:
    """|{i: aᵢ > 0}| / n: the share of people who did anything but look on."""
    return float((record.count_acts(round) > 0).mean()) if record.people else None


def count_actions(record: WorldRecord, round: int) -> Measured:
    """How often each kind of action was done up to then, such as `actions(LIKE_POST)`."""
    counts: Counter[str] = Counter()
    for at, kind, count in record.action_counts:
        if at <= round:
            counts[kind] += count
    return dict(counts)


def find_response_rate(record: WorldRecord, round: int) -> Measured:
    """Texts that were answered over texts that could be. A post is answered by a like, dislike, comment, repost or
    quote of another person; a remark to a person by a later remark of theirs to the speaker."""
    made, answered = (int(np.searchsorted(rounds, round, side="right")) for rounds in record.answers)
    return answered / made if made else None


def find_balance(record: WorldRecord, round: int) -> Measured:
    """-Σ pᵢ ln pᵢ / ln n, where pᵢ is the share of turns of one of the n people of a conversation: 1 where all speak as
    often, 0 where one speaks alone. In a world of dialogues it is the mean over the conversations."""
    spoken = record.spoken.until(round)
    return _balance_conversations(record, spoken.agents, np.ones(len(spoken.agents)))


def find_word_balance(record: WorldRecord, round: int) -> Measured:
    """The same as `balance`, where pᵢ is the share of words."""
    spoken = record.spoken.until(round)
    return _balance_conversations(record, spoken.agents, spoken.words.astype(np.float64))


def _balance_conversations(
    record: WorldRecord, agents: NDArray[np.int32], weights: NDArray[np.float64]
) -> float | None:
    said = np.bincount(agents, weights, minlength=record.people)
    if record.kind == ROOM:
        return measure_balance(said)
    sides: dict[int, list[float]] = {}
    for agent, pair in record.partners.items():
        sides.setdefault(pair, []).append(said[agent])
    balances = [balance for each in sides.values() if (balance := measure_balance(each)) is not None]
    return fmean(balances) if balances else None


def find_agreement(record: WorldRecord, round: int) -> Measured:
    """The mean agreement of the scenes that have ended, 0 to 1, as the world recorded it."""
    return _average(record, _AGREEMENTS, round)


def find_score(record: WorldRecord, round: int) -> Measured:
    """The mean score that people gave to the scenes they were in, 0 to 10, as the world recorded it."""
    return _average(record, _SCORES, round)


def _average(record: WorldRecord, sql: str, round: int) -> float | None:
    values = [value for (value,) in record.query(sql, round)]
    return fmean(values) if values else None


METRICS = (
    Metric("activity_inequality", find_activity_inequality, needs="nobody did anything", bounds=SHARE),
    Metric("participation", find_participation, needs="there is nobody", bounds=SHARE),
    Metric("actions", count_actions, about="action", needs="nobody did anything", bounds=COUNT),
    Metric("response_rate", find_response_rate, (PLATFORM, ROOM), needs="there was nothing to answer", bounds=SHARE),
    Metric("balance", find_balance, (ROOM, DIALOGUE), needs="nobody said anything", bounds=SHARE),
    Metric("word_balance", find_word_balance, (ROOM, DIALOGUE), needs="nobody said anything", bounds=SHARE),
    Metric("agreement", find_agreement, (DIALOGUE,), needs="no scene has ended", bounds=SHARE),
    Metric("score", find_score, (DIALOGUE,), needs="nobody gave a score", bounds=(0.0, 10.0)),
)
