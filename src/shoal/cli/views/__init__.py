"""Shows progress, summaries and differences on the terminal."""
