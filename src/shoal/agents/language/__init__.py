"""The mind that asks a language model: what it is told, how its replies are read."""
