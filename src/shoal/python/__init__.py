"""The same verbs for Python: people, worlds and results in a script or a notebook."""
