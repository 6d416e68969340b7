"""The offline minds: a seeded classical model of people, never a language model."""

from shoal.agents.heuristic.base import Behaviour
from shoal.agents.heuristic.minds import build_heuristic_mind
