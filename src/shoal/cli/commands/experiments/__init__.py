"""The commands that start many runs: batch, check, experiment."""
