"""Questions to measure a server with: of a chosen size, or those that the agents of a scenario would ask.

No two are alike, also between two measurements, so that no cache on the way answers them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.agents import LanguageSettings
from shoal.errors import RunRefused
from shoal.journal import JournalKey
from shoal.models import CHARACTERS_PER_TOKEN, Message, Question
from shoal.runs.planning.plan import collect_questions
from shoal.scenario import Scenario
from shoal.seeds import Draws, derive

#: Makes the question with a number.
Probes = Callable[[int], Question]

#: The size of a usual turn of an agent.
PROMPT_TOKENS = 1500
REPLY_TOKENS = 64
FEWEST_PROMPT_TOKENS = 50
#: The share of a prompt that all agents have in common, which servers may cache.
SHARED_SHARE = 0.4
#: The part of a scenario that is played through to collect questions: rounds, and agents.
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


def make_synthetic_probes(
    model: str, seed: int, prompt_tokens: int = PROMPT_TOKENS, reply_tokens: int = REPLY_TOKENS
) -> Probes:
    """Make questions of this size without a meaning, answered in the form of an agent's turn."""
    shared = round(prompt_tokens * SHARED_SHARE)
    rules = f"You take part in a conversation. Reply in JSON.\n{_write_words(shared, derive(seed, 'rules'))}"

    def make_probe(number: int) -> Question:
        words = _write_words(prompt_tokens - shared, derive(seed, "told", number))
        text = f"Note {derive(seed, number):016x}. {words}\n\nWhat do you do? Reply in JSON."
        return Question(
            key=JournalKey("tune", number, None, "call"),
            model=model,
            messages=(Message("system", rules), Message("user", text)),
            schema=SCHEMA,
            temperature=0.7,
            max_tokens=reply_tokens,
        )

    return make_probe


async def make_scenario_probes(scenario: Scenario, seed: int) -> Probes:
    """Make the questions that a scenario's agents would ask its model, in random order and again from the start.

    A mark at the very end makes each unique, so that a server can cache as much of a prompt as it could in a run.
    """
    assert isinstance(scenario.mind, LanguageSettings)
    model = scenario.mind.model
    short = scenario.model_copy(update={"rounds": min(scenario.rounds, PLAYED_ROUNDS)})
    found = [question for question in await collect_questions(short, FOLLOWED) if question.model == model]
    if not found:
        raise RunRefused(
            f"{scenario.name}: nobody would ask {model} anything in the first {short.rounds} rounds.\n"
            "Measure with --model alone, which asks questions of its own."
        )
    questions = sorted(found, key=lambda question: derive(seed, question.key))

    def make_probe(number: int) -> Question:
        question = questions[number % len(questions)]
        *before, last = question.messages
        marked = Message(last.role, f"{last.content}\n(Note {derive(seed, number):016x}.)")
        key = JournalKey("tune", number, None, "call")
        return msgspec.structs.replace(question, key=key, messages=(*before, marked))

    return make_probe


def _write_words(tokens: int, key: int) -> str:
    """Draw words for about this many tokens."""
    draws, length, words = Draws(key), tokens * CHARACTERS_PER_TOKEN, []
    while length > 0:
        words.append(draws.choice(WORDS))
        length -= len(words[-1]) + 1
    return " ".join(words)
