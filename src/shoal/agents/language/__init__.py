"""The mind that asks a language model: its prompts, and how replies are read."""
