"""Reads what happened in a run: summaries, conversations, exports."""
