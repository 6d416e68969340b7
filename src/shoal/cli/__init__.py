"""The same verbs for the terminal."""
