"""Wraps one model in another: journal, cache, budget, retries, limit."""
