"""What agents remember: recent turns word for word, older ones by relevance, and what they made of them."""

from shoal.agents.memory.memory import Memory
from shoal.agents.memory.settings import MemorySettings

__all__ = [
    # memory
    "Memory",
    # settings
    "MemorySettings",
]
