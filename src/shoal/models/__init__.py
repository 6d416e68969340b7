"""One question to a language model, answered."""

from shoal.models.base import Answer, FailureKind, Message, Model, ModelFailed, ModelFailure, Question, Usage
from shoal.models.costs import Price, Spending, find_price
from shoal.models.stack import Stack, StackSettings, build_replay_stack, open_stack
from shoal.models.tokens import CHARACTERS_PER_TOKEN, estimate, shorten

__all__ = [
    # base
    "Answer",
    "FailureKind",
    "Message",
    "Model",
    "ModelFailed",
    "ModelFailure",
    "Question",
    "Usage",
    # costs
    "Price",
    "Spending",
    "find_price",
    # stack
    "Stack",
    "StackSettings",
    "build_replay_stack",
    "open_stack",
    # tokens
    "CHARACTERS_PER_TOKEN",
    "estimate",
    "shorten",
]
