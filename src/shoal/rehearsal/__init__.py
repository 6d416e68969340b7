"""A server that speaks as a provider of language models does, with the limits and faults one chooses."""
