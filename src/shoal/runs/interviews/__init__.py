"""Interviews copies of agents, without changing the run."""

from shoal.runs.interviews.ask import (
    MAX_UNBUDGETED,
    AnswerRow,
    AnswerTable,
    Asking,
    InterviewJob,
    ask_agents,
    build_interviews,
    choose_mind,
    extract_from_agents,
    extract_from_world,
    join_tables,
    open_interviews,
    parse_survey,
    read_survey,
    score_agents,
    score_world,
)
from shoal.runs.interviews.selection import AgentSelection
from shoal.runs.interviews.snapshots import snapshot_agents
