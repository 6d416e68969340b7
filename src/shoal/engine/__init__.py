"""Advances worlds round by round: observe, decide, apply, commit."""
