"""Questions to measure a server with: of a chosen size, or those that the agents of a scenario would ask.

No two are alike, and those of two measurements are not either, so that no cache between here and there answers them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from shoal.agents.settings import LanguageSettings
from shoal.errors import RunRefused
from shoal.journal import JournalKey
from shoal.models.base import Message, Question
from shoal.models.tokens import CHARACTERS_PER_TOKEN
from shoal.runs.planning.plan import collect_questions
from shoal.scenario.scenario import Scenario
from shoal.seeds import Draws, derive

#: Makes the question of a number.
Probes = Callable[[int], Question]

#: Like a usual turn of an agent.
PROMPT_TOKENS = 1500
REPLY_TOKENS = 64
FEWEST_PROMPT_TOKENS = 50
#: What all agents share of a prompt, which servers may keep.
SHARED_SHARE = 0.4
#: Of a scenario, so much is played through to hear what its agents ask.
PLAYED_ROUNDS = 16
FOLLOWED = 60

WORDS = (
    "the a of to and in that it was for on with as they at people said this from we by not have but are be old new town"
    " bridge river market school house work week morning evening road friend neighbour council plan news letter story"
    " question answer doubt hope reason change money time place never often again before after because though perhaps"
).split()
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "thought": {"type": "string", "description": "In at most twenty words."},
        "action": {"type": "string", "enum": ["write", "like", "nothing"]},
        "text": {"type": "string", "description": "What to write, in at most twenty words."},
    },
    "required": ["thought", "action", "text"],
    "additionalProperties": False,
}


def synthetic(model: str, seed: int, prompt_tokens: int = PROMPT_TOKENS, reply_tokens: int = REPLY_TOKENS) -> Probes:
    """Questions of this size about nothing, answered in the form of an agent's turn."""
    shared = round(prompt_tokens * SHARED_SHARE)
    rules = f"You take part in a conversation. Reply in JSON.\n{_prose(shared, derive(seed, 'rules'))}"

    def probe(number: int) -> Question:
        told = f"Note {derive(seed, number):016x}. {_prose(prompt_tokens - shared, derive(seed, 'told', number))}"
        return Question(
            key=JournalKey("tune", number, None, "call"),
            model=model,
            messages=(Message("system", rules), Message("user", f"{told}\n\nWhat do you do? Reply in JSON.")),
            schema=SCHEMA,
            temperature=0.7,
            max_tokens=reply_tokens,
        )

    return probe


async def of_scenario(scenario: Scenario, seed: int) -> Probes:
    """What the agents of a scenario would ask its model, in no particular order; after the last one from the start."""
    assert isinstance(scenario.mind, LanguageSettings)
    model = scenario.mind.model
    short = scenario.model_copy(update={"rounds": min(scenario.rounds, PLAYED_ROUNDS)})
    asked = [question for question in await collect_questions(short, FOLLOWED) if question.model == model]
    if not asked:
        raise RunRefused(
            f"{scenario.name}: nobody would ask {model} anything in the first {short.rounds} rounds.\n"
            "Measure with --model alone, which asks questions of its own."
        )
    return _marked(sorted(asked, key=lambda question: derive(seed, question.key)), seed)


def _marked(asked: Sequence[Question], seed: int) -> Probes:
    """With a mark at the very end of each, so that what a server keeps of a prompt is what it would keep in a run."""

    def probe(number: int) -> Question:
        question = asked[number % len(asked)]
        *before, last = question.messages
        marked = Message(last.role, f"{last.content}\n(Note {derive(seed, number):016x}.)")
        return msgspec.structs.replace(
            question, key=JournalKey("tune", number, None, "call"), messages=(*before, marked)
        )

    return probe


def _prose(tokens: int, key: int) -> str:
    """Words without a meaning, about so many tokens of them."""
    draws, length, words = Draws(key), tokens * CHARACTERS_PER_TOKEN, []
    while length > 0:
        words.append(draws.choice(WORDS))
        length -= len(words[-1]) + 1
    return " ".join(words)
