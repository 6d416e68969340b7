"""One question to a language model, answered."""

from shoal.models.base import (
    Answer,
    FailureKind,
    Message,
    Model,
    ModelFailed,
    ModelFailure,
    Question,
    Remedy,
    Usage,
    strip_reasoning,
)
from shoal.models.costs import Price, Spending, Spent, find_price
from shoal.models.middleware.availability import PATIENCE_SECONDS, Availability
from shoal.models.middleware.budget import Budget, CallSize, Funds
from shoal.models.middleware.cached import Cache, ReplyCache, open_cache
from shoal.models.middleware.model_gate import Pause
from shoal.models.stack import Stack, StackSettings, build_replay_stack, open_stack
from shoal.models.tokens import CHARACTERS_PER_TOKEN, estimate, shorten
