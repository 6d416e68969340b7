"""The commands that start many runs: batch, check, experiment; and what measures them."""
