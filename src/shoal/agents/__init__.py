"""A persona with memory and a mind."""

from shoal.agents.extraction import OBJECTIVE, Extraction
from shoal.agents.human import AskPerson, HumanMind, PlayedMind
from shoal.agents.interview import (
    ANSWER,
    AnswerForm,
    Approach,
    Field,
    Item,
    Respondent,
    Survey,
    Unanswered,
    UnusableAnswer,
    ask_survey,
    build_question,
    parse_fields,
    read_object,
)
from shoal.agents.propositions import JUDGE, SCORE_FORM, ClaimJudge, NoJudge, Proposition
from shoal.agents.record import RunningRecord, excerpt_record, write_transcript
from shoal.agents.scripted import ScriptedMind
from shoal.agents.settings import (
    GroupMindSettings,
    HeuristicSettings,
    LanguageSettings,
    Latency,
    MeasureSettings,
    MemorySettings,
    PromptSettings,
    ScriptedSettings,
    ScriptedTurn,
)
from shoal.agents.wrappers import DelayedMind, Remembering, SplitMind, WrapperMind, unwrap
