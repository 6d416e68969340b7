"""The offline minds: a seeded classical model of people, never a language model."""
