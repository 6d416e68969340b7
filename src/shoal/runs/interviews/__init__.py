"""Interviews copies of agents, without changing the run."""

from shoal.runs.interviews.ask import AnswerRow, AnswerTable, Asking, ask_agents, read_survey, score_agents, score_world
from shoal.runs.interviews.selection import AgentSelection
