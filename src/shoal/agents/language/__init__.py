"""The mind that asks a language model: its prompts, and how replies are read."""

from shoal.agents.language.assistant import AssistantMind
from shoal.agents.language.mind import LanguageMind, summarise_turn
from shoal.agents.language.poll import OpinionPoll
from shoal.agents.language.prefix_stats import PrefixMeter, PrefixShare, total_share
from shoal.agents.language.prompt import PersonaTexts, PromptBook, ShortenedPersona
from shoal.agents.language.reply import Finder, UnusableReply, bound_action, read_action
from shoal.agents.language.template import fill, find_variables, list_known
from shoal.agents.language.world_card import CardLimits, WorldCard, build_card, describe_world, list_offered
