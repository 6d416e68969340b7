"""One question to a language model, answered."""
