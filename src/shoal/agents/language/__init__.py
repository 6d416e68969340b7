"""The mind that asks a language model: its prompts, and how replies are read."""

from shoal.agents.language.episodes import summarise_turn
from shoal.agents.language.mind import LanguageMind
from shoal.agents.language.prefix_stats import PrefixMeter, total_share
from shoal.agents.language.prompt import PersonaTexts
from shoal.agents.language.world_card import build_card

__all__ = [
    # episodes
    "summarise_turn",
    # mind
    "LanguageMind",
    # prefix stats
    "PrefixMeter",
    "total_share",
    # prompt
    "PersonaTexts",
    # world card
    "build_card",
]
