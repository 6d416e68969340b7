"""Speed, measured: every bar of the project, printed and written to results.json."""
