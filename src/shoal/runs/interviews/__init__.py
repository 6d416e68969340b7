"""Interviews copies of agents, without changing the run."""

from shoal.runs.interviews.ask import (
    AnswerRow,
    AnswerTable,
    Asking,
    ask_agents,
    extract_from_agents,
    extract_from_world,
    join_tables,
    parse_survey,
    read_survey,
    score_agents,
    score_world,
)
from shoal.runs.interviews.selection import AgentSelection
