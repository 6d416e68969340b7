"""Wraps one model in another: journal, cache, budget, retries, limit."""

from shoal.models.middleware.budget import Budget, Budgeted
from shoal.models.middleware.limited import Limited, PlainLimit
