"""A persona with memory and a mind."""

from shoal.agents.claims import Proposition, TranscriptExcerpt
from shoal.agents.human import AskPerson, HumanMind, PlayedMind
from shoal.agents.interview import (
    Approach,
    Field,
    Item,
    Respondent,
    Survey,
    Unanswered,
    ask_survey,
    build_question,
    parse_fields,
)
from shoal.agents.scripted import ScriptedMind
from shoal.agents.settings import HeuristicSettings, LanguageSettings, Latency, ScriptedSettings, ScriptedTurn
from shoal.agents.wrappers import DelayedMind, Remembering, WrapperMind, unwrap

__all__ = [
    # claims
    "Proposition",
    "TranscriptExcerpt",
    # human
    "AskPerson",
    "HumanMind",
    "PlayedMind",
    # interview
    "Approach",
    "Field",
    "Item",
    "Respondent",
    "Survey",
    "Unanswered",
    "ask_survey",
    "build_question",
    "parse_fields",
    # scripted
    "ScriptedMind",
    # settings
    "HeuristicSettings",
    "LanguageSettings",
    "Latency",
    "ScriptedSettings",
    "ScriptedTurn",
    # wrappers
    "DelayedMind",
    "Remembering",
    "WrapperMind",
    "unwrap",
]
