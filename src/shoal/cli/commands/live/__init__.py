"""The commands about runs that other processes work on: watch, stop, interview, serve."""
