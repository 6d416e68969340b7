"""What agents remember: recent turns word for word, older ones by relevance, and what they made of them."""

from shoal.agents.memory.knowledge import GraphKnowledge
from shoal.agents.memory.memory import Memory
