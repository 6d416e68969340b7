"""Asks the agents of a language mind what they think, every few rounds and outside of their history.

Each agent is asked as in an interview: it does not remember the question, and its answer is no part of the history. The
model journals the answers under the purpose `measure`, so none is paid for twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from math import nan

from shoal.agents.interview import Approach, Field, Item, Respondent, Survey, Unanswered, ask_survey, build_question
from shoal.journal import JournalKey
from shoal.models import Model, ModelFailed
from shoal.worlds import TextReader

MEASURE = "measure"
TOPIC = "topic"
_TOKENS = 200


#: Returns who an agent is by now, and its model: of its number, and what it is reminded by.
DescribeAgent = Callable[[int, str], tuple[Respondent, str]]


class OpinionPoll:
    """The questions about the topic and the claims of a scenario, and every agent's latest answers."""

    def __init__(self, world: str, reader: TextReader, people: int, every: int) -> None:
        self._world = world
        self._every = every
        items, self._columns = [], dict[str, str]()
        if reader.subject_name is not None:
            question = f"What do you think of {reader.subject_name}? -1: fully against it, 1: fully for it."
            items.append(Item(question, (Field(TOPIC, "number", (), -1, 1),)))
            self._columns[TOPIC] = TOPIC
        for number, claim in enumerate(reader.claims.values(), 1):
            question = f"How true is this: “{claim.text}” -1: certainly false, 0: you cannot tell, 1: certainly true."
            items.append(Item(question, (Field(f"claim_{number}", "number", (), -1, 1),)))
            self._columns[f"claim_{number}"] = claim.id
        self._survey = Survey.of(items)
        self._answers = {about: [nan] * people for about in self._columns.values()}

    @property
    def opinions(self) -> Sequence[float]:
        return self._answers.get(TOPIC, ())

    @property
    def beliefs(self) -> Mapping[str, Sequence[float]]:
        return {about: values for about, values in self._answers.items() if about != TOPIC}

    async def ask(self, round: int, agents: Sequence[int], describe: DescribeAgent, model: Model) -> None:
        """Ask these agents, if it is time. Agents that give no usable answer keep the one before."""
        if round and round % self._every == 0:
            async with asyncio.TaskGroup() as group:
                for agent in agents:
                    group.create_task(self._ask_one(round, agent, describe, model))

    async def _ask_one(self, round: int, agent: int, describe: DescribeAgent, model: Model) -> None:
        respondent, name = describe(agent, self._survey.cue)
        key = JournalKey(self._world, round, agent, MEASURE)
        question = build_question(respondent, self._survey, Approach(name, None, _TOKENS), key)
        try:
            answers = await ask_survey(model, question, self._survey)
        except (Unanswered, ModelFailed):
            return
        for column, about in self._columns.items():
            self._answers[about][agent] = float(answers[column])
